"""A fake `openclaw` for the launcher: `gateway run` listens on a port, `acp` prints lines and echoes its input.

`PRETEND`, a JSON object, sets its behaviour; what it was started with is written into the folder that is named
there. Run as a program.
"""

import http.server
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

PRETEND = json.loads(os.environ["PRETEND"])
FOLDER = Path(PRETEND["folder"])


def main() -> None:
    role = "gateway" if sys.argv[1] == "gateway" else "acp"
    seen = {"argv": sys.argv[1:], "env": dict(os.environ), "pid": os.getpid()}
    (FOLDER / f"{role}.json").write_text(json.dumps(seen), "utf-8")
    gateway() if role == "gateway" else bridge()


def gateway() -> None:
    """Listen until SIGTERM."""
    print_line(sys.stdout, "a line on stdout")
    for line in PRETEND.get("log", []):
        print_line(sys.stderr, line)
    if "gateway_exits" in PRETEND:
        sys.exit(PRETEND["gateway_exits"])
    if PRETEND.get("gateway_is_deaf"):
        time.sleep(600)
    port = int(next(argument for argument in sys.argv if argument.startswith("--port=")).partition("=")[2])
    server = http.server.HTTPServer(("127.0.0.1", port), Health)
    if PRETEND.get("gateway_dies"):
        threading.Thread(target=die_after_bridge, daemon=True).start()
    server.serve_forever()


def die_after_bridge() -> None:
    """Exit once the bridge has started."""
    started = FOLDER / "acp.json"
    while not (started.exists() and started.stat().st_size):
        time.sleep(0.02)
    os._exit(3)


class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def bridge() -> None:
    """Print its lines, append those with `raw` to the raw stream of the gateway, then echo the input."""
    raw = Path(os.environ["OPENCLAW_RAW_STREAM_PATH"])
    for line in PRETEND.get("bridge_lines", []):
        if "raw" in line:
            if "late" in line:
                threading.Timer(line["late"], append, (raw, line["raw"])).start()
            else:
                append(raw, line["raw"])
            continue
        if "wait" in line:
            time.sleep(line["wait"])
            continue
        print_line(sys.stdout, json.dumps(line, separators=(",", ":")))
    for heard in sys.stdin:
        print_line(sys.stdout, heard.rstrip("\n"))
    sys.exit(PRETEND.get("acp_exits", 0))


def print_line(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


def append(path: Path, entry: Any) -> None:
    with path.open("a") as file:
        file.write(json.dumps(entry, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
