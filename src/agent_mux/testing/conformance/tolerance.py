"""Lines that no agent prints today: what is damaged is shown or counted, and the stream stays lawful."""

import copy
import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agent_mux.contract import validate
from agent_mux.testing.conformance.recorded import Recorded

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
    """Damage some lines of the recording, and put noise between them: nothing is raised, the contract is kept."""
    random = Random(seed)  # noqa: S311  # a test, not a secret
    lines = [line for line in recorded.fixture.stdout_lines for line in damaged(line, random)]
    yield from check_lines(recorded, lines, f"seed {seed}")


def check_lines(recorded: Recorded, lines: Sequence[bytes], name: str) -> Iterator[str]:
    """Play these lines in place of the recorded ones: nothing is raised, the contract is kept."""
    try:
        played = recorded.play(recorded.chunks(map(recorded.framed, lines)))
    except Exception as error:  # noqa: BLE001  # the point: whatever it raises, it should not have
        yield f"{name}: the codec raised {error!r}"
        return
    yield from (f"{name}: {breach}" for breach in validate(played.events)[:3])


def damaged(line: bytes, random: Random) -> Iterator[bytes]:
    """The line, or what could become of it."""
    fate = random.randrange(8)
    if fate == 0:
        yield random.choice(ODD_LINES)
    if fate == 1:
        return  # lost
    yield with_odd_value(line, random) if fate in {2, 3, 4} else line
    if fate == 5:
        yield line  # said twice


def with_odd_value(line: bytes, random: Random) -> bytes:
    """The line with another value somewhere, or without it."""
    try:
        native = json.loads(line)
    except (ValueError, RecursionError):
        return line
    places = list(_places(native))
    if not places:
        return line
    holder, key = random.choice(places)
    if random.random() < 0.3:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(random.choice(ODD_VALUES))
    return json.dumps(native).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value that can be replaced."""
    keys: Any = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
