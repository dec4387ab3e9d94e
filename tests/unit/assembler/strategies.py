"""Hypothesis strategies for facts: arbitrary facts, and runs as an agent might print them, with parallel tools.

Ids come from small pools, so that they collide, repeat and interleave. `any_facts` are what a codec could report of a
hostile or broken agent; `plausible_runs` are orderly, with calls that overlap.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

from agent_mux.assembler import Ending, StreamContext
from agent_mux.events.base import CostRecord
from agent_mux.sdk import facts

FACTS: tuple[type[facts.Fact], ...] = tuple(facts.Fact.__subclasses__())
RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

# -- values

TEXTS = st.sampled_from(["", "a", "hello ", "\n", "é😀", "{", '"'])
NUMBERS = st.integers(0, 5) | st.sampled_from([-1, 10**6, -(10**30)])
COUNTS = st.integers(0, 1000) | st.just(-1)
JSON = st.sampled_from([None, "", "text", 0, [], {}, {"command": "ls"}, {"deep": [{"er": None}]}])
COSTS = st.builds(
    CostRecord,
    total_usd=st.floats(0, 10) | st.sampled_from([-1.0, math.nan, math.inf]),
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    thinking_tokens=st.none() | COUNTS,
    source=st.sampled_from([None, "native", "computed", "unknown"]),
)
POOLS: dict[str, st.SearchStrategy[Any]] = {
    "call_id": st.sampled_from(["c1", "c2", "c3", "c4"]),
    "subagent_id": st.sampled_from(["a1", "a2", "c1"]),
    "request_id": st.sampled_from(["r1", "r2", "r3"]),
    "session_id": st.sampled_from(["s1", "s2", ""]),
    "forked_from": st.sampled_from([None, "s0"]),
    "name": st.sampled_from(["Bash", "Read"]),
    "plugin_id": st.sampled_from(["p1", "p2"]),
    "version": st.sampled_from(["1.9.0", "2.0.0-beta.1"]),
}


def _union(shape: inspect.UnionType) -> st.SearchStrategy[Any]:
    return st.one_of([_values(choice) for choice in shape.types])


def _struct(shape: inspect.StructType) -> st.SearchStrategy[Any]:
    if shape.cls is facts.InSubagent:
        return st.builds(facts.InSubagent, POOLS["subagent_id"], st.deferred(lambda: ANY_FACT | BUSY_FACT))
    if shape.cls is CostRecord:
        return COSTS
    parts = {field.name: POOLS.get(field.name, _values(field.type)) for field in shape.fields}
    return st.builds(shape.cls, **parts)


_MAKERS: dict[type[inspect.Type], Callable[[Any], st.SearchStrategy[Any]]] = {
    inspect.Metadata: lambda shape: _values(shape.type),
    inspect.StrType: lambda _: TEXTS,
    inspect.BoolType: lambda _: st.booleans(),
    inspect.IntType: lambda _: NUMBERS,
    inspect.FloatType: lambda _: st.floats(0, 2) | st.sampled_from([-1.0, math.nan, math.inf]),
    inspect.LiteralType: lambda shape: st.sampled_from(shape.values),
    inspect.NoneType: lambda _: st.none(),
    inspect.UnionType: _union,
    inspect.StructType: _struct,
    inspect.VarTupleType: lambda shape: st.lists(_values(shape.item_type), max_size=3).map(tuple),
    inspect.AnyType: lambda _: JSON,
}


def _values(shape: inspect.Type) -> st.SearchStrategy[Any]:
    return _MAKERS[type(shape)](shape)


@cache
def facts_of(kind: type[facts.Fact]) -> st.SearchStrategy[Any]:
    """Return a strategy for facts of one class."""
    if kind is facts.RunClosed:
        return st.builds(facts.RunClosed, st.none() | FEW_TURNS)
    return _values(inspect.type_info(kind))


# -- any facts

ANY_FACT: st.SearchStrategy[facts.Fact] = st.sampled_from(FACTS).flatmap(facts_of)
_CONTENT = (
    facts.TextDelta, facts.TextEnd, facts.ThinkingDelta, facts.ToolBegin, facts.ToolInput, facts.ToolReady,
    facts.ToolOutput, facts.ToolDone, facts.McpBegin, facts.McpDone, facts.SubagentBegin, facts.SubagentDone,
    facts.InSubagent, facts.StepBegin, facts.ApprovalRequested, facts.RequestResolved, facts.CommandBegan,
    facts.CommandOutput, facts.CommandEnded, facts.FileTouched,
)  # fmt: skip
_CLOSING = (facts.TurnDone, facts.TurnFailed, facts.TurnStopped, facts.TurnLimitHit)
BUSY_FACT: st.SearchStrategy[facts.Fact] = st.sampled_from(_CONTENT).flatmap(facts_of)
"""Facts that open or close something."""
INSIDE_FACT: st.SearchStrategy[facts.Fact] = facts_of(facts.InSubagent)
FEW_TURNS: st.SearchStrategy[facts.Fact] = st.sampled_from(_CLOSING).flatmap(facts_of)


@st.composite
def any_facts(draw: st.DrawFn, max_size: int = 40) -> list[facts.Fact]:
    """Draw an arbitrary sequence, often with open sub-agents."""
    begun = [facts.SubagentBegin(subagent_id, "helper", "go") for subagent_id in draw(st.sets(POOLS["subagent_id"]))]
    busy = BUSY_FACT | BUSY_FACT | INSIDE_FACT | FEW_TURNS
    return begun + draw(st.lists(ANY_FACT | busy, max_size=max_size))


# -- plausible runs


def interleaved(draw: st.DrawFn, threads: Sequence[Sequence[facts.Fact]]) -> list[facts.Fact]:
    """Merge threads at random; the order within each thread is kept."""
    order = [index for index, thread in enumerate(threads) for _ in thread]
    waiting = [list(thread) for thread in threads]
    return [waiting[index].pop(0) for index in draw(st.permutations(order))]


@st.composite
def tool_calls(draw: st.DrawFn, call_id: str) -> list[facts.Fact]:
    """Draw one native call: streamed or whole, with or without a command, ended or left open."""
    sequence: list[facts.Fact] = []
    if draw(st.booleans()):
        sequence.append(facts.ToolBegin(call_id, "Bash"))
        sequence += [facts.ToolInput(call_id, text) for text in draw(st.lists(TEXTS, max_size=3))]
    shell = draw(st.none() | st.just(facts.ShellInvocation("ls")) | st.just(facts.ShellInvocation("ls", "/elsewhere")))
    sequence.append(facts.ToolReady(call_id, "Bash", {"command": "ls"}, shell))
    if draw(st.booleans()):
        sequence.append(facts.ApprovalRequested(f"ask-{call_id}", "run", "ls", "low", "Bash", call_id))
        sequence.append(facts.RequestResolved(f"ask-{call_id}", draw(st.booleans())))
    sequence += [facts.ToolOutput(call_id, text, draw(_STREAMS)) for text in draw(st.lists(TEXTS, max_size=3))]
    if draw(st.integers(0, 5)):
        sequence.append(draw(facts_of(facts.ToolDone).map(lambda done: _of_call(done, call_id))))
    return sequence


_STREAMS: st.SearchStrategy[Any] = st.sampled_from(["stdout", "stderr"])


def _of_call(done: facts.ToolDone, call_id: str) -> facts.ToolDone:
    return facts.ToolDone(
        call_id, done.output, done.error, done.duration_ms, done.stdout, done.stderr, done.exit_code, done.files
    )


@st.composite
def mcp_calls(draw: st.DrawFn, call_id: str) -> list[facts.Fact]:
    """Draw one MCP call, which may stay open."""
    done = facts.McpDone(call_id, "3", draw(st.none() | st.just("no such tool")))
    return [facts.McpBegin(call_id, "server", "add", {"a": 1}), done][: draw(st.integers(1, 2))]


@st.composite
def messages(draw: st.DrawFn) -> list[facts.Fact]:
    """Draw thinking blocks and messages, streamed or whole."""
    sequence: list[facts.Fact] = []
    for delta, stop, whole in (
        (facts.ThinkingDelta, facts.ThinkingEnd, facts.WholeThinking),
        (facts.TextDelta, facts.TextEnd, facts.WholeText),
    ):
        texts = draw(st.lists(TEXTS, max_size=3))
        if draw(st.booleans()):
            sequence += [delta(text) for text in texts] + [stop()] * draw(st.integers(0, 1))
        else:
            sequence += [whole(text) for text in texts]
    return sequence


@st.composite
def steps(draw: st.DrawFn, number: str) -> list[facts.Fact]:
    """Draw a model call and its tools, which run in parallel."""
    threads = [draw(tool_calls(f"{number}-t{index}")) for index in range(draw(st.integers(0, 3)))]
    threads += [draw(mcp_calls(f"{number}-m{index}")) for index in range(draw(st.integers(0, 2)))]
    usage = [facts.Usage(draw(COUNTS), draw(COUNTS))] * draw(st.integers(0, 1))
    sequence = [*draw(messages()), *interleaved(draw, threads), *usage]
    return [facts.StepBegin(), *sequence, *[facts.StepDone()] * draw(st.integers(0, 1))]


@st.composite
def subagents(draw: st.DrawFn, subagent_id: str) -> list[facts.Fact]:
    """Draw a sub-agent with content; it may never report."""
    inside = [*draw(steps(f"{subagent_id}-0")), *draw(messages())]
    done = facts.SubagentDone(subagent_id, "done", draw(st.none() | st.just("it failed")), draw(st.none() | COSTS))
    sequence: list[facts.Fact] = [facts.SubagentBegin(subagent_id, "helper", "go")]
    sequence += [facts.InSubagent(subagent_id, fact) for fact in inside]
    return sequence + [done] * draw(st.integers(0, 1))


@st.composite
def turns(draw: st.DrawFn, number: int) -> list[facts.Fact]:
    """Draw a turn: steps interleaved with sub-agents, then the closing message."""
    main = [fact for index in range(draw(st.integers(0, 3))) for fact in draw(steps(f"{number}-{index}"))]
    beside = [draw(subagents(f"a{number}-{index}")) for index in range(draw(st.integers(0, 2)))]
    closing = draw(st.one_of([facts_of(kind) for kind in _CLOSING]))
    return [*[facts.TurnBegin()] * draw(st.integers(0, 1)), *interleaved(draw, [main, *beside]), closing]


@st.composite
def plausible_runs(draw: st.DrawFn) -> list[facts.Fact]:
    """Draw a run of a few turns, possibly cut off."""
    sequence: list[facts.Fact] = [facts.SessionKnown("s1", resumed=draw(st.booleans()))]
    sequence += [draw(facts_of(draw(st.sampled_from([facts.PluginLoaded, facts.SkillLoaded, facts.AgentdocRead]))))]
    sequence += [fact for number in range(draw(st.integers(0, 3))) for fact in draw(turns(number))]
    return sequence[: draw(st.integers(0, len(sequence)))] if draw(st.booleans()) else sequence


# -- around the facts


@st.composite
def contexts(draw: st.DrawFn, **fixed: Any) -> StreamContext:
    """Draw the settings of a run."""
    flags = ("buffered", "show_approvals", "show_requests", "permission_pending", "interactive",
             "include_subagent_events", "resumed")  # fmt: skip
    return StreamContext(
        **{
            "run_id": RUN_ID,
            "agent": "someone",
            "cwd": "/project",
            "streams": draw(st.frozensets(st.sampled_from(["text", "tool_calls", "thinking"]))),
            "forked_from": draw(st.sampled_from([None, "s0"])),
            **{flag: draw(st.booleans()) for flag in flags},
            **fixed,
        }
    )


ENDINGS: st.SearchStrategy[Ending] = st.builds(
    Ending,
    code=st.sampled_from([None, 0, 1, 130, 137, -1]),
    signal=st.sampled_from([None, 9, 11, 15]),
    stderr=TEXTS,
    cause=st.sampled_from([None, "abort", "timeout", "inactivity", "interrupt", "close", "spawn_error"]),
    message=TEXTS,
)
