"""`python -m agent_mux_testing.model_server --script F [--port P] [--log L]`: the server as a process.

It prints one line, `{"port": ..., "url": ...}`, once it listens, and ends after SIGTERM or SIGINT.
"""

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from agent_mux_testing.model_server.script import Script, load_script
from agent_mux_testing.model_server.server import ScriptedModelServer

EXIT_BAD_SCRIPT = 2


def main() -> int:
    """Serve until SIGTERM or SIGINT. Return the exit code."""
    options = _arguments().parse_args()
    try:
        script = load_script(options.script)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return EXIT_BAD_SCRIPT
    asyncio.run(_serve(script, options.port, options.log))
    return 0


async def _serve(script: Script, port: int, log: Path | None) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with ScriptedModelServer(script, port=port, log=log) as server:
        sys.stdout.write(json.dumps({"port": server.port, "url": server.url}) + "\n")
        sys.stdout.flush()
        await stop.wait()


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agent_mux_testing.model_server", description="A scripted model.")
    parser.add_argument("--script", type=Path, required=True, help="JSON file, see script.py")
    parser.add_argument("--port", type=int, default=0, help="default: any free port")
    parser.add_argument("--log", type=Path, help="append every request to this file, one JSON object a line")
    return parser


if __name__ == "__main__":
    sys.exit(main())
