"""A fake `opencode` program for the tests of the bridge: `serve` with events, a password and a few routes.

<directory>/behave   its behaviour: `exit` (with code 3, before it listens), `drop` (ends by itself, code 5),
                     `stay` (ignores SIGTERM); anything else: normal
<directory>/pid      its process id, once it runs
<directory>/log      one line for each request: method, path, whether authorization is right or wrong, body
"""

import base64
import http.server
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

HERE = Path.cwd()
BEHAVE = (HERE / "behave").read_text() if (HERE / "behave").exists() else ""
SECRET = base64.b64encode(f"opencode:{os.environ['OPENCODE_SERVER_PASSWORD']}".encode()).decode()
LONG = "x" * 300_000


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        path = self.path.partition("?")[0]
        right = self.headers["authorization"] == f"Basic {SECRET}"
        with (HERE / "log").open("a") as log:
            log.write(f"{self.command} {path} {'right' if right else 'wrong'} {body}\n")
        if path == "/event":
            self.events()
        else:
            self.reply({"/empty": b"", "/html": b"<html>", "/missing": b'{"message":"no"}'}.get(path, b'{"id":"x"}'))

    do_GET = do_POST = do_DELETE = answer  # noqa: N815  # as the base class wants them

    def reply(self, body: bytes) -> None:
        self.send_response(404 if self.path.startswith("/missing") else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in ({"type": "server.connected"}, {"type": "server.heartbeat"}, {"type": "long", "text": LONG}):
            data = f"data: {json.dumps(event, separators=(',', ':'))}\n\n".encode()
            for piece in (data[:7], data[7:]):
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()
        if BEHAVE == "drop":
            os._exit(5)
        threading.Event().wait()


def main() -> None:
    assert sys.argv[1:] == ["serve", "--hostname=127.0.0.1", "--port=0"]
    (HERE / "pid").write_text(str(os.getpid()))
    print("Warning: a line before listening", flush=True)  # noqa: T201
    if BEHAVE == "exit":
        sys.exit(3)
    if BEHAVE == "stay":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"opencode server listening on http://127.0.0.1:{server.server_port}", flush=True)  # noqa: T201
    print("and something later", flush=True)  # noqa: T201
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
