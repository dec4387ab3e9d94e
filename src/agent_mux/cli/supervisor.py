"""The process behind `amux run --detach`: it owns one run, without a terminal, until the run is over.

`python -m agent_mux.cli.supervisor` reads the resolved options from standard input (a pickle, from the `amux` that
started it), reports on standard output that the run has its control socket, or why it could not start, and then closes
its standard streams. Approvals and questions wait for `amux runs answer`. If the supervisor is killed, the reaper ends
the agent.
"""

import os
import pickle
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import msgspec

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.cli.errors import error_report
from agent_mux.client import AgentMux
from agent_mux.control.places import find_socket
from agent_mux.errors import AgentMuxError
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.interactions import Defer
from agent_mux.settings.resolver import ResolvedOptions

START_TIMEOUT = 60.0  # seconds in which the supervisor has to report
_SOCKET_INTERVAL = 0.01
_SOCKET_TIMEOUT = 10.0


def start_detached(resolved: ResolvedOptions, config_dir: Path | None) -> dict[str, Any]:
    """Start a supervisor for a run and return its report. Raises the error that prevented the start."""
    request = pickle.dumps((resolved, config_dir))
    process = subprocess.Popen(  # it outlives this process, so nobody waits for its end
        [sys.executable, "-m", "agent_mux.cli.supervisor"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018  # they are pipes
    with process.stdin, process.stdout:
        with suppress(BrokenPipeError):  # it has ended, which the missing report shows
            process.stdin.write(request)
            process.stdin.close()
        ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT)
        if not ready:
            process.kill()
            process.wait()
            raise AgentMuxError("TIMEOUT", f"the run did not start within {START_TIMEOUT:g} s; try again")
        report = process.stdout.read()
    process.returncode = process.poll() or 0  # without this, Popen warns that the process still works
    if not report:
        raise AgentMuxError("SPAWN_ERROR", "the supervisor ended before it started the run; try again without --detach")
    plain: dict[str, Any] = msgspec.json.decode(report)
    if "error" in plain:
        raise AgentMuxError(plain["error"]["code"], plain["error"]["message"])
    return plain


async def supervise(resolved: ResolvedOptions, config_dir: Path | None) -> None:
    """Carry out the run and report its start. Raises the error that prevented it."""
    options = replace(resolved.options, on_input_required=lambda _: Defer())
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with AgentMux(config_dir=config_dir) as mux, anyio.create_task_group() as tasks:
            run = mux.run(replace(resolved, options=options))
            run.interaction.keep_open()

            async def abort_on_signal() -> None:
                async for _ in signals:
                    await run.abort()

            tasks.start_soon(abort_on_signal)
            await _wait_for_socket(run, mux.journals.parent)
            report({"runId": run.run_id, "agent": run.agent, "journal": run.journal, "pid": os.getpid()})
            await run.result()
            tasks.cancel_scope.cancel()


async def _wait_for_socket(run: RunHandle, config_dir: Path) -> None:
    """Wait until the run can be controlled or is over. Without a runtime directory it continues without a socket."""
    with anyio.move_on_after(_SOCKET_TIMEOUT):
        while run.state not in TERMINAL_STATES and find_socket(config_dir, run.run_id) is None:  # noqa: ASYNC110
            await anyio.sleep(_SOCKET_INTERVAL)


def report(message: dict[str, Any]) -> None:
    """Write the report and release the standard streams, so that the shell that started the run can end."""
    os.write(1, to_json_bytes({name: value for name, value in message.items() if value is not None}))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def main() -> int:
    """Read the request, carry out the run, and report an error that prevents its start."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    resolved, config_dir = pickle.load(sys.stdin.buffer)  # noqa: S301  # from our own parent, by a pipe
    try:
        anyio.run(supervise, resolved, config_dir)
    except Exception as error:  # noqa: BLE001  # whatever it is, the caller waits for the report
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]  # type: ignore[assignment]  # only exceptions are here
        complaint = error_report(error)
        report({"error": {"code": complaint.code, "message": complaint.message}})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
