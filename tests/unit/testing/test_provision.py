"""Provisioning with an npm of ours, which installs a shell script that prints a version."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux_testing import provision as module
from agent_mux_testing.live import pin_of
from agent_mux_testing.provision import find_agent, provision

BOUND = 60.0
VERSION = pin_of("codex").version
FOLDER = f"codex-{VERSION}"
NPM = """\
#!/bin/sh
echo "$@" >> "$NPM_LOG"
[ -z "$NPM_FAILS" ] || { echo "npm error 404" >&2; exit 1; }
for argument; do case "$argument" in --prefix=*) prefix="${argument#--prefix=}";; esac; done
folder="$prefix/node_modules/@openai/codex/vendor/some-triple/bin"
mkdir -p "$folder"
printf '#!/bin/sh\\necho codex-cli %s\\n' "$NPM_VERSION" > "$folder/codex"
chmod +x "$folder/codex"
"""


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of an npm that works."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "npm").write_text(NPM)
    (programs / "npm").chmod(0o755)
    log = tmp_path / "npm.log"
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.defpath}")
    monkeypatch.setenv("NPM_LOG", str(log))
    monkeypatch.setenv("NPM_VERSION", pin_of("codex").version)
    return log


def test_the_pinned_version_is_installed_once_and_found(npm: Path, tmp_path: Path) -> None:
    assert find_agent("codex", cache=tmp_path) is None
    found = provision("codex", cache=tmp_path)
    assert provision("codex", cache=tmp_path) == found == find_agent("codex", cache=tmp_path)
    assert found.program.is_relative_to(tmp_path / FOLDER)
    assert len(npm.read_text().splitlines()) == 1
    assert "--ignore-scripts" in npm.read_text()
    assert pin_of("codex").npm[0].split("{")[0] in npm.read_text()


def test_the_embedded_agent_of_another_checkout_is_not_ours(tmp_path: Path) -> None:
    found = provision("native", cache=tmp_path)
    ours = found.program.read_text()
    found.program.write_text(ours.replace("/src", "/elsewhere/src"))
    assert find_agent("native", cache=tmp_path) is None
    assert provision("native", cache=tmp_path) == found
    assert found.program.read_text() == ours


def test_another_version_is_refused_and_not_kept(npm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_VERSION", "0.1.0")
    with pytest.raises(AgentMuxError, match=f"has the version 'codex-cli 0.1.0', not {VERSION}"):
        provision("codex", cache=tmp_path)
    assert find_agent("codex", cache=tmp_path) is None


def test_a_failing_npm_is_quoted(npm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_FAILS", "1")
    with pytest.raises(AgentMuxError, match="npm error 404"):
        provision("codex", cache=tmp_path)


def test_the_error_of_a_missing_npm_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AgentMuxError, match=r"npm, which is not on PATH; install Node\.js"):
        provision("codex", cache=tmp_path)


def test_an_unpinned_agent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match=r"no live kit for 'nobody'; agents with kits: .*codex"):
        provision("nobody", cache=tmp_path)


def test_a_broken_installation_is_named(npm: Path, tmp_path: Path) -> None:
    program = provision("codex", cache=tmp_path).program
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(AgentMuxError, match="and try again"):
        provision("codex", cache=tmp_path)
    shutil.rmtree(tmp_path / FOLDER)
    assert provision("codex", cache=tmp_path).program.exists()


def test_two_installers_do_not_meet(npm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT", 0.0)
    with (tmp_path / f"{FOLDER}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(AgentMuxError, match="another installation still holds"):
            provision("codex", cache=tmp_path)
    assert provision("codex", cache=tmp_path).program.exists()


@pytest.mark.slow
def test_the_command_prints_the_program(npm: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "AMUX_AGENT_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "agent_mux_testing.provision"]
    done = subprocess.run(
        [*command, "codex"], env=environment, capture_output=True, text=True, timeout=BOUND, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    agent, version, program = done.stdout.split()
    assert (agent, version) == ("codex", VERSION)
    assert Path(program).exists()
    bad = subprocess.run(
        [*command, "nobody"], env=environment, capture_output=True, text=True, timeout=BOUND, check=False
    )
    assert bad.returncode == 1
    assert "no live kit for" in bad.stderr
