"""Conversion of journals to fixtures without traces of this machine."""

from pathlib import Path

import pytest

from agent_mux.journal.file import JournalWriter
from agent_mux.journal.records import Header, Kind, Record
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.conformance import Recorded, checks
from agent_mux_testing.conformance.checks import check_golden
from agent_mux_testing.fixtures import load_fixture
from agent_mux_testing.recorder import Neutral, fixture_from_journal, save_run

FIXTURES = Path(__file__).parents[3] / "fixtures"
CLAUDE = FIXTURES / "claude" / "2.1.330"


def journal_of(folder: Path, directory: Path, *, chunk: int = 1 << 20, killed: bool = False) -> Path:
    """Write the fixture as a journal whose output arrived in chunks of that size."""
    recorded = Recorded(AdapterRegistry().get(folder.parent.parent.name), folder)
    path = directory / "run.journal"
    writer = JournalWriter(path, recorded.header())
    for record in recorded.records:
        if record.kind is Kind.EXIT and killed:
            continue
        size = chunk if record.kind in {Kind.STDIN, Kind.STDOUT, Kind.STDERR} else len(record.payload)
        for start in range(0, len(record.payload), size):
            writer.append(Record(record.kind, record.at, record.payload[start : start + size]))
    writer.close()
    return path


def as_it_is(_: Header) -> Neutral:
    return Neutral({}, {})


@pytest.mark.parametrize("chunk", [7, 1 << 20])
@pytest.mark.parametrize("name", ["claude/2.1.330/perm_allow", "claude/2.1.330/plain_text", "codex/0.169.0/as_plain"])
def test_a_journal_of_a_fixture_is_that_fixture(tmp_path: Path, name: str, chunk: int) -> None:
    folder = FIXTURES / name
    was = load_fixture(folder)
    now = fixture_from_journal(
        journal_of(folder, tmp_path, chunk=chunk),
        scenario=was.scenario, version=was.version, two_way=bool(was.stdin), note=was.note, neutral=as_it_is,
    )  # fmt: skip
    for field in (
        "agent",
        "version",
        "scenario",
        "protocol",
        "cwd",
        "recorded",
        "stdout",
        "times",
        "stdin",
        "stderr",
        "exit",
    ):
        assert getattr(now, field) == getattr(was, field), field


def test_what_is_saved_passes_the_suite_for_adapters(tmp_path: Path) -> None:
    adapter = AdapterRegistry().get("claude")
    folder = save_run(journal_of(CLAUDE / "perm_allow", tmp_path), tmp_path / "again", adapter, version="2.1.330")
    recorded = Recorded(adapter, folder)
    assert recorded.fixture.scenario == "again"
    assert [*checks.check_is_understood(recorded), *checks.check_conforms(recorded), *check_golden(recorded)] == []


def test_a_recording_of_a_terminal_has_its_chunks_its_rests_and_its_profile(tmp_path: Path) -> None:
    pytest.importorskip("pyte")
    adapter, folder = AdapterRegistry().get("terminal"), FIXTURES / "terminal/scripted-1.0/approve"
    again = save_run(journal_of(folder, tmp_path), tmp_path / "approve", adapter, version="scripted-1.0")
    was, now = Recorded(adapter, folder), Recorded(adapter, again)
    for field in ("framing", "stdout", "times", "stdin", "settings"):
        assert getattr(now.fixture, field) == getattr(was.fixture, field), field
    assert (again / "events.jsonl").read_bytes() == (folder / "events.jsonl").read_bytes()
    # The program rests before the prompt, in front of its dialog, and after the answer.
    printed = [record.at for record in was.records if record.kind is Kind.STDOUT]
    rests = [record.at for record in was.records if record.kind is Kind.CONTROL]
    assert len(rests) == 3
    for rest in rests:
        assert rest - max(at for at in printed if at <= rest) == pytest.approx(700_000, abs=1_000)


def test_a_run_that_was_cut_off_was_killed(tmp_path: Path) -> None:
    journal = journal_of(CLAUDE / "plain_text", tmp_path, killed=True)
    fixture = fixture_from_journal(journal, scenario="s", version="v", two_way=False)
    assert (fixture.exit.code, fixture.exit.signal) == (None, 9)
    assert fixture.stdin == ()


PLACES = {"/home/ann": "/home/dev", "/home/ann/my.app": "/home/dev/project", "/root": "/home/dev", "/": "/never"}


@pytest.mark.parametrize(
    ("machine", "neutral"),
    [
        (b"in /home/ann/my.app/src", b"in /home/dev/project/src"),
        (b"in /home/ann/other", b"in /home/dev/other"),
        (b"not /home/anna, not /home/ann-2", b"not /home/anna, not /home/ann-2"),
        (b"~/.claude/projects/-home-ann-my-app/x", b"~/.claude/projects/-home-dev-project/x"),
        (b'"/root/x" and file:///root/y\\n/root/z', b'"/home/dev/x" and file:///home/dev/y\\n/home/dev/z'),
        (b"/mnt/root/x and /rooted", b"/mnt/root/x and /rooted"),
        (b"run 01RUN here", b"run 00000 here"),
        (b"\xff\xfe /home/ann \x00", b"\xff\xfe /home/dev \x00"),
    ],
)
def test_paths_and_names_become_neutral(machine: bytes, neutral: bytes) -> None:
    assert Neutral(PLACES, {"01RUN": "00000"})(machine) == neutral


def test_a_backslash_in_a_name_is_only_a_backslash() -> None:
    assert Neutral({}, {"x": "a\\1b"})(b"x") == b"a\\1b"
    assert Neutral({}, {"x": "y"}).text("x\udcff") == "y\ufffd"
