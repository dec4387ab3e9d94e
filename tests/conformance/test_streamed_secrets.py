"""No event contains a key that a real protocol streams: recordings, with the key in place of a fragment."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.redaction.key_samples import SAMPLES

from agent_mux import encode_event
from agent_mux.contract import validate
from agent_mux.events import AgentEvent
from agent_mux.journal.records import Control, Kind, Record, encode
from agent_mux.redaction import RedactedStream, Redactor
from agent_mux.run.normalizer import Normalizer
from agent_mux.sdk.facts import Fact, TextDelta, ThinkingDelta
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.conformance.recorded import Recorded
from agent_mux_testing.fixtures import find_fixtures

FIXTURES = Path(__file__).parents[2] / "fixtures"
VALUE = "plain-passw0rd-of-it"
TEXT = f"key {SAMPLES['anthropic']} and {VALUE} end "


def with_streamed_key(recorded: Recorded, kind: type[Fact]) -> list[bytes] | None:
    """Return the lines with one fragment of this kind replaced by the text, one character per line."""
    lines = list(recorded.facts_by_line())
    for index, (line, facts) in enumerate(lines):
        text = next(
            (fact.text for fact in facts if isinstance(fact, TextDelta | ThinkingDelta) and type(fact) is kind), ""
        )
        spelled = next((one for one in (json.dumps(text, ensure_ascii=False), json.dumps(text)) if len(text) > 1), "")
        if spelled and line.count(spelled.encode()) == 1:
            pieces = [line.replace(spelled.encode(), json.dumps(character).encode()) for character in TEXT]
            return [*(one for one, _ in lines[:index]), *pieces, *(one for one, _ in lines[index + 1 :])]
    return None


def streaming_protocols() -> Iterator[tuple[str, str]]:
    for adapter in AdapterRegistry():
        for protocol in adapter.protocols.values():
            if protocol.streams and protocol.framing == "lines":
                yield adapter.agent, protocol.name


@pytest.mark.parametrize("kind", [TextDelta, ThinkingDelta])
@pytest.mark.parametrize(("agent", "protocol"), list(streaming_protocols()))
def test_key_streamed_by_a_real_protocol_is_in_no_event(agent: str, protocol: str, kind: type[Fact]) -> None:
    adapter = AdapterRegistry().get(agent)
    for folder in find_fixtures(FIXTURES, agent):
        recorded = Recorded(adapter, folder)
        lines = with_streamed_key(recorded, kind) if recorded.fixture.protocol == protocol else None
        if lines is not None:
            check(recorded, lines)
            return
    pytest.skip("no recording has such a fragment")


def check(recorded: Recorded, lines: list[bytes]) -> None:
    redactor = Redactor([VALUE])
    live = Normalizer(recorded.header(), recorded.protocol.codec, redactor=redactor)
    output = RedactedStream(redactor)
    journal: list[Record] = []
    events: list[AgentEvent] = []
    printed = [Record(Kind.STDOUT, 0, output.feed(recorded.frame_message(line))) for line in lines]
    for record in (*recorded.sent, *printed, *recorded.ending()):
        events += live.feed(record)
        if masks := live.masks.take():
            journal.append(Record(Kind.CONTROL, record.at, encode(Control("masks", masks=masks))))
        journal.append(record)
    reader = Normalizer(recorded.header(), recorded.protocol.codec)
    encoded = [encode_event(event) for event in events]
    assert [encode_event(event) for record in journal for event in reader.feed(record)] == encoded
    shown = b"\n".join(encoded)
    assert b"sk-ant-*1***" in shown
    assert VALUE.encode() not in shown
    assert SAMPLES["anthropic"][-12:].encode() not in shown
    assert validate(events) == []
