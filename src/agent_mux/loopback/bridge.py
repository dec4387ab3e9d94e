"""A program that agents start, which forwards to the loopback server of their run. Standard library only.

- `python -I bridge.py`: MCP on stdio, for agents that take no headers or no HTTP. URL and token are in the environment,
  which other users cannot read. Requests are forwarded at once, each in a thread, because a tool may take long.
- `python -I bridge.py FILE TYPE`: one call of a hook, with the agent's data on stdin. URL and token are in the file.
"""

import http.client
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

URL, TOKEN = "AGENT_MUX_LOOPBACK_URL", "AGENT_MUX_LOOPBACK_TOKEN"  # names of variables
INTERNAL_ERROR = -32603  # JSON-RPC
DENY, GUARDS = 2, ("pre_tool_use", "permission_request")
"""Exit code with which hooks of most agents deny an action, and the hooks that precede one."""
MAX_WAIT = 3600.0
"""Seconds for a response. The server bounds each call itself, and its end closes the connection."""


def post(url: str, token: str, body: bytes) -> bytes:
    """Send a message and return the response, which may be empty. Raises `OSError` when the server is gone."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=MAX_WAIT)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Connection": "close"}
    try:
        connection.request("POST", parts.path, body, headers)
        response = connection.getresponse()
        content = response.read()
    except http.client.HTTPException as error:
        raise OSError(f"the run closed the connection: {error!r}") from error
    finally:
        connection.close()
    if response.status not in {200, 202}:
        raise OSError(f"{response.status} {response.reason}: {content.decode(errors='replace')}")
    return content


def forward(line: bytes, url: str, token: str, lock: threading.Lock) -> None:
    """Forward one line and print its response."""
    try:
        answer = post(url, token, line)
    except OSError as error:
        answer = _failure(line, f"the tools of this run cannot be reached: {error}")
    if answer:
        with lock:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()


def _failure(line: bytes, message: str) -> bytes:
    try:
        request: Any = json.loads(line)
    except ValueError:
        return b""
    if not isinstance(request, dict) or request.get("id") is None:
        return b""
    error = {"code": INTERNAL_ERROR, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()


def call_hook(file: str, hook_type: str) -> int:
    """Forward one call of a hook, print the response, and return the exit code, which denies an action on failure."""
    try:
        address = json.loads(Path(file).read_text("utf-8"))
        body = json.dumps({"type": hook_type, "input": json.loads(sys.stdin.buffer.read() or b"{}")}).encode()
        answer = json.loads(post(address["url"], address["token"], body))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"the hook {hook_type} of this run cannot be called: {error}\n")
        return DENY if hook_type in GUARDS else 1
    sys.stdout.write(answer.get("stdout", ""))
    sys.stderr.write(answer.get("stderr", ""))
    return int(answer["exitCode"])


def main() -> None:
    """Forward one call of a hook, or messages until stdin ends."""
    if len(sys.argv) > 1:
        sys.exit(call_hook(*sys.argv[1:]))
    url, token, lock = os.environ[URL], os.environ[TOKEN], threading.Lock()
    threads: list[threading.Thread] = []
    for line in sys.stdin.buffer:
        if line.strip():
            threads = [thread for thread in threads if thread.is_alive()]
            threads.append(threading.Thread(target=forward, args=(line, url, token, lock), daemon=True))
            threads[-1].start()


if __name__ == "__main__":
    main()
