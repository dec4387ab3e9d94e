"""`amux doctor --drift`: no findings for the pinned CLI; findings for a changed CLI, with exit code 1."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.e2e import changed_cli
from tests.e2e.harness import LiveAgent
from tests.e2e.terminal import AMUX
from tests.e2e.ways import ALL_AGENTS

MOST_SCENARIOS = 8


def doctor(live: LiveAgent, *arguments: str, program: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run the drift check with this program as the agent's CLI."""
    provisioned = live.provisioned
    environment = {
        "PATH": provisioned.path, "HOME": str(live.home), "LANG": "C.UTF-8",
        live.adapter.executable_variable: str(program or provisioned.program),
    }  # fmt: skip
    live.home.mkdir(exist_ok=True)
    return subprocess.run(
        [AMUX, "doctor", "--drift", live.agent, *arguments],
        env=environment, capture_output=True, text=True, timeout=MOST_SCENARIOS * live.kit.patience, check=False,
    )  # fmt: skip


@ALL_AGENTS
def test_no_drift(live: LiveAgent) -> None:
    if live.provisioned.version != live.kit.pins[0].version:
        pytest.skip("the baseline is of the newest version")
    done = doctor(live)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "no drift in" in done.stdout


@ALL_AGENTS
def test_drift(live: LiveAgent, tmp_path: Path) -> None:
    """An additional field in the output and an additional flag are reported."""
    done = doctor(live, "--json", program=changed_cli.install(live.provisioned.program, tmp_path / "other"))
    assert done.returncode == 1, done.stderr
    findings = [row["message"] for row in json.loads(done.stdout)["data"]]
    assert f"new flag {changed_cli.FLAG}" in findings
    assert any(finding.endswith(f" has a new field {changed_cli.FIELD}") for finding in findings)
    assert not any("the run ended as" in finding for finding in findings)


def test_failing_program_is_reported_as_crashed(live: LiveAgent, tmp_path: Path) -> None:
    """The crash is reported, not each missing part of the output."""
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'cannot run' >&2\nexit 1\n")
    broken.chmod(0o755)
    done = doctor(live, program=broken)
    assert done.returncode == 1, done.stderr
    assert all("the run ended as crashed" in line for line in done.stdout.splitlines())
