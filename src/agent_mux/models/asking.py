"""Asking an agent for its models: its own command, bounded, in a process group of its own that is ended afterwards."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import msgspec

from agent_mux.adapter import Adapter
from agent_mux.errors import AgentMuxError, AuthError, CapabilityError
from agent_mux.models.capabilities import ModelCapabilities
from agent_mux.models.listing import ModelListing
from agent_mux.run.plan import find_executable

MOST_BYTES = 16 * 1024 * 1024  # of what a listing prints; Codex prints 0.7 MB
LONGEST_REASON = 300  # characters


def ask_for_models(adapter: Adapter, environ: Mapping[str, str], *, timeout: float) -> tuple[ModelCapabilities, ...]:
    """What the installed agent says it offers.

    Raises:
        CapabilityError: It has no command for that.
        AuthError: It offers nothing, as it is: it knows no key.
        AgentMuxError: AGENT_NOT_INSTALLED; SPAWN_ERROR where it cannot be started; TIMEOUT; AGENT_CRASH where it ends
            with an error; PARSE_ERROR where it says what is not understood.
    """
    listing = adapter.model_listing
    if listing is None:
        told = "listing its models; what is known of them comes with agent-mux"
        raise CapabilityError(adapter.agent, told)
    command = (find_executable(adapter, environ), *listing.argv)
    asked = f"`{Path(command[0]).name} {' '.join(listing.argv)}`"
    said = _run(command, {**environ, **listing.env}, asked, timeout, listing.reads)
    models = _read(listing, said, asked)
    if not models:
        raise AuthError(adapter.agent, f"{asked} lists no models", adapter.auth_guidance)
    return models


def _read(listing: ModelListing, said: str, asked: str) -> tuple[ModelCapabilities, ...]:
    try:
        models = listing.parse(said)
        msgspec.json.encode(models)  # a surrogate in it is no text that can be kept
    except ValueError as error:
        strange = f"what {asked} printed is not understood: {error}; the agent may be newer than agent-mux knows"
        raise AgentMuxError("PARSE_ERROR", strange) from error
    return models


def _run(
    command: tuple[str, ...], environ: Mapping[str, str], asked: str, timeout: float, reads: tuple[str, ...]
) -> str:
    # Files, not pipes: nothing has to be read meanwhile, and nobody who is left behind keeps us waiting.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        code = _exit_code(command, environ, asked, timeout, (out, errors))
        printed = {"stdout": _text(out), "stderr": _text(errors)}
    if code != 0:
        reason = _last_line(printed["stderr"]) or _last_line(printed["stdout"]) or "it says nothing about it"
        raise AgentMuxError("AGENT_CRASH", f"{asked} ended with exit code {code}: {reason}")
    return "\n".join(printed[name] for name in reads)


def _exit_code(
    command: tuple[str, ...], environ: Mapping[str, str], asked: str, timeout: float, files: tuple[IO[bytes], IO[bytes]]
) -> int:
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=files[0],
            stderr=files[1],
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise AgentMuxError("SPAWN_ERROR", f"{asked} could not be started: {reason}; reinstall the agent") from error
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired as error:
        late = f"{asked} did not answer within {timeout:g} s; what was known before stays"
        raise AgentMuxError("TIMEOUT", late) from error
    finally:
        _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # nobody is left
    except PermissionError:
        return  # macOS says so of a group of which only zombies are left
    finally:
        process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MOST_BYTES).decode("utf-8", "replace")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:LONGEST_REASON] if lines else ""
