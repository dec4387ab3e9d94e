"""`python -m agent_mux_testing.model_server --script F [--port P] [--log L] [-- COMMAND...]`: the server as a process.

With a command, the server runs exactly as long as the command, whose exit code it returns; each run thus starts with
the first step. Without one, it prints one line, `{"port": ..., "url": ...}`, once it listens, and ends after SIGTERM or
SIGINT. A request that no step answers is reported on standard error: each step answers once, unless it has `repeat`.
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from agent_mux_testing.model_server.script import Script, load_script
from agent_mux_testing.model_server.server import ScriptedModelServer

EXIT_BAD_SCRIPT = 2
EXIT_UNAVAILABLE = 1
EXIT_NOT_FOUND = 127
SIGNAL_EXIT = 128  # plus the number of the signal, as shells report it
ANSWERED_BY_STEPS = frozenset({"messages", "responses", "chat", "generate", "converse"})
"""Kinds of requests that a step should answer; others, such as titles, have answers of their own."""


def main() -> int:
    """Serve until SIGTERM or SIGINT. Return the exit code."""
    options = _arguments().parse_args()
    try:
        script = load_script(options.script)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return EXIT_BAD_SCRIPT
    return asyncio.run(_serve(script, options))


async def _serve(script: Script, options: argparse.Namespace) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with ScriptedModelServer(script, port=options.port, log=options.log) as server:
            reports = asyncio.create_task(_report_unmatched(server))
            try:
                return await (_run_command(options.command, stop) if options.command else _announce(server, stop))
            finally:
                reports.cancel()
                _report_unused(server)
    except OSError as error:
        sys.stderr.write(f"error: cannot listen on port {options.port}: {error.strerror}; choose another --port\n")
        return EXIT_UNAVAILABLE


async def _announce(server: ScriptedModelServer, stop: asyncio.Event) -> int:
    """Print the address and wait for a signal."""
    sys.stdout.write(json.dumps({"port": server.port, "url": server.url}) + "\n")
    sys.stdout.flush()
    await stop.wait()
    return 0


async def _run_command(command: Sequence[str], stop: asyncio.Event) -> int:
    """Run the command and return its exit code. A signal to this process is passed on as SIGTERM."""
    try:
        process = await asyncio.create_subprocess_exec(*command)
    except OSError as error:
        sys.stderr.write(f"error: cannot start {command[0]}: {error.strerror}\n")
        return EXIT_NOT_FOUND
    stopped = asyncio.create_task(stop.wait())
    ended = asyncio.create_task(process.wait())
    await asyncio.wait((stopped, ended), return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        process.terminate()
    stopped.cancel()
    code = await ended
    return code if code >= 0 else SIGNAL_EXIT - code


async def _report_unmatched(server: ScriptedModelServer) -> None:
    """Report each request that was answered although no step matched it."""
    seen = 0
    while True:
        await server.requested(seen + 1)
        for number, request in enumerate(server.requests[seen:], seen + 1):
            if request.step is None and request.kind in ANSWERED_BY_STEPS:
                sys.stderr.write(f"scripted model: request {number} ({request.path}) matched no unused step\n")
        seen = len(server.requests)


def _report_unused(server: ScriptedModelServer) -> None:
    """Report the steps that answered nothing, of a script that was used at all."""
    if server.requests and server.unused_steps:
        sys.stderr.write(f"scripted model: unused steps at the end: {len(server.unused_steps)}\n")


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agent_mux_testing.model_server", description="A scripted model.")
    parser.add_argument("--script", type=Path, required=True, help="JSON file, see script.py")
    parser.add_argument("--port", type=int, default=0, help="default: any free port")
    parser.add_argument("--log", type=Path, help="append every request to this file, one JSON object a line")
    parser.add_argument("command", nargs="*", metavar="-- COMMAND", help="run this command and end with it")
    return parser


if __name__ == "__main__":
    sys.exit(main())
