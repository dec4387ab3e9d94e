r"""The protocol of the control socket: JSON lines in both directions.

    run     {"type":"hello","protocol":"agent-mux-control","version":1,"run":{...}}
    client  {"type":"steer","id":1,"text":"use the other file"}
    run     {"type":"ack","command":"steer","id":1,"delivery":"merged","run":{...}}
    client  {"type":"subscribe","start":0}
    run     {"type":"ack","command":"subscribe","run":{...}}
    run     {"type":"session_start",...}            every event from number `start`, without accumulated text
    run     {"type":"run_state","run":{...}}        whenever something else than the number of events has changed
    run     {"type":"run_result",...}               at the end; then the run closes the connection

The commands are those of `amux run --interactive --json` (`agent_mux.run.commands`). A newer version may add fields,
message types and commands; a change that older clients cannot ignore has a new version number.
"""

import os
import time
from dataclasses import asdict
from typing import Any, Literal

import msgspec

from agent_mux.run.base import TERMINAL_STATES, RunState
from agent_mux.run.commands import AnyCommand, InvalidCommandError, RunCommand, find_problem
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.settings.options_json import camel

PROTOCOL = "agent-mux-control"
VERSION = 1
MAX_REQUEST = 1 << 22
"""Bytes of a line that a client sends."""


class SubscribeCommand(RunCommand, frozen=True, tag="subscribe"):
    """Send the events from number `start`, the changes of the state, and the result."""

    start: int = 0


ControlCommand = AnyCommand | SubscribeCommand
_decoder: msgspec.json.Decoder[ControlCommand] = msgspec.json.Decoder(ControlCommand)


def decode_command(line: bytes) -> ControlCommand:
    """Parse one line of a client. Raises `InvalidCommandError`."""
    try:
        command = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidCommandError(str(error)) from error
    problem = "start is negative" if isinstance(command, SubscribeCommand) and command.start < 0 else ""
    if not isinstance(command, SubscribeCommand):
        problem = find_problem(command)
    if problem:
        raise InvalidCommandError(problem, str(command.__struct_config__.tag), command.id)
    return command


class InteractionSnapshot(msgspec.Struct, rename="camel", frozen=True):
    """An approval or a question that the agent waits for."""

    id: str
    type: Literal["approval", "input"]
    description: str
    detail: dict[str, Any]
    created_at: int


class RunSnapshot(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """The state of an active run at one time."""

    run_id: str
    agent: str
    state: RunState
    revision: int = 0
    """Increases with each snapshot."""
    model: str | None = None
    session_id: str | None = None
    is_busy: bool = False
    pending: list[InteractionSnapshot] = []
    event_count: int = 0
    journal: str | None = None
    pid: int = 0
    """Id of the process that owns the run."""
    started_at: int = 0
    cwd: str = ""
    prompt: str = ""
    tags: tuple[str, ...] = ()


class Hello(msgspec.Struct, tag_field="type", tag="hello", frozen=True):
    """The first line of a connection."""

    protocol: str
    version: int
    run: RunSnapshot


def snapshot_of(run: RunHandle) -> RunSnapshot:
    """Return the current state of a run."""
    header = run.header
    return RunSnapshot(
        run_id=run.run_id,
        agent=run.agent,
        state=run.state,
        revision=time.monotonic_ns(),
        model=run.model,
        session_id=run.session_id,
        is_busy=run.is_busy,
        pending=[] if run.state in TERMINAL_STATES else [interaction_snapshot(one) for one in run.interaction.peek()],
        event_count=run.event_count,
        journal=run.journal,
        pid=os.getpid(),
        started_at=header.started_at,
        cwd=header.stream.cwd or "",
        prompt=prompt_of(header.options),
        tags=header.tags,
    )


def interaction_snapshot(pending: PendingInteraction) -> InteractionSnapshot:
    """Return the JSON form of a pending interaction."""
    detail = {camel(name): value for name, value in asdict(pending.detail).items() if value is not None}
    return InteractionSnapshot(pending.id, pending.type, pending.description, detail, pending.created_at)


def prompt_of(options: dict[str, Any]) -> str:
    """Return the prompt in the options of a recording."""
    prompt = options.get("prompt", "")
    return prompt if isinstance(prompt, str) else "\n\n".join(map(str, prompt))
