"""Checks that are commands: verdicts, limits, hostile output, processes that stay, JUnit reports."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_mux.compare.checks.definitions import CommandCheck, read_command
from agent_mux.compare.checks.programs import MAX_TAIL
from agent_mux.compare.checks.running import MAX_TESTS, run_checks
from agent_mux.compare.records import CheckResult
from agent_mux.errors import AgentMuxError

PASSING = '<testsuite><testcase classname="a" name="b"/></testsuite>'
FAILING = '<testsuite><testcase classname="a" name="b"><failure message="no"/></testcase></testsuite>'


def run_command(
    checkout: Path,
    *command: str,
    timeout: float = 60,
    junit: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> CheckResult:
    check = CommandCheck(name="it", command=command, timeout=timeout, junit=junit)
    [found] = run_checks([check], checkout, environ)
    return found


def run_code(checkout: Path, code: str, **options: float | str) -> CheckResult:
    return run_command(checkout, sys.executable, "-c", code, **options)  # type: ignore[arg-type]


def write_report(text: str) -> str:
    return f"open('report.xml', 'w').write({text!r})"


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_expected_exit_code_passes(tmp_path: Path) -> None:
    found = run_code(tmp_path, "print('fine')")
    assert (found.name, found.status, found.exit_code, found.output, found.detail) == ("it", "pass", 0, "fine\n", "")
    [other] = run_checks([CommandCheck(name="x", command=("sh", "-c", "exit 3"), exit_code=3)], tmp_path, os.environ)
    assert other.status == "pass"


def test_other_exit_code_fails_with_its_number(tmp_path: Path) -> None:
    found = run_code(tmp_path, "import sys; print('why', file=sys.stderr); sys.exit(2)")
    assert (found.status, found.exit_code, found.output, found.detail) == ("fail", 2, "why\n", "exit code 2")


def test_signal_is_named(tmp_path: Path) -> None:
    found = run_code(tmp_path, "import os; os.kill(os.getpid(), 9)")
    assert (found.status, found.exit_code, found.detail) == ("fail", -9, "ended by SIGKILL")


def test_missing_program_is_an_error_that_says_nothing_about_the_agent(tmp_path: Path) -> None:
    found = run_command(tmp_path, "no-such-program-of-ours")
    assert found.status == "error"
    assert "no-such-program-of-ours is not installed" in found.detail


def test_missing_program_of_the_checkout_fails_because_an_agent_can_delete_it(tmp_path: Path) -> None:
    assert run_command(tmp_path, "./check.sh").detail == "the program ./check.sh does not exist in the checkout"
    (tmp_path / "check.sh").write_text("exit 0\n")
    found = run_command(tmp_path, "./check.sh")
    assert (found.status, found.detail) == ("fail", "the program ./check.sh is not executable in the checkout")
    (tmp_path / "check.sh").chmod(0o755)
    assert run_command(tmp_path, "./check.sh").status == "fail"  # no first line: it cannot be executed
    (tmp_path / "check.sh").write_text("#!/bin/sh\nexit 0\n")
    assert run_command(tmp_path, "./check.sh").status == "pass"


def test_program_is_not_looked_up_in_relative_directories_of_path(tmp_path: Path) -> None:
    (tmp_path / "planted").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "planted").chmod(0o755)
    assert run_command(tmp_path, "planted", environ={**os.environ, "PATH": f".:{os.environ['PATH']}"}).status == "error"


@pytest.mark.slow
def test_check_that_ignores_sigterm_is_killed_after_its_limit(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    began = time.monotonic()
    found = run_code(tmp_path, code, timeout=3)
    assert (found.status, found.exit_code) == ("timeout", None)
    assert found.detail == "it did not end within 3 s"
    assert time.monotonic() - began < 60


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="daemons are found by /proc")
def test_daemon_that_holds_the_output_open_does_not_delay_the_check_and_is_ended(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys\n"
        "sleeper = subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(15, signal.SIG_IGN); "
        "time.sleep(600)'], start_new_session=True, env={})\n"
        "print(sleeper.pid, flush=True)\n"
        "os._exit(0)"
    )
    began = time.monotonic()
    found = run_code(tmp_path, code, timeout=300)
    assert found.status == "pass"
    assert time.monotonic() - began < 60
    assert not is_alive(int(found.output))


def test_huge_output_is_cut_to_its_end(tmp_path: Path) -> None:
    found = run_code(tmp_path, "import sys; sys.stdout.write('x' * (20 << 20)); print('the end')")
    assert found.status == "pass"
    assert len(found.output) == MAX_TAIL
    assert found.output.endswith("the end\n")


def test_output_that_is_no_utf8_is_replaced(tmp_path: Path) -> None:
    found = run_code(tmp_path, "import sys; sys.stdout.buffer.write(b'a\\xff\\xfeb')")
    assert found.output == "a\ufffd\ufffdb"


def test_environment_is_the_callers_with_a_temporary_directory_of_its_own(tmp_path: Path) -> None:
    code = (
        "import os, tempfile; print(tempfile.gettempdir()); print(os.environ['PYTHONDONTWRITEBYTECODE'], "
        "os.environ.get('GIT_DIR'), os.environ['OWN'])"
    )
    environ = {**os.environ, "GIT_DIR": "/elsewhere", "OWN": "1"}
    [directory, rest] = run_code(tmp_path, code, environ=environ).output.splitlines()  # type: ignore[arg-type]
    assert rest == "1 None 1"
    assert not Path(directory).exists()
    assert Path(directory).name.startswith("agent-mux-check-")


def test_secrets_of_the_environment_are_hidden_in_output(tmp_path: Path) -> None:
    environ = {**os.environ, "SERVICE_TOKEN": "kT9vQ2xW7zR4mN8b"}
    found = run_code(tmp_path, "import os; print(os.environ['SERVICE_TOKEN'])", environ=environ)  # type: ignore[arg-type]
    assert "kT9vQ2xW7zR4mN8b" not in found.output


def test_unwanted_check_is_ended(tmp_path: Path) -> None:
    answers = iter([True, True, True])
    check = CommandCheck(name="it", command=(sys.executable, "-c", "import time; time.sleep(600)"))
    with pytest.raises(AgentMuxError) as caught:
        run_checks([check], tmp_path, os.environ, is_wanted=lambda: next(answers, False))
    assert caught.value.code == "ABORTED"


def test_results_have_the_order_of_the_definitions(tmp_path: Path) -> None:
    checks = [CommandCheck(name=name, command=("sh", "-c", f"exit {code}")) for name, code in (("b", 1), ("a", 0))]
    assert [(found.name, found.status) for found in run_checks(checks, tmp_path, os.environ)] == [
        ("b", "fail"),
        ("a", "pass"),
    ]


def test_report_gives_the_results_of_tests(tmp_path: Path) -> None:
    found = run_code(tmp_path, write_report(PASSING), junit="report.xml")
    assert found.status == "pass"
    assert [(test.name, test.status) for test in found.tests] == [("a::b", "pass")]


def test_failed_test_of_a_report_fails_whatever_the_exit_code_is(tmp_path: Path) -> None:
    found = run_code(tmp_path, write_report(FAILING), junit="report.xml")
    assert (found.status, found.exit_code, found.detail) == ("fail", 0, "1 of 1 tests failed: a::b")
    assert found.tests[0].message == "no"


def test_report_of_the_agent_is_removed_before_the_check(tmp_path: Path) -> None:
    """A patch contains a report of success, and code that ends the process early with exit code 0."""
    (tmp_path / "report.xml").write_text(PASSING)
    found = run_code(tmp_path, "import os; os._exit(0)", junit="report.xml")
    assert found.status == "fail"
    assert found.detail.startswith("exit code 0, but the report report.xml cannot be used:")


def test_report_is_never_removed_or_read_outside_of_the_checkout(tmp_path: Path) -> None:
    outside, checkout = tmp_path / "outside", tmp_path / "checkout"
    outside.mkdir()
    checkout.mkdir()
    (outside / "report.xml").write_text(PASSING)
    (checkout / "out").symlink_to(outside)
    assert run_code(checkout, "pass", junit="out/report.xml").status == "fail"
    (checkout / "report.xml").symlink_to(outside / "report.xml")
    assert run_code(checkout, "pass", junit="report.xml").status == "fail"
    code = "import os; os.symlink('../outside/report.xml', 'report.xml')"
    assert run_code(checkout, code, junit="report.xml").status == "fail"
    assert (outside / "report.xml").read_text() == PASSING


@pytest.mark.parametrize(
    ("report", "detail"),
    [
        ("<testsuites/>", "the report has no tests"),
        ('<testsuite><testcase name="a"><skipped/></testcase></testsuite>', "all 1 tests were skipped"),
    ],
)
def test_report_without_executed_tests_fails(tmp_path: Path, report: str, detail: str) -> None:
    found = run_code(tmp_path, write_report(report), junit="report.xml")
    assert (found.status, found.detail) == ("fail", detail)


def test_command_of_a_flag_is_split_like_a_shell() -> None:
    check = read_command("pytest -q 'a b' --junitxml=out/report.xml")
    assert check.command == ("pytest", "-q", "a b", "--junitxml=out/report.xml")
    assert check.name == "pytest -q 'a b' --junitxml=out/report.xml"
    assert check.junit == "out/report.xml"
    assert read_command("pytest --junitxml r.xml").junit == "r.xml"
    assert read_command("pytest --junitxml /tmp/r.xml").junit is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the command is empty; name a program"),
        ("pytest 'a", "No closing quotation; correct the quotes"),
        ("npm test && npm run lint", "'&&' needs a shell, and none is run; write `sh -c '...'`"),
        ("CI=1 pytest", "'CI=1' is not a program; to set a variable, begin with `env`"),
    ],
)
def test_command_of_a_flag_with_a_mistake_is_refused(text: str, problem: str) -> None:
    with pytest.raises(AgentMuxError) as caught:
        read_command(text)
    assert (caught.value.code, caught.value.message) == ("VALIDATION_ERROR", f"--check {text!r}: {problem}")


def test_secrets_and_control_sequences_in_reports_and_output_are_not_stored(tmp_path: Path) -> None:
    secret = "sk-ant-REDACTME-0123456789abcdef"  # noqa: S105
    report = (
        "<testsuite><testcase name='a\u202e " + secret + "'><failure message='" + secret + " \u202e x'/></testcase>"
        + "".join(f"<testcase name='t{number:05}'/>" for number in range(3000)) + "</testsuite>"
    )  # fmt: skip
    (tmp_path / "made.xml").write_text(report)
    script = f"cp made.xml report.xml; printf 'x\\033[31m{secret[:9]}\\033[0m{secret[9:]}\\n'"
    check = CommandCheck(name="x", command=("sh", "-c", script), junit="report.xml")
    [found] = run_checks([check], tmp_path, {**os.environ, "ANTHROPIC_API_KEY": secret})
    stored = f"{found}"
    assert secret not in stored
    assert "\x1b" not in found.output
    assert "\u202e" not in "".join(test.name + test.message + found.detail for test in found.tests)
    assert found.status == "fail"
    assert len(found.tests) == MAX_TESTS
    assert [test.status for test in found.tests].count("fail") == 1
