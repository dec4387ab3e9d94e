"""`amux run`, `record` and `demo`: the installed command in real processes."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from tests.process.installed_command import PATIENCE, REPOSITORY, Installed
from ulid import ULID

from agent_mux import validate
from agent_mux.process.marker import processes_of
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.conformance import Recorded, checks
from agent_mux_testing.conformance.checks import check_golden
from agent_mux_testing.fixtures import load_fixture

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

HELLO = "read(); emit(session='S'); emit(text='hello '); emit(text='world'); emit(done=True); drain()"
ASK = (
    "read(); emit(session='S'); emit(ask='rm -rf /'); emit(text='it was ' + read()['answer']); emit(done=True); drain()"
)
LONG = "read(); emit(session='S'); emit(text='started'); drain(); time.sleep(600)"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN); " + LONG


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def events_in(output: str) -> tuple[list[str], dict[str, object]]:
    """Check that a JSONL stream conforms; return its event types and its last line."""
    *lines, last = output.splitlines()
    events = [json.loads(line) for line in lines]
    assert validate(events) == []
    result = json.loads(last)
    assert result["type"] == "run_result"
    return [event["type"] for event in events], result


# -- output streams


@pytest.mark.slow
def test_answer_is_on_stdout_and_status_on_stderr(installed: Installed) -> None:
    done = installed.run("run", "scripted", "hi", body=HELLO)
    assert (done.returncode, done.stdout) == (0, "hello world\n")
    lines = done.stderr.splitlines()
    assert lines[0] == "scripted, session S"
    assert lines[1].startswith("+ completed 1 turn, ")
    assert Path(lines[2].removeprefix("journal: ")).is_file()
    assert len(lines) == 3


def test_quiet_prints_only_the_answer(installed: Installed) -> None:
    done = installed.run("run", "scripted", "hi", "-q", body=HELLO)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello world\n", "")


def test_json_output_is_conforming_events_and_the_result(installed: Installed) -> None:
    done = installed.run("run", "scripted", "hi", "--json", body=HELLO)
    types, result = events_in(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert types[0] == "session_start"
    assert types[-1] == "session_end"
    assert (result["text"], result["exitReason"], result["sessionId"]) == ("hello world", "completed", "S")
    assert '"accumulated":"hello world"' in done.stdout
    assert '"accumulated"' not in installed.run("run", "scripted", "hi", "--json", "--compact", body=HELLO).stdout


@pytest.mark.slow
def test_result_matches_its_schema(installed: Installed) -> None:
    schema = json.loads(installed.run("schema", "result").stdout)["$defs"]
    for body in (HELLO, "emit(failed='AUTH_ERROR'); drain()", "sys.exit(3)"):
        _, result = events_in(installed.run("run", "scripted", "hi", "--json", "--tag", "t", body=body).stdout)
        for name, value in (("RunResult", result), ("RunError", result.get("error")), ("Ledger", result["ledger"])):
            if isinstance(value, dict):
                assert set(schema[name]["required"]) <= set(value) <= set(schema[name]["properties"])


@pytest.mark.slow
def test_json_is_the_default_between_two_pipes(installed: Installed) -> None:
    done = installed.run("run", "scripted", body=HELLO, stdin=b"hi")
    assert events_in(done.stdout)[1]["text"] == "hello world"
    assert installed.run("run", "scripted", "--no-json", body=HELLO, stdin=b"hi").stdout == "hello world\n"
    wrong = installed.run("run", "no-such-agent", stdin=b"hi")
    assert (wrong.returncode, wrong.stderr) == (3, "")
    assert json.loads(wrong.stdout)["error"]["code"] == "AGENT_NOT_FOUND"


@pytest.mark.slow
def test_env_and_cwd_flags_reach_the_agent(installed: Installed, tmp_path: Path) -> None:
    body = "read(); emit(text=os.environ['A'] + ' ' + os.getcwd()); emit(done=True); drain()"
    done = installed.run("-a", "scripted", "run", "hi", "--env", "A=b", "--cwd", tmp_path, body=body)
    assert done.stdout == f"b {tmp_path}\n"


@pytest.mark.slow
def test_journal_flag_sets_the_path_and_no_journal_writes_none(installed: Installed, tmp_path: Path) -> None:
    journal = tmp_path / "my.journal"
    done = installed.run("run", "scripted", "hi", "--json", "--journal", journal, body=HELLO)
    *lines, _ = done.stdout.splitlines(keepends=True)
    assert installed.run("replay", journal, "--json").stdout == "".join(lines)
    nothing = installed.run("run", "scripted", "hi", "--no-journal", body=HELLO)
    assert "journal" not in nothing.stderr


@pytest.mark.slow
def test_worktree_is_reported_in_the_result(installed: Installed, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    for words in (["init", "-q", str(repository)], ["-C", str(repository), "commit", "-q", "--allow-empty", "-mx"]):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], check=True)
    flags = ["--isolation", "worktree", "--cwd", str(repository)]
    body = "read(); open('made', 'w'); emit(text=os.getcwd()); emit(done=True); drain()"
    done = installed.run("run", "scripted", "hi", "--json", *flags, body=body)
    _, result = events_in(done.stdout)
    worktree = result["worktree"]
    assert isinstance(worktree, dict)
    assert (worktree["path"], worktree["isChanged"]) == (result["text"], True)
    done = installed.run("run", "scripted", "hi", *flags, body=body)
    assert "! the worktree " in done.stderr  # long paths are cut


@pytest.mark.slow
def test_control_characters_are_unchanged_in_a_pipe(installed: Installed) -> None:
    body = "read(); emit(text='\\x1b[2J\\x1b]0;x\\x07é\\u202e'); emit(done=True); drain()"
    assert installed.run("run", "scripted", "hi", body=body).stdout == "\x1b[2J\x1b]0;x\x07é\u202e\n"


@pytest.mark.slow
def test_unencodable_characters_become_question_marks(installed: Installed) -> None:
    body = "read(); emit(text='é→'); emit(done=True); drain()"
    done = installed.run("run", "scripted", "hi", body=body, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stdout) == (0, "??\n")
    *_, last = installed.run("run", "scripted", "hi", "--json", body=body, PYTHONIOENCODING="ascii").stdout.splitlines()
    assert json.loads(last)["text"] == "é→"


# -- exit codes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "flags", "code", "error_code"),
    [
        ("read(); emit(failed='AGENT_CRASH'); drain()", [], 1, "AGENT_CRASH"),
        ("read(); emit(text='x'); sys.exit(0)", [], 1, "AGENT_CRASH"),
        ("read(); emit(failed='AUTH_ERROR'); drain()", [], 5, "AUTH_ERROR"),
        ("read(); emit(failed='RATE_LIMITED'); drain()", [], 14, "RATE_LIMITED"),
        ("read(); emit(failed='CONTEXT_EXCEEDED'); drain()", [], 15, "CONTEXT_EXCEEDED"),
        ("read(); emit(failed='BUDGET_EXCEEDED'); drain()", [], 16, "BUDGET_EXCEEDED"),
        ("read(); emit(text='x'); sys.exit(7)", [], 12, "AGENT_CRASH"),
        ("read(); emit(text='x'); os.kill(os.getpid(), 9)", [], 12, "AGENT_CRASH"),
        (LONG, ["--timeout", "0.3", "--grace-period", "0.1"], 11, "TIMEOUT"),
        (LONG, ["--inactivity-timeout", "0.3", "--grace-period", "0.1"], 11, "INACTIVITY_TIMEOUT"),
    ],
)
def test_exit_code_reflects_the_failure(
    installed: Installed, body: str, flags: list[str], code: int, error_code: str
) -> None:
    done = installed.run("run", "scripted", "hi", *flags, body=body)
    assert done.returncode == code
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert done.stderr.splitlines()[-1].endswith(f"[{error_code}] (scripted)")


@pytest.mark.slow
def test_json_failure_is_reported_only_in_the_result(installed: Installed) -> None:
    done = installed.run("run", "scripted", "hi", "--json", body="read(); emit(failed='RATE_LIMITED'); drain()")
    assert (done.returncode, done.stderr) == (14, "")
    assert events_in(done.stdout)[1]["error"]["code"] == "RATE_LIMITED"  # type: ignore[index]


@pytest.mark.slow
def test_unstartable_program_is_exit_code_12_and_missing_program_is_4(installed: Installed, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    done = installed.run("run", "scripted", "hi", AMUX_SCRIPTED_EXECUTABLE=str(broken))
    assert done.returncode == 12
    assert "could not be started" in done.stderr
    missing = installed.run("run", "scripted", "hi", AMUX_SCRIPTED_EXECUTABLE="/no/such/program")
    assert (missing.returncode, missing.stdout) == (4, "")


# -- without a terminal


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--non-interactive"]])
def test_approvals_are_denied_with_a_warning_without_a_terminal(installed: Installed, flags: list[str]) -> None:
    done = installed.run("run", "scripted", "hi", *flags, body=ASK)
    assert (done.returncode, done.stdout) == (0, "it was no\n")
    (warning,) = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert "rm -rf /" in warning
    assert "--yolo" in warning
    assert "x denied no terminal to ask on" in done.stderr


@pytest.mark.slow
def test_approvals_are_denied_between_two_pipes(installed: Installed) -> None:
    done = installed.run("run", "scripted", body=ASK, stdin=b"hi")
    types, result = events_in(done.stdout)
    assert "approval_denied" in types
    assert result["text"] == "it was no"
    assert done.stderr.startswith("warning: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_denial_warning_is_printed_once(installed: Installed) -> None:
    body = (
        "read(); [(emit(ask=str(n)), read()) for n in range(3)]; emit(question='why'); read(); emit(done=True); drain()"
    )
    done = installed.run("run", "scripted", "hi", "--json", body=body)
    assert done.returncode == 0
    assert done.stderr.count("warning: ") == 1


@pytest.mark.slow
def test_only_denials_are_reported_without_questions(installed: Installed) -> None:
    denied = "! 1 request denied: rm -rf /\n"
    for flag, answer, reported in (("--yolo", "yes", ""), ("--deny", "no", denied)):
        done = installed.run("run", "scripted", "hi", "-q", flag, body=ASK)
        assert (done.stdout, done.stderr) == (f"it was {answer}\n", reported)


# -- at a terminal


def without_footer(output: str) -> str:
    """Return output without the sequences that erase the footer, which is drawn on slow machines only."""
    return re.sub(r"\r(?:\x1b\[\d+A)?\x1b\[J", "", output)


@pytest.mark.parametrize(("typed", "answer"), [("yes", "yes"), ("no because", "no"), ("\x04", "no")])
def test_approval_is_asked_at_the_terminal(installed: Installed, typed: str, answer: str) -> None:
    with installed.terminal("run", "scripted", "hi", body=ASK) as terminal:
        shown = terminal.expect("[y]es / [n]o / [a]lways? ")
        assert "permission needed (medium risk): " in shown
        assert "    rm -rf /" in shown
        terminal.type(typed if typed == "\x04" else typed + "\n")
        terminal.expect(f"it was {answer}")
        assert terminal.finish() == 0


@pytest.mark.slow
def test_invalid_answer_is_asked_again(installed: Installed) -> None:
    with installed.terminal("run", "scripted", "hi", body=ASK) as terminal:
        for nonsense in ("", "maybe", "nope"):
            terminal.expect("lways? ")
            terminal.type(nonsense + "\n")
        terminal.expect("lways? ")
        terminal.type("y\n")
        terminal.expect("it was yes")
        assert terminal.finish() == 0


@pytest.mark.slow
def test_approval_text_is_complete_and_sanitized(installed: Installed) -> None:
    hostile = "echo safe\\x1b[2K\\rrm -rf /\\n" * 40
    body = f"read(); emit(ask='{hostile}'); read(); emit(done=True); drain()"
    with installed.terminal("run", "scripted", "hi", "--no-color", body=body) as terminal:
        shown = terminal.expect("lways? ")
        assert shown.count("    echo safe<U+001B>[2K<U+000D>rm -rf /\r\n") == 40
        assert "\x1b" not in without_footer(shown)
        terminal.type("n\n")
        assert terminal.finish() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "answer"), [("2", "blue"), ("3", "3")])
def test_question_options_are_numbered(installed: Installed, typed: str, answer: str) -> None:
    body = "read(); emit(question='which?'); emit(text='so ' + read()['answer']); emit(done=True); drain()"
    flags = ["--yolo"] if typed == "2" else []  # --yolo affects approvals only
    with installed.terminal("run", "scripted", "hi", *flags, body=body) as terminal:
        shown = terminal.expect("> ")
        assert "which?\r\n  1. red\r\n  2. blue\r\n" in shown
        terminal.type(typed + "\n")
        terminal.expect(f"so {answer}")
        assert terminal.finish() == 0


@pytest.mark.slow
def test_early_keys_do_not_answer_the_question(installed: Installed) -> None:
    body = "read(); emit(text='wait'); " + "go = open(os.environ['GO']).read(); " + ASK.removeprefix("read(); ")
    go = installed.home / "go"
    os.mkfifo(go)
    with installed.terminal("run", "scripted", "hi", body=body, GO=str(go)) as terminal:
        terminal.expect("wait")
        terminal.type("y\n")
        terminal.expect("y\r\n")  # the terminal has echoed the key
        go.write_text("go")
        terminal.expect("lways? ")
        terminal.type("n\n")
        terminal.expect("it was no")
        assert terminal.finish() == 0


@pytest.mark.slow
def test_question_is_withdrawn_when_the_run_ends(installed: Installed) -> None:
    with installed.terminal("run", "scripted", "hi", "--timeout", "2", "--grace-period", "0.1", body=ASK) as terminal:
        terminal.expect("lways? ")
        terminal.expect("(no longer needed)")
        terminal.expect("TIMEOUT")
        assert terminal.finish() == 11


@pytest.mark.slow
def test_ctrl_c_at_a_question_aborts_the_run(installed: Installed) -> None:
    with installed.terminal("run", "scripted", "hi", "--grace-period", "1", body=ASK) as terminal:
        terminal.expect("lways? ")
        terminal.send_signal(signal.SIGINT)
        terminal.expect("SIGINT: aborting the run")
        terminal.expect("[ABORTED]")
        assert terminal.finish() == 13


@pytest.mark.slow
def test_approval_is_asked_at_the_terminal_with_json_output(installed: Installed) -> None:
    with installed.terminal("run", "scripted", "hi", "--json", body=ASK) as terminal:
        terminal.expect("lways? ")
        terminal.type("y\n")
        terminal.expect('"type":"run_result"')
        assert terminal.finish() == 0


@pytest.mark.slow
def test_terminal_output_is_coloured_and_sanitized(installed: Installed) -> None:
    body = "read(); emit(session='S\\x1b[2J'); emit(text='a\\x1b]0;x\\x07b\\rc'); emit(done=True); drain()"
    with installed.terminal("run", "scripted", "hi", body=body) as terminal:
        assert terminal.finish() == 0
        assert "\x1b[32m+\x1b[0m completed" in terminal.output
        assert "abc\r\n" in terminal.output
        assert "\x1b[2J" not in terminal.output
        assert "\x07" not in terminal.output
    with installed.terminal("run", "scripted", "hi", body=body, NO_COLOR="1") as terminal:
        assert terminal.finish() == 0
        assert "\x1b" not in without_footer(terminal.output)


LIVE = (
    "read(); emit(session='S'); emit(ask='rm -rf /'); read(); "
    "emit(text='# Done\\n\\nwith **care** and ' + 'words ' * 20); emit(done=True); drain()"
)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80])
def test_live_view_fits_the_terminal_and_leaves_no_footer(installed: Installed, columns: int) -> None:
    with installed.terminal("run", "scripted", "hi", body=LIVE, COLUMNS=str(columns)) as terminal:
        terminal.expect("lways? ")
        terminal.type("n\n")
        assert terminal.finish() == 0
        lines = terminal.lines
    start = lines.index("Done")
    assert lines[start + 1].startswith("with care and words")
    assert max(map(len, lines[start : start + 4])) <= columns
    assert not any("starting scripted" in line or "waiting for" in line for line in lines)
    assert "! 1 request denied: rm -rf /" in lines
    (journal,) = (line for line in lines if line.startswith("journal: "))
    assert Path(journal.removeprefix("journal: ")).is_file()  # in one piece, however long it is


@pytest.mark.slow
def test_plain_view_is_used_where_the_cursor_cannot_move(installed: Installed) -> None:
    with installed.terminal("run", "scripted", "hi", body=HELLO, TERM="dumb") as terminal:
        assert terminal.finish() == 0
        assert "\x1b" not in terminal.output
        assert terminal.lines[:2] == ["scripted, session S", "hello world"]


def test_recording_is_replayed_in_the_live_view(installed: Installed) -> None:
    assert installed.run("run", "scripted", "hi", "--yolo", body=HELLO).returncode == 0
    (journal,) = installed.home.rglob("*.journal")
    with installed.terminal("replay", journal, "--speed", "1") as terminal:
        assert terminal.finish() == 0
        assert terminal.lines[:2] == ["scripted, session S", "hello world"]
        assert terminal.lines[2].startswith("+ completed 1 turn, ")


# -- signals and closed readers


def started(installed: Installed, *arguments: str, body: str) -> "tuple[subprocess.Popen[bytes], str]":
    """Start a run, wait for its first output, and return the process and the run id."""
    run_id = str(ULID())
    process = installed.start("run", "scripted", "hi", "--run-id", run_id, *arguments, body=body)
    assert process.stdout is not None
    assert process.stdout.read(7)  # of "started", or of the first event
    return process, run_id


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "flags"),
    [(signal.SIGINT, ["--json"]), (signal.SIGINT, []), (signal.SIGTERM, []), (signal.SIGHUP, []), (signal.SIGQUIT, [])],
)
def test_signal_aborts_the_run(installed: Installed, number: signal.Signals, flags: list[str]) -> None:
    process, run_id = started(installed, "--grace-period", "0.1", *flags, body=LONG)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 13
    assert f"warning: {number.name}: aborting the run" in err.decode()
    if flags:
        assert json.loads(out.splitlines()[-1])["exitReason"] == "aborted"
    assert processes_of(run_id) == []


def test_second_signal_kills_the_run(installed: Installed) -> None:
    process, run_id = started(installed, "--json", "--grace-period", "500", body=STUBBORN)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert b"repeat to kill it" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 13
    assert json.loads(out.splitlines()[-1])["exitReason"] == "aborted"
    assert processes_of(run_id) == []


def test_ignored_signals_stay_ignored(installed: Installed) -> None:
    body = "read(); emit(text='started'); os.kill(os.getppid(), signal.SIGHUP); emit(done=True); drain()"
    command = ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *installed.command(["run", "scripted", "hi"])]
    done = subprocess.run(
        command,
        env=installed.environment(body),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0


@pytest.mark.slow
def test_closed_reader_ends_a_silent_run(installed: Installed) -> None:
    process, run_id = started(installed, "--grace-period", "0.1", body=LONG)
    with process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 141
    assert b"Traceback" not in err
    assert processes_of(run_id) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "run scripted hi --json",
        "run scripted hi",
        "replay {journal} --json",
        "replay {journal}",
        "parse {journal}",
        "runs watch",
        "runs watch --json",
        "schema",
        "--help",
        "--version",
    ],
)
def test_head_ends_any_command_quietly(installed: Installed, tmp_path: Path, command: str) -> None:
    body = "read(); [emit(text='many words on one line\\n' * 9) for _ in range(500)]; emit(done=True); drain()"
    journal = tmp_path / "my.journal"
    if "{journal}" in command:
        installed.run("run", "scripted", "hi", "-q", "--journal", journal, body=body)
    if command.startswith("runs"):
        installed.run("run", "scripted", "hi", "-q", body=body)
    line = f'"$0" {command.format(journal=journal)} | head -1 >/dev/null; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["/bin/bash", "-c", line, *installed.command([])], env=installed.environment(body), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert int(done.stdout) in ({0, 141} if command in {"--help", "--version", "schema"} else {141})
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert "error" not in done.stderr


@pytest.mark.parametrize("command", ["run scripted hi --json", "run scripted hi", "schema", "--help", "--version"])
def test_full_disk_is_reported(installed: Installed, command: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            installed.command(command.split()), env=installed.environment(HELLO), stdin=subprocess.DEVNULL,
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    error, hint = done.stderr.splitlines()[-2:]
    assert error == "error: the output cannot be written: No space left on device [OUTPUT_ERROR]"
    assert hint.startswith("hint: free space where the output goes")


def test_slow_reader_does_not_block_the_agent(installed: Installed) -> None:
    mark = installed.home / "mark"
    flood = "[emit(text='x' * 10000) for _ in range(200)]"
    body = f"read(); {flood}; open({str(mark)!r}, 'w'); emit(done=True); drain()"
    os.mkfifo(mark)
    process = installed.start("run", "scripted", "hi", "--json", "--compact", body=body)
    with mark.open() as reached:  # blocks until the agent has written everything; its output is not read yet
        reached.read()
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert len(json.loads(out.splitlines()[-1])["text"]) == 2_000_000


# -- record, demo


@pytest.mark.slow
def test_recorded_fixture_replays_identically(installed: Installed, tmp_path: Path) -> None:
    folder, work = tmp_path / "fixtures" / "hello", installed.home / "work"
    work.mkdir()
    body = "print('odd', file=sys.stderr, flush=True); " + ASK.replace(
        "'it was '", "os.getcwd() + ' ' + os.environ['HOME'] + ' '"
    )
    done = installed.run(
        "record", "scripted", "hi", "--to", folder, "--yolo", "--note", "a test", "--json", "--cwd", work, body=body
    )
    *_, last = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith(f"recorded in {folder}\n")
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "run.toml", "stdout.jsonl", "stdin.jsonl", "stdin_times.json", "stderr.txt", "times.json", "exit.json",
        "script.json", "events.jsonl",
    }  # fmt: skip
    everything = b"".join(path.read_bytes() for path in folder.iterdir()).decode()
    assert str(installed.home) not in everything
    assert '"/home/dev/project /home/dev yes"' in (folder / "stdout.jsonl").read_text()
    assert json.loads(last)["text"] == f"{work} {installed.home} yes"
    replayed = installed.run("replay", folder, "--json", "--compact").stdout
    assert replayed == (folder / "events.jsonl").read_text()
    assert installed.run("validate", folder / "events.jsonl").returncode == 0
    assert '"text":"/home/dev/project /home/dev yes"' in replayed


@pytest.mark.slow
def test_recording_of_a_real_agent_passes_the_adapter_suite(installed: Installed, tmp_path: Path) -> None:
    source, folder = REPOSITORY / "fixtures" / "claude" / "2.1.330" / "perm_allow", tmp_path / "again"
    done = installed.run("record", "replay", source, "--to", folder, "--yolo", "-q", AMUX_REPLAY_SPEED="0")
    assert done.returncode == 0, done.stderr
    recorded = Recorded(AdapterRegistry().get("claude"), folder)
    assert recorded.fixture.protocol == load_fixture(source).protocol
    assert [*checks.check_is_understood(recorded), *checks.check_conforms(recorded), *check_golden(recorded)] == []


@pytest.mark.slow
def test_record_keeps_the_fixture_of_a_failed_run(installed: Installed, tmp_path: Path) -> None:
    folder = tmp_path / "failed"
    done = installed.run("record", "scripted", "hi", "--to", folder, body="read(); sys.exit(3)")
    assert done.returncode == 12
    assert json.loads((folder / "exit.json").read_text())["code"] == 3
    again = installed.run("record", "scripted", "hi", "--to", folder, body=HELLO)
    assert again.returncode == 2
    assert installed.run("record", "scripted", "hi", "--to", folder, "--force", body=HELLO).returncode == 0
    assert json.loads((folder / "exit.json").read_text())["code"] == 0


@pytest.mark.slow
def test_recorded_demo_shows_the_session_and_the_next_steps(installed: Installed) -> None:
    done = installed.run("demo", "--recorded", AMUX_REPLAY_SPEED="0")
    assert done.returncode == 0
    assert done.stdout
    assert "completed" in done.stderr
    assert "--json" in done.stderr
    assert "claude is not installed" in done.stderr


@pytest.mark.slow
def test_next_steps_of_the_demo_are_broken_between_words_at_a_terminal(installed: Installed) -> None:
    with installed.terminal("demo", "--recorded", AMUX_REPLAY_SPEED="0") as terminal:
        terminal.resize(60, 40)
        terminal.expect("claude is not installed (no claude on PATH); try: npm\r\n  install -g")
        assert terminal.wait() == 0


@pytest.mark.slow
def test_recorded_session_replays_through_the_whole_command(installed: Installed) -> None:
    done = installed.run("run", "replay", "demo", "--json", "--compact", AMUX_REPLAY_SPEED="0")
    types, result = events_in(done.stdout)
    assert done.returncode == 0
    assert {"file_patch", "shell_exit", "thinking_delta", "tool_result"} <= set(types)
    assert result["ledger"]["unknown"] == {}  # type: ignore[index]


# -- closed streams


@pytest.mark.slow
@pytest.mark.parametrize(
    ("closed", "code", "out"), [("<&-", 0, "hello world\n"), (">&-", 0, ""), ("2>&-", 0, "hello world\n")]
)
def test_closed_stream_is_treated_as_empty(installed: Installed, closed: str, code: int, out: str) -> None:
    command = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *installed.command(["run", "scripted", "hi", "-q"])]
    done = subprocess.run(
        command, env=installed.environment(HELLO), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, out, "")
