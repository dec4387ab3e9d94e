"""A scripted agent whose behaviour is Python code: for process tests, where no real CLI misbehaves on demand.

Its native protocol is one JSON object per line with a single key that names the message.
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from agent_mux import AgentMux
from agent_mux.events import CostRecord, QuotaWindow
from agent_mux.sdk import codec, facts
from agent_mux.sdk.adapter import Adapter, AgentCapabilities, NativeProtocol, SpawnArgs, SpawnEnvironment
from agent_mux.sdk.codec import CloseStdin, CodecContext, CodecOutput, Exit, Refuse, Source, WriteStdin
from agent_mux.sdk.file_edits import edits_of
from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.options import ApprovalMode, RunOptions
from agent_mux.sdk.registry import AdapterRegistry

PRELUDE = """
import json, os, signal, subprocess, sys, time
def emit(**native): print(json.dumps(native), flush=True)
def read(): return json.loads(sys.stdin.readline() or "null")
def drain():
    for _ in sys.stdin: pass
"""


_STEPS: dict[str, Callable[[Any], Iterable[CodecOutput]]] = {
    "session": lambda value: (facts.SessionKnown(value),),
    "text": lambda value: (facts.TextDelta(value),),
    "shell": lambda value: (facts.ToolReady(value, "Shell", {}, facts.ShellInvocation(value)),),
    "ran": lambda value: (
        facts.ToolReady(value, "Shell", {}, facts.ShellInvocation(value)),
        facts.ToolDone(value, stdout="!"),
    ),
    "ask": lambda value: (facts.ApprovalRequested(value, "run", value, "medium", "Shell", value, command=value),),
    "edit": lambda value: (
        facts.ApprovalRequested(
            "edit",
            "Edit a file",
            value["path"],
            "medium",
            "Edit",
            "edit",
            paths=(value["path"],),
            tool_input=value,
            edits=edits_of(value),
        ),
    ),
    "question": lambda value: (facts.InputRequested(value, value, options=("red", "blue")),),
    "wrote": lambda value: (
        facts.ToolReady(value, "Write", {}),
        facts.ToolDone(value, files=(facts.FileWritten(value, 1, created=True),)),
    ),
    "failed": lambda value: (facts.TurnFailed(facts.Failure(value, "the agent reported a failure")), CloseStdin()),
    "stopped": lambda _: (facts.TurnStopped(),),
    "call": lambda _: (facts.StepBegin(),),
    "used": lambda value: (facts.Usage(*value),),
    "quota": lambda value: (facts.QuotaReported(tuple(QuotaWindow(*window) for window in value)),),
    "limited": lambda value: (facts.RateLimited(value),),
    "cost": lambda value: (facts.RunCost(CostRecord(value, 1, 1, source="native")),),
    "over": lambda _: (facts.TextEnd(), facts.StepDone()),
    "bug": lambda value: (facts.Usage(value // 0, 0),),
    "nothing": lambda _: (facts.Ignored("nothing", "it carries nothing"),),
}
"""The facts for each key of the scripted agent's lines."""


class ScriptedCodec:
    """The codec of the scripted agent: maps keys to facts."""

    def __init__(self, context: CodecContext) -> None:
        self._context = context

    def start(self) -> Iterable[CodecOutput]:
        return (WriteStdin(b'{"prompt": true}\n'),) if self._context.prompt else ()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        if source is Source.STDERR:
            return (facts.LogLine(line.decode("utf-8", "replace"), "stderr"),)
        native = load_object(line)
        if native is None:
            return (facts.LogLine(line.decode("utf-8", "replace")),)
        (key, value), *_ = native.items()
        return self._steps(key, value, line)

    def _steps(self, key: str, value: Any, line: bytes) -> Iterable[CodecOutput]:
        if key == "done":
            return (facts.TurnDone(),) if self._context.interactive else (facts.TurnDone(), CloseStdin())
        if key in _STEPS:
            return _STEPS[key](value)
        return (facts.Unknown(key, line.decode("utf-8", "replace")),)

    def request(self, action: codec.AnyAction) -> Iterable[CodecOutput]:
        match action:
            case codec.Send(text) | codec.Steer(text) if not text.startswith("never "):
                return (WriteStdin(b'{"send": "%s"}\n' % text.encode()),)
            case codec.ApproveAction("forbidden"):
                return (Refuse("VALIDATION_ERROR", "forbidden: this cannot be approved"),)
            case codec.DenyAction("unavoidable"):
                return (Refuse("VALIDATION_ERROR", "unavoidable: this cannot be denied"),)
            case codec.ApproveAction(request_id):
                return (WriteStdin(b'{"answer": "yes"}\n'), facts.RequestResolved(request_id, True))
            case codec.DenyAction(request_id, reason):
                return (WriteStdin(b'{"answer": "no"}\n'), facts.RequestResolved(request_id, False, reason))
            case codec.AnswerAction("choice", text) if text not in {"red", "blue"}:
                return (Refuse("VALIDATION_ERROR", f"choice: got {text!r}; allowed: 'red' or 'blue'"),)
            case codec.AnswerAction(request_id, text):
                return (WriteStdin(b'{"answer": "%s"}\n' % text.encode()), facts.RequestResolved(request_id, True))
            case codec.Interrupt():
                return (WriteStdin(b'{"interrupt": true}\n'),)
            case codec.Close():
                return (CloseStdin(),)
        return (Refuse("CAPABILITY_ERROR", f"the scripted agent cannot {type(action).__name__}"),)

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002
        return ()


def scripted_adapter(
    body: str,
    *,
    agent: str = "scripted",
    two_way: bool = True,
    argv: tuple[str, ...] | None = None,
    notes: tuple[str, ...] = (),
    counts_turns: bool = True,
    approval_modes: tuple[ApprovalMode, ...] = ("yolo", "prompt", "deny"),
    stdout: Literal["pipe", "file"] = "pipe",
) -> Adapter:
    """Return an adapter whose agent runs `body`."""

    def spawn(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
        return SpawnArgs(
            argv=argv or (environment.executable, "-c", PRELUDE + body),
            protocol="lines",
            notes=notes,
            env={"SCRIPTED_MODEL": options.model or ""},
            stdout=stdout,
            counts_turns=counts_turns,
            stdin_text=None if two_way else options.prompt_text,
        )

    protocol = NativeProtocol(
        name="lines",
        codec=ScriptedCodec,
        streams=frozenset({"text", "tool_calls", "thinking"}),
        two_way=two_way,
        sniff=lambda _: True,
    )
    return Adapter(
        agent=agent,
        display_name=agent.capitalize(),
        executables=(sys.executable,),
        executable_variable=f"AMUX_{agent.upper()}_EXECUTABLE",
        tested_version="3.11",
        capabilities=AgentCapabilities(
            agent=agent,
            approval_modes=approval_modes,
            text_streaming=True,
            interactive_mode=True,
            mcp=True,
        ),
        protocols={"lines": protocol},
        spawn=spawn,
        install=(),
        auth_guidance="no login is needed",
    )


class ScriptedMux:
    """A factory of clients whose only agent is the scripted agent."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def client(self, body: str, **arguments: Any) -> AgentMux:
        registry = AdapterRegistry()
        adapters, arguments = split_arguments(body, arguments)
        for adapter in adapters:
            registry.register(adapter)
        return AgentMux(adapters=registry, default_agent="scripted", config_dir=self.directory, **arguments)


def split_arguments(body: str, arguments: dict[str, Any]) -> tuple[list[Adapter], dict[str, Any]]:
    """Return the adapters and the remaining arguments, which are the client's.

    `others`: further scripted agents, as a mapping from their names to their bodies.
    """
    own = ("two_way", "argv", "notes", "counts_turns", "approval_modes", "stdout")
    of_adapter = {name: value for name, value in arguments.items() if name in own}
    others = [scripted_adapter(other, agent=name) for name, other in arguments.get("others", {}).items()]
    rest = {name: value for name, value in arguments.items() if name not in (*own, "others")}
    return [scripted_adapter(body, **of_adapter), *others], rest


MakeClient = Callable[..., Any]
"""Creates an `AgentMux`, or a `RemoteMux` of a server that runs for the test."""
