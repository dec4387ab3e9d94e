"""Checks of an adapter against recordings. Each yields the problems that it finds, one sentence each."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agent_mux.contract import Breach, validate
from agent_mux.events import AgentEvent, MessageStopEvent, ThinkingStopEvent, ToolCallReadyEvent, encode_event
from agent_mux.journal.file import JournalWriter
from agent_mux.journal.records import Exited, Kind
from agent_mux.run.derivation import derive_events
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.facts import Ignored, Unknown
from agent_mux_testing.conformance.recorded import Played, Recorded

MAX_PREFIXES = 40
"""Prefixes of a recording that are tried; all of them in shorter recordings."""
MAX_TORN_LINES = 12
"""Lines of a recording that are torn in their middle, one at a time."""
MAX_SHOWN = 5  # problems of one kind
MAX_QUOTED = 200  # characters of a line
_EXITED = Exited(code=0)

Problems = Iterator[str]


def check_is_understood(recorded: Recorded) -> Problems:
    """Check that every line is known and counted, and that an observing codec returns no effects."""
    played, ledger = recorded.played, recorded.played.ledger
    printed = sum(1 for line in recorded.fixture.stdout_lines if line.strip())
    if ledger.unknown:
        yield f"lines of unknown kinds: {dict(ledger.unknown)}"
    if ledger.lines != printed:
        yield f"the ledger counts {ledger.lines} lines, but {printed} were printed"
    without_reason = sorted(kind for kind in ledger.ignored if not ledger.reasons.get(kind))
    if without_reason:
        yield f"lines ignored without a reason: {without_reason}"
    if recorded.fixture.framing != recorded.protocol.framing and recorded.fixture.protocol == recorded.protocol.name:
        yield f"the framing is {recorded.fixture.framing} in run.toml, but {recorded.protocol.framing} in the protocol"
    if played.effects:
        yield f"effects while observing another client: {played.effects[:MAX_SHOWN]}"


def check_ledger_adds_up(recorded: Recorded) -> Problems:
    """Check that the codec returns facts for every line, and `Ignored` or `Unknown` only as the single fact."""
    for number, (line, facts) in enumerate(recorded.facts_by_line(), 1):
        if not facts:
            yield f"no facts for line {number}: {line[:MAX_QUOTED]!r}"
        elif len(facts) > 1 and any(isinstance(fact, Ignored | Unknown) for fact in facts):
            kinds = [type(fact).__name__ for fact in facts]
            yield f"line {number} is counted as not mapped, but has the facts {kinds}: {line[:MAX_QUOTED]!r}"


def check_conforms(recorded: Recorded) -> Problems:
    """Check that the events conform to the contract."""
    return _violations(recorded.played)


def check_prefixes_conform(recorded: Recorded) -> Problems:
    """Check that the events conform when the agent exits early, or the recording process is killed, at any line."""
    records = [record for record in recorded.records if record.kind in {Kind.STDIN, Kind.STDOUT, Kind.CONTROL}]
    for count in _sample(len(records) + 1, MAX_PREFIXES):
        prefix = records[:count]
        is_killed = count % 2 == 0
        played = (
            recorded.play_cut_off(prefix) if is_killed else recorded.play([*prefix, *recorded.ending(exited=_EXITED)])
        )
        how = "killed" if is_killed else "exited"
        yield from (f"{how} after {count} of {len(records)} lines: {violation}" for violation in _violations(played))


def check_torn_lines_conform(recorded: Recorded) -> Problems:
    """Check that the events conform when the output ends within a line, and that the half line is not unknown."""
    lines = recorded.lines
    for index in _sample(len(lines), MAX_TORN_LINES):
        half = lines[index][: len(lines[index]) // 2]
        played = recorded.play(recorded.chunks([*lines[:index], half]))
        yield from (f"torn in line {index + 1}: {violation}" for violation in _violations(played))
        if played.ledger.unknown:
            yield f"torn in line {index + 1}: its half is an unknown {dict(played.ledger.unknown)}"


def check_chunks_do_not_matter(recorded: Recorded, *ways: Sequence[bytes]) -> Problems:
    """Check that the events are the same however the output is cut into chunks."""
    whole = recorded.play(recorded.chunks([recorded.output]))
    for chunks in ways:
        cut = recorded.play(recorded.chunks(chunks))
        yield from _differences("whole", whole.events, f"in {len(chunks)} chunks", cut.events)
        # At a terminal there are no lines, and chunks are counted.
        if whole.ledger != cut.ledger and recorded.protocol.framing != "chunks":
            yield f"whole: {whole.ledger}; in {len(chunks)} chunks: {cut.ledger}"


def check_journal_derives_same_events(recorded: Recorded) -> Problems:
    """Check that the events derived from the journal are those of live readers, byte for byte."""
    with tempfile.TemporaryDirectory(prefix="agent-mux-conformance-") as directory:
        path = Path(directory) / "run.journal"
        writer = JournalWriter(path, recorded.header())
        for record in recorded.records:
            writer.append(record)
        writer.close()
        derived = list(derive_events(path, recorded.protocol.codec))
    yield from _differences("live", recorded.played.events, "derived", derived)


def check_buffered_content_is_same(recorded: Recorded) -> Problems:
    """Check that with `stream=False` the events conform and have the same messages, thinking and calls."""
    buffered = recorded.play(recorded.records, buffered=True)
    yield from _violations(buffered)
    streamed, whole = list(_content(recorded.played.events)), list(_content(buffered.events))
    if sorted(streamed) != sorted(whole):
        missing = [item for item in streamed if item not in whole] + [item for item in whole if item not in streamed]
        yield f"streamed and buffered events differ in: {missing[:MAX_SHOWN]}"


def check_subagent_events_are_separate(recorded: Recorded) -> Problems:
    """Check that with `include_subagent_events` the events conform, and those of the main agent are the same."""
    shown = recorded.play(recorded.records, include_subagent_events=True)
    yield from _violations(shown)
    family = {"subagent_spawn", "subagent_result", "subagent_error"}
    main = [event for event in shown.events if event.subagent_id is None or event.type in family]
    yield from _differences("hidden", recorded.played.events, "shown", main)


UNCLAIMED = frozenset(
    {"session_start", "session_end", "stream_fallback", "interrupted", "aborted", "paused", "resumed", "timeout",
     "crash", "debug", "log"}
)  # fmt: skip
"""Event types that every adapter has, whatever its agent reports. They need not be claimed."""


def check_claimed_events(adapter: Adapter, recordings: Iterable[Recorded]) -> Iterator[str]:
    """Check `AgentCapabilities.emits`: every claimed type is in a recording, and every recorded type is claimed."""
    claimed = adapter.capabilities.emits - UNCLAIMED
    recorded = {event.type for recording in recordings for event in recording.played.events} - UNCLAIMED
    if claimed - recorded:
        yield f"claimed in `emits`, but in no recording: {sorted(claimed - recorded)}"
    if recorded - claimed:
        claim = "emits=frozenset({{{}}})".format(", ".join(f'"{name}"' for name in sorted(recorded)))
        yield f"recorded, but not claimed in `emits`: {sorted(recorded - claimed)}; write {claim}"


GOLDEN = "events.jsonl"
"""The reviewed events of a recording, beside it, without accumulated text."""
UPDATE = "AMUX_UPDATE_GOLDENS"


def check_golden(recorded: Recorded) -> Iterator[str]:
    """Check the events against the reviewed ones; with `AMUX_UPDATE_GOLDENS=1` write them instead."""
    path = recorded.folder / GOLDEN
    now = [encode_event(event, accumulated=False).decode() for event in recorded.played.events]
    if os.environ.get(UPDATE) == "1":
        path.write_text("".join(f"{line}\n" for line in now), "utf-8")
        return
    if not path.exists():
        yield f"{GOLDEN} is missing; set {UPDATE}=1 to write it, and review it"
        return
    golden = path.read_text("utf-8").split("\n")[:-1]  # not splitlines: U+2028 ends no line here
    for index, (was, line) in enumerate(zip(golden, now, strict=False)):
        if was != line:
            yield f"event {index} was: {was}; is: {line}"
            return
    if len(golden) != len(now):
        yield f"there were {len(golden)} events, there are {len(now)}"


# -- internals


def _violations(played: Played) -> Problems:
    violations: Sequence[Breach] = validate(played.events)
    yield from (str(violation) for violation in violations[:MAX_SHOWN])
    if len(violations) > MAX_SHOWN:
        yield f"and {len(violations) - MAX_SHOWN} more violations"


def _differences(name: str, events: Sequence[AgentEvent], other_name: str, others: Sequence[AgentEvent]) -> Problems:
    lines, other_lines = ([encode_event(event).decode() for event in one] for one in (events, others))
    for index, (line, other) in enumerate(zip(lines, other_lines, strict=False)):
        if line != other:
            yield f"event {index} differs. {name}: {line}; {other_name}: {other}"
            return
    if len(lines) != len(other_lines):
        yield f"{name}: {len(lines)} events; {other_name}: {len(other_lines)}"


def _content(events: Iterable[AgentEvent]) -> Iterator[str]:
    for event in events:
        match event:
            case MessageStopEvent():
                yield f"message: {event.text}"
            case ThinkingStopEvent():
                yield f"thought: {event.thinking}"
            case ToolCallReadyEvent():
                yield f"call: {event.tool_call_id} {event.tool_name} {event.input}"


def _sample(count: int, most: int) -> list[int]:
    """Return `range(count)`, or `most` of its numbers, with the first and the last one."""
    if count <= most:
        return list(range(count))
    return sorted({round(index * (count - 1) / (most - 1)) for index in range(most)})
