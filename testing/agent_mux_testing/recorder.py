"""Conversion of a run's journal to a fixture, for `amux record` and for tests that record.

Paths and ids of this machine are replaced by neutral ones: home, working directory, temporary directory, run id, and
the directory of the agent's program. Everything else in the output is kept byte by byte.
"""

import datetime as dt
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_mux.events import encode_event
from agent_mux.journal.file import JournalReader
from agent_mux.journal.records import Header, Kind, Record, decode_exit
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.codec import Exit
from agent_mux.sdk.framing import Framing, new_framer, to_recorded_line
from agent_mux_testing.conformance.checks import GOLDEN
from agent_mux_testing.conformance.recorded import RUN_ID, Recorded
from agent_mux_testing.fixtures import Fixture, write_fixture

__all__ = ["Neutral", "fixture_from_journal", "save_run"]

NEUTRAL_HOME = "/home/dev"
NEUTRAL_PROJECT = "/home/dev/project"
NEUTRAL_TEMP = "/tmp"  # noqa: S108  # a replacement text; no file is created there
_SECOND = 1_000_000  # microseconds
_KILLED = Exit(signal=9)  # for a journal without an exit: the recording process was killed
# Before a path with one component, which could be the end of another path. In JSON, `\n` ends with a letter.
_BEGINS = rb"(?:(?<![\w.-])|(?<=\\[nrt]))"
_ENDS = rb"(?![\w-])"


class Neutral:
    """Replaces paths and names of one machine and one run in bytes of any format."""

    def __init__(self, places: Mapping[str, str], names: Mapping[str, str]) -> None:
        """Build the replacements of absolute paths (`places`) and other `names`. Longer ones apply first."""
        spelled = [pair for place, neutral in places.items() for pair in _spellings(place, neutral)]
        replacements = {**dict(spelled), **{re.escape(name.encode()): new for name, new in names.items()}}
        ordered = sorted(replacements.items(), key=lambda pair: len(pair[0]), reverse=True)
        self._rules = [(re.compile(pattern), neutral.encode()) for pattern, neutral in ordered]

    def __call__(self, data: bytes) -> bytes:
        """Return the data with all replacements applied."""
        for pattern, neutral in self._rules:
            data = pattern.sub(neutral.replace(b"\\", rb"\\"), data)
        return data

    def text(self, text: str) -> str:
        """Return the text with all replacements applied."""
        return self(text.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")


def _spellings(place: str, neutral: str) -> Iterable[tuple[bytes, str]]:
    """Yield patterns for a path, and for the folder name that agents derive from it: `/a/b.c` becomes `-a-b-c`."""
    for path in {place, os.path.realpath(place)} - {"", "/", neutral}:
        deep = path.count("/") > 1
        yield (b"" if deep else _BEGINS) + re.escape(path.encode()) + _ENDS, neutral
        if deep:
            yield re.escape(_dashed(path).encode()) + _ENDS, _dashed(neutral)


def _dashed(path: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", path)


def this_machine(header: Header) -> Neutral:
    """Return the replacements for a recording of this machine."""
    return Neutral(
        {
            tempfile.gettempdir(): NEUTRAL_TEMP,
            str(Path.home()): NEUTRAL_HOME,
            header.codec.cwd: NEUTRAL_PROJECT,  # the last entry wins when two paths are equal
        },
        {header.stream.run_id: RUN_ID},
    )


@dataclass(frozen=True, slots=True)
class _Stream:
    """One stream: its lines, and the seconds from the start to the end of each line."""

    lines: tuple[bytes, ...]
    times: tuple[float, ...]
    data: bytes


def fixture_from_journal(  # noqa: PLR0913  # a journal lacks these properties of a fixture
    journal: Path,
    *,
    scenario: str,
    version: str,
    two_way: bool,
    note: str = "",
    neutral: Callable[[Header], Neutral] = this_machine,
) -> Fixture:
    """Return the run as a fixture. Raise PARSE_ERROR when the file is not a journal.

    `two_way`: whether the input is part of the protocol; otherwise it is only the prompt, which is not kept.
    """
    reader = JournalReader(journal)
    header, records = reader.header, list(reader.read())
    clean = neutral(header)
    printed = _stream(records, Kind.STDOUT, clean, header.framing)
    sent = _stream(records, Kind.STDIN, clean, header.framing) if two_way else _Stream((), (), b"")
    program, *arguments = header.argv or (header.codec.agent,)
    return Fixture(
        agent=header.codec.agent,
        version=version,
        scenario=scenario,
        protocol=header.codec.protocol,
        framing=header.framing,
        command=(Path(program).name, *map(clean.text, arguments)),
        environment=dict(header.options.get("env", {})),
        cwd=clean.text(header.codec.cwd) or NEUTRAL_PROJECT,
        recorded=dt.datetime.fromtimestamp(header.started_at / 1000, dt.UTC).date(),
        note=note,
        stdout=printed.data,
        times=printed.times,
        stdin=sent.lines,
        stdin_times=sent.times,
        stderr=_stream(records, Kind.STDERR, clean).data,
        exit=next((Exit(e.code, e.signal) for e in map(decode_exit, _of(records, Kind.EXIT))), _KILLED),
        wall_s=_seconds(max((record.at for record in records), default=0)),
        settings=header.codec.settings,
    )


def save_run(journal: Path, folder: Path, adapter: Adapter, *, version: str, note: str = "") -> Path:
    """Write the run as a fixture with its golden events into this folder. Return the folder.

    `adapter` is that of the agent in the journal. Raise PARSE_ERROR when the file is not a journal.
    """
    protocol = adapter.protocols[JournalReader(journal).header.codec.protocol]
    fixture = fixture_from_journal(
        journal, scenario=folder.absolute().name, version=version, two_way=protocol.two_way, note=note
    )
    write_fixture(fixture, folder)
    events = Recorded(adapter, folder).played.events
    golden = b"".join(encode_event(event, accumulated=False) + b"\n" for event in events)
    (folder / GOLDEN).write_bytes(golden)
    return folder


def _of(records: Sequence[Record], kind: Kind) -> Iterable[Record]:
    return (record for record in records if record.kind is kind)


def _stream(records: Sequence[Record], kind: Kind, clean: Neutral, framing: Framing = "lines") -> _Stream:
    framer = new_framer(framing)
    lines: list[bytes] = []
    times: list[float] = []
    last = 0.0
    data = []
    for record in _of(records, kind):
        last = _seconds(record.at)
        complete = [to_recorded_line(framing, message) for message in framer.feed(record.payload)]
        lines += complete
        times += [last] * len(complete)
        data.append(record.payload)
    rest = [to_recorded_line(framing, message) for message in framer.finish()]
    whole = b"".join(data) if framing == "lines" else b"".join(line + b"\n" for line in (*lines, *rest))
    return _Stream(tuple(map(clean, (*lines, *rest))), (*times, *[last] * len(rest)), clean(whole))


def _seconds(microseconds: int) -> float:
    return round(microseconds / _SECOND, 3)
