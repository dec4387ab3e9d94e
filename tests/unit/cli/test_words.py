"""One meaning per word at the command line: units, dates, money, and what is said before money is spent."""

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Amux

from agent_mux import RunOptions, ValidationError
from agent_mux.cli.app import command
from agent_mux.cli.command_catalog import all_commands
from agent_mux.cli.command_output import Dollars, Invocation, print_rows
from agent_mux.cli.errors import error_report

WITHOUT_JSON = {"acp", "help", "hooks handle"}
"""Commands whose output is a protocol, or a page for people."""
DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")


def test_every_command_has_json() -> None:
    leaves = {" ".join(words): one for words, one in all_commands(command()) if not getattr(one, "commands", {})}
    without = {words for words, one in leaves.items() if "--json" not in {n for p in one.params for n in p.opts}}
    assert without == WITHOUT_JSON


def test_the_version_is_json_on_request(amux: Amux) -> None:
    plain = amux("version").out
    for words in (("version", "--json"), ("--json", "version"), ("--version", "--json"), ("--json", "-V")):
        done = amux(*words)
        assert (done.code, json.loads(done.out)["data"]["version"]) == (0, plain.split()[1])


@pytest.mark.parametrize("given", ["60", "60s", "60000ms", "1m"])
def test_durations_of_profiles_and_configuration_are_those_of_flags(amux: Amux, tmp_path: Path, given: str) -> None:
    expected = "60s"
    assert amux("profiles", "set", "fast", f"timeout={given}", "--scope", "global").code == 0
    assert json.loads((tmp_path / "config/profiles/fast.json").read_bytes())["timeout"] in {expected, given}
    assert json.loads(amux("profiles", "show", "fast", "--json").out)["data"]["fields"]["timeout"] == 60_000
    assert "60s" in amux("profiles", "list").out
    assert amux("config", "set", "amux", "timeout", given).code == 0
    assert json.loads((tmp_path / "config/config.json").read_bytes())["timeout"] in {expected, given}
    assert amux("config", "set", "amux", "agents.codex.retryPolicy", '{"baseDelay": 2}').code == 0
    assert json.loads((tmp_path / "config/config.json").read_bytes())["agents"]["codex"] == {
        "retryPolicy": {"baseDelay": "2s"}
    }


def test_a_file_of_numbers_is_read_as_milliseconds_with_a_warning(amux: Amux, tmp_path: Path) -> None:
    file = tmp_path / "given.json"
    file.write_text('{"timeout": 60000, "retryPolicy": {"maxDelay": 500}}', "utf-8")
    done = amux("profiles", "set", "fast", "--file", str(file), "--scope", "global")
    assert f'{file}: timeout is 60000 without a unit, which means milliseconds; write "60s"' in done.err
    assert json.loads((tmp_path / "config/profiles/fast.json").read_bytes()) == {
        "timeout": "60s", "retryPolicy": {"maxDelay": "500ms"},
    }  # fmt: skip
    (tmp_path / "config/profiles/old.json").write_text('{"timeout": 60}', "utf-8")
    assert 'timeout is 60 without a unit, which means milliseconds; write "60ms"' in amux("profiles", "show", "old").err


def test_an_unknown_field_of_an_agent_is_a_warning(amux: Amux) -> None:
    unknown = amux("config", "set", "claude", "nope.x", "3")
    assert unknown.code == 0
    assert (
        "warning: nope.x is no field of claude that agent-mux knows; `amux config schema claude` lists" in unknown.err
    )
    near = amux("config", "set", "claude", "permisions.allow", "[]", "--dry-run")
    assert "did you mean permissions.allow?" in near.err
    assert "warning" not in amux("config", "set", "claude", "model", "opus").err


def test_a_comparison_without_a_check_is_announced_before_it_starts(amux: Amux, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    where = ("--cwd", str(tmp_path / "empty"), "--with", "replay")
    said = "note: there is no check, so no result can pass or fail"
    assert amux("compare", "demo", *where).err.startswith(said)
    assert said not in amux("compare", "demo", *where, "--check", "true").err


def test_money_in_tables_has_its_sign(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"a": 1.5, "cost": Dollars(0.0042)}], ("a", "cost"), Invocation())
    assert "1.5000" in (shown := capsys.readouterr().out)
    assert "$0.0042" in shown
    assert Dollars.of(None) is None


def test_dates_have_one_format() -> None:
    from agent_mux.cli.run_records import row_of
    from agent_mux.cli.terminal import local_minute

    now = 1_795_219_200_000
    assert DATE.fullmatch(local_minute(now))
    assert row_of({"runId": "r", "agent": "a", "startedAt": now})["started"] == local_minute(now)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_output_that_cannot_be_written_has_a_code_and_a_next_step(number: int) -> None:
    report = error_report(OSError(number, os.strerror(number)))
    assert (report.code, report.exit_code) == ("OUTPUT_ERROR", 1)
    assert os.strerror(number) in report.message
    assert "free space" in report.hint


@pytest.mark.parametrize("words", [("init",), ("config", "get", "amux"), ("hooks", "list"), ("run", "replay", "demo")])
def test_a_deleted_working_directory_is_named(
    amux: Amux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = amux(*words)
    assert done.code == 2
    assert "the current directory no longer exists" in done.err
    assert "[VALIDATION_ERROR]" in done.err
    options: Any = RunOptions(agent="a", prompt="p")
    with pytest.raises(Exception, match=r"no longer exists.*set cwd") as raised:
        options.working_directory()
    assert not isinstance(raised.value, (ValidationError, OSError))


def test_wait_for_quota_takes_seconds_as_other_durations_do() -> None:
    from agent_mux.cli.inputs import longest_wait

    assert [longest_wait(one) for one in (None, "0", "90", "90s", "5h")] == [None, 0.0, 90.0, 90.0, 18000.0]


def test_sizes_and_durations_of_every_flag_take_units() -> None:
    from agent_mux.cli.options import limit_in_seconds, size_in_bytes, size_in_megabytes

    assert [size_in_bytes(one) for one in ("5", "1.5kB", "2 GiB", "20GB")] == [5, 1500, 2 << 30, 20_000_000_000]
    assert [size_in_megabytes(one) for one in ("5", "0.5", "500MiB")] == [5_000_000, 500_000, 500 << 20]
    assert [limit_in_seconds(one) for one in ("5", "30m", 1800.0)] == [5.0, 1800.0, 1800.0]
    for wrong in ("", "GB", "5 apples", "-1", "inf"):
        with pytest.raises(Exception, match="is not a size"):
            size_in_bytes(wrong)
