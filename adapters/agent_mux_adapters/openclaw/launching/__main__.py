"""`openclaw acp` with a gateway of its own: started as a program, with nothing but the standard library.

OpenClaw speaks ACP only in front of a gateway. This program starts one on a free port of the loopback, with a token
that nobody else has (in the environment, never in argv), waits until it answers, and starts `openclaw acp` on our own
stdin and stdout. When that ends, or a signal comes, or stdin is closed too early, everything ends.

The gateway works on the user's state (sessions, logins) and a configuration for this run alone: `run.json`, laid over
the user's own, which is only read. It connects to no channels and keeps no schedules. OpenClaw lets one gateway at a
time work on a state directory. One that the user runs is not used, wherever `OPENCLAW_GATEWAY_URL` points: it has its
own workspace, model, MCP servers and rules about approvals, and a run could keep none of its promises there.

What `openclaw acp` drops and the gateway writes down is put between its lines: see `relay.py`.
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

from .relay import LISTENING, LOOK_EVERY, Output
from .spending import Spending, state_directory

READY_WITHIN = 180.0  # seconds; 10 on an idle machine, 80 on a busy one
GRACE = 3.0  # an idle gateway needs 0.5 s to leave; a busy one would wait 5 minutes for its work
EXIT_FAILED = 70  # sysexits.h: EX_SOFTWARE
OURS = "agent-mux: "
QUIET = {
    "OPENCLAW_DISABLE_BONJOUR": "1",
    "OPENCLAW_NO_AUTO_UPDATE": "1",
    "OPENCLAW_NO_RESPAWN": "1",
    "OPENCLAW_SKIP_BROWSER_CONTROL_SERVER": "1",
    "OPENCLAW_SKIP_CANVAS_HOST": "1",
    "OPENCLAW_SKIP_CHANNELS": "1",
    "OPENCLAW_SKIP_CRON": "1",
    "OPENCLAW_SKIP_GMAIL_WATCHER": "1",
}
"""A gateway that only serves this run: it is no messenger, no calendar and no web site."""
FOREIGN = frozenset({"OPENCLAW_GATEWAY_PASSWORD", "OPENCLAW_GATEWAY_PORT", "OPENCLAW_GATEWAY_URL"})
"""Variables that are about a gateway of the user's."""
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class LaunchError(Exception):
    """What could not be done, in a sentence."""


# -- processes


class Children:
    """The processes of this run, and the signal that ends them, once there was one."""

    def __init__(self) -> None:
        self.signal = 0
        self._started: list[subprocess.Popen[bytes]] = []
        for number in ENDING:
            signal.signal(number, self._remember)

    def start(
        self, argv: Sequence[str], environment: Mapping[str, str], stdin: int | None, stdout: int, stderr: int | None
    ) -> subprocess.Popen[bytes]:
        """Start one more; its streams as for `Popen`, where None is our own. Raises `LaunchError`."""
        try:
            child = subprocess.Popen(argv, env=environment, stdin=stdin, stdout=stdout, stderr=stderr)
        except OSError as error:
            raise LaunchError(f"{argv[0]} could not be started: {error.strerror}") from error
        self._started.append(child)
        return child

    def end(self) -> None:
        """End what still runs: first by asking."""
        running = [child for child in self._started if child.poll() is None]
        for child in running:
            child.terminate()
        deadline = time.monotonic() + GRACE
        while any(child.poll() is None for child in running) and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY)
        for child in running:
            if child.poll() is None:
                child.kill()
            child.wait()

    def _remember(self, number: int, _frame: object) -> None:
        # An exception here could come between the start of a process and our knowing of it.
        self.signal = self.signal or number


def main(arguments: Sequence[str]) -> int:
    """Run until `openclaw acp` ends; returns its exit code, or 128 and the signal that ended us."""
    options = _options(arguments)
    children = Children()
    try:
        return _run(options, children)
    except LaunchError as error:
        sys.stderr.write(f"{OURS}{error}\n")
        return EXIT_FAILED
    finally:
        children.end()


def _run(options: argparse.Namespace, children: Children) -> int:
    environment = _environment(options, os.environ)
    spending = Spending(state_directory(environment), time.time_ns() // 1_000_000)
    output = Output(Path(environment["OPENCLAW_RAW_STREAM_PATH"]), spending)
    output.say(LISTENING, b"{}")
    port = _free_port()
    gateway = children.start(
        [options.openclaw, "gateway", "run", f"--port={port}", "--bind=loopback", "--auth=token", "--tailscale=off"],
        environment,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),  # our stdout belongs to the protocol
        stderr=subprocess.PIPE,
    )
    _in_background(output.watch, gateway.stderr)
    if not _wait_until_ready(gateway, port, children):
        return _left(children.signal)
    place = {**environment, "OPENCLAW_GATEWAY_URL": f"ws://127.0.0.1:{port}"}
    command = [options.openclaw, "acp", "--no-prefix-cwd"]
    bridge = children.start(command, place, stdin=None, stdout=subprocess.PIPE, stderr=None)
    copying = _in_background(output.copy, bridge.stdout)
    while bridge.poll() is None and not children.signal and not output.is_closed:
        if gateway.poll() is not None:
            raise LaunchError(f"the OpenClaw gateway ended with exit code {gateway.returncode} while it was in use")
        output.catch_up()
        time.sleep(LOOK_EVERY)
    code = bridge.returncode or 0
    if not children.signal:
        copying.join(GRACE)
    return _left(children.signal or -min(code, 0)) or code


def _in_background(work: Callable[[IO[bytes]], None], stream: IO[bytes] | None) -> threading.Thread:
    thread = threading.Thread(target=work, args=(stream,), daemon=True)
    thread.start()
    return thread


def _left(number: int) -> int:
    """The exit code of what a signal ended; 0 for none."""
    return 128 + number if number else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="openclaw launcher", allow_abbrev=False)
    parser.add_argument("--openclaw", required=True, help="the program")
    parser.add_argument("--config", required=True, type=Path, help="what the run wants: see run_config.py")
    parser.add_argument("--users-config", required=True, type=Path, help="the user's own; it need not exist")
    parser.add_argument("--state-dir", type=Path, help="instead of the user's")
    return parser.parse_args(arguments)


# -- environment and configuration


def _environment(options: argparse.Namespace, inherited: Mapping[str, str]) -> dict[str, str]:
    """What both children get. The configuration of the run is written on the way."""
    users, place = options.users_config, options.config.parent
    config = place / "openclaw.json"
    config.touch(mode=0o600)
    # OpenClaw merges: later includes win over earlier ones, and what stands beside them over all.
    includes = ["./defaults.json", *([str(users)] if users.is_file() else [])]
    config.write_text(json.dumps({"$include": includes, **json.loads(options.config.read_bytes())}), "utf-8")
    roots = [str(users.parent), *filter(None, [inherited.get("OPENCLAW_INCLUDE_ROOTS")])]
    own = {
        "OPENCLAW_CONFIG_PATH": str(config),
        "OPENCLAW_GATEWAY_TOKEN": secrets.token_hex(32),
        "OPENCLAW_INCLUDE_ROOTS": os.pathsep.join(roots),
        "OPENCLAW_RAW_STREAM": "1",
        "OPENCLAW_RAW_STREAM_PATH": str(place / "raw-stream.jsonl"),
    }
    if options.state_dir is not None:
        options.state_dir.mkdir(mode=0o700, exist_ok=True)
        own["OPENCLAW_STATE_DIR"] = str(options.state_dir)
    kept = {name: value for name, value in inherited.items() if name not in FOREIGN}
    return {**kept, **QUIET, **own}


# -- readiness


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(gateway: subprocess.Popen[bytes], port: int, children: Children) -> bool:
    """Wait until the gateway answers. False: we are to leave, or our stdin was closed without a word in it."""
    deadline = time.monotonic() + READY_WITHIN
    while not _answers(port):
        if children.signal or _nobody_is_there():
            return False
        if gateway.poll() is not None:
            raise LaunchError(
                f"the OpenClaw gateway of this run ended with exit code {gateway.returncode} before it was ready. "
                "OpenClaw allows one gateway for a state directory: if another one runs, stop it (`openclaw gateway "
                "stop`), or give the run an OPENCLAW_STATE_DIR of its own"
            )
        if time.monotonic() > deadline:
            raise LaunchError(f"the OpenClaw gateway was not ready after {READY_WITHIN:.0f} seconds")
        time.sleep(LOOK_EVERY)
    return True


def _answers(port: int) -> bool:
    """The gateway listens. It is ready soon after, and long before `openclaw acp` has started."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1.0)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status < http.HTTPStatus.INTERNAL_SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _nobody_is_there() -> bool:
    """Stdin is closed, and nothing is left in it."""
    poll = select.poll()
    poll.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    return any(events & select.POLLHUP and not events & select.POLLIN for _, events in poll.poll(0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
