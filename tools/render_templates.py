#!/usr/bin/env python3
"""Renders chat templates with Jinja2, the definition that src/tokenizer/jinja follows.

    python3 tools/render_templates.py DIRECTORY      each *.jinja there on each of tools/chat_conversations.py
    python3 tools/render_templates.py < cases        JSON lines with "template" and perhaps "context"

Writes one JSON object a line: the case (template or its name, context) with "output", or "error" and "line".
"""

import datetime
import functools
import json
import os
import sys
import traceback

import jinja2
import jinja2.ext
import jinja2.nodes

NOW = datetime.datetime(2026, 11, 29, 12, 34, 56)
NOW_UNIX = int(NOW.replace(tzinfo=datetime.timezone.utc).timestamp())


class Generation(jinja2.ext.Extension):
    """{% generation %}: its body is called as that of a call block is."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def environment():
    env = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])

    def raise_exception(message):
        raise jinja2.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    env.filters["tojson"] = tojson
    return env


def line_of(error):
    """The template line a failed render stood at."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    return lines[-1] if lines else 0


@functools.lru_cache(maxsize=64)
def compiled(env, source):
    return env.from_string(source)


def render(env, source, context):
    try:
        output = compiled(env, source).render(**context)
        output.encode()  # lone surrogates are no text
        return {"output": output}
    except Exception as error:  # whatever is raised is how Jinja2 says no
        return {"error": f"{type(error).__name__}: {error}", "line": line_of(error)}


def cases_of(directory):
    import chat_conversations

    for name in sorted(os.listdir(directory)):
        if not name.endswith(".jinja"):
            continue
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            source = file.read()
        for context in chat_conversations.conversations():
            yield {"name": name, "template": source, "context": context}


def main():
    env = environment()
    cases = cases_of(sys.argv[1]) if len(sys.argv) > 1 else map(json.loads, sys.stdin)
    for case in cases:
        result = render(env, case["template"], case.get("context", {}))
        print(json.dumps({**case, "now": NOW_UNIX, **result}, ensure_ascii=False))


if __name__ == "__main__":
    main()
