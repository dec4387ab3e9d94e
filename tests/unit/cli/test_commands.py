"""Commands that start no agent."""

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import CLAUDE, CODEX, Amux

from agent_mux import validate
from agent_mux._util.version import __version__
from agent_mux.cli import recording_commands
from agent_mux.events import ALL_EVENTS, decode_event, event_to_dict
from agent_mux.journal.file import JournalWriter
from agent_mux.journal.records import Kind
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.conformance import Recorded

PLAIN = CLAUDE / "plain_text"
TWO_WAY = CLAUDE / "perm_allow"


def journal_of(folder: Path, directory: Path, *, whole: bool = True) -> Path:
    """The fixture as the journal of a run."""
    agent = folder.parent.parent.name
    recorded = Recorded(AdapterRegistry().get(agent), folder)
    path = directory / ("0" * 26 + ".journal")
    writer = JournalWriter(path, recorded.header())
    for record in recorded.records:
        if whole or record.kind is not Kind.EXIT:
            writer.append(record)
    writer.close()
    return path


def without_times(lines: str) -> list[dict[str, object]]:
    varying = {"runId", "timestamp", "durationMs"}
    return [
        {key: value for key, value in json.loads(line).items() if key not in varying} for line in lines.splitlines()
    ]


# -- version, help


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["version"], ["--no-color", "--version"]])
def test_the_version(amux: Amux, arguments: list[str]) -> None:
    assert amux(*arguments) == (0, f"amux {__version__}\n", "")


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"], ["-h"]])
def test_help_names_every_command_and_exit_code(amux: Amux, arguments: list[str]) -> None:
    done = amux(*arguments)
    assert (done.code, done.err) == (0, "")
    commands = (
        "run",
        "parse",
        "validate",
        "replay",
        "record",
        "adapters",
        "sessions",
        "cost",
        "schema",
        "help",
        "demo",
        "Exit codes: 0 ok",
    )
    assert [word for word in commands if word not in done.out] == []


@pytest.mark.parametrize(
    "command", ["run", "parse", "validate", "replay", "record", "adapters", "schema", "demo", "sessions", "cost"]
)
def test_each_command_explains_itself(amux: Amux, command: str) -> None:
    told, same = amux(command, "--help"), amux("help", command)
    assert (told.code, same.code) == (0, 0)
    assert told.out == same.out
    assert f"amux {command}" in told.out


def test_help_of_a_subcommand(amux: Amux) -> None:
    assert "amux adapters detect" in amux("help", "adapters", "detect").out


# -- parse


def test_parse_converts_agent_output_to_conforming_events(amux: Amux) -> None:
    done = amux("parse", "--agent", "claude", PLAIN / "stdout.jsonl")
    events = [decode_event(line) for line in done.out.splitlines()]
    assert done.code == 0
    assert validate(events) == []
    assert events[-1].type == "session_end"
    lines = (PLAIN / "stdout.jsonl").read_bytes().count(b"\n")
    assert done.err.startswith(f"{lines} lines: ")
    assert done.err.endswith(" 0 unknown\n")


def test_parse_reads_standard_input_and_omits_accumulated_text(amux: Amux) -> None:
    done = amux(
        "parse", "-a", "claude-code", "--compact", "-q", stdin=(CLAUDE / "many_deltas" / "stdout.jsonl").read_bytes()
    )
    assert done.code == 0
    assert done.err == ""
    assert '"accumulated"' not in done.out
    assert '"text_delta"' in done.out


def test_parse_detects_the_protocol_of_a_two_way_transcript(amux: Amux, tmp_path: Path) -> None:
    lines = [("->", line) for line in (TWO_WAY / "stdin.jsonl").read_text().splitlines()]
    lines += [("<-", line) for line in (TWO_WAY / "stdout.jsonl").read_text().splitlines()]
    transcript = tmp_path / "both.jsonl"
    transcript.write_text(
        "".join(json.dumps({"t": 0, "dir": way, "msg": json.loads(line)}) + "\n" for way, line in lines)
    )
    done = amux("parse", "-a", "claude", transcript)
    assert done.code == 0
    assert '"approval_granted"' in done.out
    assert validate([decode_event(line) for line in done.out.splitlines()]) == []


def test_parse_accepts_a_protocol(amux: Amux) -> None:
    source = CODEX / "as_plain" / "stdout.jsonl"
    told, guessed = (amux("parse", "-a", "codex", *how, source) for how in (["--protocol", "app-server"], []))
    assert told.code == 0
    assert without_times(told.out) == without_times(guessed.out)


def test_parse_accepts_a_journal_as_a_file_and_on_standard_input(amux: Amux, tmp_path: Path) -> None:
    journal = journal_of(PLAIN, tmp_path)
    replayed = amux("replay", journal, "--json").out
    assert amux("parse", journal, "-q") == (0, replayed, "")
    assert amux("parse", "-q", stdin=journal.read_bytes()) == (0, replayed, "")


def test_parse_counts_unknown_lines(amux: Amux) -> None:
    strange = b'{"type":"of_the_future","session_id":"x"}\n'
    done = amux("parse", "-a", "claude", stdin=(PLAIN / "stdout.jsonl").read_bytes() + strange)
    assert done.code == 0
    assert ", 1 unknown (of_the_future)" in done.err


# -- validate


def events_of(amux: Amux, folder: Path) -> list[str]:
    return amux("replay", folder, "--json").out.splitlines(keepends=True)


def test_validate_accepts_the_output_of_amux(amux: Amux, tmp_path: Path) -> None:
    lines = events_of(amux, TWO_WAY)
    path = tmp_path / "events.jsonl"
    path.write_text("".join(lines) + '{"type":"run_result"}\n')
    assert amux("validate", path) == (0, "", f"{len(lines) + 1} events: valid\n")
    told = json.loads(amux("validate", path, "--json").out)
    assert told == {"ok": True, "data": {"valid": True, "events": len(lines) + 1, "breaches": []}}


def test_validate_prints_violations_one_per_line(amux: Amux) -> None:
    lines = events_of(amux, TWO_WAY)
    broken = "".join(lines[1:3] + lines[4:]).encode()
    done = amux("validate", stdin=broken)
    assert done.code == 1
    assert done.out.splitlines()[0].startswith("event 0 (")
    assert done.err == f"{len(lines) - 2} events: {len(done.out.splitlines())} violations\n"
    told = amux("validate", "--json", stdin=broken)
    data = json.loads(told.out)["data"]
    assert told.code == 1
    assert data["valid"] is False
    assert set(data["breaches"][0]) == {"rule", "message", "index", "eventType"}


def test_validate_partial_accepts_an_incomplete_stream(amux: Amux) -> None:
    beginning = "".join(events_of(amux, TWO_WAY)[:-3]).encode()
    assert amux("validate", stdin=beginning).code == 1
    assert amux("validate", "--partial", stdin=beginning).code == 0


def test_validate_reports_lines_that_are_not_events(amux: Amux) -> None:
    lines = "".join(events_of(amux, TWO_WAY))
    done = amux("validate", stdin=f"{lines}\n[]\nnot json\n".encode())
    assert done.code == 1
    assert len(done.out.splitlines()) == 2


def test_an_empty_stream_is_invalid(amux: Amux) -> None:
    assert amux("validate").code == 1


# -- replay


@pytest.mark.parametrize(
    "folder", [PLAIN, TWO_WAY, CLAUDE / "subagent", CODEX / "as_plain"], ids=lambda path: path.name
)
def test_replay_of_a_fixture_and_of_its_journal_are_the_same(amux: Amux, tmp_path: Path, folder: Path) -> None:
    journal = journal_of(folder, tmp_path)
    assert amux("replay", folder, "--json") == amux("replay", journal, "--json")
    golden = Recorded(AdapterRegistry().get(folder.parent.parent.name), folder).played.events
    compact = amux("replay", folder, "--json", "--compact")
    assert [json.loads(line) for line in compact.out.splitlines()] == [
        event_to_dict(event, accumulated=False) for event in golden
    ]


def test_replay_for_a_person_is_the_answer_and_a_summary(amux: Amux, tmp_path: Path) -> None:
    done = amux("replay", journal_of(CLAUDE / "tool_bash", tmp_path))
    assert done.code == 0
    assert done.out == "Running echo.\n\nAll done.\n"
    assert "* Bash echo hi\n  | hi\n" in done.err
    assert "+ completed 1 turn" in done.err
    assert done.err.endswith(f"journal: {tmp_path}/{'0' * 26}.journal\n")


def test_replay_finds_the_journal_of_a_run_by_its_id(amux: Amux, tmp_path: Path) -> None:
    runs = tmp_path / "config" / "runs"
    runs.mkdir(parents=True)
    journal_of(PLAIN, runs)
    assert amux("replay", "0" * 26, "--json").code == 0
    assert amux("replay", "0" * 26, "--json", "--config-dir", tmp_path / "elsewhere").code == 2


def test_replay_of_a_journal_that_was_cut_off_reports_how_it_ended(amux: Amux, tmp_path: Path) -> None:
    done = amux("replay", journal_of(CLAUDE / "interrupt_text", tmp_path, whole=False))
    assert done.code == 0
    assert "error: " in done.err


def test_replay_keeps_the_recorded_times(amux: Amux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    now = [0.0]

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return now[0]

        @staticmethod
        def sleep(seconds: float) -> None:
            waited.append(seconds)
            now[0] += seconds

    monkeypatch.setattr(recording_commands, "time", Clock)
    stamps = [json.loads(line)["timestamp"] for line in events_of(amux, PLAIN)]
    for speed in (1, 4):
        waited.clear()
        amux("replay", PLAIN, "--json", "--speed", speed)
        assert sum(waited) == pytest.approx((stamps[-1] - stamps[0]) / 1000 / speed)
    waited.clear()
    amux("replay", PLAIN, "--json")
    assert waited == []


# -- adapters, schema


def test_adapters_list_shows_every_adapter(amux: Amux) -> None:
    done = amux("adapters", "list")
    assert done.code == 0
    assert "Claude Code" in done.out
    told = json.loads(amux("adapters", "list", "--json").out)
    assert {"claude", "codex", "replay"} <= {row["agent"] for row in told["data"]}
    assert amux("--json", "adapters", "list").out == amux("adapters", "list", "--json").out


def test_adapters_detect_reports_versions_and_install_hints(
    amux: Amux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho '9.9.9 (Claude Code)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("AMUX_CODEX_EXECUTABLE", raising=False)
    done = amux("adapters", "detect")
    assert done.code == 0
    assert "9.9.9" in done.out
    told = {row["agent"]: row for row in json.loads(amux("adapters", "detect", "--json").out)["data"]}
    assert told["claude"]["path"] == str(program)
    assert told["claude"]["supported"] is True
    assert told["codex"]["installed"] is False
    assert "npm install" in told["codex"]["problem"]


def test_an_adapter_that_cannot_be_loaded_hides_no_other(
    amux: Amux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken-1.dist-info").mkdir()
    (tmp_path / "broken-1.dist-info" / "entry_points.txt").write_text(
        "[agent_mux.adapters]\nbroken = no_such_module:X\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    done = amux("adapters", "list")
    assert done.code == 0
    assert "claude" in done.out
    assert "cannot be loaded" in amux("adapters", "list", "--json").out


def test_the_schema_of_events_describes_all_of_them(amux: Amux) -> None:
    schema = json.loads(amux("schema").out)
    types = {kind for shape in schema["$defs"].values() for kind in shape["properties"].get("type", {}).get("enum", ())}
    assert types == {event.type for event in ALL_EVENTS}
    compact = json.loads(amux("schema", "event", "--compact").out)
    assert "accumulated" not in compact["$defs"]["TextDeltaEvent"]["properties"]
