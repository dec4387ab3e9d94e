"""A toy agent that prints one JSON object per line, its correct adapter, and adapters with one fault each."""

import datetime as dt
import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.adapter import Adapter, AgentCapabilities, NativeProtocol, SpawnArgs, SpawnEnvironment
from agent_mux.sdk.codec import CodecContext, CodecOutput, Exit, Source, WriteStdin
from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.options import RunOptions
from agent_mux_testing.fixtures import Fixture, save_fixture

EMITS = frozenset(
    {"turn_start", "turn_end", "message_start", "text_delta", "message_stop", "tool_call_start", "tool_call_ready",
     "tool_result", "subagent_spawn", "subagent_result"}
)  # fmt: skip
LINES: list[dict[str, Any]] = [
    {"session": "S1"},
    {"text": "Let me "},
    {"text": "see."},
    {"call": "c1", "input": {"x": 1}},
    {"heartbeat": 1},
    {"result": "c1", "output": "seen"},
    {"spawn": "s1", "prompt": "go"},
    {"inside": "s1", "text": "inner"},
    {"report": "s1"},
    {"text": "Done \u2028 well."},
    {"done": True},
]


class ToyCodec:
    """The correct codec of the toy agent."""

    def __init__(self, context: CodecContext) -> None:
        self.context = context

    def start(self) -> Iterable[CodecOutput]:
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        native = load_object(line) if source is Source.STDOUT else None
        if native is None:
            return (facts.LogLine(line.decode("utf-8", "replace")),)
        return self.read(native) or (facts.Unknown(next(iter(native), "empty"), line.decode("utf-8", "replace")),)

    def read(self, native: dict[str, Any]) -> tuple[CodecOutput, ...]:  # one line each
        match native:
            case {"session": str(session)}:
                return (facts.SessionKnown(session),)
            case {"inside": str(agent), "text": str(text)}:
                return (facts.InSubagent(agent, facts.WholeText(text)),)
            case {"text": str(text)}:
                return (facts.TextDelta(text),)
            case {"call": str(call), "input": value}:
                return (facts.TextEnd(), facts.ToolReady(call, "Look", value))
            case {"result": str(call), "output": output}:
                return (facts.ToolDone(call, output),)
            case {"spawn": str(agent), "prompt": str(prompt)}:
                return (facts.SubagentBegin(agent, "helper", prompt),)
            case {"report": str(agent)}:
                return (facts.SubagentDone(agent, "reported"),)
            case {"heartbeat": _}:
                return (facts.Ignored("heartbeat", "it only shows that the agent runs"),)
            case {"done": _}:
                return (facts.TurnDone(),)
        return ()

    def request(self, *_: object) -> Iterable[CodecOutput]:
        return ()

    def finish(self, *_: object) -> Iterable[CodecOutput]:
        return ()


def toy_adapter(codec: type[ToyCodec] = ToyCodec, *, emits: frozenset[str] = EMITS) -> Adapter:
    protocol = NativeProtocol(
        name="lines", codec=codec, streams=frozenset({"text", "tool_calls", "thinking"}), two_way=False,
        sniff=lambda native: isinstance(native, dict) and "session" in native,
    )  # fmt: skip
    return Adapter(
        agent="toy",
        display_name="Toy",
        executables=("toy",),
        executable_variable="AMUX_TOY_EXECUTABLE",
        tested_version="1.0",
        capabilities=AgentCapabilities(agent="toy", emits=emits),
        protocols={"lines": protocol},
        spawn=_spawn,
        install=(),
        auth_guidance="",
    )


def save_recordings(root: Path) -> Path:
    """Write a recording of a successful run, and one with noise and an early exit."""
    stdout = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in LINES).encode()
    good = Fixture(
        agent="toy", version="1.0", scenario="good", protocol="lines", command=("toy",),
        recorded=dt.date(2026, 1, 2), stdout=stdout, times=tuple(index / 10 for index in range(len(LINES))),
        exit=Exit(code=0), wall_s=2.0,
    )  # fmt: skip
    save_fixture(good, root)
    dead = replace(
        good, scenario="dead", stdout=b'warming up\r\n\n{"session":"S2"}\n{"text":"Hel', times=(0.1, 0.2, 0.3, 0.4)
    )
    save_fixture(replace(dead, stderr=b"oh no\n", exit=Exit(signal=9)), root)
    return root


def _spawn(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    raise NotImplementedError


# -- wrong ones: each is a ToyCodec but for one thing


class Drops(ToyCodec):
    def read(self, native: dict[str, Any]) -> tuple[CodecOutput, ...]:
        return () if "heartbeat" in native else super().read(native)


class ReturnsNothing(ToyCodec):
    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        return () if b"heartbeat" in line else super().receive(line, source)


class Duplicates(ToyCodec):
    def read(self, native: dict[str, Any]) -> tuple[CodecOutput, ...]:
        facts = super().read(native)
        return (*facts, *facts) if "text" in native else facts


class Miscounts(ToyCodec):
    def read(self, native: dict[str, Any]) -> tuple[CodecOutput, ...]:
        return (*super().read(native), facts.Ignored("text", "why not")) if "text" in native else super().read(native)


class IgnoresForNoReason(ToyCodec):
    def read(self, native: dict[str, Any]) -> tuple[CodecOutput, ...]:
        return (facts.Ignored("heartbeat", ""),) if "heartbeat" in native else super().read(native)


class Raises(ToyCodec):
    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        return self.read(json.loads(line)) if line.startswith(b"{") else super().receive(line, source)


class RaisesAtTheEnd(ToyCodec):
    spoke = False

    def read(self, native: dict[str, Any]) -> tuple[CodecOutput, ...]:
        self.spoke = self.spoke or "text" in native
        return super().read(native)

    def finish(self, *_: object) -> Iterable[CodecOutput]:
        if self.spoke:
            raise LookupError("no end")
        return ()


class Remembers(ToyCodec):
    """Keeps state beyond one run, so that its facts differ each time."""

    times = count()

    def read(self, native: dict[str, Any]) -> tuple[CodecOutput, ...]:
        return (facts.TextDelta(f"{next(self.times)}"),) if "text" in native else super().read(native)


class Acts(ToyCodec):
    def read(self, native: dict[str, Any]) -> tuple[CodecOutput, ...]:
        return (*super().read(native), WriteStdin(b"ok\n")) if "session" in native else super().read(native)


class MixesUp(ToyCodec):
    """Reports text of a sub-agent as the main agent's."""

    def read(self, native: dict[str, Any]) -> tuple[CodecOutput, ...]:
        return (facts.WholeText(native["text"]),) if "inside" in native else super().read(native)


class LeavesInside(ToyCodec):
    """Reports a torn line as an unknown one."""

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        return super().receive(line if line.endswith(b"}") else b'{"torn": 1}', source)
