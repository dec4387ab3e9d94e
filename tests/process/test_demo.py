"""`amux demo` with real processes: the embedded agent, its tools, git and unittest."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.process.installed_command import Installed

from agent_mux.cli import demo_command
from agent_mux.cli.main import main
from agent_mux.process.marker import processes_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@pytest.mark.slow
def test_demo_repairs_a_repository_and_leaves_nothing_behind(tmp_path: Path) -> None:
    long = tmp_path / ("a" * 150)  # paths and commands are printed whole
    long.mkdir()
    installed = Installed(long)
    config, temporary = installed.home / "config", tmp_path / "temporary"
    for directory in (config, temporary):
        directory.mkdir()
    (config / "config.json").write_text(json.dumps({"defaultModel": "no such model", "runIndex": True}))
    done = installed.run("demo", TMPDIR=str(temporary), GIT_DIR="/nowhere")
    assert done.returncode == 0, done.stderr
    assert "Tests that pass now: 1, and none fails." in done.stdout
    _, shown = done.stderr.split("Changes\n")
    assert "-    return a - b\n+    return a + b\n" in shown
    assert shown.index("Ran 1 test in ") < shown.index("\nOK\n")
    [journal] = (config / "runs").iterdir()
    assert f"replay {journal} --json" in shown
    assert "claude is not installed" in shown
    assert processes_of(journal.stem) == []
    assert list(temporary.iterdir()) == []
    assert {path.name for path in installed.home.iterdir()} == {"config"}, "no session among those of the user"
    replayed = installed.run("replay", journal, "--json").stdout
    assert '"type":"file_patch"' in replayed or '"type":"file_write"' in replayed


@pytest.mark.slow
def test_demo_fails_if_the_agent_repairs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"steps": [{"text": "It is all fine."}]}))
    monkeypatch.setattr(demo_command, "MODEL", f"scripted:{script}")
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = main(["demo", "--keep"])
    captured = capfd.readouterr()
    assert (code, captured.out) == (1, "It is all fine.\n")
    assert "FAILED (failures=1)" in captured.err
    assert "error: the agent did not repair the repository: its tests fail (exit code 1)" in captured.err
    [kept] = tmp_path.glob("amux-demo-*")
    assert captured.err.endswith(f"Kept the repository: {kept}\n")


@pytest.mark.parametrize(
    ("number", "before_the_run"),
    [
        (signal.SIGTERM, True),
        (signal.SIGHUP, True),
        (signal.SIGQUIT, True),
        (signal.SIGINT, True),
        (signal.SIGTERM, False),
    ],
)
def test_signal_before_or_after_the_run_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    number: signal.Signals,
    before_the_run: bool,
) -> None:
    def end(*_: object) -> None:
        os.kill(os.getpid(), number)
        signal.sigtimedwait([], 30)  # until the signal arrives
        raise AssertionError("the signal did not arrive")

    script = tmp_path / "script.json"
    script.write_text(json.dumps({"steps": [{"text": "It is all fine."}]}))
    monkeypatch.setattr(demo_command, "MODEL", f"scripted:{script}")
    monkeypatch.setattr(demo_command, "_run_options" if before_the_run else "_print_outcome", end)
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = signal.getsignal(number)
    assert main(["demo"]) == 13
    assert "[ABORTED]" in capfd.readouterr().err
    assert list(tmp_path.glob("amux-demo-*")) == []
    assert signal.getsignal(number) is before
