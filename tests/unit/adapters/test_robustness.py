"""Any output of an agent: no line raises, no line is dropped, and the events conform to the contract.

These tests cover agents with several native protocols; tests of a single agent are in `test_<agent>_*.py`.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.adapters.codec_conversation import codec_of
from tests.unit.adapters.damage import check, damaged, patient, with_byte
from tests.unit.adapters.recordings import Recordings

from agent_mux.contract import validate
from agent_mux.sdk import facts
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.codec import Exit, Source
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters import codex, gemini, omp, pi

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Agent:
    """An agent under test."""

    recordings: Recordings
    heads: tuple[bytes, ...]
    """Beginnings of lines whose next value is parsed late or dropped."""
    cut_off: frozenset[str] = frozenset()
    """Recordings of a slow reader: the CLI dropped the rest of a line, and the lines after it."""
    unnamed: frozenset[str] = frozenset()
    """Recordings that do not name their protocol."""
    is_mixed: bool = False
    """Whether lines of one protocol are also lines of another; then the first one decides."""

    @property
    def adapter(self) -> Adapter:
        return self.recordings.adapter

    @cache  # noqa: B019  # one for each agent, for as long as the tests run
    def lines(self, protocol: str) -> list[bytes]:
        """Return the lines that the agent printed."""
        return self.recordings.lines(protocol, without=self.cut_off)

    @cache  # noqa: B019
    def sent(self, protocol: str) -> list[bytes]:
        """Return the first lines that were sent in each recording."""
        names = [name for name in self.recordings.names if self.recordings.get(name).protocol == protocol]
        return [line for name in names for line in self.recordings.get(name).stdin[:3] if load_object(line)]


AGENTS = {
    "codex": Agent(
        Recordings(codex.ADAPTER, "exec-json", HERE / "codex" / "recordings"),
        (b'{"method":"item/started","params":', b'{"type":"item.started","item":'),
        unnamed=frozenset({"0.169.0/as_not_initialized"}),
    ),
    "gemini": Agent(
        Recordings(gemini.ADAPTER, "stream-json"),
        (b'{"method":"session/update","params":', b'{"type":"message","content":'),
        cut_off=frozenset({"0.61.0/big_output"}),
    ),
    "omp": Agent(
        Recordings(omp.ADAPTER, "json"),
        (b'{"type":"message_update","assistantMessageEvent":', b'{"type":"agent_end","messages":'),
        is_mixed=True,
    ),
    "pi": Agent(
        Recordings(pi.ADAPTER, "json"),
        (b'{"type":"message_update","assistantMessageEvent":', b'{"type":"agent_end","messages":'),
        is_mixed=True,
    ),
}


PROTOCOLS = [(agent, protocol) for agent in AGENTS for protocol in AGENTS[agent].adapter.protocols]
TWO_WAY = [(agent, protocol) for agent, protocol in PROTOCOLS if AGENTS[agent].adapter.protocols[protocol].two_way]
NAMES = [(agent, name) for agent in AGENTS for name in AGENTS[agent].recordings.names]
of_all_agents = pytest.mark.parametrize("agent", AGENTS)
of_all_protocols = pytest.mark.parametrize(("agent", "protocol"), PROTOCOLS)
of_all_recordings = pytest.mark.parametrize(("agent", "name"), NAMES)


@of_all_recordings
def test_every_line_of_every_recording_is_known(agent: str, name: str) -> None:
    recordings = AGENTS[agent].recordings
    assert recordings.facts(name, facts.Unknown) == []
    assert recordings.facts(name, facts.Unknown, with_stdin=False) == []


@of_all_recordings
def test_every_line_emits_a_step(agent: str, name: str) -> None:
    codec = AGENTS[agent].recordings.codec(name)
    for line in AGENTS[agent].recordings.get(name).stdout_lines:
        check(list(codec.receive(line, Source.STDOUT)))


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (agent, name)
        for agent, under_test in AGENTS.items()
        for name in under_test.recordings.in_known_protocols
        if name not in under_test.cut_off
    ],
)
def test_stdout_of_recordings_yields_no_log_lines(agent: str, name: str) -> None:
    assert [fact for fact in AGENTS[agent].recordings.facts(name, facts.LogLine) if fact.source == "stdout"] == []


@of_all_recordings
def test_events_of_every_recording_conform(agent: str, name: str) -> None:
    assert list(validate(AGENTS[agent].recordings.events(name, include_subagent_events=True))) == []


@of_all_protocols
@patient
@given(st.data(), st.booleans())
def test_no_damaged_line_raises(agent: str, protocol: str, data: st.DataObject, live: bool) -> None:
    adapter, lines = AGENTS[agent].adapter, AGENTS[agent].lines(protocol)
    drawn = data.draw(st.lists(st.sampled_from(lines) | damaged(lines), min_size=1, max_size=6))
    codec = codec_of(adapter, protocol, prompt="hello" if live and adapter.protocols[protocol].two_way else None)
    list(codec.start())
    for line in drawn:
        check(list(codec.receive(line, Source.STDOUT)))
    list(codec.finish(Exit()))


@pytest.mark.parametrize(("agent", "protocol"), TWO_WAY)
@patient
@given(st.data())
def test_no_damaged_line_of_another_client_raises(agent: str, protocol: str, data: st.DataObject) -> None:
    line = data.draw(damaged(AGENTS[agent].sent(protocol)) | damaged(AGENTS[agent].lines(protocol)))
    check(list(codec_of(AGENTS[agent].adapter, protocol).receive(line, Source.STDIN)))


@of_all_protocols
@patient
@given(st.binary(max_size=60), st.sampled_from(Source))
def test_arbitrary_bytes_raise_nothing(agent: str, protocol: str, line: bytes, source: Source) -> None:
    check(list(codec_of(AGENTS[agent].adapter, protocol).receive(line, source)))


@of_all_protocols
@patient
@given(st.data(), st.integers(0, 400), st.integers(0, 255))
def test_no_changed_byte_raises(agent: str, protocol: str, data: st.DataObject, at: int, byte: int) -> None:
    line = with_byte(data.draw(st.sampled_from(AGENTS[agent].lines(protocol))), at, byte)
    for codec in (codec_of(AGENTS[agent].adapter, name) for name in AGENTS[agent].adapter.protocols):
        check(list(codec.receive(line, Source.STDOUT)))


@of_all_protocols
def test_deep_nesting_raises_nothing(agent: str, protocol: str) -> None:
    for head in AGENTS[agent].heads:
        line = head + b"[" * 5000 + b"]" * 5000 + b"}"
        check(list(codec_of(AGENTS[agent].adapter, protocol).receive(line, Source.STDOUT)))


@of_all_recordings
def test_codec_can_start_in_the_middle_of_a_recording(agent: str, name: str) -> None:
    lines = AGENTS[agent].recordings.get(name).stdout_lines
    for start in range(0, len(lines), max(len(lines) // 20, 1)):
        codec = AGENTS[agent].recordings.codec(name)
        for line in lines[start : start + 40]:
            check(list(codec.receive(line, Source.STDOUT)))


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        *[("codex", name) for name in ("as_spawn_agent", "as_agent_approval", "as_compact_auto", "as_interrupt_tool")],
        *[("gemini", name) for name in ("live_tools", "live_subagent", "acp_live_tools", "acp_live_interrupt")],
    ],
)
def test_codec_can_start_at_any_line(agent: str, name: str) -> None:
    lines = AGENTS[agent].recordings.get(name).stdout_lines
    for start in range(len(lines)):
        codec = AGENTS[agent].recordings.codec(name)
        for line in lines[start:]:
            check(list(codec.receive(line, Source.STDOUT)))


@of_all_recordings
def test_protocol_of_a_transcript_is_recognized(agent: str, name: str) -> None:
    under_test = AGENTS[agent]
    lines = [load_object(line) or {} for line in under_test.recordings.get(name).stdout_lines]
    recognized = [
        protocol.name for line in lines for protocol in under_test.adapter.protocols.values() if protocol.sniff(line)
    ]
    is_recognizable = lines and name in under_test.recordings.in_known_protocols and name not in under_test.unnamed
    assert recognized[:1] == ([under_test.recordings.get(name).protocol] if is_recognizable else [])
    assert under_test.is_mixed or len(set(recognized)) <= 1


@of_all_agents
def test_every_recording_is_tested(agent: str) -> None:
    recordings = AGENTS[agent].recordings
    assert {recordings.protocol(name) for name in recordings.in_known_protocols} == set(AGENTS[agent].adapter.protocols)
    assert all(recordings.steps(name) or not recordings.get(name).stdout for name in recordings.names)
