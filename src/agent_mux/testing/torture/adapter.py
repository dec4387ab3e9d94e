"""How the misbehaving agent is driven: the adapter of its little protocol, over pipes and at a terminal."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from agent_mux import actions, facts
from agent_mux.adapter import (
    Adapter,
    AgentCapabilities,
    CodecContext,
    Exit,
    NativeProtocol,
    Source,
    SpawnArgs,
    SpawnEnvironment,
    Step,
    TerminalSize,
)
from agent_mux.effects import CloseStdin, Refuse, WriteStdin
from agent_mux.native_json import load_object
from agent_mux.options import RunOptions

AGENT = "torture"
PROGRAM = Path(__file__).with_name("agent.py")


def _said(value: Any) -> Iterable[Step]:
    return (facts.TextDelta(value),) if isinstance(value, str) else (facts.Unknown("say", repr(value)),)


def _asked(value: Any) -> Iterable[Step]:
    if not isinstance(value, str):
        return (facts.Unknown("ask", repr(value)),)
    return (facts.ToolReady(value, "Shell", {}, facts.Shell(value)), facts.ApprovalAsked("ask", "run", value, "high"))


_LINES: dict[str, Callable[[Any], Iterable[Step]]] = {"say": _said, "ask": _asked}


class TortureCodec:
    """One key a line, and what nobody knows is unknown."""

    def __init__(self, context: CodecContext) -> None:
        self._interactive = context.interactive

    def start(self) -> Iterable[Step]:
        """The prompt."""
        return (WriteStdin(b'{"prompt": true}\n'),)

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        if source is Source.STDERR:
            return (facts.LogLine(line.decode("utf-8", "replace"), "stderr"),)
        native = load_object(line)
        if native is None:
            return (facts.LogLine(line.decode("utf-8", "replace")),)
        key, value = next(iter(native.items()), ("", None))
        if key == "done":
            return (facts.TurnDone(),) if self._interactive else (facts.TurnDone(), CloseStdin())
        if key in _LINES:
            return _LINES[key](value)
        return (facts.Unknown(key, line.decode("utf-8", "replace")),)

    def request(self, action: actions.AnyAction) -> Iterable[Step]:
        """Whatever is sent is one line; whatever is asked is answered by one."""
        match action:
            case actions.Send(text) | actions.Steer(text):
                return (WriteStdin(b'{"send": "%s"}\n' % text.encode()),)
            case actions.Approve(request_id):
                return (WriteStdin(b'{"answer": true}\n'), facts.RequestSettled(request_id, True))
            case actions.Deny(request_id, reason):
                return (WriteStdin(b'{"answer": false}\n'), facts.RequestSettled(request_id, False, reason))
            case actions.Close():
                return (CloseStdin(),)
        return (Refuse("CAPABILITY_ERROR", f"this agent cannot {type(action).__name__}"),)

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002, ARG002  # the word of the contract
        """Nothing is kept back."""
        return ()


def torture_adapter(behaviour: str, size: int, token: str, *, terminal: bool = False) -> Adapter:
    """An agent that does this. `token` marks its processes for a census that relies on nothing of ours."""

    def spawn(_: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
        argv = (environment.executable, "-I", "-S", str(PROGRAM), behaviour, str(size), token)
        return SpawnArgs(argv=argv, protocol="lines", terminal=TerminalSize() if terminal else None)

    protocol = NativeProtocol(
        name="lines", codec=TortureCodec, streams=frozenset({"text"}), two_way=False, sniff=lambda _: False
    )
    return Adapter(
        agent=AGENT,
        display_name="Misbehaving agent",
        executables=(sys.executable,),
        executable_variable="AMUX_TORTURE_EXECUTABLE",
        min_version="3.11",
        tested_version="3.11",
        capabilities=AgentCapabilities(
            agent=AGENT, approval_modes=("yolo", "prompt", "deny"), text_streaming=True, interactive_mode=True
        ),
        protocols={"lines": protocol},
        spawn=spawn,
        install=(),
        auth_guidance="there is nothing to log in to",
    )
