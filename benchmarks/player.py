"""A stand-in for the claude program that prints a file as fast as the pipe takes it: the same child for everybody."""

import sys
from pathlib import Path

SOURCE = """#!{python} -IS
import json, os, sys
if "-v" in sys.argv or "--version" in sys.argv:
    print("2.1.330 (Claude Code)")
    sys.exit()
first = sys.stdin.readline()
if '"control_request"' in first:
    answer = {{"subtype": "success", "request_id": json.loads(first)["request_id"], "response": {{"commands": []}}}}
    print(json.dumps({{"type": "control_response", "response": answer}}), flush=True)
os.execv("/bin/cat", ["cat", {stream!r}])
"""


def write_player(path: Path, stream: Path) -> Path:
    """An executable that answers one `initialize`, if it gets one, and then prints the stream."""
    path.write_text(SOURCE.format(python=sys.executable, stream=str(stream)))
    path.chmod(0o755)
    return path
