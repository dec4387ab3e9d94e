"""Open the recordings that `amux replay` and `amux parse` accept: journals, fixture folders and transcripts."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from agent_mux.cli.errors import usage_error
from agent_mux.cli.inputs import STDIN, read_bytes, unreadable
from agent_mux.cli.testing_tools import load_fixture_reader
from agent_mux.events import AgentEvent
from agent_mux.run.derivation import JournalEvents, codec_factory
from agent_mux.run.normalizer import Normalizer
from agent_mux.run.plan import find_protocol
from agent_mux.run.transcripts import detect_protocol, observing_normalizer, read_transcript, records_of
from agent_mux.sdk.registry import AdapterRegistry

_JOURNAL = re.compile(rb"H \d+ \d+\n")
_HEAD = 64  # bytes needed to recognize a journal


class OpenRecording(NamedTuple):
    """The events of a recording, derived lazily, and the normalizer that derives them."""

    events: Iterator[AgentEvent]
    normalizer: Normalizer
    run_id: str
    agent: str
    journal: Path | None = None
    cwd: str | None = None
    """The working directory of the run, if it is recorded."""


@contextmanager
def open_source(
    source: str, agent: str | None, protocol: str | None, adapters: AdapterRegistry
) -> Iterator[OpenRecording]:
    """Open a file or standard input (`-`): a journal, or a transcript of `agent`."""
    if source != STDIN and _JOURNAL.match(_read_head(source)):
        yield open_journal(Path(source), adapters)
        return
    data = read_bytes(source)
    if not _JOURNAL.match(data):
        yield open_transcript(data, agent, protocol, adapters)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        yield open_journal(Path(file.name), adapters)


def open_transcript(data: bytes, agent: str | None, protocol: str | None, adapters: AdapterRegistry) -> OpenRecording:
    """Open native output of an agent, with or without its input. Raise PARSE_ERROR for anything else."""
    if agent is None:
        raise usage_error(
            "which agent wrote this transcript? name it with --agent (`amux adapters list` shows the agents)"
        )
    adapter = adapters.get(agent)
    transcript = read_transcript(data)
    spoken = find_protocol(adapter, protocol, adapters.get) if protocol else detect_protocol(adapter, transcript)
    normalizer = observing_normalizer(adapter, spoken)
    events = (event for record in records_of(transcript, spoken.framing) for event in normalizer.feed(record))
    return OpenRecording(events, normalizer, "", adapter.agent)


def open_recording(path: Path, adapters: AdapterRegistry) -> OpenRecording:
    """Open a journal or a fixture folder. Raise VALIDATION_ERROR or PARSE_ERROR for anything else.

    Fixture folders require the extra `testing`.
    """
    return _open_fixture(path, adapters) if path.is_dir() else open_journal(path, adapters)


def open_journal(path: Path, adapters: AdapterRegistry) -> OpenRecording:
    """Open the journal of a run. One without an exit record belongs to a run that was cut off."""
    try:
        derived = JournalEvents(path, codec_factory(adapters))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    stream = derived.header.stream
    return OpenRecording(_journal_events(derived), derived.normalizer, stream.run_id, stream.agent, path, stream.cwd)


def _read_head(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(_HEAD)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def _journal_events(journal: JournalEvents) -> Iterator[AgentEvent]:
    while (batch := journal.next_batch()) is not None:
        yield from batch
    yield from journal.cut_off()


def _open_fixture(folder: Path, adapters: AdapterRegistry) -> OpenRecording:
    header, codec, records = load_fixture_reader("`amux replay` of a fixture folder")(folder, adapters)
    normalizer = Normalizer(header, codec)
    events = (event for record in records for event in normalizer.feed(record))
    stream = header.stream
    return OpenRecording(events, normalizer, stream.run_id, stream.agent, cwd=stream.cwd)
