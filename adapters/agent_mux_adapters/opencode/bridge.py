"""A bridge that runs `opencode serve` and exposes it over stdin and stdout.

    python -I -S bridge.py <program> <directory> [<argument> ...]

The first line announces the bridge, because the server takes seconds to start. Each event of the server is printed as
one line, unchanged. Each line on stdin is a request, `{"id": 1, "method": "POST", "path": "/session", "body": {}}`, and
gets a response line, `{"id": 1, "status": 200, "body": {...}}`, in the order of the requests; if the server did not
respond, `status` is 0, and `error` contains the reason. The end of stdin or SIGTERM ends the server; the end of the
server ends the bridge.

The bridge is a program of its own, started with `-I -S`: it uses the standard library only, nothing of agent-mux.
"""

import base64
import contextlib
import ctypes
import http.client
import json
import os
import queue
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Any
from urllib.parse import urlencode

HOST = "127.0.0.1"
USER = "opencode"
LISTENING = re.compile(rb"listening on http://[^\s:/]+:(\d+)")
STARTING = b'{"type":"bridge.starting","properties":{}}'
HEARTBEAT = b'"type":"server.heartbeat"'
START_TIMEOUT = 120.0  # seconds until the server listens: it may have to migrate its database first
REQUEST_TIMEOUT = 60.0  # seconds for one response: no request waits for a model
DISPOSE_TIMEOUT = 2.0  # seconds for the server to end its tools and MCP servers
EXIT_TIMEOUT = 2.0  # seconds between SIGTERM and SIGKILL
REAP_TIMEOUT = 1.0  # seconds from the last event of a server that ended by itself to its exit code
CHUNK = 1 << 16
PR_SET_PDEATHSIG = 1  # prctl(2)
EXIT_USAGE = 2
EXIT_NOT_STARTED = 127  # as a shell would


class StopRequested(Exception):  # noqa: N818  # not an error: it ends the bridge
    """Raised by the signal handler to end the bridge."""


class OpencodeServer:
    """`opencode serve` on a free port of the loopback interface, protected by a random password."""

    def __init__(self, program: str, directory: str, arguments: Sequence[str] = ()) -> None:
        password = secrets.token_urlsafe(32)
        environment = {**os.environ, "OPENCODE_SERVER_PASSWORD": password, "OPENCODE_SERVER_USERNAME": USER}
        self._directory = directory
        self._authorization = "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()
        self._port = 0
        self.process = subprocess.Popen(
            [program, "serve", f"--hostname={HOST}", "--port=0", *arguments],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509  # no thread runs yet
        )

    def wait_until_listening(self) -> bool:
        """Read the server's output up to the line with the port, then forward the rest to stderr.

        Returns False if the server ended first.
        """
        assert self.process.stdout is not None  # noqa: S101  # it is a pipe
        watchdog = threading.Timer(START_TIMEOUT, self.process.kill)
        watchdog.start()
        try:
            for line in self.process.stdout:
                found = LISTENING.search(line)
                if found is not None:
                    self._port = int(found[1])
                    start_thread(forward_output, self.process.stdout)
                    return True
                sys.stderr.buffer.write(line)
        finally:
            watchdog.cancel()
        return False

    def request(self, method: str, path: str, body: Any, timeout: float = REQUEST_TIMEOUT) -> tuple[int, Any]:
        """Send one request and return status and body. Raises `OSError` or `HTTPException` without a response."""
        with contextlib.closing(self._request(method, path, body, timeout)) as connection:
            response = connection.getresponse()
            content = response.read()
        try:
            return response.status, json.loads(content) if content else None
        except ValueError:
            return response.status, content[:CHUNK].decode("utf-8", "replace")

    def events(self) -> Iterator[bytes]:
        """Yield the events, each as one line of JSON, until the server ends."""
        with contextlib.closing(self._request("GET", "/event", None, None)) as connection:
            response = connection.getresponse()
            rest = b""
            while chunk := response.read1(CHUNK):
                *lines, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else (rest + chunk,)
                yield from (line[5:].strip() for line in lines if line.startswith(b"data:"))

    def exit_code(self) -> int:
        """Return the exit code of a server that ended by itself, as a shell reports it; 1 for one that still runs."""
        try:
            code = self.process.wait(REAP_TIMEOUT)
        except subprocess.TimeoutExpired:
            return 1
        return 128 - code if code < 0 else code or 1

    def stop(self) -> None:
        """End the server and what it started."""
        if self.process.poll() is None and self._port:
            # The request stops sessions and their commands; after a signal alone the commands would keep running.
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.request("POST", "/global/dispose", None, DISPOSE_TIMEOUT)
        self.process.terminate()
        try:
            self.process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _request(self, method: str, path: str, body: Any, timeout: float | None) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=timeout)
        headers = {"authorization": self._authorization, "accept": "*/*"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        separator = "&" if "?" in path else "?"
        query = urlencode({"directory": self._directory})
        connection.request(method, f"{path}{separator}{query}", data, headers)
        return connection


class OpencodeBridge:
    """A forwarder of requests from stdin to the server, and of events and responses to stdout."""

    def __init__(self, server: OpencodeServer) -> None:
        self._server = server
        self._printing = threading.Lock()
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()

    def announce(self) -> None:
        """Print the first line, before the server has started."""
        self._print(STARTING)

    def run(self) -> str:
        """Forward until one side ends; return which: `stdin` or `server`."""
        start_thread(self._forward_events)
        start_thread(self._serve_requests)
        return self._ended.get()

    def _forward_events(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            for event in self._server.events():
                # Heartbeats carry nothing, and would hide from the runner that the agent is silent.
                if HEARTBEAT not in event[:200]:
                    self._print(event)
        self._ended.put("server")

    def _serve_requests(self) -> None:
        for line in sys.stdin.buffer:
            if line.strip():
                self._print(json.dumps(self._answer(line), separators=(",", ":")).encode())
        self._ended.put("stdin")

    def _answer(self, line: bytes) -> dict[str, Any]:
        request_id = None
        try:
            request = json.loads(line)
            request_id = request.get("id")
            status, body = self._server.request(request["method"], request["path"], request.get("body"))
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
            return {"id": request_id, "status": 0, "error": f"{type(error).__name__}: {error}"}
        return {"id": request_id, "status": status, "body": body}

    def _print(self, line: bytes) -> None:
        with self._printing, contextlib.suppress(BrokenPipeError):
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()


def die_with_parent() -> None:
    """In the child: request SIGKILL for the case that the bridge is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def forward_output(stream: IO[bytes]) -> None:
    """Forward the rest of the server's output to stderr."""
    for line in stream:
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()


def start_thread(work: Any, *arguments: Any) -> None:
    """Start a thread that does not keep the bridge alive."""
    threading.Thread(target=work, args=arguments, daemon=True).start()


def raise_stop(_: int, __: Any) -> None:
    """Interrupt whatever the main thread waits for."""
    raise StopRequested


def handle_signals(handler: Any) -> None:
    """Install a handler for the signals that end a process."""
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"):
        if hasattr(signal, name):  # Windows lacks one
            signal.signal(getattr(signal, name), handler)


def main() -> int:
    """Run the bridge; return 0 when stdin ended, 143 after a signal, else the server's exit code (128 + signal)."""
    if len(sys.argv) < 3:
        sys.stderr.write("usage: bridge.py <program> <directory> [<argument> ...]\n")
        return EXIT_USAGE
    handle_signals(raise_stop)
    try:
        server = OpencodeServer(sys.argv[1], sys.argv[2], sys.argv[3:])
    except OSError as error:
        sys.stderr.write(f"cannot start {sys.argv[1]}: {error.strerror or error}\n")
        return EXIT_NOT_STARTED
    bridge = OpencodeBridge(server)
    end = "server"
    try:
        bridge.announce()
        if server.wait_until_listening():
            end = bridge.run()
    except StopRequested:
        end = "signal"
    handle_signals(signal.SIG_IGN)
    code = {"stdin": 0, "signal": 143}.get(end)
    if code is None:
        code = server.exit_code()
    server.stop()
    return code


if __name__ == "__main__":
    # Exit without waiting for the threads, which may still be reading.
    exit_code = main()
    sys.stderr.flush()
    os._exit(exit_code)
