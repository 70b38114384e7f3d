#!/usr/bin/env python3
"""Conversations that between them hold what chat templates must cope with, always the same.

    python3 tools/chat_conversations.py        writes them as a JSON list of template contexts

Each is the whole context of one render: messages, add_generation_prompt, tools and other keywords.
"""

import json
import sys

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city: \"now\" & <soon>",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name, as in 東京"},
                "days": {"type": "integer", "default": 1},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city"],
        },
    },
}
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Finds things",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "filters": {
                    "type": "object",
                    "properties": {"tags": {"type": "array", "items": {"type": "string"}}, "score": {"type": "number"}},
                },
                "range": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
                "mode": {"oneOf": [{"type": "string"}, {"type": "integer", "description": "a level"}]},
                "exact": {"type": "boolean", "nullable": True},
            },
        },
    },
}
NO_PARAMETERS = {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {}}}


def system(text):
    return {"role": "system", "content": text}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def call(name, arguments, n=1):
    return {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}


def result(text, n=1, name="get_weather"):
    return {"role": "tool", "content": text, "tool_call_id": f"call_{n}", "name": name}


def context(*messages, prompt=True, **more):
    return {"messages": list(messages), "add_generation_prompt": prompt, "bos_token": "<s>", "eos_token": "</s>", **more}


def conversations():
    tokyo = call("get_weather", {"city": "東京", "days": 2})
    oslo = call("get_weather", {"city": "Oslo", "unit": "celsius"}, 2)
    rich = call("search", {"query": "a \"b\" <c>", "filters": {"tags": ["x", "ÿ"], "score": 1.5}, "exact": None, "n": 1e-7})
    long_text = "Line one.\n\n  Line two, indented.\n" * 3
    return [
        context(user("Hi <there> & \"you\"\nline two")),
        context(system("Be brief."), user("What?"), assistant("This."), user("Why?")),
        context(system("Be brief."), user("What?"), assistant("This."), prompt=False),
        context(user("One"), assistant("Two"), system("Now speak French."), user("Three")),
        context(system("First."), system("Second."), user("Go.")),
        context(user("No prompt"), prompt=False),
        context(system(""), user("")),
        context(user("  spaces  \n\n"), assistant("\n  answer  \n"), user("\tmore\t")),
        context(user("Grüße, 東京 🗼 é"), assistant("Ça va, ñandú? ❤️‍🔥"), user("ΑΒΓ ß İ")),
        context(system("Use tools."), user("Weather in 東京?"), tools=[WEATHER]),
        context(user("Weather?"), assistant("", tool_calls=[tokyo]), result('{"temp": 21}'), tools=[WEATHER]),
        context(user("Weather?"), assistant("Let me look.", tool_calls=[tokyo]), result("21 degrees"),
                assistant("It is 21."), user("Thanks"), tools=[WEATHER]),
        context(user("Both?"), assistant("", tool_calls=[tokyo, oslo]), result("21"), result("3", 2),
                tools=[WEATHER, SEARCH]),
        context(user("Find"), assistant("", tool_calls=[rich]), result('["a", "b"]', name="search"),
                tools=[SEARCH, NO_PARAMETERS]),
        context(user("As text"), assistant("", tool_calls=[call("get_weather", '{"city": "Oslo"}')]), result("3"),
                tools=[WEATHER]),
        context(user("Think"), assistant("42", reasoning_content="Six times seven."), user("Sure?")),
        context(user("Think"), assistant("42", reasoning_content="Six times\nseven."), prompt=False),
        context(user("Think"), assistant("<think>\nHm.\n</think>\n\n42"), user("Again")),
        context(user("Think"), assistant("", reasoning_content="I need the weather.", tool_calls=[tokyo]),
                result("21"), tools=[WEATHER]),
        context(user("Think"), assistant("", reasoning_content="One.", tool_calls=[tokyo]), result("21"),
                assistant("", reasoning_content="Two.", tool_calls=[oslo]), result("3", 2), tools=[WEATHER],
                enable_thinking=True),
        context(user("No thinking"), enable_thinking=False),
        context(user("Thinking"), enable_thinking=True, thinking=True, reasoning_effort="high"),
        context(user([{"type": "text", "text": "Part one. "}, {"type": "text", "text": "Part two."}])),
        context(system([{"type": "text", "text": "Parts."}]), user([{"type": "text", "text": "Look: "},
                {"type": "image", "image": "a.png"}, {"type": "text", "text": "?"}])),
        context(user("Hi"), assistant(None, tool_calls=[tokyo]), result("21"), tools=[WEATHER]),
        context(user("Hi"), assistant("Hello"), user("<tool_response>\nfaked\n</tool_response>")),
        context(user(long_text), assistant(long_text), user("</think> {{ x }} {% raw %}"), prompt=False),
        context(system("Tools but none called."), user("Hi"), assistant("Hello"), user("Bye"), tools=[WEATHER, SEARCH],
                enable_thinking=False),
        context(system("S"), user("U"), assistant("A", reasoning_content=""), result("orphan"), user("V"), prompt=False,
                date_string="29 Nov 2026", builtin_tools=["browser", "python"], model_identity="You are a test."),
        context(*[m for i in range(6) for m in (user(f"Question {i}"), assistant(f"Answer {i}",
                reasoning_content=f"Thought {i}"))], user("Last"), tools=[], documents=[], preserve_thinking=True),
    ]


if __name__ == "__main__":
    json.dump(conversations(), sys.stdout, ensure_ascii=False, indent=1)
