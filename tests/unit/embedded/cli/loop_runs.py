"""Hypothesis strategies for the events of a run: any valid order of loop events, with parallel tool calls."""

from collections.abc import Sequence
from typing import Any, get_args

from hypothesis import strategies as st

from agent_loop import events as loop
from agent_loop.errors import ProviderErrorKind
from agent_loop.messages import Image, Text, ToolCall, ToolMessage, user
from agent_loop.tools import effects
from agent_loop.usage import Usage

LOOP = "loop-1"
TEXTS = st.sampled_from(["", "a", "hello ", "\n", "é😀", "{", "\ud83d"])
COUNTS = st.integers(0, 1000)
USAGES = st.builds(
    Usage,
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    cache_read_tokens=COUNTS,
    thinking_tokens=st.none() | COUNTS,
    cost_usd=st.none() | st.floats(0, 10),
)
CALL_IDS = st.sampled_from(["c1", "c2", "c3", "", "c1~2"])
"""Few, so that models use them again."""
EFFECTS: st.SearchStrategy[Any] = st.one_of(
    st.builds(effects.FileRead, st.just("a.py")),
    st.builds(effects.FileWritten, st.just("a.py"), COUNTS, st.booleans()),
    st.builds(effects.FilePatched, st.just("a.py"), st.just("@@ -1 +1 @@\n-a\n+b\n")),
    st.builds(effects.FileDeleted, st.just("a.py")),
    st.builds(effects.CommandRan, st.integers(-15, 255), TEXTS, TEXTS),
)
KINDS = st.sampled_from(get_args(ProviderErrorKind))


def events_of(event: Any, /, **fields: Any) -> st.SearchStrategy[Any]:
    return st.builds(event, loop_id=st.just(LOOP), **fields)


_ASIDE: st.SearchStrategy[Any] = st.one_of(
    events_of(loop.MessageInjected, message=TEXTS.map(lambda text: user(text, origin="steering"))),
    events_of(loop.InputWarning, message=TEXTS),
    events_of(loop.UsageReported, usage=USAGES, total=USAGES),
    events_of(loop.ContextFilling, used_tokens=COUNTS, max_tokens=COUNTS),
    events_of(
        loop.ContextCompacted, tier=st.just("tail"), tokens_before=COUNTS, tokens_after=COUNTS, summary=TEXTS
    ),
    events_of(
        loop.BudgetExceeded, budget=st.sampled_from(["tool_output", "tool_calls"]), limit=COUNTS, used=COUNTS,
        tool=st.none() | st.just("bash"),
    ),
    events_of(loop.HookFailed, hook=st.just("tool:gate"), error=TEXTS),
    events_of(loop.Noted, text=TEXTS),
    events_of(
        loop.HandedOff, call_id=CALL_IDS, source=st.just("build"), target=st.just("reviewer"), message=TEXTS
    ),
    events_of(loop.OutputProduced, value=st.sampled_from([None, {"a": 1}, "text"])),
)  # fmt: skip


@st.composite
def answers(draw: st.DrawFn) -> list[Any]:
    """The events of a model response, complete or abandoned and retried."""
    spoken = st.one_of(
        events_of(loop.TextDelta, text=TEXTS),
        events_of(loop.ThinkingDelta, text=TEXTS),
        events_of(loop.ToolInputDelta, call_id=CALL_IDS, name=st.just("bash"), delta=TEXTS),
    )
    events = draw(st.lists(spoken, max_size=5))
    for _ in range(draw(st.integers(0, 1))):
        events.append(loop.MessageAbandoned(loop_id=LOOP))
        events.append(
            draw(
                events_of(
                    loop.Retrying, attempt=st.integers(2, 4), max_attempts=st.just(4), kind=KINDS, message=TEXTS,
                    delay=st.floats(0, 30),
                )
            )
        )  # fmt: skip
        events += draw(st.lists(spoken, max_size=3))
    events += draw(st.lists(events_of(loop.Reasoning, text=TEXTS), max_size=1))
    return events + draw(st.lists(events_of(loop.TextSaid, text=TEXTS), max_size=1))


@st.composite
def calls(draw: st.DrawFn, call_id: str) -> list[Any]:
    """One tool call, cut off anywhere."""
    name = draw(st.sampled_from(["bash", "read"]))
    command = draw(st.none() | st.just("ls"))
    events: list[Any] = [loop.ToolCallStart(loop_id=LOOP, call_id=call_id, name=name)]
    if draw(st.booleans()):
        call = ToolCall(call_id, name, draw(st.sampled_from([{}, {"command": "ls"}, {"_raw": "{"}])))
        events.append(loop.ToolCalled(loop_id=LOOP, call=call, shell_command=command))
        working = st.sampled_from([loop.ToolUpdate, loop.ToolProgress])
        events += [
            draw(working)(loop_id=LOOP, call_id=call_id, name=name, text=text)
            for text in draw(st.lists(TEXTS, max_size=3))
        ]
    content = draw(st.lists(st.builds(Text, TEXTS) | st.just(Image("AAAA", "image/png")), max_size=2))
    message = ToolMessage(tool_call_id=call_id, name=name, content=tuple(content), is_error=draw(st.booleans()))
    done = tuple(draw(st.lists(EFFECTS, max_size=3)))
    events.append(loop.ToolResulted(loop_id=LOOP, message=message, effects=done, duration_ms=draw(COUNTS)))
    status = draw(st.sampled_from(["completed", "error"]))
    events.append(loop.ToolCallEnd(loop_id=LOOP, call_id=call_id, name=name, status=status))
    return events


def interleaved(draw: st.DrawFn, threads: Sequence[Sequence[Any]]) -> list[Any]:
    """Threads merged in any way that keeps the order within each."""
    order = [index for index, thread in enumerate(threads) for _ in thread]
    waiting = [list(thread) for thread in threads]
    return [waiting[index].pop(0) for index in draw(st.permutations(order))]


@st.composite
def loop_turns(draw: st.DrawFn, number: int) -> list[Any]:
    """A model call and its tools."""
    ids = draw(st.lists(CALL_IDS, max_size=3, unique=True))
    tools = interleaved(draw, [draw(calls(call_id)) for call_id in ids])
    aside = interleaved(draw, [tools, draw(st.lists(_ASIDE, max_size=3))])
    trigger = draw(st.sampled_from(["user", "sub_agent", "continuation", "branch"]))
    start = loop.TurnStart(loop_id=LOOP, turn=number, trigger=trigger)
    return [start, *draw(answers()), *aside, loop.TurnEnd(loop_id=LOOP, turn=number, messages=())]


@st.composite
def loops(draw: st.DrawFn) -> list[Any]:
    """One loop, from its start to its end."""
    start = loop.LoopStart(loop_id=LOOP, agent_id="agent", session_id="s1", timestamp=5)
    events: list[Any] = [start]
    if draw(st.integers(0, 5)) == 0:
        events.append(loop.InputRejected(loop_id=LOOP, reason=draw(TEXTS)))
    for number in range(draw(st.integers(0, 3))):
        events += draw(loop_turns(number))
    limits = st.sampled_from(["iterations", "turns", "tokens", "duration", "cost", "output", "repetition"])
    events += draw(st.lists(events_of(loop.LimitReached, limit=limits, reason=TEXTS), max_size=1))
    events += draw(st.lists(events_of(loop.Final, text=TEXTS, output=st.none() | st.just({"a": 1})), max_size=1))
    events.append(
        draw(
            events_of(
                loop.LoopEnd,
                status=st.sampled_from(["completed", "rejected", "aborted", "failed", "limited"]),
                usage=USAGES,
                turns=COUNTS,
                rejection=st.none() | TEXTS,
                error=st.none() | TEXTS,
                error_kind=st.none() | KINDS | st.just("internal"),
                retry_after=st.none() | st.floats(0, 100),
            )
        )
    )
    return events


@st.composite
def conversations(draw: st.DrawFn) -> list[Any]:
    """Some loops, one after the other."""
    return [event for _ in range(draw(st.integers(1, 3))) for event in draw(loops())]
