"""The journal file: complete records, even if its writer is killed."""

import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.process.scripted import ScriptedCodec
from tests.unit.run.scripted_run import DONE, control, feed, header, line, normalizer, printed, types

from agent_mux.errors import AgentMuxError
from agent_mux.events import encode_event
from agent_mux.journal.file import JournalReader, JournalWriter
from agent_mux.journal.records import VERSION, Kind, Record, decode_action, encode
from agent_mux.run.derivation import JournalEvents, derive_events
from agent_mux.sdk.codec import Send

RECORDS = [
    control("start"),
    Record(Kind.STDIN, 10, b'{"prompt": true}\n'),
    *printed(line(session="S1"), line(text="a"), at=20),
    Record(Kind.STDERR, 30, b"\xff\0\nno end"),
    Record(Kind.ACTION, 40, encode(Send("more"))),
    Record(Kind.STDOUT, 50, b""),
    DONE,
]


def write(path: Path, records: list[Record]) -> Path:
    writer = JournalWriter(path, header())
    for record in records:
        writer.append(record)
    writer.close()
    return path


def journal(tmp_path: Path, records: list[Record]) -> Path:
    return write(tmp_path / "runs" / "run.journal", records)


def test_written_records_are_read_back(tmp_path: Path) -> None:
    reader = JournalReader(journal(tmp_path, RECORDS))
    records = list(reader.read())
    assert records == RECORDS
    assert reader.header == header()
    assert decode_action(records[5]) == Send("more")
    assert list(reader.read()) == []


@given(payloads=st.lists(st.binary(max_size=40), max_size=8), position=st.integers(0, 2000))
def test_a_truncated_journal_is_read_to_its_last_complete_record(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], position: int
) -> None:
    records = [Record(Kind.STDOUT, 7 * index, payload) for index, payload in enumerate(payloads)]
    path = write(tmp_path_factory.mktemp("journal") / "run.journal", records)
    head_size = path.read_bytes().index(b"\n{") + 1
    whole = path.read_bytes()
    first = head_size + int(whole[: head_size - 1].split(b" ")[2]) + 1
    path.write_bytes(whole[: first + position])
    found = list(JournalReader(path).read())
    assert found == records[: len(found)]
    rest = sum(len(b"%b %d %d\n" % (r.kind.value, r.at, len(r.payload))) + len(r.payload) + 1 for r in found)
    assert len(found) == len(records) or rest <= position


def test_it_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    writer = JournalWriter(path, header())
    reader = JournalReader(path)
    assert list(reader.read()) == []
    for record in RECORDS:
        writer.append(record)
        assert list(reader.read()) == [record]
    writer.close()


def test_an_incomplete_record_is_returned_by_the_next_read(tmp_path: Path) -> None:
    path = journal(tmp_path, RECORDS)
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    reader = JournalReader(path)
    assert list(reader.read()) == RECORDS[:-1]
    path.write_bytes(whole)
    assert list(reader.read()) == RECORDS[-1:]


@pytest.mark.parametrize(
    "damage", [b"Z 1 2\nab\n", b"O x 2\nab\n", b"O 1\n", b"O 1 2\nabc\n", b"O 1 " + b"9" * 99, b"\n"]
)
def test_a_damaged_journal_reports_the_position(tmp_path: Path, damage: bytes) -> None:
    path = journal(tmp_path, RECORDS[:2])
    good = path.stat().st_size
    with path.open("ab") as file:
        file.write(damage)
    reader = JournalReader(path)
    found = []
    with pytest.raises(AgentMuxError, match=f"damaged at byte {good}") as caught:
        found.extend(reader.read())
    assert caught.value.code == "PARSE_ERROR"


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        path = journal(tmp_path, [])
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = journal(tmp_path, RECORDS)
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        JournalWriter(path, header())
    assert path.read_bytes() == before


def test_nothing_is_written_after_close(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "run.journal", header())
    writer.close()
    size = writer.path.stat().st_size
    writer.append(DONE)
    writer.close()
    assert writer.path.stat().st_size == size


def test_a_header_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "run.journal", msgspec.structs.replace(header(), version=VERSION + 1))
    writer.close()
    with pytest.raises(AgentMuxError, match=f"reads agent-mux-journal up to version {VERSION}"):
        JournalReader(writer.path)


def test_headers_with_newer_fields_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    payload = encode(header())[:-1] + b',"later":{"a":1}}'
    path.write_bytes(b"H 0 %d\n%b\n" % (len(payload), payload))
    assert JournalReader(path).header == header()


@pytest.mark.parametrize("content", [b"", b"O 0 1\na\n", b"H 0 2\n{}\n", b"H 0 3\nno!\n", b"hello\n", b"\x7fELF\0\0"])
def test_a_file_that_is_not_a_journal_is_a_parse_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(AgentMuxError) as caught:
        JournalReader(path)
    assert caught.value.code == "PARSE_ERROR"


def test_derived_events_equal_live_events(tmp_path: Path) -> None:
    live = feed(normalizer(), RECORDS)
    derived = list(derive_events(journal(tmp_path, RECORDS), ScriptedCodec))
    assert [encode_event(event) for event in derived] == [encode_event(event) for event in live]


def test_journal_without_an_exit_ends_as_lost(tmp_path: Path) -> None:
    events = list(derive_events(journal(tmp_path, RECORDS[:-1]), ScriptedCodec))
    assert types(events)[-3:] == ["turn_end", "error", "session_end"]


def test_events_are_derived_as_far_as_the_journal_goes(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "run.journal", header())
    events = JournalEvents(writer.path, ScriptedCodec)
    assert events.next_batch() is None
    for record in RECORDS[:3]:
        writer.append(record)
    assert types(events.next_batch() or []) == ["session_start"]
    assert events.next_batch() is None
    writer.append(RECORDS[3])
    assert types(events.next_batch() or []) == ["turn_start", "message_start", "text_delta"]
    assert events.position == 4
    writer.append(DONE)
    assert types(events.next_batch() or [])[-1] == "session_end"
    assert events.cut_off() == []
    writer.close()
