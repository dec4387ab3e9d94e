"""Run options to a replay: the prompt is the path of the recording."""

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_mux.sdk import FieldError, ValidationError
from agent_mux.sdk.adapter import SpawnArgs, SpawnEnvironment
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.options import RunOptions
from agent_mux_adapters.replay.playback.lines import CHUNKS
from agent_mux_adapters.replay.playback.recording import ReplayRecording, load

HERE = Path(__file__).parent
PLAYER = HERE / "player.py"
DEMO = "demo"
SPEED = "AMUX_REPLAY_SPEED"
PATIENCE = "AMUX_REPLAY_PATIENCE"
DEFAULT_SPEED = 1.0  # 1 as recorded, 0 without pauses
DEFAULT_PATIENCE = 120.0  # seconds: a person may have to approve a request
NEUTRAL_PROMPT = "(replayed)"  # the recorded prompt may be private


def spawn(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return the command of the player. Raises `ValidationError` when the prompt is not a recording."""
    recording = _recording(options)
    speed = _number(environment.environ, SPEED, DEFAULT_SPEED)
    patience = _number(environment.environ, PATIENCE, DEFAULT_PATIENCE)
    return SpawnArgs(
        argv=(environment.executable, "-I", "-S", str(PLAYER), str(_path(options)), f"{speed:g}", f"{patience:g}"),
        protocol=_protocol(recording),
        stdin="pipe" if recording.is_two_way else "null",
    )


def context(options: RunOptions, spawned: SpawnArgs) -> CodecContext:
    """Return the context for the recorded agent's codec: a fixture has little of it, a journal that of its run."""
    recording = _recording(options)
    return msgspec.structs.replace(
        msgspec.convert({"agent": "", "protocol": "", **recording.codec}, CodecContext),
        agent=recording.agent,
        protocol=recording.protocol,
        cwd=recording.cwd,
        prompt=NEUTRAL_PROMPT if spawned.stdin == "pipe" else None,
        approval_mode=options.approval_mode,
        interactive=options.interactive,
        debug=options.debug,
    )


def _path(options: RunOptions) -> Path:
    text = options.prompt_text.strip()
    if text == DEMO:
        return HERE / DEMO
    return Path(os.path.expanduser(text)).absolute()


def named_files(options: RunOptions) -> Mapping[str, str]:
    """Return the path of the recording, unless it is the built-in one."""
    return {} if options.prompt_text.strip() == DEMO else {"prompt": str(_path(options))}


def absolute_files(fields: Mapping[str, Any], absolute: Callable[[str], str]) -> dict[str, Any]:
    """Return the prompt as an absolute path, unless it names the built-in recording."""
    prompt = fields.get("prompt")
    path = prompt.strip() if isinstance(prompt, str) else ""
    return {} if path in {"", DEMO} else {"prompt": absolute(path)}


def _recording(options: RunOptions) -> ReplayRecording:
    try:
        recording = load(_path(options))
    except ValueError as error:
        allowed = f"a recording: a fixture folder, the journal of a run, or {DEMO!r} ({error})"
        raise ValidationError([FieldError("prompt", options.prompt_text, allowed)]) from error
    if recording.framing == CHUNKS:
        allowed = "a recording of an agent with a protocol; use `amux replay` for terminal recordings"
        raise ValidationError([FieldError("prompt", options.prompt_text, allowed)])
    return recording


def _protocol(recording: ReplayRecording) -> str:
    """Return the protocol's name with that of the recorded agent, whose codec reads the lines."""
    return f"{recording.agent}/{recording.protocol}"


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValidationError([FieldError(f"env.{name}", text, "a number >= 0")])
    return value
