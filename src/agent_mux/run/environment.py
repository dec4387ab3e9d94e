"""The environment of an agent's process: variables, the active trace, and the run's temporary directory."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agent_mux.errors import AgentMuxError
from agent_mux.process.marker import marker_variable
from agent_mux.sdk.adapter import Adapter, SpawnArgs
from agent_mux.sdk.options import RunOptions

MINIMAL_ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TERM", "TMPDIR", "SHELL", "TZ")


def base_environment(options: RunOptions, adapter: Adapter) -> dict[str, str]:
    """Return the inherited variables, those of the active trace and those of the options, in this order.

    Variables of a session of the agent in which this process runs are not inherited.
    """
    names = os.environ if options.inherit_env else [name for name in MINIMAL_ENVIRONMENT if name in os.environ]
    inherited = {name: os.environ[name] for name in names if not is_session_variable(name, adapter)}
    return {**inherited, **trace_environment(), **options.env}


def is_session_variable(name: str, adapter: Adapter) -> bool:
    """Return whether a session of the agent sets this variable for the programs that it starts."""
    return any(fnmatchcase(name, family) for family in adapter.session_variables)


def process_environment(environ: Mapping[str, str], spawn: SpawnArgs, run_id: str) -> dict[str, str]:
    """Return the environment of the agent's process: without `unset_env`, with `env` and the marker of the run."""
    kept = {name: value for name, value in environ.items() if name not in spawn.unset_env}
    return {**kept, **spawn.env, marker_variable(run_id): "1"}


def trace_environment(context: Any = None) -> dict[str, str]:
    """Return the variables that name the active span, or the span of this OpenTelemetry context.

    Empty if no span is active or OpenTelemetry is not in use.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415  # an extra

    carrier: dict[str, Any] = {}
    TraceContextTextMapPropagator().inject(carrier, context)
    return {name.upper(): str(value) for name, value in carrier.items()}


def temp_dir_of(run_id: str) -> Path:
    """Return the directory for the run's private files, which is removed at the end of the run.

    Raises SPAWN_ERROR if no temporary directory can be written.
    """
    try:
        return Path(tempfile.gettempdir()) / f"agent-mux-{run_id}"
    except OSError as error:
        reason = f"no temporary directory can be written: {error.strerror}; free disk space, or set TMPDIR"
        raise AgentMuxError("SPAWN_ERROR", reason) from error


@contextmanager
def private_files(directory: Path, files: Mapping[str, str]) -> Iterator[None]:
    """Create the directory with these files (mode 0600), and remove it with all its content at the end.

    Raises SPAWN_ERROR if the directory exists or cannot be written.
    """
    try:
        directory.mkdir(mode=0o700)
    except OSError as error:
        raise _temp_dir_error(directory, error) from error
    try:
        write_private_files(directory, files)
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def write_private_files(directory: Path, files: Mapping[str, str]) -> None:
    """Write these files (mode 0600) into a directory. Raises SPAWN_ERROR if that fails."""
    try:
        for name, content in files.items():
            path = directory / name
            path.touch(mode=0o600)
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise _temp_dir_error(directory, error) from error


def _temp_dir_error(directory: Path, error: OSError) -> AgentMuxError:
    system_message = f"{error.strerror or error} (errno {error.errno})"
    if isinstance(error, FileExistsError):
        why = f"{directory} already exists: another run has this run_id; omit it, or choose another"
    else:
        why = f"the temp directory {directory} cannot be written; free disk space there, or set TMPDIR"
    return AgentMuxError("SPAWN_ERROR", f"{why} [{system_message}]")
