"""Recordings as a list of items in order: read from a fixture folder, or from the journal of a run."""

import json
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import lines

STDOUT, STDERR, STDIN = "stdout", "stderr", "stdin"
_JOURNAL_STREAMS = {b"O": STDOUT, b"E": STDERR, b"I": STDIN}
_KILLED = 9
START = 0
LONGEST_SHOWN = 200  # characters of a path in an error


class RecordedItem(NamedTuple):
    """A piece of output or input of the agent's process."""

    at: float
    """Seconds since the start."""
    stream: str
    data: bytes
    """The bytes, with their line ending if they have one."""


class ReplayRecording(NamedTuple):
    """A whole recording, its items in order."""

    agent: str
    protocol: str
    cwd: str
    items: Sequence[RecordedItem]
    code: int | None
    signal: int | None
    end: float
    """Seconds from the start to the exit."""
    codec: Mapping[str, Any]
    """The context of the codec, from a journal; empty for a fixture."""
    framing: str = lines.LINES
    """How the agent separates messages; in a recording each message is a line."""

    @property
    def is_two_way(self) -> bool:
        """Whether the input contains decisions of a consumer, which this run has to make as well."""
        return any(item.stream == STDIN and lines.parse_sent(item.data).kind in lines.NEEDED for item in self.items)


def load(path: Path) -> ReplayRecording:
    """Read a recording. Raises `ValueError` with the reason if it is invalid."""
    shown = _shorten(str(path))
    try:
        if path.is_dir():
            return _load_folder(path)
        if path.is_file():  # reading a pipe would wait for its writer
            return _load_journal(path.read_bytes())
        what = "is neither a file nor a folder" if path.exists() else "does not exist"
    except FileNotFoundError as error:
        raise ValueError(f"{shown} is not a recording: it lacks {Path(error.filename).name}") from error
    except OSError as error:  # its text has the whole path, which may be a prompt that was meant for an agent
        raise ValueError(f"cannot read {shown}: {error.strerror or type(error).__name__}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{shown} is not a recording: {error or type(error).__name__}") from error
    raise ValueError(f"{shown} {what}")


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."


def _load_folder(folder: Path) -> ReplayRecording:
    run = tomllib.loads((folder / "run.toml").read_text("utf-8"))
    ending = json.loads((folder / "exit.json").read_bytes())
    printed = _split((folder / "stdout.jsonl").read_bytes())
    sent = _split(_optional(folder / "stdin.jsonl"))
    times = json.loads((folder / "times.json").read_bytes())
    sent_times = json.loads(_optional(folder / "stdin_times.json") or b"[]")
    stderr = _optional(folder / "stderr.txt")
    items = list(_merge_sent(_timed(printed, times), sent, sent_times))
    end = max(float(ending["wall_s"]), *(item.at for item in items), 0.0)
    if stderr:
        items.append(RecordedItem(end, STDERR, stderr))  # fixtures have no times of stderr
    framing = run.get("framing", lines.LINES)
    return ReplayRecording(
        run["agent"], run["protocol"], run["cwd"], items, ending["code"], ending["signal"], end, {}, framing
    )


def _timed(printed: Sequence[bytes], times: Sequence[float]) -> list[RecordedItem]:
    last = times[-1] if times else 0.0
    return [
        RecordedItem(times[index] if index < len(times) else last, STDOUT, data) for index, data in enumerate(printed)
    ]


def _merge_sent(
    printed: Sequence[RecordedItem], sent: Sequence[bytes], sent_times: Sequence[float]
) -> Iterator[RecordedItem]:
    positions = sent_positions(
        [item.data for item in printed], sent, times=[item.at for item in printed], sent_times=sent_times
    )
    waiting = list(zip(positions, sent, strict=True))
    for index, item in enumerate(printed):
        while waiting and waiting[0][0] <= index:
            yield RecordedItem(printed[index - 1].at if index else 0.0, STDIN, waiting.pop(0)[1])
        yield item
    yield from (RecordedItem(printed[-1].at if printed else 0.0, STDIN, data) for _, data in waiting)


def _load_journal(data: bytes) -> ReplayRecording:
    records = [*_records(data)] if data.startswith(b"H ") else []
    if not records or not records[0][2]:
        raise ValueError("neither a fixture folder nor a journal")
    header = json.loads(records.pop(0)[2])
    codec, framing = header["codec"], header.get("framing", lines.LINES)
    ending = json.loads(next((payload for kind, _, payload in records if kind == b"X"), b'{"signal":%d}' % _KILLED))
    # A prompt on the command line has no position among the items; only two-way runs wait for input.
    streams = {b"O", b"E", b"I"} if codec.get("prompt") is not None else {b"O", b"E"}
    chunks = [(at, _JOURNAL_STREAMS[kind], data) for kind, at, data in records if kind in streams]
    items = list(_whole_lines(chunks if framing == lines.LINES else _unwrapped(chunks)))
    end = max((at for _, at, _ in records), default=0.0)
    agent, protocol, cwd = codec["agent"], codec["protocol"], codec.get("cwd", "")
    return ReplayRecording(agent, protocol, cwd, items, ending.get("code"), ending.get("signal"), end, codec, framing)


def _records(data: bytes) -> Iterator[tuple[bytes, float, bytes]]:
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        kind, at, length = data[position:end].split(b" ")
        start, position = end + 1, end + 1 + int(length) + 1
        if position > len(data):
            return  # incomplete: the writer was killed
        yield kind, int(at) / 1_000_000, data[start : position - 1]


def _unwrapped(chunks: Iterable[tuple[float, str, bytes]]) -> Iterator[tuple[float, str, bytes]]:
    """Convert messages to lines, each at the time it was complete; stderr consists of lines already."""
    streams = {STDOUT: lines.MessageUnwrapper(), STDIN: lines.MessageUnwrapper()}
    for at, stream, data in chunks:
        whole = streams[stream].feed(data) if stream in streams else [data]
        yield from ((at, stream, line) for line in whole)


def _whole_lines(chunks: Iterable[tuple[float, str, bytes]]) -> Iterator[RecordedItem]:
    """Convert chunks to lines, each at the time it was complete, so that responses can be found and rewritten."""
    rest: dict[str, tuple[float, bytes]] = {}
    for at, stream, data in chunks:
        _, begun = rest.pop(stream, (at, b""))
        for line in _split(begun + data):
            if line.endswith(b"\n"):
                yield RecordedItem(at, stream, line)
            else:
                rest[stream] = (at, line)
    yield from (RecordedItem(at, stream, line) for stream, (at, line) in rest.items())


def _split(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _optional(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


# -- the order of input and output in a fixture


def sent_positions(
    printed: Sequence[bytes], sent: Sequence[bytes], *, times: Sequence[float], sent_times: Sequence[float]
) -> list[int]:
    """Return for each input line how many output lines come before it; `sent_times` is empty if unknown.

    Without times, the lines determine the order: an answer comes right after its request; a request comes before its
    response, as late as possible; the n-th prompt without a response comes before the n-th `init` of the agent, or, if
    there are fewer, at the first possible position.
    """
    output = _Printed(printed)
    is_timed = len(sent_times) == len(sent) and len(times) == len(printed)
    positions: list[int] = []
    earliest = START
    prompts = 0
    for index, line in enumerate(map(lines.parse_sent, sent)):
        prompts += line.kind == lines.PROMPT
        earliest = max(earliest, output.after_question(line))
        latest = output.before_response(line)
        position = bisect_right(times, sent_times[index]) if is_timed else latest
        if position is None and line.kind == lines.PROMPT:
            position = output.before_turn(prompts)
        if position is None:
            position = positions[-1] if positions else START
        positions.append(max(earliest, min(position, len(printed) if latest is None else latest)))
    return _in_order(positions)


class _Printed:
    """The output lines that determine the order: requests, responses and starts of turns."""

    def __init__(self, printed: Sequence[bytes]) -> None:
        self._questions: dict[str | None, int] = {}
        self._responses: dict[str | None, int] = {}
        self._turns: list[int] = []
        for index, data in enumerate(printed):
            line = lines.parse_printed(data)
            if line.kind == lines.ASK:
                self._questions.setdefault(line.key, index)
            elif line.kind == lines.RESPONSE:
                self._responses.setdefault(line.key, index)
            elif line.kind == lines.TURN:
                self._turns.append(index)

    def after_question(self, line: lines.ReplayLine) -> int:
        known = line.kind == lines.ANSWER and line.key in self._questions
        return self._questions[line.key] + 1 if known else START

    def before_response(self, line: lines.ReplayLine) -> int | None:
        return None if line.kind == lines.ANSWER or line.key is None else self._responses.get(line.key)

    def before_turn(self, number: int) -> int | None:
        return self._turns[number - 1] if number <= len(self._turns) else None


def _in_order(positions: list[int]) -> list[int]:
    """Keep the input in order: a line whose response came late was still sent before the next line."""
    for index in range(len(positions) - 2, -1, -1):
        positions[index] = min(positions[index], positions[index + 1])
    return positions
