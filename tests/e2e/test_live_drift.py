"""`amux doctor --drift`: none with the pinned CLI; what is not as it was is told, with exit code 1."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.harness import Live
from tests.e2e.terminal import AMUX
from tests.e2e.ways import EVERYONE

BOUND = 400.0


def doctor(live: Live, *arguments: str, program: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run it as somebody with this CLI on PATH."""
    provisioned = live.provisioned
    environment = {
        "PATH": provisioned.path, "HOME": str(live.home), "LANG": "C.UTF-8",
        live.executable_variable: str(program or provisioned.program),
    }  # fmt: skip
    live.home.mkdir(exist_ok=True)
    return subprocess.run(
        [AMUX, "doctor", "--drift", live.agent, *arguments],
        env=environment, capture_output=True, text=True, timeout=BOUND, check=False,
    )  # fmt: skip


@EVERYONE
def test_no_drift(live: Live) -> None:
    if live.provisioned.version != live.kit.pins[0].version:
        pytest.skip("the baseline is of the newest version")
    done = doctor(live)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "no drift in" in done.stdout


def test_drift(live: Live, tmp_path: Path) -> None:
    """A CLI that prints a field that it did not print before, and has another flag."""
    wrapper = tmp_path / "other"
    wrapper.write_text(
        f"#!{sys.executable}\nimport subprocess, sys\n"
        f"program = {str(live.provisioned.program)!r}\n"
        "child = subprocess.Popen([program, *sys.argv[1:]], stdout=subprocess.PIPE)\n"
        "for line in child.stdout:\n"
        "    line = line.replace(b'{\"', b'{\"brandNew\":1,\"', 1) if line.startswith(b'{\"') else line\n"
        "    sys.stdout.buffer.write(line)\n    sys.stdout.buffer.flush()\n"
        "if '--help' in sys.argv: print('--brand-new')\n"
        "sys.exit(child.wait())\n"
    )
    wrapper.chmod(0o755)
    done = doctor(live, "--json", program=wrapper)
    told = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    said = [row["said"] for row in told["data"]]
    assert "new flag --brand-new" in said
    assert any("has a new field brandNew" in finding for finding in said)
