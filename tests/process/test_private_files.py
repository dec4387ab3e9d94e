"""What the programs keep for a user is accessible to that user only, whatever the umask is."""

import os
import subprocess
import sys
from pathlib import Path

PATIENCE = 60.0  # seconds
AMUX = Path(sys.executable).with_name("amux")


def test_umask_does_not_open_our_directories(tmp_path: Path) -> None:
    (tmp_path / "script.toml").write_text('[[steps]]\ntext = "hello"\n', "utf-8")
    home = tmp_path / "home"
    commands = (
        ["run", "native", "--model", "scripted:script.toml", "--yolo", "hi"],
        ["sessions", "list"],
        ["profiles", "set", "fast", "model=x"],
        ["config", "set", "native", "model", "scripted:script.toml"],
    )
    for command in commands:
        done = subprocess.run(
            [AMUX, *command],
            cwd=tmp_path,
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
            umask=0,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    found = [path for path in home.rglob("*") if not path.is_symlink()]
    assert {path.relative_to(home).parts[0] for path in found} >= {".agent-mux", ".local"}
    assert [str(path) for path in found if path.stat().st_mode & 0o077] == []
