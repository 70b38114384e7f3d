"""Generated conversations whose answers are computed: arithmetic, tool calls, JSON extraction, definitions."""
import json
import random
import re

NAMES = ["Aoi", "Ben", "Chloe", "Dmitri", "Elena", "Farid", "Grace", "Haruto", "Ines", "Jonas", "Kana", "Lars", "Mina",
         "Noah", "Olga", "Priya", "Rosa", "Sven", "Tariq", "Yuki"]
CITIES = ["Berlin", "Kyoto", "Lagos", "Lima", "Madrid", "Nairobi", "Oslo", "Paris", "Prague", "Rome", "Sapporo", "Seoul",
          "Tokyo", "Toronto", "Vienna", "Zurich"]
ITEMS = ["apples", "books", "cables", "chairs", "disks", "fans", "keys", "lamps", "pens", "screws"]


def user(text):
    return {"role": "user", "content": text}


def assistant(text, thought=None, calls=None):
    message = {"role": "assistant", "content": text}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls]
    return message


def arithmetic(r):
    digits = r.choice([1, 1, 2, 2, 3])
    a, b = (r.randrange(10 ** (digits - 1) if digits > 1 else 0, 10 ** digits) for _ in range(2))
    kind = r.choice("++--*")
    if kind == "*":
        a, b = r.randrange(2, 100), r.randrange(2, 13)
        value, thought = a * b, f"{a} * {b} = {a // 10 * 10} * {b} + {a % 10} * {b} = {a // 10 * 10 * b} + {a % 10 * b} = {a * b}"
    elif kind == "+":
        value = a + b
        thought = f"{a} + {b}: ones {a % 10} + {b % 10} = {a % 10 + b % 10}, the rest {a // 10 * 10} + {b // 10 * 10} = " \
                  f"{a // 10 * 10 + b // 10 * 10}. Together {value}."
    else:
        a, b = max(a, b), min(a, b)
        value, thought = a - b, f"{a} - {b}: {a} - {b // 10 * 10} = {a - b // 10 * 10}, less {b % 10} is {a - b}."
    item, name = r.choice(ITEMS), r.choice(NAMES)
    question = r.choice([f"What is {a} {kind} {b}?", f"{a} {kind} {b} = ?", f"Compute {a} {kind} {b}.",
                         {"+": f"{name} has {a} {item} and gets {b} more. How many are there now?",
                          "-": f"{name} had {a} {item} and gave away {b}. How many are left?",
                          "*": f"There are {b} boxes with {a} {item} each. How many {item} in all?"}[kind]])
    answer = r.choice([str(value), f"{a} {kind} {b} = {value}", f"The answer is {value}."])
    return {"messages": [user(question), assistant(answer, thought)]}


def _tool(name, description, /, **parameters):
    return {"type": "function", "function": {
        "name": name, "description": description,
        "parameters": {"type": "object", "required": list(parameters),
                       "properties": {k: {"type": t} for k, t in parameters.items()}}}}


TOOLS = [
    (_tool("get_weather", "Current weather of a city", city="string"),
     lambda r: ({"city": (c := r.choice(CITIES))}, r.choice([f"How is the weather in {c}?", f"Is it raining in {c}?"]),
                {"temperature": (t := r.randrange(-5, 36)), "sky": (s := r.choice(["clear", "cloudy", "rain"]))},
                f"In {c} it is {t} degrees, {s}.")),
    (_tool("multiply", "Product of two numbers", a="integer", b="integer"),
     lambda r: ({"a": (a := r.randrange(10, 999)), "b": (b := r.randrange(10, 999))}, f"Multiply {a} by {b} with the tool.",
                {"result": a * b}, f"{a} times {b} is {a * b}.")),
    (_tool("find_contact", "Phone number of a person", name="string"),
     lambda r: ({"name": (n := r.choice(NAMES))}, f"What is the number of {n}?", {"phone": (p := str(r.randrange(10**6, 10**7)))},
                f"The number of {n} is {p}.")),
    (_tool("set_timer", "Start a timer", minutes="integer"),
     lambda r: ({"minutes": (m := r.randrange(1, 90))}, f"Wake me in {m} minutes.", {"ok": True}, f"The timer runs: {m} minutes.")),
    (_tool("read_file", "Text of a file", path="string"),
     lambda r: ({"path": (p := f"/etc/{r.choice(['hosts', 'fstab', 'motd', 'issue'])}")}, f"Show me {p}.",
                {"text": (t := r.choice(["127.0.0.1 localhost", "welcome", "/dev/sda1 / ext4"]))}, f"{p} says: {t}")),
]


def tool_call(r):
    offered = r.sample(TOOLS, r.randrange(1, len(TOOLS) + 1))
    tool, make = r.choice(offered)
    name = tool["function"]["name"]
    arguments, question, result, answer = make(r)
    return {"tools": [t for t, _ in offered],
            "messages": [user(question), assistant("", f"{name} can answer this.", [(name, arguments)]),
                         {"role": "tool", "content": json.dumps(result)}, assistant(answer)]}


def extraction(r):
    name, city, item, n, year = r.choice(NAMES), r.choice(CITIES), r.choice(ITEMS), r.randrange(2, 500), r.randrange(1990, 2030)
    facts = {"name": name, "city": city, "item": item, "count": n, "year": year}
    text = r.choice([f"In {year}, {name} from {city} ordered {n} {item}.",
                     f"{name} ({city}) bought {n} {item} in {year}.",
                     f"Order of {year}: {n} {item}, to be sent to {name} in {city}."])
    keys = r.sample(list(facts), r.randrange(2, 6))
    question = f"{text}\nGive {', '.join(keys)} as JSON."
    return {"messages": [user(question), assistant(json.dumps({k: facts[k] for k in keys}))]}


def definitions(rows):
    """(word, meaning) pairs from dictionary documents: a word at the margin, then an indented text."""
    pairs = []
    for row in rows:
        for word, meaning in re.findall(r"^([a-z][a-z-]{2,18})\n((?: {2,}.+\n)+)", row["text"], re.M):
            meaning = re.sub(r"\s+", " ", re.sub(r"\[[^\]]*\]|\{|\}", "", meaning)).strip()
            meaning = re.sub(r"^(n|v|adj|adv) 1?:? ?", "", meaning).split(";")[0].strip()
            if 20 <= len(meaning) <= 160:
                pairs.append((word, meaning))
    return pairs


def definition(r, pairs):
    word, meaning = r.choice(pairs)
    return {"messages": [user(r.choice([f"What does {word} mean?", f"Define {word}.", f"{word}?"])),
                         assistant(f"{word}: {meaning}")]}


def generate(n, seed, pairs):
    r = random.Random(seed)
    kinds = [arithmetic, arithmetic, tool_call, extraction] + ([lambda r: definition(r, pairs)] if pairs else [])
    return [r.choice(kinds)(r) for _ in range(n)]
