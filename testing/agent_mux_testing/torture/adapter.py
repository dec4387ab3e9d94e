"""The adapter of the misbehaving agent, over pipes and at a terminal."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from agent_mux.sdk import codec, facts
from agent_mux.sdk.adapter import Adapter, AgentCapabilities, NativeProtocol, SpawnArgs, SpawnEnvironment
from agent_mux.sdk.codec import CloseStdin, CodecContext, CodecOutput, Exit, Refuse, Source, TerminalSize, WriteStdin
from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.options import RunOptions

AGENT = "torture"
PROGRAM = Path(__file__).with_name("agent.py")


def _text(value: Any) -> Iterable[CodecOutput]:
    return (facts.TextDelta(value),) if isinstance(value, str) else (facts.Unknown("text", repr(value)),)


def _permission_request(value: Any) -> Iterable[CodecOutput]:
    if not isinstance(value, str):
        return (facts.Unknown("ask", repr(value)),)
    return (
        facts.ToolReady(value, "Shell", {}, facts.ShellInvocation(value)),
        facts.ApprovalRequested("ask", "run", value, "high"),
    )


_LINES: dict[str, Callable[[Any], Iterable[CodecOutput]]] = {"text": _text, "ask": _permission_request}


class TortureCodec:
    """Codec of JSON lines with one key each; lines with other keys are unknown."""

    def __init__(self, context: CodecContext) -> None:
        self._interactive = context.interactive

    def start(self) -> Iterable[CodecOutput]:
        """Return the prompt as one line."""
        return (WriteStdin(b'{"prompt": true}\n'),)

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Read one line by its first key; text that is no JSON object is kept as a log."""
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

    def request(self, action: codec.AnyAction) -> Iterable[CodecOutput]:
        """Return one line for each message, approval or denial; refuse other actions."""
        match action:
            case codec.Send(text) | codec.Steer(text):
                return (WriteStdin(b'{"send": "%s"}\n' % text.encode()),)
            case codec.ApproveAction(request_id):
                return (WriteStdin(b'{"answer": true}\n'), facts.RequestResolved(request_id, True))
            case codec.DenyAction(request_id, reason):
                return (WriteStdin(b'{"answer": false}\n'), facts.RequestResolved(request_id, False, reason))
            case codec.Close():
                return (CloseStdin(),)
        return (Refuse("CAPABILITY_ERROR", f"this agent cannot {type(action).__name__}"),)

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002, ARG002  # as in the contract
        """Return nothing: no fact is held back until the exit."""
        return ()


def torture_adapter(behaviour: str, size: int, token: str, *, terminal: bool = False) -> Adapter:
    """Return the adapter of an agent with this behaviour. `token` marks its processes for `census`."""

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
        tested_version="3.11",
        capabilities=AgentCapabilities(
            agent=AGENT, approval_modes=("yolo", "prompt", "deny"), text_streaming=True, interactive_mode=True
        ),
        protocols={"lines": protocol},
        spawn=spawn,
        install=(),
        auth_guidance="No login is needed.",
    )
