"""Functions of an adapter that return values of another type: each is reported with the function and the value."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.process.scripted import ScriptedCodec, scripted_adapter
from tests.unit.run.scripted_run import DONE, control, feed, header, line, printed

from agent_mux import AgentMuxError, RunOptions
from agent_mux.contract import validate
from agent_mux.events import DebugEvent
from agent_mux.journal.records import Kind, Record, encode
from agent_mux.run.normalizer import Normalizer
from agent_mux.sdk import facts
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment, spawn_args
from agent_mux.sdk.codec import CodecContext, Interrupt

FAILURE = facts.Failure("INTERNAL", "not a fact, but a part of one")
ACTION = Record(Kind.ACTION, 0, encode(Interrupt()))


def codec_with(method: str, returned: Any) -> Callable[[CodecContext], Any]:
    return type("FaultyCodec", (ScriptedCodec,), {method: lambda *_: returned})


@pytest.mark.parametrize(
    ("method", "returned", "problem"),
    [
        ("start", None, "its codec returned NoneType from start(), not a tuple of facts and effects"),
        ("start", facts.TurnBegin(), "its codec returned TurnBegin from start(), not a tuple of facts and effects"),
        ("request", None, "its codec returned NoneType from request(), not a tuple of facts and effects"),
        ("finish", facts.TurnDone(), "its codec returned TurnDone from finish(), not a tuple of facts and effects"),
        ("finish", (FAILURE,), "its codec returned Failure, which is neither a fact nor an effect"),
        ("receive", (FAILURE,), "its codec returned Failure, which is neither a fact nor an effect"),
        ("receive", facts.TurnDone(), "its codec failed with TypeError(\"'TurnDone' object is not iterable\")"),
    ],
)
def test_faulty_codec_is_reported_and_the_run_ends(method: str, returned: Any, problem: str) -> None:
    one = Normalizer(header(), codec_with(method, returned))
    events = feed(one, [control("start"), ACTION, *printed(line(text="a")), DONE])
    assert validate(events) == []
    assert problem in " ".join(event.message for event in events if isinstance(event, DebugEvent))
    assert one.verdict is not None


@pytest.mark.parametrize(("method", "returned"), [("start", None), ("finish", (FAILURE,)), ("receive", (FAILURE,))])
def test_conformance_suite_raises_for_a_faulty_codec(method: str, returned: Any) -> None:
    one = Normalizer(header(), codec_with(method, returned), forgiving=False)
    with pytest.raises(TypeError, match="its codec returned"):
        feed(one, [control("start"), *printed(line(text="a")), DONE])


def test_receive_may_return_a_list_or_a_generator() -> None:
    for returned in ([facts.WholeText("a")], (fact for fact in [facts.WholeText("a")])):
        events = feed(Normalizer(header(), codec_with("receive", returned)), [*printed(line(text="x")), DONE])
        assert "text_delta" in [event.type for event in events]


@pytest.mark.parametrize(
    ("spawn", "problem"),
    [
        (lambda *_: ("program",), "the adapter 'scripted' returned tuple from spawn(), not SpawnArgs"),
        (lambda *_: {}["missing"], "the adapter 'scripted' failed in spawn(): KeyError('missing')"),
        (lambda *_: SpawnArgs(argv="program", protocol="lines"), "argv is a str, 'program'; expected a tuple of str"),  # type: ignore[arg-type]
    ],
)
def test_faulty_spawn_names_the_adapter(spawn: Callable[..., Any], problem: str) -> None:
    environment = SpawnEnvironment(executable="/bin/true", temp_dir="/tmp", environ={})
    options = RunOptions(agent="scripted", prompt="go")
    with pytest.raises(AgentMuxError) as caught:
        spawn_args(replace(scripted_adapter(""), spawn=spawn), options, environment)
    assert caught.value.code == "INTERNAL"
    assert problem in str(caught.value)
