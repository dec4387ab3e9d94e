"""Histories for the context tests: given ones, and a Hypothesis strategy for valid ones."""

from hypothesis import strategies as st

from agent_loop.behavior import ContextSettings
from agent_loop.context.estimation import Estimator
from agent_loop.messages import (
    AssistantMessage,
    ExtensionMessage,
    Image,
    Message,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    user,
)


def settings(**given) -> ContextSettings:
    return ContextSettings(**{"max_context_tokens": 2_000, "system_prompt_tokens": 0, "keep_recent": 4} | given)


def call(call_id: str, name: str = "execute", **arguments) -> AssistantMessage:
    return AssistantMessage(content=(ToolCall(call_id, name, arguments),), stop_reason="tool_use")


def result(call_id: str, text: str = "ok", name: str = "execute", **known) -> ToolMessage:
    return ToolMessage(tool_call_id=call_id, name=name, content=(Text(text),), **known)


def model_text(text: str) -> AssistantMessage:
    return AssistantMessage(content=(Text(text),))


def lines(count: int, width: int = 40) -> str:
    return "\n".join(f"{number:06} {'x' * width}" for number in range(count))


def working(turns: int, output: str = "done", prompt: str = "Fix the tests") -> list[Message]:
    """Return a history of one request and this number of turns of work."""
    messages: list[Message] = [user(prompt)]
    for turn in range(turns):
        messages += [call(f"call_{turn}", command=f"run {turn}"), result(f"call_{turn}", output)]
    return messages


def tokens(messages) -> int:
    return Estimator().total(messages)


_texts = st.text(max_size=30) | st.builds(
    lambda word, times: word * times, st.text(min_size=1, max_size=9), st.integers(1, 300)
)
_shown = st.builds(Text, _texts) | st.just(Image("aGk=", "image/png"))
_outputs = st.lists(_shown, max_size=3).map(tuple)


@st.composite
def _exchanges(draw, number: int) -> list[Message]:
    kind = draw(st.sampled_from(["user", "said", "tools", "tools", "tools", "system", "extension"]))
    if kind == "user":
        return [user(draw(_texts))]
    if kind == "said":
        return [model_text(draw(_texts))]
    if kind == "system":
        return [SystemMessage(content=draw(st.text(max_size=20)))]
    if kind == "extension":
        return [ExtensionMessage(kind="note")]
    ids = [f"call_{number}_{each}" for each in range(draw(st.integers(1, 3)))]
    calls = tuple(ToolCall(each, "execute", {"command": draw(st.text(max_size=20))}) for each in ids)
    spoken: list[Message] = [model_text(draw(_texts))] if draw(st.booleans()) else []
    answers: list[Message] = [
        ToolMessage(tool_call_id=each, name="execute", content=draw(_outputs), is_error=draw(st.booleans()))
        for each in draw(st.permutations(ids))
    ]
    if draw(st.booleans()):
        answers.insert(draw(st.integers(0, len(answers))), user(draw(_texts), origin="steering"))
    return [*spoken, AssistantMessage(content=calls, stop_reason="tool_use"), *answers]


@st.composite
def lawful_histories(draw, max_exchanges: int = 12) -> list[Message]:
    beginning: list[Message] = [SystemMessage(content="Be brief.")] if draw(st.booleans()) else []
    messages = [*beginning, user(draw(_texts))]
    for number in range(draw(st.integers(0, max_exchanges))):
        messages += draw(_exchanges(number))
    return messages
