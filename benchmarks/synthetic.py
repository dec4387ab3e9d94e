"""A synthetic Claude Code stream in the format of the recordings, and a program that prints it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

SESSION = "5b7d1bd5-bd86-4624-bad9-c1a17aea4ea5"
DELTAS_PER_MESSAGE = 180
RECORDING = Path(__file__).parents[1] / "fixtures" / "claude" / "2.1.330" / "tool_bash" / "stdout.jsonl"
PLAYER = """#!{python} -IS
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


def write_stream(path: Path, lines: int) -> Path:
    """Write about `lines` lines: model calls with text and a shell call, between a recorded first and last line."""
    recorded = [json.loads(line) for line in RECORDING.read_bytes().splitlines()]
    init = next(line for line in recorded if line.get("subtype") == "init")
    result = next(line for line in recorded if line["type"] == "result")
    with path.open("w", encoding="utf-8") as file:
        written = 1
        file.write(_line(init))
        number = 0
        while written < lines - 1:
            number += 1
            for line in _model_call(number):
                file.write(_line(line))
                written += 1
        file.write(_line(result))
    return path


def write_texts(path: Path, *, total: int, message: int, delta: int) -> Path:
    """Write messages of `message` bytes in deltas of `delta` bytes, `total` bytes of text altogether."""
    recorded = [json.loads(line) for line in RECORDING.read_bytes().splitlines()]
    init = next(line for line in recorded if line.get("subtype") == "init")
    result = next(line for line in recorded if line["type"] == "result")
    usage = {"input_tokens": 100, "output_tokens": 1}
    fragment = ("0123456789abcdef" * (delta // 16 + 1))[:delta]
    with path.open("w", encoding="utf-8") as file:
        file.write(_line(init))
        for number in range(total // message):
            name = f"msg_{number:06d}"
            start = {"id": name, "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
            file.write(_line(_event(name, {"type": "message_start", "message": start})))
            file.write(_line(_event(name, _start(0, {"type": "text", "text": ""}))))
            for _ in range(message // delta):
                file.write(_line(_event(name, _delta(0, {"type": "text_delta", "text": fragment}))))
            file.write(_line(_event(name, {"type": "content_block_stop", "index": 0})))
            file.write(_line(_event(name, {"type": "message_stop"})))
        file.write(_line(result))
    return path


def write_player(path: Path, stream: Path) -> Path:
    """Write an executable in place of `claude` that answers one `initialize` request, if any, and prints the stream."""
    path.write_text(PLAYER.format(python=sys.executable, stream=str(stream)))
    path.chmod(0o755)
    return path


def _line(native: dict[str, object]) -> str:
    return json.dumps(native, separators=(",", ":"), ensure_ascii=False) + "\n"


def _model_call(number: int) -> Iterator[dict[str, object]]:
    message, tool = f"msg_{number:06d}", f"toolu_{number:06d}"
    usage = {"input_tokens": 100, "output_tokens": 1}
    text = [f"word{number % 7}{index} and " for index in range(DELTAS_PER_MESSAGE)]
    start = {"id": message, "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    yield _event(message, {"type": "message_start", "message": start})
    yield _event(message, _start(0, {"type": "text", "text": ""}))
    for piece in text:
        yield _event(message, _delta(0, {"type": "text_delta", "text": piece}))
    yield _assistant(message, {"type": "text", "text": "".join(text)})
    yield _event(message, {"type": "content_block_stop", "index": 0})
    command = {"command": f"echo {number}", "description": "print it"}
    yield _event(message, _start(1, {"type": "tool_use", "id": tool, "name": "Bash", "input": {}}))
    for piece in (json.dumps(command)[:12], json.dumps(command)[12:]):
        yield _event(message, _delta(1, {"type": "input_json_delta", "partial_json": piece}))
    yield _assistant(message, {"type": "tool_use", "id": tool, "name": "Bash", "input": command})
    yield _event(message, {"type": "content_block_stop", "index": 1})
    stop = {"stop_reason": "tool_use", "stop_sequence": None}
    yield _event(message, {"type": "message_delta", "delta": stop, "usage": {"input_tokens": 100, "output_tokens": 12}})
    yield _event(message, {"type": "message_stop"})
    output = f"{number}\n"
    yield {
        "type": "user",
        "message": {"role": "user", "content": [{"tool_use_id": tool, "type": "tool_result", "content": output}]},
        "parent_tool_use_id": None,
        "session_id": SESSION,
        "uuid": "cf3c5f8e-10ae-4d7e-95ef-472f1ca56680",
        "tool_use_result": {"stdout": output, "stderr": "", "interrupted": False, "isImage": False},
    }


def _event(message: str, event: dict[str, object]) -> dict[str, object]:
    return {
        "type": "stream_event",
        "event": event,
        "session_id": SESSION,
        "parent_tool_use_id": None,
        "uuid": "19c59fea-12a5-4e06-82a0-d751fe067125",
        "api_message_id": message,
    }


def _start(index: int, block: dict[str, object]) -> dict[str, object]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: dict[str, object]) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _assistant(message: str, block: dict[str, object]) -> dict[str, object]:
    usage = {"input_tokens": 100, "output_tokens": 1}
    content = {"id": message, "type": "message", "role": "assistant", "model": "m", "content": [block], "usage": usage}
    return {
        "type": "assistant",
        "message": content,
        "parent_tool_use_id": None,
        "session_id": SESSION,
        "uuid": "29fe7f77-7377-4379-9bfe-35dd01430e8f",
    }
