"""Hypothesis strategies for conversations, for all tests of the embedded agent."""

from typing import Any

from hypothesis import strategies as st

from agent_loop.messages import (
    AssistantMessage,
    Block,
    ExtensionMessage,
    Image,
    Message,
    Shown,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agent_loop.usage import Usage

TEXTS = st.text(max_size=20)
SAID = st.text(alphabet="abc é\n\x1b[", max_size=10).map(lambda text: f"x{text}")
"""Text that is not empty."""
NAMES = st.text(alphabet="abcdef_-", min_size=1, max_size=8)
TIMES = st.integers(min_value=0, max_value=2**42)
PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXTS, each, max_size=3),
    max_leaves=6,
)
"""Any JSON value."""

texts: st.SearchStrategy[Text] = st.builds(Text, SAID)
images: st.SearchStrategy[Image] = st.builds(Image, st.sampled_from(("", "aGk=")), st.just("image/png"))
thinking: st.SearchStrategy[Thinking] = st.builds(
    Thinking, SAID, st.none() | TEXTS, st.none() | st.text(min_size=1, max_size=5)
)
shown: st.SearchStrategy[Shown] = texts | images
arguments: st.SearchStrategy[dict[str, Any]] = st.dictionaries(TEXTS, PLAIN, max_size=3)
usages: st.SearchStrategy[Usage] = st.builds(
    Usage, *[st.integers(0, 9)] * 4, st.none() | st.integers(0, 9), st.none() | st.floats(0, 9)
)


def calls(ids: st.SearchStrategy[str] = NAMES) -> st.SearchStrategy[ToolCall]:
    """Return tool calls with these ids."""
    return st.builds(ToolCall, ids, NAMES, arguments, TEXTS)


blocks: st.SearchStrategy[Block] = texts | images | thinking | calls()
systems: st.SearchStrategy[SystemMessage] = st.builds(SystemMessage, content=SAID, timestamp=TIMES)
users: st.SearchStrategy[UserMessage] = st.builds(
    UserMessage,
    content=st.lists(shown, min_size=1, max_size=3).map(tuple),
    origin=st.sampled_from(("user", "steering", "reminder")),
    timestamp=TIMES,
)
assistants: st.SearchStrategy[AssistantMessage] = st.builds(
    AssistantMessage,
    content=st.lists(blocks, max_size=4).map(tuple),
    stop_reason=st.sampled_from(("stop", "length", "tool_use", "error", "aborted")),
    model=TEXTS,
    provider=TEXTS,
    usage=usages,
    error=st.none() | TEXTS,
    native=PLAIN,
    timestamp=TIMES,
)
results: st.SearchStrategy[ToolMessage] = st.builds(
    ToolMessage,
    tool_call_id=NAMES,
    name=NAMES,
    content=st.lists(shown, max_size=2).map(tuple),
    is_error=st.booleans(),
    details=PLAIN,
    timestamp=TIMES,
)
extensions: st.SearchStrategy[ExtensionMessage] = st.builds(ExtensionMessage, kind=NAMES, data=PLAIN, timestamp=TIMES)
messages: st.SearchStrategy[Message] = systems | users | assistants | results | extensions
"""Any message, each for itself: a list of them is hardly ever a lawful conversation."""


@st.composite
def answers(draw: st.DrawFn, number: int = 0) -> list[Message]:
    """Return an answer of a model, the results of its calls in any order, and optionally a note in between."""
    content = draw(st.lists(st.lists(texts | thinking, min_size=1, max_size=2), min_size=1, max_size=2))
    wanted = [draw(st.lists(calls(), max_size=2)) for _ in content]
    numbered = [
        [ToolCall(f"call_{number}_{place}_{index}", call.name, call.arguments) for index, call in enumerate(own)]
        for place, own in enumerate(wanted)
    ]
    turn: list[Message] = [
        AssistantMessage(content=(*content, *own)) for content, own in zip(content, numbered, strict=True)
    ]
    every = draw(st.permutations([call for own in numbered for call in own]))
    turn += [ToolMessage(tool_call_id=call.id, name=call.name, content=draw(st.tuples(shown))) for call in every]
    if draw(st.booleans()):
        turn.insert(draw(st.integers(0, len(turn))), draw(extensions))
    return turn


@st.composite
def conversations(draw: st.DrawFn, turns: int = 4) -> list[Message]:
    """Return valid conversations of any number of whole turns."""
    history: list[Message] = draw(st.lists(systems, max_size=1))
    for number in range(draw(st.integers(0, turns))):
        history += draw(st.lists(users, min_size=1, max_size=2))
        history += draw(answers(number))
    return history
