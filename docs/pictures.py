"""Draw the terminal pictures of the documentation: `python docs/pictures.py [--check] [NAME ...]`.

A shell at a pseudo-terminal runs a command, and the picture shows what the terminal received. In place of the model and
the CLI, the player plays a recording of the real CLI; its approval requests are answered here. Nothing is edited: only
durations differ between two runs, so a picture that differs in nothing else is not written again.
"""
# ruff: noqa: INP001  # a script, not a package

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pexpect

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from docs.terminal_drawing import draw, shown_text  # noqa: E402  # needs the path above

IMAGES = ROOT / "docs" / "images"
RECORDINGS = ROOT / "fixtures" / "claude" / "2.1.330"
CODEX_RECORDING = ROOT / "fixtures" / "codex" / "0.169.0" / "as_approval_accept"
ROWS = 60
TIMEOUT = 60.0  # seconds for each step of a conversation
PATIENCE = 60  # seconds that the player waits for an answer
SHELL_PROMPT = "$ "
QUESTION = "lways? "
REACTION = 0.3  # seconds from a question to its answer: a person is not faster
BIN = Path(sys.executable).parent
GIT = shutil.which("git") or "git"


@dataclass(frozen=True)
class Scene:
    """A command, and the moment at which the terminal is drawn."""

    name: str
    alternative: str
    """What the picture shows, for people who cannot see it."""
    command: str
    recording: str | None = None
    others: Mapping[str, Path] = field(default_factory=dict)
    """Recordings of further agents by their programs."""
    answers: Sequence[str] = ()
    until: str | None = None
    """A pattern of the output at which the picture is taken; without it, the command runs to its end."""
    ending: str | None = None
    """Keys that end the command after the picture."""
    before: str | None = None
    """A command that starts a detached run before the picture begins. The run is aborted afterwards."""
    columns: int = 80
    is_stable: bool = True
    """False: two drawings differ, for example in which of two agents starts first; only its existence is checked."""
    has_repository: bool = False
    """Whether the shell is in a git repository with a commit."""
    speed: float | None = None
    """Speed of the player: 1 is as recorded; None: as recorded for drawing, without pauses for checking."""


_WANTS = r"{}-1[^\r\n]*wants.*?{}-1[^\r\n]*wants"
SCENES = (
    Scene(
        "terminal",
        "amux run claude: a test run, approvals, an edit, and the result",
        'amux run claude "Fix the failing test"',
        "fix_failing_test",
        answers=("a", "y"),  # as recorded: always allow the tests, allow one edit
    ),
    Scene(
        "live-run",
        "amux run claude while a command runs: finished calls above, the running one with its time and tokens below",
        'amux run claude "Read in.txt, and print one and two" --yolo',
        "tool_parallel",
        until=r"(?s)two\r\n.*sleep 1; echo one [^\r\n]*m[12] s\x1b\[0m\r\n[^\r\n]*\x1b\[0m",
        speed=0.25,  # the command takes 4 s then
    ),
    Scene(
        "approval",
        "amux run claude asks for permission to edit a file and shows the diff",
        'amux run claude "Fix the failing test"',
        "fix_failing_test",
        answers=("a",),
        until=r"lways\? ",
    ),
    Scene(
        "failure",
        "amux run claude: retries after an expired key, and the error with the next step",
        'amux run claude "do the thing" --yolo',
        "err_after_tool_401",
    ),
    *(
        Scene(
            f"runs-watch-{columns}",
            f"amux runs watch in {columns} columns: a run of another shell, which asks for permission to edit a file",
            "amux runs watch",
            "fix_failing_test",
            answers=("a",),
            until=r"lways\? ",
            before='amux run claude "Fix the failing test" --detach',
            columns=columns,
        )
        for columns in (80, 60)
    ),
    Scene(
        "compare-lanes",
        "amux compare at work: a lane for each of two agents, which both ask for permission, and the keys",
        'amux compare "Fix the failing test" --with claude --with codex --check "test -f fixed" --seed 7',
        "fix_failing_test",
        others={"codex": CODEX_RECORDING},
        until=rf"(?s)(?:{_WANTS.format('claude', 'codex')}|{_WANTS.format('codex', 'claude')}).*?q stop",
        ending="q",
        has_repository=True,
        is_stable=False,
    ),
    Scene("help-80", "amux --help in 80 columns", "amux --help", columns=80),
    Scene("help-60", "amux --help in 60 columns", "amux --help", columns=60),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures, or check them with `--check`. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a picture is stale")
    parser.add_argument("names", nargs="*", choices=[[], *(scene.name for scene in SCENES)], help="default: all")
    options = parser.parse_args(arguments)
    scenes = [scene for scene in SCENES if not options.names or scene.name in options.names]
    stale = [scene.name for scene in scenes if not update(scene, check=options.check)]
    for name in stale:
        sys.stderr.write(f"{path_of(name)} is stale; run: make pictures\n")
    return 1 if stale else 0


def path_of(name: str) -> Path:
    """Return the file of a picture."""
    return IMAGES / f"{name}.svg"


def update(scene: Scene, *, check: bool) -> bool:
    """Write a picture if it is stale. Return False if it is stale and `check` forbids to write it."""
    if check and not scene.is_stable:
        return path_of(scene.name).is_file()
    speed = scene.speed if scene.speed is not None else 0 if check else 1
    drawn = draw(record_session(scene, speed=speed), scene.columns, scene.alternative)
    path = path_of(scene.name)
    if path.is_file() and shown_text(path.read_text("utf-8")) == shown_text(drawn):
        return True
    if not check:
        path.write_text(drawn, encoding="utf-8")
    return not check


def record_session(scene: Scene, *, speed: float) -> str:
    """Return what a terminal receives while the command of a scene runs."""
    with tempfile.TemporaryDirectory() as home:
        environment, run_id = _environment(Path(home), scene, speed), None
        shell = pexpect.spawn(
            "/bin/sh",
            env=environment,
            cwd=_repository(Path(home)) if scene.has_repository else home,
            dimensions=(ROWS, scene.columns),
            encoding="utf-8",
            timeout=TIMEOUT,
        )
        received = StringIO()
        try:
            shell.expect_exact(SHELL_PROMPT)
            if scene.before is not None:
                shell.sendline(scene.before)
                shell.expect(rf"\n([0-9A-Z]{{26}})\r\n{re.escape(SHELL_PROMPT)}")
                run_id = shell.match.group(1)
            shell.logfile_read = received
            shell.sendline(scene.command)
            for answer in scene.answers:
                shell.expect_exact(QUESTION)
                time.sleep(REACTION)
                shell.sendline(answer)
            shell.expect(scene.until or rf"\n{re.escape(SHELL_PROMPT)}")
            if scene.ending is not None:
                shell.send(scene.ending)
                shell.expect(rf"\n{re.escape(SHELL_PROMPT)}")
        finally:
            try:
                if run_id is not None:
                    _abort(run_id, environment)  # before its viewer ends, which would decline a request
            finally:
                shell.close(force=True)
        text = SHELL_PROMPT + received.getvalue()
        if scene.until is not None:  # without what arrived together with the end of the pattern
            return text[: _end_of(scene, text)]
        return text.removesuffix(SHELL_PROMPT)


def _abort(run_id: str, environment: Mapping[str, str]) -> None:
    command = (BIN / "amux", "runs", "abort", run_id)
    done = subprocess.run(command, env=environment, check=False, capture_output=True, timeout=TIMEOUT)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.decode(errors='replace')}")


def _end_of(scene: Scene, text: str) -> int:
    """Return the end of the pattern's first match after the answers."""
    start = 0
    for _ in scene.answers:
        start = text.index(QUESTION, start) + len(QUESTION)
    found = re.compile(scene.until or "").search(text, start)
    return len(text) if found is None else found.end()


def _environment(home: Path, scene: Scene, speed: float) -> dict[str, str]:
    """Return the environment of the shell: a home, and the player as the agent's program."""
    settings = home / ".agent-mux"
    settings.mkdir()
    (settings / "config.json").write_text(json.dumps({"journal": scene.before is not None}), "utf-8")
    environment = {
        "AGENT_MUX_RUNTIME_DIR": str(home / "runtime"),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": f"{BIN}:{os.defpath}",
        "PS1": SHELL_PROMPT,
        "TERM": "xterm-256color",
    }
    if scene.recording is not None:
        environment["AMUX_CLAUDE_EXECUTABLE"] = str(_player(home, "claude", RECORDINGS / scene.recording, speed))
    for name, recording in scene.others.items():
        environment[f"AMUX_{name.upper()}_EXECUTABLE"] = str(_player(home, name, recording, speed))
    return environment


def _repository(home: Path) -> Path:
    """Create a git repository with one commit."""
    place = home / "project"
    place.mkdir()
    (place / "main.py").write_text("print('hello')\n", "utf-8")
    identity = ("-c", "user.name=Someone", "-c", "user.email=someone@example.com")
    for words in (("init", "--quiet"), ("add", "--all"), (*identity, "commit", "--quiet", "--message=Start")):
        subprocess.run((GIT, *words), cwd=place, check=True, capture_output=True, timeout=TIMEOUT)
    return place


def _player(home: Path, name: str, recording: Path, speed: float) -> Path:
    """Write a program that answers `--version` as recorded, and otherwise plays the recording."""
    package = find_spec("agent_mux_adapters.replay")
    if package is None or package.origin is None:
        raise ImportError("agent_mux_adapters.replay is not installed")
    play = (sys.executable, "-I", "-S", Path(package.origin).with_name("player.py"), recording, speed, PATIENCE)
    version = recording.parent.name
    program = home / name
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec echo {version}\nexec {shlex.join(map(str, play))}\n', "utf-8"
    )
    program.chmod(0o755)
    return program


if __name__ == "__main__":
    sys.exit(main())
