"""The clients of OpenAI and Anthropic against a running server: check_clients.py URL."""
import json
import sys
import time
import urllib.request

import anthropic
import openai

URL = sys.argv[1]
SUM = [{"role": "user", "content": "What is 37 + 58?"}]
MULTIPLY = [{"role": "user", "content": "Use the tool to multiply 269 by 538"}]
FACTORS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}

oa = openai.OpenAI(base_url=URL + "/v1", api_key="secret", max_retries=0)
GREEDY = {"temperature": 0}  # not an argument of this client any more

an = anthropic.Anthropic(base_url=URL, api_key="secret", max_retries=0)


def check(condition, what):
    if not condition:
        raise AssertionError(what)
    print("ok:", what)


def status():
    request = urllib.request.Request(URL + "/v1/status", headers={"x-api-key": "secret"})
    return json.load(urllib.request.urlopen(request))


def idle_soon():
    for _ in range(100):
        if all(slot["phase"] == "idle" for slot in status()["slots"]):
            return True
        time.sleep(0.05)
    return False


def openai_chat():
    whole = oa.chat.completions.create(model="pebble", messages=SUM, temperature=0, logprobs=True, top_logprobs=2)
    choice = whole.choices[0]
    check(choice.message.content == "95" and choice.finish_reason == "stop", "openai: an answer")
    check(len(choice.logprobs.content[0].top_logprobs) == 2, "openai: log-probabilities")
    check(whole.usage.completion_tokens_details.reasoning_tokens > 0, "openai: usage")
    text = ""
    for chunk in oa.chat.completions.create(model="pebble", messages=SUM, temperature=0, stream=True,
                                            stream_options={"include_usage": True}):
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
        else:
            usage = chunk.usage
    check(text == "95" and usage.completion_tokens == whole.usage.completion_tokens, "openai: a stream")


def openai_tools():
    tools = [{"type": "function", "function": {"name": "multiply", "description": "Multiply two integers", "parameters": FACTORS}}]
    first = oa.chat.completions.create(model="pebble", messages=MULTIPLY, tools=tools, temperature=0,
                                       reasoning_effort="none")
    message = first.choices[0].message
    check(json.loads(message.tool_calls[0].function.arguments) == {"a": 269, "b": 538}, "openai: a call")
    turn = MULTIPLY + [message.model_dump(exclude_none=True),
                      {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": '{"product": 144722}'}]
    second = oa.chat.completions.create(model="pebble", messages=turn, tools=tools, temperature=0, max_tokens=100,
                                        reasoning_effort="none")
    check("144722" in second.choices[0].message.content, "openai: its result is answered")
    check(second.usage.prompt_tokens_details.cached_tokens >= first.usage.total_tokens - 1, "openai: nothing is read twice")


def openai_schema():
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"],
              "additionalProperties": False}
    answer = oa.chat.completions.create(
        model="pebble", messages=SUM, temperature=1.5, max_tokens=300, reasoning_effort="low",
        response_format={"type": "json_schema", "json_schema": {"name": "sum", "schema": schema, "strict": True}})
    check(isinstance(json.loads(answer.choices[0].message.content)["sum"], int), "openai: a JSON schema")


def openai_rest():
    first = oa.responses.create(model="pebble", input="What is 37 + 58?", temperature=0)
    check(first.output_text == "95", "openai: a response")
    second = oa.responses.create(model="pebble", input="And 12 + 30?", previous_response_id=first.id, temperature=0)
    check(second.usage.input_tokens_details.cached_tokens > 0, "openai: a response that goes on")
    with oa.responses.stream(model="pebble", input="What is 37 + 58?", temperature=0) as stream:
        check(stream.get_final_response().output_text == "95", "openai: a streamed response")
    text = oa.completions.create(model="pebble", prompt="The quick", max_tokens=5).choices[0].text
    check(bool(text), "openai: a completion")
    check([m.id for m in oa.models.list()] == ["pebble"], "openai: models")
    try:
        oa.chat.completions.create(model="pebble", messages=SUM, temperature=1000)
    except openai.BadRequestError as error:
        check(error.param == "temperature", "openai: an error names its field")
    endless = oa.chat.completions.create(model="pebble", messages=SUM, stream=True, max_tokens=1500,
                                         logit_bias={"300": 100})
    next(iter(endless))
    endless.close()
    check(idle_soon(), "openai: a stream that is closed ends the work")


def anthropic_messages():
    thinking = {"type": "enabled", "budget_tokens": 1024}
    whole = an.messages.create(model="pebble", max_tokens=2000, messages=SUM, thinking=thinking)
    check([b.type for b in whole.content] == ["thinking", "text"], "anthropic: thinking and text")
    with an.messages.stream(model="pebble", max_tokens=200, messages=SUM, extra_body=GREEDY) as stream:
        text = "".join(stream.text_stream)
    check(text == "95" and stream.get_final_message().stop_reason == "end_turn", "anthropic: a stream")
    counted = an.messages.count_tokens(model="pebble", messages=SUM).input_tokens
    usage = stream.get_final_message().usage
    check(counted == usage.input_tokens + usage.cache_read_input_tokens, "anthropic: tokens are counted")


def anthropic_tools():
    tools = [{"name": "multiply", "description": "Multiply two integers", "input_schema": FACTORS}]
    with an.messages.stream(model="pebble", max_tokens=300, messages=MULTIPLY, tools=tools, extra_body=GREEDY) as stream:
        first = stream.get_final_message()
    call = first.content[-1]
    check(first.stop_reason == "tool_use" and call.input == {"a": 269, "b": 538}, "anthropic: a streamed call")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": '{"product": 144722}'}
    turn = MULTIPLY + [{"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in first.content]},
                      {"role": "user", "content": [result]}]
    second = an.messages.create(model="pebble", max_tokens=200, messages=turn, tools=tools, extra_body=GREEDY)
    check("144722" in second.content[-1].text, "anthropic: its result is answered")
    with an.messages.stream(model="pebble", max_tokens=1500, messages=SUM) as stream:
        next(iter(stream))
    check(idle_soon(), "anthropic: a stream that is closed ends the work")
    try:
        an.messages.create(model="pebble", max_tokens=10, messages=[{"role": "king", "content": "x"}])
    except anthropic.BadRequestError as error:
        check("messages[0].role" in str(error), "anthropic: an error names its field")


for test in (openai_chat, openai_tools, openai_schema, openai_rest, anthropic_messages, anthropic_tools):
    test()
