"""Mutated recordings: output that no agent prints. The codec must raise nothing, and the events must conform.

The same holds for reading them as transcripts, and for the functions that recognize a protocol.

The conformance suite damages some lines of each recording. `python -m agent_mux_testing.fuzz` plays thousands of cases,
each a recording with a few mutations: lines are dropped, repeated, moved, cut, or taken from another recording, and
values are replaced by other values and types.
"""

import copy
import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agent_mux.contract import validate
from agent_mux.errors import AgentMuxError
from agent_mux.run.transcripts import parse_transcript, read_transcript
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.native_json import load_object
from agent_mux_testing.conformance.recorded import RUN_ID, Recorded

__all__ = ["check_is_tolerant", "check_sniffs", "check_transcript", "fuzz", "mutated", "wrapped"]

MAX_LINES = 150  # of a recording: enough to begin, work and end; longer ones lose a part of their middle
MAX_MUTATIONS = 6
ODD_VALUES: Sequence[Any] = (
    None, True, 0, -1, 2**70, 1e400, "", "\0", "\ud800", "x" * 300, [], [[]], [None], {}, {"type": {}},
    [{"type": "text"}],
)  # fmt: skip
ODD_LINES: Sequence[bytes] = (
    b"", b" ", b"null", b"[]", b"3", b'"text"', b"{}", b'{"type":null}', b'{"type":"no such type"}', b'{"id":0}',
    b'{"method":"no/such","params":null}', b'{"method":5,"id":{}}', b"{", b"\xff\xfe{}", b"\0", b"\xef\xbb\xbf{}",
    b'{"type":"result"}', b'{"type":"assistant","message":7}', b"[" * 5000, b'{"a":' * 5000,
)  # fmt: skip


def check_is_tolerant(recorded: Recorded, seed: int) -> Iterator[str]:
    """Damage some lines of the recording and insert noise. Yield what the codec raised and which rules are broken."""
    random = Random(seed)  # noqa: S311  # a test, not a secret
    lines = [line for line in recorded.fixture.stdout_lines for line in damaged(line, random)]
    yield from check_lines(recorded, lines, f"seed {seed}")


def check_lines(recorded: Recorded, lines: Sequence[bytes], name: str) -> Iterator[str]:
    """Play these lines instead of the recorded ones. Yield what the codec raised and which rules are broken."""
    try:
        played = recorded.play(recorded.chunks(map(recorded.frame_message, lines)))
    except Exception as error:  # noqa: BLE001  # a codec must not raise anything
        yield f"{name}: the codec raised {error!r}"
        return
    yield from (f"{name}: {violation}" for violation in validate(played.events)[:3])


def damaged(line: bytes, random: Random) -> Iterator[bytes]:
    """Yield the line, or what is left of it after random damage."""
    damage = random.randrange(8)
    if damage == 0:
        yield random.choice(ODD_LINES)
    if damage == 1:
        return  # the line is lost
    yield with_odd_value(line, random) if damage in {2, 3, 4} else line
    if damage == 5:
        yield line  # the line is repeated


def with_odd_value(line: bytes, random: Random) -> bytes:
    """Return the line with one value replaced or removed; unchanged when it is not JSON."""
    try:
        native = json.loads(line)
    except (ValueError, RecursionError):
        return line
    candidates = list(_replaceable(native))
    if not candidates:
        return line
    holder, key = random.choice(candidates)
    if random.random() < 0.3:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(random.choice(ODD_VALUES))
    return json.dumps(native).encode()


def _replaceable(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the key of every value inside of a JSON value."""
    keys: Any = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _replaceable(value[key])


# -- transcripts


def check_sniffs(adapter: Adapter, recordings: Sequence[Recorded]) -> Iterator[str]:
    """Yield the JSON values for which the recognition of a protocol raises: odd ones, and recorded lines with them."""
    lines = {line for recorded in recordings for line in recorded.fixture.stdout_lines[:MAX_LINES]}
    shapes = {tuple(native): native for line in sorted(lines) if (native := load_object(line))}
    replaced = ({**native, key: odd} for native in shapes.values() for key in native for odd in ODD_VALUES)
    for value in (*ODD_VALUES, *replaced):
        for protocol in adapter.protocols.values():
            try:
                protocol.sniff(value)
            except Exception as error:  # noqa: BLE001  # the recognition must not raise anything
                yield f"{protocol.name}: sniff raised {error!r} for {value!r:.200}"


def check_transcript(adapter: Adapter, data: bytes, name: str) -> Iterator[str]:
    """Parse this data as a transcript. Yield what was raised, except PARSE_ERROR, and which rules are broken."""
    try:
        transcript = read_transcript(data)
        events = list(parse_transcript(adapter, transcript, run_id=RUN_ID, started_at=0))
    except AgentMuxError as error:
        if error.code != "PARSE_ERROR":
            yield f"{name}: parsing the transcript raised {error!r}"
    except Exception as error:  # noqa: BLE001  # a transcript must raise nothing else
        yield f"{name}: parsing the transcript raised {error!r}"
    else:
        yield from (f"{name}, as a transcript: {violation}" for violation in validate(events)[:3])


def wrapped(line: bytes, random: Random) -> bytes:
    """Return the line as one of a transcript of both directions, with a time."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = line.decode("utf-8", "replace")
    direction = random.choice(("<-", "<-", "<-", "->", "<!"))
    return json.dumps({"t": random.random(), "dir": direction, "msg": message}).encode()


# -- fuzzing


def fuzz(recordings: Sequence[Recorded], cases: int, seed: int) -> Iterator[str]:
    """Yield the problems in so many cases, spread over all recordings. The same seed gives the same cases."""
    others = [line for recorded in recordings for line in recorded.fixture.stdout_lines[:MAX_LINES]]
    for number in range(cases):
        recorded = recordings[number % len(recordings)]
        random = Random(f"{seed}/{number}")  # noqa: S311  # a test, not a secret
        lines = mutated(_shortened(recorded.fixture.stdout_lines, random), others, random)
        name = f"case {number} of seed {seed} ({recorded!r})"
        yield from check_lines(recorded, lines, name)
        yield from check_transcript(recorded.adapter, b"\n".join(lines), name)
        both_ways = mutated([wrapped(line, random) for line in lines], others, random)
        yield from check_transcript(recorded.adapter, b"\n".join(both_ways), f"{name}, both directions")


def mutated(lines: Sequence[bytes], others: Sequence[bytes], random: Random) -> list[bytes]:
    """Return the lines after one to six mutations."""
    result = list(lines)
    for _ in range(random.randint(1, MAX_MUTATIONS)):
        random.choice(_MUTATIONS)(result, others, random)
    return result


def _shortened(lines: Sequence[bytes], random: Random) -> Sequence[bytes]:
    if len(lines) <= MAX_LINES:
        return lines
    start = random.randrange(MAX_LINES // 2)
    return [*lines[:start], *lines[start - MAX_LINES :]]


def _drop(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    if lines:
        start = random.randrange(len(lines))
        del lines[start : start + random.randint(1, 3)]


def _repeat(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    if lines:
        lines.insert(random.randrange(len(lines) + 1), random.choice(lines))


def _move(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    if lines:
        lines.insert(random.randrange(len(lines)), lines.pop(random.randrange(len(lines))))


def _cut_line(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    if lines:
        index = random.randrange(len(lines))
        lines[index] = lines[index][: random.randrange(len(lines[index]) + 1)]


def _splice(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:
    if others:
        start = random.randrange(len(others))
        index = random.randrange(len(lines) + 1)
        lines[index:index] = others[start : start + random.randint(1, 8)]


def _insert_odd_line(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    lines.insert(random.randrange(len(lines) + 1), random.choice(ODD_LINES))


def _replace_value(lines: list[bytes], others: Sequence[bytes], random: Random) -> None:  # noqa: ARG001
    if lines:
        index = random.randrange(len(lines))
        lines[index] = with_odd_value(lines[index], random)


_MUTATIONS = (
    _drop,
    _repeat,
    _move,
    _cut_line,
    _splice,
    _insert_odd_line,
    _replace_value,
    _replace_value,
    _replace_value,
)
