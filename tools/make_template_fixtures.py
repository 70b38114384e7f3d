#!/usr/bin/env python3
"""Writes tests/tokenizer/chat_template_cases.json: small templates, and what Jinja2 makes of them.

    python3 tools/make_template_fixtures.py > tests/tokenizer/chat_template_cases.json

A case is {topic, template, context, output} or, where Jinja2 fails, {topic, template, context, error, line}.
"""

import json
import sys

import render_templates

CONTEXT = {
    "name": "World",
    "empty": "",
    "text": "  Hello, Wörld! 東京 🗼  ",
    "n": 7,
    "x": 2.5,
    "yes": True,
    "no": False,
    "nothing": None,
    "big": 18446744073709551615,
    "items": [3, 1, 2],
    "words": ["pear", "Apple", "fig", "apple"],
    "d": {"b": 2, "a": 1, "C": 3},
    "users": [
        {"name": "Ann", "age": 30, "city": "Oslo", "tags": ["x", "y"]},
        {"name": "bob", "age": 25, "city": "rome"},
        {"name": "Cid", "age": 30, "city": "Rome", "admin": True},
    ],
    "nested": {"list": [1, [2, {"k": "v"}]], "none": None, "f": 1.0},
    "html": "<a href=\"x\">'&'</a>",
    "lines": "one\ntwo\n\n  three\n",
}

# Each line is a template; a blank line separates topics, whose name stands after "#: ".
LINES = r"""
#: output
Hello {{ name }}!
{{ nothing }}|{{ yes }}|{{ no }}|{{ n }}|{{ x }}|{{ undefined_thing }}|{{ big }}
{{ items }} {{ d }} {{ nested }}
{{ [1, 'a', "it's", 'q"q', "b'\"", 1.0, none, true] }}
{{ (1,) }} {{ (1, 2) }} {{ () }} {{ {1: 2, 'a': (1, [2])} }}
{{ 1, 2 }}
{{ ["tab\t", "nl\n", "cr\r", "bs\\", "é", "東", "\x07", "\u200b", "\U000e0001"] }}
{{ 'a' 'b' "c" }}
{{ [undefined_thing] }}

#: numbers
{{ 1.0 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789012345678.0 }} {{ 1e-4 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 1e22 }} {{ 5e-324 }}
{{ 1_000 }} {{ 0xff }} {{ 0b101 }} {{ 0o17 }} {{ 1_0.2_5 }} {{ 1e3 }} {{ 1E+2 }} {{ 000 }}
{{ 7 / 2 }} {{ 6 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }}
{{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2.0 ** 0.5 }} {{ 0 ** 0 }} {{ (-1) ** 5 }} {{ (-2) ** -3 }}
{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 10 - 4 - 3 }} {{ 100 / 10 / 5 }} {{ 1 ~ 2 * 3 ~ 4 }} {{ 2 * 3 ~ 4 }}
{{ 1 + 2 ~ 3 }}
{{ true + 1 }} {{ true * 3 }} {{ -true }} {{ +n }} {{ -n }} {{ - - n }} {{ -x }} {{ not n }} {{ not not n }}
{{ 9223372036854775807 + 1 }} {{ 4294967296 * 4294967296 }} {{ -9223372036854775808 - 1 }} {{ big + 1 }}
{{ 1 == 1.0 }} {{ true == 1 }} {{ 1 < 1.5 }} {{ 9007199254740993 == 9007199254740992.0 }} {{ 9007199254740993 > 9007199254740992.0 }}
{{ 1e308 * 10 }} {{ -1e308 * 10 }} {{ 1e308 * 10 - 1e308 * 10 }}
{{ 0.0 }} {{ -0.0 }} {{ 3 // 1.5 }} {{ 2 ** 100 }} {{ 0.5 ** 3 }} {{ 1 - 0.9 }} {{ 100.0 }} {{ 1234567.891 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ 0 ** -1 }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ none + 1 }}
{{ [1] + (2,) }}
{{ {} + {} }}
{{ -'a' }}
{{ 'a' - 'b' }}

#: strings
{{ 'a\nb\tc\\d\'e\"f\x41\u00e9\U0001F600\101\a\b\f\v\q' }}
{{ 'line\
continued' }}
{{ "é" ~ '東京' ~ "🗼" }}
{{ name + '!' }} {{ name * 2 }} {{ 2 * name }} {{ name * 0 }} {{ name * -1 }}
{{ text|length }} {{ text[2] }} {{ text[-3] }} {{ text[9:13] }} {{ text[::-1] }} {{ '東京タワー'[1:4] }} {{ '東京タワー'[::2] }} {{ '東京タワー'[-2:] }}
{{ name[0] }}{{ name[-1] }}{{ name[10] }}{{ name[1:3] }}{{ name[:2] }}{{ name[3:] }}{{ name[:-1] }}{{ name[-3:-1] }}{{ name[::-2] }}{{ name[10:] }}{{ name[4:1] }}
{{ 'abc' < 'abd' }} {{ 'a' < 'B' }} {{ 'Z' < 'a' }} {{ '' < 'a' }} {{ 'é' > 'z' }} {{ 'abc' >= 'abc' }}
{{ 'or' in name }} {{ 'x' in name }} {{ '' in name }} {{ 'W' not in name }}
{{ '\é' }}
{{ '%' ~ '{' ~ '}' }}
{{ 1 in 'a1' }}
{{ 'unterminated }}
{{ '\x4' }}
{{ '\ud800' }}

#: sequences
{{ items[0] }} {{ items[-1] }} {{ items[5] }} {{ items[1:] }} {{ items[:-1] }} {{ items[::-1] }} {{ items[::2] }} {{ items[-2:] }} {{ items[5:] }} {{ items[2:0:-1] }} {{ items[:0] }} {{ items[none:2] }}
{{ items[3::-1] }} {{ items[-5:-1] }} {{ items[::-5] }} {{ range(10)[2:8:3] }} {{ range(10)[-3:]|list }} {{ range(5)[10] }}
{{ items + [9] }} {{ items * 2 }} {{ (1, 2) + (3,) }} {{ (1,) * 3 }} {{ [] * 5 }} {{ 0 * items }}
{{ [1, 2] == [1, 2] }} {{ [1] < [2] }} {{ [1, 2] < [1] }} {{ [] < [0] }} {{ (1, 2) < (1, 3) }} {{ [1] == (1,) }} {{ [1, 'a'] <= [1, 'a'] }}
{{ 1 in items }} {{ 9 in items }} {{ 1.0 in items }} {{ 'a' in d }} {{ 'z' in d }} {{ 2 not in items }} {{ 3 in range(5) }} {{ 5 in range(5) }} {{ 4 in range(0, 10, 2) }} {{ 'a' in d.keys() }} {{ 2 in d.values() }} {{ ('a', 1) in d.items() }}
{{ range(3) }} {{ range(1, 4) }} {{ range(0, 9, 3) }} {{ range(3)|list }} {{ range(5, 0, -2)|list }} {{ range(0)|list }} {{ range(3) == range(0, 3, 1) }}
{{ items.0 }} {{ nested.list.1.1.k }} {{ nested['list'][1][1]['k'] }} {{ items['x'] }}| {{ items[1.0] }}| {{ items[true] }} {{ d[1] }}| {{ d[[1]] }}|
{{ {'a': 1}['a'] }} {{ {1: 'x'}[1.0] }} {{ {1: 'x'}[true] }} {{ {none: 'n'}[none] }} {{ {(1, 2): 't'}[1, 2] }} {{ {'a': 1, 'a': 2} }}
{{ users[0].name }} {{ users[0]['age'] }} {{ users[0].missing }}| {{ users[-1].admin }}
{{ nested.f == 1 }} {{ {'a': [1]} == {'a': [1.0]} }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ d != {} }}
{{ [1, 2, 3,] }} {{ {'a': 1,} }} {{ (1, 2,) }}
{{ items[::0] }}
{{ items['a':] }}
{{ d[1:2] }}
{{ n[1:] }}
{{ {[1]: 2} }}
{{ [1] in d }}
{{ 1 in 5 }}
{{ [1] < ['a'] }}
{{ d < d }}
{{ none < 1 }}
{{ range() }}
{{ range(1, 2, 0) }}
{{ range('a') }}

#: logic
{{ 1 and 2 }} {{ 0 and 2 }} {{ 0 or 'x' }} {{ '' or none or [] }} {{ 1 or 1/0 }} {{ 0 and 1/0 }} {{ not 1 or 2 }} {{ not (1 and 0) }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1 != 2 }} {{ 1 in [1] in [[1]] }} {{ 3 > 2 >= 2 }} {{ 1 < 2 and 2 < 1 }}
{{ 'a' if yes else 'b' }} {{ 'a' if no else 'b' }} {{ 'a' if no }}| {{ 1 if no else 2 if no else 3 }} {{ (1 if yes else 2) + 1 }} {{ 'x' if yes if no else 'y' }}
{{ ('a' if no) is defined }} {{ 1 if 'a' in d and not no else 2 }} {{ not yes == no }} {{ not 1 in [2] }}
{{ ('a' if no).b }}
{{ (none or {}).get('x', 'y') }} {{ (nothing or [])|length }} {{ undefined_thing or 'default' }} {{ undefined_thing and 1 }}|
{{ [] == false }} {{ '' == none }} {{ undefined_thing == undefined_other }} {{ undefined_thing == none }} {{ undefined_thing != 1 }} {{ undefined_thing in [1] }}

#: undefined
{{ missing.attribute }}
{{ missing['item'] }}
{{ missing() }}
{{ missing + 1 }}
{{ 1 + missing }}
{{ missing < 1 }}
{{ -missing }}
{{ missing[1:] }}
{{ d.missing.deeper }}
{{ users[0].missing.deeper }}
{{ items[10].x }}
{{ d.missing() }}
{{ nothing.x }}|{{ nothing.x is undefined }}
{{ nothing.x.y }}
{% for x in missing %}never{% else %}empty{% endfor %}
{{ missing|length }}{{ missing|list }}{{ missing|upper }}|{{ missing|string }}|{{ missing|join }}|{{ missing|trim }}|{{ missing|first }}|{{ missing|last }}|{{ missing|sort }}{{ missing|sum }}{{ missing|replace('a', 'b') }}|{{ missing|items|list }}{{ missing|map('upper')|list }}{{ missing|wordcount }}{{ missing|truncate }}|{{ missing|escape }}|{{ missing|urlencode }}|{{ missing|reverse|list }}
{{ missing|int }}
{{ missing|float }}
{{ missing|abs }}
{{ missing|tojson }}
{{ missing|round }}
{{ missing|dictsort }}
{{ missing|indent }}
{{ missing is defined }}{{ missing is undefined }}{{ missing is none }}{{ missing is string }}{{ missing is iterable }}{{ missing is sequence }}{{ missing is mapping }}{{ missing is callable }}{{ missing is number }}{{ missing is boolean }}{{ missing is lower }}
{{ missing is odd }}
{{ missing is divisibleby 3 }}
{{ '%s' % missing }}|{{ 'a' % missing }}|{{ missing ~ 'a' }}

#: whitespace
a {%- if yes %} b {%- endif %} c
a {% if yes -%} b {% endif -%} c
{{- name -}} x {{- name }}
{% raw %}{{ x }} {% if %}{% endraw %}!
a{# comment #}b {#- comment -#} c

#: set
{% set a = 1 %}{{ a }}{% set a = a + 1 %}{{ a }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (a, b), c = [3, 4], 5 %}{{ a }}{{ b }}{{ c }}
{% set a, b = 'xy' %}{{ a }}{{ b }}{% set x, y, z = d %}{{ x }}
{% set a = 1, 2 %}{{ a }}{% set a = 1, %}{{ a }}
{% set block %}text {{ n }}{% endset %}[{{ block }}]
{% set block | upper | replace('E', '3') %}text {{ n }}{% endset %}[{{ block }}]
{% set ns = namespace(a=1, b='x') %}{% set ns.a = ns.a + 1 %}{% set ns.c = 3 %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns.missing }}|{{ ns }}
{% set ns = namespace() %}{% for i in items %}{% set ns.sum = (ns.sum or 0) + i %}{% endfor %}{{ ns.sum }}
{% set ns = namespace({'a': 1}, b=2) %}{% set ns.a, ns.b = ns.b, ns.a %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}
{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}
{% for i in [1, 2] %}{{ name }}{% set name = i %}{{ name }}{% endfor %}{{ name }}
{% if yes %}{% set v = 1 %}{% endif %}{{ v }}{% if no %}{% set w = 1 %}{% endif %}{{ w }}|
{% if no %}{% set name = 1 %}{% endif %}{{ name }}{% if yes %}{% set name = 1 %}{% endif %}{{ name }}
{% for i in [1] %}{{ name }}{% endfor %}{% set name = 'later' %}{{ name }}
{% set name %}[{{ name }}]{% endset %}{{ name }}
{% set name = '[' ~ name ~ ']' %}{{ name }}
{% set a = [] %}{% set b = a %}{% set _ = b.append(1) %}{{ a }}
{% set a, b = 1 %}
{% set a, b = 1, 2, 3 %}
{% set d.x = 1 %}
{% set missing.x = 1 %}
{% set true = 1 %}
{% set a b = 1 %}
{% set 'a' = 1 %}
{% set [a, b] = 1, 2 %}

#: if
{% if n > 5 %}big{% elif n > 3 %}mid{% else %}small{% endif %}
{% if n > 50 %}big{% elif n > 3 %}mid{% else %}small{% endif %}
{% if no %}a{% elif nothing %}b{% elif [] %}c{% elif '' %}d{% elif {} %}e{% elif 0 %}f{% elif 0.0 %}g{% else %}h{% endif %}
{% if yes: %}a{% else: %}b{% endif %}
{% if yes %}{% if no %}a{% else %}b{% endif %}{% endif %}c
{% if range(0) %}a{% else %}b{% endif %}{% if range(1) %}a{% endif %}{% if d.items() %}a{% endif %}{% if {}.keys() %}a{% else %}b{% endif %}{% if (items|map('string')) %}c{% endif %}
{% if yes, no %}tuple{% endif %}

#: for
{% for i in items %}{{ i }},{% endfor %}
{% for i in items %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}
{% for i in items %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}
{% for i in items %}{{ loop.cycle('a', 'b') }}{% endfor %} {% for i in [1, 1, 2, 2, 1] %}{{ loop.changed(i) }}{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for v in d.values() %}{{ v }}{% endfor %}{% for k, v in d|items %}{{ k }}{{ v }}{% endfor %}
{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %} {% for k, v in d|dictsort(true) %}{{ k }}{% endfor %} {% for k, v in d|dictsort(false, 'value', true) %}{{ k }}{% endfor %}
{% for c in 'añ東' %}{{ c }}-{% endfor %}
{% for i in [] %}x{% else %}empty{% endfor %}{% for i in [1] %}x{% else %}empty{% endfor %}
{% for i in items if i > 1 %}{{ i }}:{{ loop.index }}/{{ loop.length }} {% endfor %}
{% for i in items if i > 5 %}x{% else %}none{% endfor %}
{% for a, b in [[1, 2], (3, 4), 'xy'] %}{{ a }}{{ b }} {% endfor %}{% for (a, b), c in [[[1, 2], 3]] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for k, v in d.items() if v > 1 %}{{ k }}{{ loop.previtem }}{% endfor %}
{% for i in range(5) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}{% for i in range(5) %}{% if i is odd %}{% continue %}{% endif %}{{ i }}{% endfor %}
{% for i in [1, 2] %}{% continue %}{% else %}else{% endfor %}{% for i in [1, 2] %}{% break %}{% else %}else{% endfor %}{% for i in [1, 2] %}{% if i == 2 %}{% break %}{% endif %}{% else %}else{% endfor %}
{% for i in items %}{% for j in items %}{% if j == 2 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{{ loop.index }};{% endfor %}
{% for i in items %}{% set outer = loop %}{% for j in [1, 2] %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}
{% for u in users recursive %}{{ u.name }}{{ loop.depth }}{% if u.tags %}({{ loop([{'name': 't'}]) }}){% endif %}{% endfor %}
{% for i in [[1, [2, [3]]], [4]] recursive %}{% if i is iterable %}[{{ loop(i) }}]{% else %}{{ i }}{{ loop.depth0 }}{% endif %}{% endfor %}
{% for i in [[], [1]] recursive %}{% if i is iterable %}[{{ loop(i) }}]{% else %}{{ i }}{% endif %}{% else %}none{% endfor %}
{% for i in items if loop is defined %}{{ i }}{% endfor %}
{% for i in items %}{{ i }}{% endfor %}{{ i }}{{ loop }}
{% for i in users|map(attribute='name') %}{{ i }}{{ loop.length }}{{ loop.last }} {% endfor %}
{% for i in items|reverse %}{{ i }}{{ loop.revindex }}{% endfor %}{% for i in items|select('odd') %}{{ i }}{{ loop.nextitem }}{% endfor %}
{% for i in 1, 2, 3 %}{{ i }}{% endfor %}{% for i in (1, 2) if i %}{{ i }}{% endfor %}
{% set xs = [1, 2] %}{% for i in xs %}{{ i }}{% if loop.index < 3 %}{% set _ = xs.append(i + 2) %}{% endif %}{% endfor %}{{ xs }}
{% set ns = namespace(stop=false) %}{% for i in range(9) if not ns.stop %}{{ i }}{% if i == 3 %}{% set ns.stop = true %}{% endif %}{% endfor %}
{% for i in items %}{{ loop }}{% endfor %}
{% for loop in items %}{% endfor %}
{% for i in items %}{% set loop = 1 %}{% endfor %}
{% for i in 5 %}{% endfor %}
{% for i in nothing %}{% endfor %}
{% for a, b in items %}{% endfor %}
{% for a, b in [[1, 2, 3]] %}{% endfor %}
{% for i in items %}{{ loop(i) }}{% endfor %}
{% for i in items %}{{ loop.cycle() }}{% endfor %}
{% for k in d %}{% set _ = d.update({k ~ 'x': 1}) %}{% endfor %}
{% break %}
{% for i in items %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for i in items %}{% else %}{% continue %}{% endfor %}
{% for i in items %}{% set x %}a{% if i == 1 %}{% continue %}{% endif %}b{% endset %}{{ x }}{{ i }}{% endfor %}
{% for i in items %}{% filter upper %}a{% if i == 1 %}{% break %}{% endif %}b{% endfilter %}{{ i }}{% endfor %}

#: macro
{% macro m(a, b='B', c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 2) }} {{ m(a=1, c=3) }} {{ m(c=1, b=2, a=3) }} {{ m() }}
{% macro m(a, b=a ~ '!') %}{{ a }}{{ b }}{% endmacro %}{{ m('x') }} {{ m('x', 'y') }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }} {{ m() }}
{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2, 3) }}
{% macro fact(k) %}{{ 1 if k < 2 else k * fact(k - 1)|int }}{% endmacro %}{{ fact(5) }}
{% macro m() %}{{ name }}{{ later }}{% endmacro %}{% set later = 1 %}{{ m() }}{% set later = 2 %}{{ m() }}
{% macro m() %}{% set name = 'inner' %}{{ name }}{% endmacro %}{{ m() }}{{ name }}
{% macro m() %}{{ name }}{% endmacro %}{{ m() }}{% set name = 'set' %}{{ m() }}
{% macro outer() %}{% macro inner(x) %}<{{ x }}>{% endmacro %}{{ inner(1) }}{{ inner(2) }}{% endmacro %}{{ outer() }}
{% macro m(x) %}  {{ x }}  {% endmacro %}[{{ m(1)|trim }}]{{ m(1)|length }}{{ m(2) is string }}
{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(1) }}{{ m(none) }}{{ m(missing) }}
{% for i in items %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}
{% macro m(caller) %}{{ caller }}{% endmacro %}{{ m(1) }}
{% macro m(x) %}{{ caller(x) }}{% endmacro %}{% call(v) m(3) %}<{{ v }}{{ n }}>{% endcall %}
{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}text{% endcall %}{% call m() %}{% call m() %}in{% endcall %}{% endcall %}
{% macro m() %}{{ caller is defined }}{{ caller }}{% endmacro %}{{ m() }}
{% macro m(a, caller=none) %}{{ caller is none }}{% if caller %}{{ caller() }}{% endif %}{% endmacro %}{{ m(1) }}{% call m(1) %}c{% endcall %}
{% macro m(a, b=1) %}{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}
{% macro m(x) %}{{ x }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'x': 2}) }}{{ m(*[], **{'x': 3}) }}
{% set ns = namespace(m=none) %}{% macro m() %}M{% endmacro %}{% set ns.m = m %}{{ ns.m() }}{{ {'f': m}.f() }}{{ [m][0]() }}
{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}b{% endmacro %}{{ a() }}
{% macro m(x, y) %}{{ x }}{% endmacro %}{{ m(1, 2, 3) }}
{% macro m(x) %}{{ x }}{% endmacro %}{{ m(z=1) }}
{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1, x=2) }}
{% macro m(x) %}{{ x.y }}{% endmacro %}{{ m() }}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}
{% macro m(caller) %}{{ caller() }}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{% macro m(a, a) %}{% endmacro %}
{% macro m( %}{% endmacro %}
{{ m() }}{% macro m() %}x{% endmacro %}
{% call 5 %}{% endcall %}

#: blocks
{% filter upper %}a{{ name }}{% endfilter %}{% filter replace('a', 'b')|upper %}aXa{% endfilter %}
{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}|{% with %}{% set c = 3 %}{{ c }}{% endwith %}{{ c }}|
{% set a = 'o' %}{% with a = 'i', b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}
{% with name = 'x' %}{{ name }}{% set name = 'y' %}{{ name }}{% endwith %}{{ name }}
{% generation %}a{{ name }}{% set name = 1 %}{{ name }}{% endgeneration %}{{ name }}
{% for m in items %}{% generation %}{{ m }}{{ loop.index }}{% endgeneration %}{% endfor %}
{% print n, name %}{% print(1, 2) %}
{% raw %}a {{ b }} {# c #}{% endraw %}{% raw -%}  x  {%- endraw %}
{% for i in items %}{% generation %}{% break %}{% endgeneration %}{% endfor %}
{% include 'x' %}
{% unknown %}
{% endif %}
{% if yes %}
{% if yes %}{% endfor %}
{% for i in items %}
{% macro m() %}{% endif %}{% endmacro %}
{% raw %}x
{# x
{{ 1
{{ }}
{% %}
{% if %}{% endif %}
{{ 1 2 }}
{{ a b }}
{{ (1 }}
{{ [1 }}
{{ 1) }}
{{ {'a' 1} }}
{{ 1 + }}
{{ 'a' ! }}
{{ $ }}
{{ x..y }}
{{ f(a=1, 2) }}
{{ f(a=1, a=2) }}
{{ x is }}
{{ x | }}
{% filter %}{% endfilter %}
{{ x is defined is defined }}
{% set x %}
{% with a %}{% endwith %}

#: tests
{{ n is odd }}{{ n is even }}{{ n is divisibleby(7) }}{{ n is divisibleby 2 }}{{ 2.0 is even }}{{ 3.5 is odd }}
{{ n is number }}{{ x is number }}{{ yes is number }}{{ '1' is number }}{{ n is integer }}{{ x is integer }}{{ yes is integer }}{{ x is float }}{{ n is float }}
{{ yes is boolean }}{{ 1 is boolean }}{{ yes is true }}{{ 1 is true }}{{ no is false }}{{ 0 is false }}{{ nothing is none }}{{ no is none }}
{{ name is string }}{{ n is string }}{{ d is mapping }}{{ items is mapping }}{{ items is iterable }}{{ name is iterable }}{{ d is iterable }}{{ n is iterable }}{{ nothing is iterable }}
{{ items is sequence }}{{ d is sequence }}{{ name is sequence }}{{ n is sequence }}{{ (1,) is sequence }}{{ range(2) is sequence }}{{ d.keys() is sequence }}{{ items|map('string') is sequence }}{{ (items|map('string')) is iterable }}
{{ 'abc' is lower }}{{ 'ABC' is upper }}{{ 'aBc' is lower }}{{ '123' is lower }}{{ 'ß' is lower }}{{ 'É' is upper }}{{ 5 is lower }}
{{ n is eq 7 }}{{ n is equalto(7) }}{{ n is ne 7 }}{{ n is gt 5 }}{{ n is ge 7 }}{{ n is lt 5 }}{{ n is le 7 }}{{ n is greaterthan 5 }}{{ n is lessthan 5 }}{{ n is sameas 7 }}{{ nothing is sameas none }}{{ yes is sameas true }}{{ 1 is sameas true }}
{{ 1 is in [1, 2] }}{{ 'a' is in 'abc' }}{{ 3 is not in items }}{{ 'a' is in(d) }}{{ n is not odd }}{{ n is not none }}
{{ 'upper' is filter }}{{ 'nope' is filter }}{{ 'odd' is test }}{{ 'nope' is test }}{{ range is callable }}{{ n is callable }}{{ namespace is callable }}{{ name.upper is callable }}
{{ ('a'|escape) is escaped }}{{ 'a' is escaped }}{{ missing is defined or n is defined and name is string }}
{{ (n is defined) if n is odd else 0 }}{{ not n is defined }}{{ 1 + 1 is odd }}{{ [n is odd, n is even] }}{{ 'x' ~ (n is odd) }}
{{ n is defined if yes else 0 }}
{{ 'x' ~ n is odd }}
{{ x is nosuch }}
{{ n is odd(1) }}
{{ name is odd }}
{{ n is divisibleby }}
{{ n is divisibleby 0 }}
{{ n is in 5 }}
{{ name is gt 5 }}
{% if no %}{{ x is nosuch }}{{ x|nosuch }}{% endif %}ok
{% if yes %}{{ x|nosuch }}{% endif %}
{% if no %}{% for i in items %}{{ x|nosuch }}{% endfor %}{% endif %}
{{ (x|nosuch) if no else 'ok' }}

#: text filters
{{ name|upper }}{{ name|lower }}{{ 'hello world'|capitalize }}{{ 'HELLO World-wide (web) [of] <x>'|title }}{{ "it's o'clock"|title }}{{ 'ÀÉ ß'|lower }}{{ 'straße'|upper }}{{ 'ΑΣ ΣΑΣ'|lower }}{{ 5|upper }}{{ none|lower }}{{ 'ǆ'|capitalize }}
[{{ text|trim }}][{{ 'xxaxx'|trim('x') }}][{{ ' a '|trim(' ') }}][{{ 5|trim }}][{{ 'abcba'|trim('ab') }}][{{ '　a '|trim }}]
{{ 'aaa'|replace('a', 'b') }}{{ 'aaa'|replace('a', 'b', 2) }}{{ 'abc'|replace('', '-') }}{{ 123|replace(2, 'x') }}{{ 'aaa'|replace('aa', 'b') }}{{ 'ab'|replace('a', '') }}{{ 'a'|replace('a', none) }}
{{ 'a'|center(5) }}|{{ 'ab'|center(5) }}|{{ 'abc'|center(2) }}|{{ '東'|center(4) }}|
{{ lines|indent }}|{{ lines|indent(2, true) }}|{{ lines|indent(2, false, true) }}|{{ lines|indent('> ', first=true, blank=true) }}|{{ ''|indent }}|{{ 'a'|indent(width=3) }}
{{ 'foo bar baz qux'|truncate(9) }}|{{ 'foo bar baz qux'|truncate(9, true) }}|{{ 'foo bar baz qux'|truncate(11) }}|{{ 'foo bar baz qux'|truncate(11, false, '...', 0) }}|{{ 'foobarbazquxfoobar'|truncate(9, end='~') }}|{{ 'áéíóúáéíóúáéíóú'|truncate(5, true, '…', 0) }}
{{ 'Hello big world'|wordcount }}{{ 'a-b c_d  é'|wordcount }}{{ ''|wordcount }}
{{ 'the quick brown fox jumps'|wordwrap(10) }}|{{ 'abcdefghijklmno'|wordwrap(4) }}|{{ 'abcdefghij kl'|wordwrap(4, false) }}|{{ 'a well-known e-mail--like thing'|wordwrap(8) }}|{{ 'one two three'|wordwrap(5, wrapstring=' / ') }}|{{ 'x-y-zzzz-1'|wordwrap(5, break_on_hyphens=false) }}|{{ lines|wordwrap(3) }}
{{ html|escape }} {{ html|e }} {{ html|e|e }} {{ html|safe }} {{ html|safe|e }} {{ html|e|forceescape }} {{ 5|e }} {{ [html|e] }} {{ ['a'|safe] }}
{{ ('<a>'|safe) + '<b>' }} {{ '<b>' + ('<a>'|safe) }} {{ ('<a>'|safe) ~ '<b>' }} {{ ('%s'|safe) % '<x>' }} {{ ('<'|safe).join(['<', 'a']) }} {{ ('{}<'|safe).format('<') }} {{ ('a'|safe)|upper + '<' }} {{ ('<a'|safe)[1:] + '<' }} {{ ('<a>'|safe)|string + '<' }} {{ (('<'|safe) * 2) + '<' }} {{ [('a<b'|safe).split('<')] }} {{ ('a'|safe).replace('a', '<') }}
{{ '%s and %d and %.2f and %5s|%-5s|%05d|%x|%X|%o|%e|%g|%r|%c|%%|%+d|% d' % ('a', 3, 2.5, 'b', 'c', 42, 255, 255, 8, 12345.678, 0.0001, 'q', 'z', 5, 5) }}
{{ '%(a)s %(b)03d' % {'a': 'x', 'b': 7} }} {{ '%s' % 'one' }} {{ '%s' % [1, 2] }} {{ '%s' % (none,) }} {{ '%d' % 3.99 }} {{ '%*d' % (5, 42) }} {{ '%.3s' % 'abcdef' }} {{ '%s' % {'a': 1} }} {{ 'x' % {} }} {{ '%#x %#o' % (255, 8) }} {{ '%.0f %.1f' % (0.5, 0.25) }} {{ '%5.1f|%-8.3f|' % (3.14159, 2.5) }} {{ '%i' % true }} {{ '%10.4s|' % 'abcdefgh' }} {{ '%g %g %g' % (1e20, 100000.0, 1e6) }}
{{ 'Hi %s'|format('you') }} {{ '%(a)s'|format(a=1) }} {{ '%s, %s'|format(1, 2) }}
{{ 'a b&c/d?é'|urlencode }} {{ {'a b': 'c&d', 'x': 1}|urlencode }} {{ [('a', '/')]|urlencode }} {{ 5|urlencode }}
{{ {'class': 'a<b', 'id': 5, 'none': none}|xmlattr }} {{ {'a': 1}|xmlattr(false) }}
{{ 5|string ~ 1 }}{{ none|string }}{{ 1.0|string }}{{ [1]|string }}
{{ 1|filesizeformat }} {{ 999|filesizeformat }} {{ 1000|filesizeformat }} {{ 1500000|filesizeformat }} {{ 1024|filesizeformat(true) }} {{ 123456789|filesizeformat(true) }} {{ '2000'|filesizeformat }}
{{ '%d' % 'a' }}
{{ '%s %s' % 'a' }}
{{ '%s' % ('a', 'b') }}
{{ 'x' % 1 }}
{{ '%' % 1 }}
{{ '%z' % 1 }}
{{ '%(a)s' % 1 }}
{{ '%(zz)s' % {} }}
{{ 5|indent }}
{{ 'a'|truncate(2) }}
{{ 'a'|nosuch }}
{{ 'a'|upper(1) }}
{{ 'a'|trim(5) }}
{{ 'a'|replace('a') }}
{{ {'a b': 1}|xmlattr }}
{{ 'a'|wordwrap(0) }}
{{ 'abc'|center('x') }}

#: number filters
{{ '42'|int }} {{ '42.9'|int }} {{ ' 7 '|int }} {{ 'x'|int }} {{ 'x'|int(9) }} {{ '0x1f'|int(base=16) }} {{ '101'|int(0, 2) }} {{ '0b11'|int(base=0) }} {{ 3.99|int }} {{ -3.99|int }} {{ true|int }} {{ none|int }} {{ [1]|int(5) }} {{ '1_000'|int }} {{ '1e3'|int }} {{ ''|int }} {{ '-5'|int }} {{ '+5'|int }} {{ '1__0'|int(-1) }} {{ 'inf'|int }} {{ '077'|int(base=8) }} {{ 'zz'|int(base=36) }}
{{ '1.5'|float }} {{ 'x'|float }} {{ 'x'|float(2) }} {{ 3|float }} {{ '1e3'|float }} {{ ' 2 '|float }} {{ 'inf'|float }} {{ '-Infinity'|float }} {{ 'nan'|float }} {{ '1_0.5'|float }} {{ '.5'|float }} {{ '5.'|float }} {{ none|float(1) }} {{ true|float }} {{ '1e400'|float }} {{ '0x10'|float }}
{{ -3|abs }} {{ -2.5|abs }} {{ true|abs }}
{{ 42.55|round }} {{ 42.55|round(1) }} {{ 42.55|round(1, 'floor') }} {{ 42.51|round(1, 'ceil') }} {{ 42|round }} {{ 2.5|round }} {{ 3.5|round }} {{ -2.5|round }} {{ 0.125|round(2) }} {{ 2.675|round(2) }} {{ 1234.5|round(-2) }} {{ 1250|round(-2) }} {{ 1350|round(-2) }} {{ 42.9|round|int }} {{ 1.1|round(precision=0, method='ceil') }} {{ 5|round(2, 'floor') }} {{ 1e300|round(2) }}
{{ 'a'|abs }}
{{ 'a'|round }}
{{ 1|round(1, 'up') }}
{{ none|round }}
{{ none|abs }}

#: sequence filters
{{ items|length }}{{ d|length }}{{ name|count }}{{ range(7)|length }}{{ ()|length }}{{ '東京'|length }}{{ d.items()|length }}
{{ items|first }}{{ items|last }}{{ name|first }}{{ name|last }}{{ d|first }}{{ d|last }}{{ []|first }}|{{ ''|last }}|{{ range(5)|last }}{{ d.values()|last }}
{{ items|sort }} {{ items|sort(true) }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ words|sort(reverse=true) }} {{ users|sort(attribute='age')|map(attribute='name')|list }} {{ users|sort(attribute='age,name', reverse=true)|map(attribute='name')|list }} {{ 'hello'|sort }} {{ d|sort }} {{ [[2, 'a'], [1, 'b']]|sort(attribute=0) }} {{ [3, 1.5, true]|sort }}
{{ items|min }}{{ items|max }} {{ words|min }}{{ words|max }} {{ words|max(case_sensitive=true) }} {{ (users|min(attribute='age')).name }} {{ []|min }}| {{ 'hello'|max }}
{{ items|sum }} {{ users|sum(attribute='age') }} {{ items|sum(start=10) }} {{ []|sum }} {{ [[1], [2]]|sum(start=[]) }} {{ [0.1, 0.2]|sum }} {{ [true, true]|sum }}
{{ items|join }} {{ items|join(', ') }} {{ users|join(', ', attribute='name') }} {{ ['a', none, 1.0, [1]]|join('-') }} {{ 'abc'|join('.') }} {{ d|join }} {{ items|join(1) }} {{ []|join(',') }}
{{ items|reverse|list }} {{ name|reverse }} {{ '東京a'|reverse }} {{ d|reverse|list }} {{ (1, 2)|reverse|list }} {{ range(3)|reverse|list }} {{ items|map('string')|reverse }}
{{ items|list }} {{ 'añ'|list }} {{ d|list }} {{ d.items()|list }} {{ d.keys()|list }} {{ d.values()|list }} {{ d.items() }} {{ d.keys() }} {{ d.values() }} {{ (1, 2)|list }}
{{ words|unique|list }} {{ words|unique(case_sensitive=true)|list }} {{ users|unique(attribute='age')|map(attribute='name')|list }} {{ [1, 1.0, true, 2]|unique|list }} {{ 'aAbB'|unique|join }}
{{ words|map('upper')|list }} {{ users|map(attribute='name')|join(',') }} {{ users|map(attribute='tags', default=[])|list }} {{ users|map(attribute='tags.0', default='-')|list }} {{ words|map('replace', 'p', 'b')|list }} {{ [' a ', 'b']|map('trim')|map('length')|list }} {{ items|map('default', 5)|list }} {{ [[1, 2], [3]]|map('first')|list }} {{ none|map('upper')|list }} {{ users|map('attr', 'x')|list }}
{{ items|select('odd')|list }} {{ items|reject('odd')|list }} {{ items|select('gt', 1)|list }} {{ items|select('in', [1, 2])|list }} {{ [0, 1, '', 'a', none]|select|list }} {{ [0, 1, '', 'a', none]|reject|list }} {{ items|select('==', 2)|list }} {{ ['a', 1]|select('string')|list }}
{{ users|selectattr('admin')|map(attribute='name')|list }} {{ users|selectattr('age', 'equalto', 30)|map(attribute='name')|list }} {{ users|rejectattr('admin', 'defined')|map(attribute='name')|list }} {{ users|selectattr('age', 'in', [25])|list|length }} {{ users|rejectattr('age', 'gt', 26)|map(attribute='name')|first }} {{ [[1, 2], [3, 4]]|selectattr(1, 'gt', 2)|list }}
{% for g in users|groupby('age') %}{{ g.grouper }}:{{ g.list|map(attribute='name')|join(',') }};{% endfor %} {% for city, us in users|groupby('city') %}{{ city }}={{ us|length }};{% endfor %} {% for city, us in users|groupby('city', case_sensitive=true) %}{{ city }}={{ us|length }};{% endfor %} {{ users|groupby('tags', default=[])|map('first')|list }} {{ [{'a': 1}]|groupby('a') }}
{{ items|batch(2)|list }} {{ items|batch(2, 0)|list }} {{ [1, 2, 3, 4]|batch(2)|list }} {{ []|batch(2)|list }} {{ items|slice(2)|list }} {{ range(7)|slice(3)|list }} {{ range(7)|slice(3, 'x')|list }} {{ items|batch(linecount=5, fill_with='-')|list }} {{ [1, 2]|slice(4)|list }}
{{ nothing|default('x') }}{{ missing|default('x') }}{{ missing|default }}|{{ ''|default('x', true) }}{{ 0|d('z', boolean=true) }}{{ missing|d(5) + 1 }}{{ d.zz|default({})|length }}{{ (d.zz or 'k')|default('j') }}
{{ d|dictsort }} {{ d|dictsort(by='value') }} {{ d|dictsort(reverse=true) }} {{ d|items|list }} {{ {}|items|list }}
{{ {'a': 1}|attr('items') is callable }} {{ d|attr('b') }}| {{ 'abc'|attr('upper') is callable }} {{ 'x'|attr('nope') }}| {{ namespace(a=5)|attr('a') }}
{% set xs = items|map('string') %}{{ xs|list }}{{ xs|list }}{% set ys = items|select %}{{ ys|first }}{{ ys|list }}
{{ n|length }}
{{ nothing|list }}
{{ [1, 'a']|sort }}
{{ [none, 1]|min }}
{{ ['a']|sum }}
{{ items|sum(start='') }}
{{ 5|first }}
{{ items|map('nosuch')|list }}
{{ items|map|list }}
{{ items|select('nosuch')|list }}
{{ users|selectattr|list }}
{{ [[1]]|unique|list }}
{{ items|items|list }}
{{ items|dictsort }}
{{ items|map('string')|last }}
{{ items|map('string')|length }}
{{ d|dictsort(by='x') }}
{{ items|slice(0)|list }}
{{ 5|reverse }}
{{ users|groupby }}
{{ users|map(attribute='name', foo=1)|list }}

#: tojson
{{ nested|tojson }} {{ items|tojson }} {{ name|tojson }} {{ none|tojson }} {{ yes|tojson }} {{ 1.0|tojson }} {{ 1e16|tojson }} {{ 5|tojson }} {{ big|tojson }} {{ {}|tojson }} {{ []|tojson }} {{ (1, 2)|tojson }} {{ html|tojson }}
{{ nested|tojson(indent=2) }} {{ []|tojson(indent=2) }} {{ {'a': []}|tojson(indent=4) }} {{ [1, [2]]|tojson(indent=0) }} {{ [1]|tojson(indent='\t') }} {{ [1]|tojson(indent=none) }} {{ [1]|tojson(indent=-1) }}
{{ text|tojson }} {{ text|tojson(ensure_ascii=true) }} {{ text|tojson(true) }} {{ '\x7f\x1f\u2028"\\/\b\f\n\r\t'|tojson }} {{ '\x7fé'|tojson(ensure_ascii=true) }} {{ 'é'|tojson(ensure_ascii=false) }}
{{ d|tojson(sort_keys=true) }} {{ d|tojson(separators=(',', ':')) }} {{ d|tojson(separators=[', ', '=']) }} {{ d|tojson(indent=1, separators=(',', ': '), sort_keys=true) }} {{ {1: 2, 1.5: 3, none: 4, true: 5}|tojson }} {{ ('a'|safe)|tojson }}
{{ {'a': 1e400, 'b': -1e400}|tojson }}
{{ {'f': 1 if yes else 0, 'g': [none, true, false]}|tojson }} {{ tojson is defined }}
{{ range(3)|tojson }}
{{ missing|tojson }}
{{ d.items()|tojson }}
{{ namespace()|tojson }}
{{ {(1, 2): 3}|tojson }}
{{ [missing]|tojson }}
{{ {1: 1, 'a': 2}|tojson(sort_keys=true) }}
{{ d|tojson(separators=1) }}

#: string methods
{{ 'a,b,,c'.split(',') }} {{ 'a b  c '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ ' a  b '.split(none, 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b c '.rsplit(maxsplit=1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'aXXbXXc'.split('XX') }} {{ 'aaa'.rsplit('aa') }} {{ 'aaa'.split('aa') }} {{ 'a\tb\nc\u3000d'.split() }} {{ 'abc'.split('x')[0] }} {{ 'a</t>b'.split('</t>')[-1] }} {{ 'a,b,c'.split(sep=',', maxsplit=-1) }}
{{ '  a '.strip() }}|{{ '  a '.lstrip() }}|{{ '  a '.rstrip() }}|{{ 'xyaxy'.strip('xy') }}|{{ '\n\na\n'.lstrip('\n') }}|{{ 'xxa'.lstrip('x') }}|{{ 'éaé'.strip('é') }}|{{ 'a'.strip(none) }}|{{ '\u00a0\u3000a\u2003'.strip() }}|{{ ''.strip() }}
{{ name.startswith('Wo') }}{{ name.startswith(('x', 'W')) }}{{ name.endswith('d') }}{{ name.endswith(('x', 'y')) }}{{ name.startswith('or', 1) }}{{ name.startswith('') }}{{ name.endswith('rl', 0, 4) }}{{ name.startswith('', 9) }}{{ 'é1'.endswith('1') }}
{{ name.upper() }}{{ name.lower() }}{{ 'hello world'.title() }}{{ "it's".title() }}{{ 'hELLO'.capitalize() }}{{ 'aB'.swapcase() }}{{ 'STRASSE ß'.casefold() }}{{ 'ßx'.title() }}{{ 'ŉ'.upper() }}{{ 'ὈΔΥΣΣΕΎΣ'.lower() }}{{ 'ǆ'.title() }}{{ 'ﬁ'.capitalize() }}
{{ 'banana'.find('an') }}{{ 'banana'.find('x') }}{{ 'banana'.rfind('an') }}{{ 'banana'.find('an', 2) }}{{ 'banana'.find('an', 2, 4) }}{{ 'banana'.index('n') }}{{ 'banana'.rindex('n') }}{{ 'banana'.count('a') }}{{ 'aaa'.count('aa') }}{{ 'abc'.count('') }}{{ '東京東'.find('東', 1) }}{{ 'abc'.find('', 3) }}{{ 'abc'.find('', 4) }}{{ 'abc'.find('c', -1) }}{{ 'banana'.count('a', 2, -1) }}
{{ 'aaa'.replace('a', 'b') }}{{ 'aaa'.replace('a', 'b', 2) }}{{ 'abc'.replace('', '-') }}{{ 'abc'.replace('', '-', 2) }}{{ 'abc'.replace('b', '') }}{{ 'aé'.replace('é', '東') }}{{ 'x'.replace('x', 'y', 0) }}{{ ''.replace('', 'z') }}
{{ ', '.join(['a', 'b']) }}{{ ''.join([]) }}{{ '-'.join('abc') }}{{ '-'.join(d) }}{{ ','.join(items|map('string')) }}{{ 'x'.join(('a',)) }}
{{ 'a'.center(5) }}|{{ 'a'.center(4, '*') }}|{{ 'a'.ljust(3) }}|{{ 'a'.rjust(3, '.') }}|{{ '5'.zfill(3) }}|{{ '-5'.zfill(4) }}|{{ '+5'.zfill(4) }}|{{ 'é'.ljust(3, '東') }}|{{ 'abc'.zfill(2) }}
{{ 'a\nb\r\nc\rd\x0be\x1cf\u2028g'.splitlines() }} {{ 'a\n'.splitlines() }} {{ 'a\nb'.splitlines(true) }} {{ ''.splitlines() }} {{ '\n\n'.splitlines() }} {{ 'a\n\nb'.splitlines(keepends=true) }}
{{ '123'.isdigit() }}{{ '12a'.isdigit() }}{{ ''.isdigit() }}{{ '²'.isdigit() }}{{ '²'.isdecimal() }}{{ '½'.isnumeric() }}{{ '三'.isnumeric() }}{{ 'abc'.isalpha() }}{{ 'é東'.isalpha() }}{{ 'a1'.isalpha() }}{{ 'a1'.isalnum() }}{{ ' \t\n'.isspace() }}{{ ''.isspace() }}{{ 'abc'.islower() }}{{ 'ABC'.isupper() }}{{ 'A1'.isupper() }}{{ '1'.isupper() }}{{ 'Hello World'.istitle() }}{{ 'Hello world'.istitle() }}{{ 'abc'.isascii() }}{{ 'é'.isascii() }}{{ ''.isascii() }}{{ 'a b'.isprintable() }}{{ 'a\n'.isprintable() }}{{ 'a_1'.isidentifier() }}{{ '1a'.isidentifier() }}
{{ 'prefix-x'.removeprefix('prefix-') }}{{ 'x.txt'.removesuffix('.txt') }}{{ 'abc'.removeprefix('x') }}{{ 'abc'.removesuffix('') }}
{{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('=') }} {{ 'abc'.rpartition('=') }}
{{ '{} {}'.format(1, 'a') }} {{ '{1}{0}'.format('a', 'b') }} {{ '{x}-{y}'.format(x=1, y=2) }} {{ '{0[name]} {0[age]}'.format(users[0]) }} {{ '{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd') }} {{ '{:05d} {:+} {:,} {:.2f} {:x} {:#x} {:b} {:e} {:%} {:g}'.format(42, 5, 1234567, 3.14159, 255, 255, 5, 12345.678, 0.25, 0.0001) }} {{ '{{}}'.format() }} {{ '{!r} {!s}'.format('a', 'b') }} {{ '{:{}}|'.format('a', 5) }} {{ '{:.3}'.format('abcdef') }} {{ '{:08.3f}'.format(-3.14159) }} {{ '{:_}'.format(1234567) }} {{ '{:=+6}'.format(42) }} {{ '{:c}'.format(65) }} {{ '{}'.format(none) }} {{ '{:10}|{:10}|'.format('a', 5) }} {{ '{:>{w}}'.format('x', w=3) }} {{ '{:010,}'.format(1234) }} {{ '{:.0f} {:.1f}'.format(0.5, 0.25) }} {{ '{}'.format([1, 'a']) }} {{ '{:g} {:g}'.format(1e20, 123456789.0) }} {{ '{:.3g}'.format(1234.5) }} {{ '{: d}'.format(5) }} {{ '{:o}'.format(8) }} {{ '{:X}'.format(255) }} {{ '{}'.format(1.0) }} {{ '{:.4}'.format(3.14159) }} {{ '{:6}|'.format(1.5) }} {{ '{:<6}|'.format(true) }} {{ '{:d}'.format(true) }}
{{ 'a\tb'.expandtabs() }}|{{ 'a\tb'.expandtabs(4) }}|{{ '\t'.expandtabs(tabsize=2) }}|
{{ '%s'.format_map({}) }}{{ '{a}'.format_map({'a': 1}) }}{{ name.upper().lower().title() }}{{ (name ~ '!').upper() }}{{ 'a'['upper']() }}
{{ 'a'.nosuch() }}
{{ 'a'.split('') }}
{{ 'a'.join([1]) }}
{{ 'a'.join(5) }}
{{ 'a'.index('x') }}
{{ 'a'.center() }}
{{ 'a'.center(5, 'xx') }}
{{ 'a'.startswith(5) }}
{{ 'a'.replace('a') }}
{{ 'a'.upper(1) }}
{{ '{'.format() }}
{{ '}'.format() }}
{{ '{}'.format() }}
{{ '{x}'.format() }}
{{ '{0}{}'.format(1, 2) }}
{{ '{:d}'.format('a') }}
{{ '{:s}'.format(5) }}
{{ '{:.2d}'.format(5) }}
{{ '{!x}'.format(5) }}
{{ 'a'.strip(5) }}
{{ 'a'.zfill() }}

#: list and dict methods
{% set l = [1, 2] %}{% set _ = l.append(3) %}{% set _ = l.extend([4, 5]) %}{% set _ = l.insert(0, 0) %}{{ l }}{{ l.pop() }}{{ l.pop(0) }}{{ l }}{% set _ = l.remove(2) %}{% set _ = l.reverse() %}{{ l }}{{ l.index(4) }}{{ l.count(4) }}{% set c = l.copy() %}{% set _ = l.clear() %}{{ l }}{{ c }}
{% set l = [3, 1, 2] %}{% set _ = l.sort() %}{{ l }}{% set _ = l.sort(reverse=true) %}{{ l }}{% set _ = l.insert(-1, 9) %}{{ l }}{% set _ = l.insert(99, 8) %}{{ l }}{{ l.append(1) }}{% set _ = l.extend('ab') %}{{ l }}{% set _ = l.extend(l) %}{{ l|length }}
{{ (1, 2, 1).count(1) }}{{ (1, 2).index(2) }}{{ [1, 2, 1].index(1, 1) }}
{{ d.get('a') }}{{ d.get('z') }}{{ d.get('z', 5) }}{{ d.keys()|list }}{{ d.values()|list }}{{ d.items()|list }}{{ d.copy() }}
{% set m = {'a': 1, 'b': 2} %}{{ m.pop('a') }}{{ m.pop('z', 'def') }}{{ m }}{% set _ = m.update({'c': 3}, e=5) %}{{ m }}{{ m.setdefault('c', 9) }}{{ m.setdefault('n') }}{{ m.popitem() }}{{ m }}{% set _ = m.clear() %}{{ m }}{% set _ = m.update([('k', 'v')]) %}{{ m }}
{{ {'items': 5, 'get': 6}.items is callable }}{{ {'items': 5}['items'] }}{{ {'x': 1}.x }}{{ {'keys': 1}.keys()|list }}
{{ d.keys() == {'a': 0, 'b': 0, 'C': 0}.keys() }}{{ dict(a=1, b=2) }}{{ dict([('a', 1)]) }}{{ dict({'a': 1}, b=2) }}{{ dict() }}{{ dict(d).a }}
{% set m = {} %}{% for i in range(40) %}{% set _ = m.update({'k' ~ i: i}) %}{% endfor %}{{ m.k7 }}{{ m.pop('k3') }}{{ m.get('k3') }}{{ m.k39 }}{{ m|length }}{{ m.keys()|list|last }}
{{ [].pop() }}
{{ [1].remove(2) }}
{{ [1].index(2) }}
{{ {}.pop('a') }}
{{ {}.popitem() }}
{{ d.get() }}
{{ d.get([1]) }}
{{ [1].append() }}
{{ [1, 'a'].sort() }}
{{ (1, 2).append(3) }}
{{ d.nosuch() }}

#: globals
{{ range(3)|join(',') }} {% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set _ = c.reset() %}{{ c.current }} {% set j = joiner() %}{{ j() }}x{{ j() }}y{{ j() }} {% set j = joiner('|') %}{{ j() }}{{ j() }}
{{ strftime_now('%Y-%m-%d') }} {{ strftime_now('%d %b %Y') }} {{ strftime_now('%H:%M:%S %A %B %j %p %y %%') }} {{ strftime_now('%-d.%-m. é %f|%z|') }} {{ strftime_now('plain') }} {{ strftime_now('') }}
{{ raise_exception('on purpose: ' ~ n) }}
{{ raise_exception() }}
{{ strftime_now() }}
{{ strftime_now(5) }}
{{ cycler() }}
{{ dict(1) }}
{{ namespace(1) }}
{{ range(1)(2) }}
{{ name() }}
{{ none() }}
{{ 'a'.upper()() }}
{{ range(*[1, 4])|list }}{{ dict(**{'a': 1}) }}
{{ range(*'12') }}
{{ range(stop=3) }}
"""

# Templates of several lines: white space control, and the lines of errors.
BLOCKS = [
    ("whitespace", "{% for i in items %}\n  {{ i }}\n{% endfor %}\nend\n"),
    ("whitespace", "a\n  {% if yes %}\n  b\n  {% endif %}\nc"),
    ("whitespace", "a\n  {%+ if yes %}\n  b\n  {% endif +%}\nc\n"),
    ("whitespace", "a\n  {{ n }}\n  {# comment #}\nb {# c #}\nc"),
    ("whitespace", "a\n\n  {%- if yes -%}\n\n  b\n\n  {%- endif -%}\n\nc"),
    ("whitespace", "{{ n }}\n{{- n }}\n{{ n -}}\n{{ n }}\n"),
    ("whitespace", "  {% set a = 1 %}\n  {% set b = 2 %}  \n{{ a }}{{ b }}"),
    ("whitespace", "x {% if yes %} y {% endif %} z\n\n\n"),
    ("whitespace", "  {% raw %}\n  {{ a }}\n  {% endraw %}\nb"),
    ("whitespace", "  {%- raw -%}\n  {{ a }}\n  {%- endraw -%}\nb"),
    ("whitespace", "a\r\n  {% if yes %}\r\nb\r\n{% endif %}\rc\r\n"),
    ("whitespace", "\t{% if yes %}\t\n\tx\n\t{% endif %}"),
    ("whitespace", "\u00a0{% if yes %}a{% endif %}\n\u3000{%- if yes %}b{% endif %}"),
    ("whitespace", "{%- for m in users %}\n    {{- m.name }}\n    {%- if not loop.last %}\n        {{- ', ' }}\n    {%- endif %}\n{%- endfor %}\n"),
    ("whitespace", "{#- a -#}\n\n{#+ b +#}\n  {# c #}  d"),
    ("whitespace", "{{ 'multi\nline' }}\n{{\n  n\n}}\n{% if\n  yes\n%}\nx\n{% endif %}"),
    ("whitespace", "{%if yes%}a{%endif%}{{n}}{#x#}"),
    ("whitespace", "{{ {'a': {'b': 1}} }}{{ {'a': {'b': 1}}}}"),
    ("whitespace", "a{%-if yes-%} b {%-endif-%} c {{-n-}} d"),
    ("whitespace", "   {{+ n }}\n   {{ n }}"),
    ("whitespace", "{ % } {{ '{{' }} {{ '%}' }} { { }"),
    ("whitespace", "a {#"),
    ("whitespace", "a\n{% raw %}"),
    ("lines", "{{ a b }}\n{{ $ }}"),
    ("lines", "\n{{ 'a\\x4' }}"),
    ("lines", "ok\n{{ n }}\n{{ missing.x }}\n"),
    ("lines", "{% for i in items %}\n{% if i == 2 %}\n{{ raise_exception('two') }}\n{% endif %}\n{% endfor %}\n"),
    ("lines", "{% macro m(a) %}\n\n{{ a.b.c }}\n{% endmacro %}\n\n{{ m({}) }}\n"),
    ("lines", "a\nb\n{% if x %}\nc\n"),
    ("lines", "a\n{{ 'x' }}\n{{ 1 + }}\n"),
    ("lines", "a\n\n{% nosuch %}\n"),
    ("lines", "{# a\nb\nc #}\n{{ missing.x }}"),
    ("lines", "{% set x = 'a\nb' %}\n{{ x }}\n{{ x|nosuch }}\n"),
    ("lines", "{{ n }}\n{%- if yes -%}\n\n\n{{ missing.x }}{% endif %}"),
    ("lines", "{% raw %}\n\n{% endraw %}\n{{ missing.x }}"),
    ("lines", "a\n{% for i in items %}\n{% endif %}\n"),
    ("lines", "\n\n{{ 'unterminated }}"),
    ("lines", "\n{{ 5|first }}"),
    ("lines", "{% call(x) n() %}\n{% endcall %}\n"),
]


def cases():
    topic = None
    pending = []
    for line in LINES.strip("\n").split("\n"):
        if line.startswith("#: "):
            topic = line[3:]
        elif line.endswith("\\"):
            pending.append(line)
        elif line:
            yield topic, "\n".join([*pending, line])
            pending = []
    yield from BLOCKS


def main():
    env = render_templates.environment()
    out = []
    for topic, template in cases():
        context = json.loads(json.dumps(CONTEXT))  # templates may change it
        out.append({"topic": topic, "template": template, **render_templates.render(env, template, context)})
    json.dump({"now": render_templates.NOW_UNIX, "context": CONTEXT, "cases": out}, sys.stdout, ensure_ascii=False,
              indent=1)
    print()


if __name__ == "__main__":
    main()
