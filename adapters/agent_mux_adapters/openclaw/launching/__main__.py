"""A program that runs `openclaw acp` with a gateway of its own. It imports only the standard library.

`openclaw acp` needs a gateway. This program starts one on a free loopback port, with a secret token (in the
environment, never in argv), waits until it answers, and starts `openclaw acp` on our own stdin and stdout. When that
ends, a signal arrives, or stdin is closed too early, it ends both.

The gateway uses the user's state (sessions, logins) and a configuration of this run: `run.json`, which overrides the
user's own; that is only read. It connects to no channels and keeps no schedules. OpenClaw allows one gateway at a time
for a state directory. A gateway of the user is not used, whatever `OPENCLAW_GATEWAY_URL` is: it has a workspace, a
model, MCP servers and approval rules of its own, so the options of a run would have no effect there.

The gateway's records of what `openclaw acp` drops are inserted between its lines: see `relay.py`.
"""

import argparse
import http.client
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from .relay import LISTENING, POLL_INTERVAL, Relay
from .sources import UsageDatabases, state_directory

_READY_TIMEOUT = 180.0  # seconds; 10 on an idle machine, 80 on a busy one
_GRACE_PERIOD = 3.0  # seconds; an idle gateway exits within 0.5 s, a busy one would wait 5 minutes for its work
_EXIT_FAILED = 70  # sysexits.h: EX_SOFTWARE
_ERROR_PREFIX = "agent-mux: "
_GATEWAY_FEATURES_OFF = {
    "OPENCLAW_DISABLE_BONJOUR": "1",
    "OPENCLAW_NO_AUTO_UPDATE": "1",
    "OPENCLAW_NO_RESPAWN": "1",
    "OPENCLAW_SKIP_BROWSER_CONTROL_SERVER": "1",
    "OPENCLAW_SKIP_CANVAS_HOST": "1",
    "OPENCLAW_SKIP_CHANNELS": "1",
    "OPENCLAW_SKIP_CRON": "1",
    "OPENCLAW_SKIP_GMAIL_WATCHER": "1",
}
"""Variables that disable what a run does not need: channels, schedules, the browser, updates."""
_NOT_INHERITED = frozenset({"OPENCLAW_GATEWAY_PASSWORD", "OPENCLAW_GATEWAY_PORT", "OPENCLAW_GATEWAY_URL"})
"""Variables that point to a gateway of the user."""
_TERMINATING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class LaunchError(Exception):
    """A failed start of the gateway or the bridge; the message is one sentence."""


# -- processes


class Children:
    """The processes of this run, and the signal that ends it: 0 until one has arrived."""

    def __init__(self) -> None:
        self.signal = 0
        self._started: list[subprocess.Popen[bytes]] = []
        for number in _TERMINATING_SIGNALS:
            signal.signal(number, self._remember)

    def start(
        self, argv: Sequence[str], environment: Mapping[str, str], stdin: int | None, stdout: int, stderr: int | None
    ) -> subprocess.Popen[bytes]:
        """Start a process; a stream that is None is inherited. Raise `LaunchError` when the start fails."""
        try:
            child = subprocess.Popen(argv, env=environment, stdin=stdin, stdout=stdout, stderr=stderr)
        except OSError as error:
            raise LaunchError(f"{argv[0]} could not be started: {error.strerror}") from error
        self._started.append(child)
        return child

    def end(self) -> None:
        """Terminate the processes that still run, and kill them after the grace period."""
        running = [child for child in self._started if child.poll() is None]
        for child in running:
            child.terminate()
        deadline = time.monotonic() + _GRACE_PERIOD
        while any(child.poll() is None for child in running) and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL)
        for child in running:
            if child.poll() is None:
                child.kill()
            child.wait()

    def _remember(self, number: int, _frame: object) -> None:
        # An exception raised here could lose a process between its start and its registration.
        self.signal = self.signal or number


def main(arguments: Sequence[str]) -> int:
    """Run until `openclaw acp` ends. Return its exit code, or 128 plus the signal that ended it or us."""
    options = _options(arguments)
    children = Children()
    try:
        return _run(options, children)
    except LaunchError as error:
        sys.stderr.write(f"{_ERROR_PREFIX}{error}\n")
        return _EXIT_FAILED
    finally:
        children.end()


def _run(options: argparse.Namespace, children: Children) -> int:
    environment = _environment(options, os.environ)
    usage = UsageDatabases(state_directory(environment), time.time_ns() // 1_000_000)
    relay = Relay(Path(environment["OPENCLAW_RAW_STREAM_PATH"]), usage)
    relay.notify(LISTENING, b"{}")
    port = _free_port()
    gateway = children.start(
        [options.openclaw, "gateway", "run", f"--port={port}", "--bind=loopback", "--auth=token", "--tailscale=off"],
        environment,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),  # our stdout belongs to the protocol
        stderr=subprocess.PIPE,
    )
    _start_thread(relay.copy_log, gateway.stderr)
    if not _wait_until_ready(gateway, port, children):
        return _signal_exit_code(children.signal)
    bridge_environment = {**environment, "OPENCLAW_GATEWAY_URL": f"ws://127.0.0.1:{port}"}
    command = [options.openclaw, "acp", "--no-prefix-cwd"]
    bridge = children.start(command, bridge_environment, stdin=None, stdout=subprocess.PIPE, stderr=None)
    copying = _start_thread(relay.copy_bridge, bridge.stdout)
    while bridge.poll() is None and not children.signal and not relay.is_closed:
        ended = gateway.poll()
        if ended is not None and ended < 0:
            return _signal_exit_code(-ended)
        if ended is not None:
            raise LaunchError(f"the OpenClaw gateway ended with exit code {ended} while it was in use")
        relay.print_overdue()
        time.sleep(POLL_INTERVAL)
    code = bridge.returncode or 0
    if not children.signal:
        copying.join(_GRACE_PERIOD)
    return _signal_exit_code(children.signal or -min(code, 0)) or code


def _start_thread(work: Callable[[IO[bytes]], None], stream: IO[bytes] | None) -> threading.Thread:
    thread = threading.Thread(target=work, args=(stream,), daemon=True)
    thread.start()
    return thread


def _signal_exit_code(number: int) -> int:
    """Return the exit code for a process that this signal ended; 0 without a signal."""
    return 128 + number if number else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="openclaw launcher", allow_abbrev=False)
    parser.add_argument("--openclaw", required=True, help="the openclaw program")
    parser.add_argument("--config", required=True, type=Path, help="the configuration of the run")
    parser.add_argument(
        "--users-config", required=True, type=Path, help="the configuration of the user; need not exist"
    )
    parser.add_argument("--state-dir", type=Path, help="a state directory to use instead of the user's")
    return parser.parse_args(arguments)


# -- environment and configuration


def _environment(options: argparse.Namespace, inherited: Mapping[str, str]) -> dict[str, str]:
    """Write the configuration of the run, and return the environment of both processes."""
    users_config, folder = options.users_config, options.config.parent
    config = folder / "openclaw.json"
    config.touch(mode=0o600)
    # OpenClaw merges: later includes override earlier ones, and the keys beside them override all includes.
    includes = ["./defaults.json", *([str(users_config)] if users_config.is_file() else [])]
    config.write_text(json.dumps({"$include": includes, **json.loads(options.config.read_bytes())}), "utf-8")
    roots = [str(users_config.parent), *filter(None, [inherited.get("OPENCLAW_INCLUDE_ROOTS")])]
    own = {
        "OPENCLAW_CONFIG_PATH": str(config),
        "OPENCLAW_GATEWAY_TOKEN": secrets.token_hex(32),
        "OPENCLAW_INCLUDE_ROOTS": os.pathsep.join(roots),
        "OPENCLAW_RAW_STREAM": "1",
        "OPENCLAW_RAW_STREAM_PATH": str(folder / "raw-stream.jsonl"),
    }
    if options.state_dir is not None:
        options.state_dir.mkdir(mode=0o700, exist_ok=True)
        own["OPENCLAW_STATE_DIR"] = str(options.state_dir)
    kept = {name: value for name, value in inherited.items() if name not in _NOT_INHERITED}
    return {**kept, **_GATEWAY_FEATURES_OFF, **own}


# -- readiness


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(gateway: subprocess.Popen[bytes], port: int, children: Children) -> bool:
    """Wait until the gateway answers. Return False when a signal arrived, or stdin was closed without any input."""
    deadline = time.monotonic() + _READY_TIMEOUT
    while not _answers(port):
        if children.signal or _is_stdin_closed():
            return False
        if gateway.poll() is not None:
            raise LaunchError(
                f"the OpenClaw gateway of this run ended with exit code {gateway.returncode} before it was ready. "
                "OpenClaw allows one gateway for a state directory: if another one runs, stop it (`openclaw gateway "
                "stop`), or give the run an OPENCLAW_STATE_DIR of its own"
            )
        if time.monotonic() > deadline:
            raise LaunchError(f"the OpenClaw gateway was not ready after {_READY_TIMEOUT:.0f} seconds")
        time.sleep(POLL_INTERVAL)
    return True


def _answers(port: int) -> bool:
    """Return whether the gateway answers. It is ready soon after, long before `openclaw acp` has started."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1.0)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status < http.HTTPStatus.INTERNAL_SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _is_stdin_closed() -> bool:
    """Return whether stdin is closed and fully read."""
    poll = select.poll()
    poll.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    return any(events & select.POLLHUP and not events & select.POLLIN for _, events in poll.poll(0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
