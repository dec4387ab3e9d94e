"""What must be true of an adapter and a recording. Each check gives the problems it finds, as sentences."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agent_mux.contract import Breach, validate
from agent_mux.events import AgentEvent, MessageStopEvent, ThinkingStopEvent, ToolCallReadyEvent, encode_event
from agent_mux.facts import Ignored, Unknown
from agent_mux.run.derive import derive_events
from agent_mux.run.journal import JournalWriter
from agent_mux.run.records import Exited, Kind
from agent_mux.testing.conformance.recorded import Played, Recorded

MANY_LINES = 40
"""Up to so many lines, every prefix of a recording is tried; of longer ones, so many."""
MANY_TEARS = 12
"""In so many places a recording is torn in the middle of a line."""
SHOWN = 5  # problems of one kind; the rest would say the same
LONG = 200  # characters of a line that a problem quotes
_GONE = Exited(code=0)

Problems = Iterator[str]


def check_is_understood(recorded: Recorded) -> Problems:
    """No line is unknown, none is unaccounted for, and an observer asks for nothing."""
    played, ledger = recorded.played, recorded.played.ledger
    printed = sum(1 for line in recorded.fixture.stdout_lines if line.strip())
    if ledger.unknown:
        yield f"lines of unknown kinds: {dict(ledger.unknown)}"
    if ledger.lines != printed:
        yield f"the ledger counts {ledger.lines} lines, but {printed} were printed"
    nameless = sorted(kind for kind in ledger.ignored if not ledger.reasons.get(kind))
    if nameless:
        yield f"lines ignored without a reason: {nameless}"
    if recorded.fixture.framing != recorded.protocol.framing and recorded.fixture.protocol == recorded.protocol.name:
        yield f"run.toml says the framing is {recorded.fixture.framing}, the protocol {recorded.protocol.framing}"
    if played.effects:
        yield f"effects in a conversation that somebody else had: {played.effects[:SHOWN]}"


def check_ledger_adds_up(recorded: Recorded) -> Problems:
    """The codec says something about every line, and `Ignored` or `Unknown` only when it says nothing else about it."""
    for number, (line, told) in enumerate(recorded.told(), 1):
        if not told:
            yield f"nothing is said about line {number}: {line[:LONG]!r}"
        elif len(told) > 1 and any(isinstance(fact, Ignored | Unknown) for fact in told):
            kinds = [type(fact).__name__ for fact in told]
            yield f"line {number} is counted as not mapped, but says {kinds}: {line[:LONG]!r}"


def check_is_lawful(recorded: Recorded) -> Problems:
    """The events keep the contract."""
    return _breaches(recorded.played)


def check_beginnings_are_lawful(recorded: Recorded) -> Problems:
    """However early the agent is gone, or whoever recorded it was killed: the events keep the contract."""
    records = [record for record in recorded.records if record.kind in {Kind.STDIN, Kind.STDOUT, Kind.CONTROL}]
    for count in _sample(len(records) + 1, MANY_LINES):
        begun = records[:count]
        is_killed = count % 2 == 0
        played = recorded.play_cut_off(begun) if is_killed else recorded.play([*begun, *recorded.ending(exited=_GONE)])
        how = "killed" if is_killed else "gone"
        yield from (f"{how} after {count} of {len(records)} lines: {breach}" for breach in _breaches(played))


def check_torn_lines_are_lawful(recorded: Recorded) -> Problems:
    """The output may end in the middle of a line; its first half is never taken for another kind of line."""
    lines = recorded.lines
    for index in _sample(len(lines), MANY_TEARS):
        half = lines[index][: len(lines[index]) // 2]
        played = recorded.play(recorded.chunks([*lines[:index], half]))
        yield from (f"torn in line {index + 1}: {breach}" for breach in _breaches(played))
        if played.ledger.unknown:
            yield f"torn in line {index + 1}: its half is an unknown {dict(played.ledger.unknown)}"


def check_chunks_do_not_matter(recorded: Recorded, *ways: Sequence[bytes]) -> Problems:
    """Whichever of these ways the output is cut, the events are the same as of the whole."""
    whole = recorded.play(recorded.chunks([recorded.output]))
    for chunks in ways:
        cut = recorded.play(recorded.chunks(chunks))
        yield from _differences("whole", whole.events, f"in {len(chunks)} chunks", cut.events)
        # At a terminal there are no lines, and chunks are counted.
        if whole.ledger != cut.ledger and recorded.protocol.framing != "chunks":
            yield f"whole: {whole.ledger}; in {len(chunks)} chunks: {cut.ledger}"


def check_journal_gives_the_same(recorded: Recorded) -> Problems:
    """What is derived from the journal is what the live readers got, byte for byte."""
    with tempfile.TemporaryDirectory(prefix="agent-mux-conformance-") as directory:
        path = Path(directory) / "run.journal"
        writer = JournalWriter(path, recorded.header())
        for record in recorded.records:
            writer.append(record)
        writer.close()
        derived = list(derive_events(path, recorded.protocol.codec))
    yield from _differences("live", recorded.played.events, "derived", derived)


def check_buffered_says_the_same(recorded: Recorded) -> Problems:
    """With `stream=False` the stream is lawful, and has the same messages, thoughts and calls."""
    buffered = recorded.play(recorded.records, buffered=True)
    yield from _breaches(buffered)
    streamed, whole = list(_content(recorded.played.events)), list(_content(buffered.events))
    if sorted(streamed) != sorted(whole):
        missing = [said for said in streamed if said not in whole] + [said for said in whole if said not in streamed]
        yield f"streamed and whole differ in: {missing[:SHOWN]}"


def check_insides_of_subagents_are_apart(recorded: Recorded) -> Problems:
    """With `include_subagent_events` the stream is lawful, and the main agent's part of it is the same."""
    shown = recorded.play(recorded.records, include_subagent_events=True)
    yield from _breaches(shown)
    family = {"subagent_spawn", "subagent_result", "subagent_error"}
    main = [event for event in shown.events if event.subagent_id is None or event.type in family]
    yield from _differences("hidden", recorded.played.events, "shown", main)


# -- inside


def _breaches(played: Played) -> Problems:
    breaches: Sequence[Breach] = validate(played.events)
    yield from (str(breach) for breach in breaches[:SHOWN])
    if len(breaches) > SHOWN:
        yield f"and {len(breaches) - SHOWN} breaches more"


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
    """`range(count)`, or so many of its numbers, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(index * (count - 1) / (most - 1)) for index in range(most)})
