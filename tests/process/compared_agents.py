"""Agents of comparisons whose behaviour is Python code, and the repository that they work on."""

import subprocess
from pathlib import Path
from typing import Any

from tests.process.scripted import scripted_adapter

from agent_mux import AgentMux
from agent_mux.sdk.registry import AdapterRegistry

FIX = "open('calc.py', 'w').write('def add(a, b):\\n    return a + b\\n')"
SAY = "emit(text='done'); emit(done=1); drain()"
TEST_FILE = """\
import unittest
from calc import add


class Add(unittest.TestCase):
    def test(self):
        self.assertEqual(add(2, 2), 4)
"""
CHECK = "python3 -m unittest -q"

BODIES: dict[str, str] = {
    "fixes": f"read(); {FIX}; {SAY}",
    "nothing": f"read(); {SAY}",
    "edits-tests": f"read(); open('test_calc.py', 'w').write('import unittest\\n'); {SAY}",
    "crashes": "read(); emit(text='x'); sys.exit(3)",
    "crashes-after-fix": f"read(); emit(text='x'); {FIX}; sys.exit(3)",
    "no-result": "read(); emit(text='x')",
    "hangs": "signal.signal(signal.SIGTERM, signal.SIG_IGN); read(); emit(text='x')\nwhile True: time.sleep(1)",
    "limited": "read(); emit(failed='RATE_LIMITED'); drain(); sys.exit(1)",
    "limited-quietly": "read(); emit(failed='RATE_LIMITED'); drain()",
    "offline": "read(); emit(failed='NETWORK_ERROR'); drain()",
    "denied": "read(); emit(ask='rm'); read(); emit(text='I may not'); emit(done=1); drain()",
    "leaves-server": (
        f"read(); {FIX}; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'],"
        f" start_new_session=True); {SAY}"
    ),
    "searches-history": (
        'read(); subprocess.run("git show solution:calc.py > calc.tmp && mv calc.tmp calc.py; git log --all --oneline;'
        ' git checkout $(git rev-list --all -- calc.py | head -1) -- calc.py; rm -f calc.tmp", shell=True); '
        f"{SAY}"
    ),
    "works-slowly": f"read(); emit(text='x'); time.sleep(0.5); {FIX}; {SAY}",
    "looks-around": (
        "read(); found = [os.path.join(top, name) for base in (os.pardir, os.environ['SOURCE'])"
        " for top, _, names in os.walk(base) for name in names if name == 'calc.py'\n"
        " and 'a + b' in open(os.path.join(top, name)).read()]\n"
        "subprocess.run(['cp', found[0], 'calc.py']) if found else None\n"
        f"emit(ran='ls ..'); {SAY}"
    ),
}
"""The agents by name."""


def make_repository(path: Path) -> Path:
    """Create a repository with a failing test and a branch that has the solution."""
    path.mkdir(parents=True)
    (path / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (path / "test_calc.py").write_text(TEST_FILE)
    git(path, "init", "--quiet", "--initial-branch=main")
    git(path, "config", "user.email", "someone@example.com")
    git(path, "config", "user.name", "Someone")
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "--message=Start")
    git(path, "switch", "--quiet", "--create=solution")
    (path / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    git(path, "commit", "--quiet", "--all", "--message=Solution")
    git(path, "switch", "--quiet", "main")
    return path


def git(path: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=path, check=True, capture_output=True, encoding="utf-8", timeout=60
    ).stdout


def state_of(repository: Path) -> dict[str, Any]:
    """Return everything in a repository that a comparison must not change."""
    files = {
        str(path.relative_to(repository)): path.read_bytes()
        for path in sorted(repository.rglob("*"))
        if path.is_file() and "objects" not in path.parts
    }
    return {
        "status": git(repository, "status", "--porcelain=v2", "--branch"),
        "refs": git(repository, "for-each-ref"),
        "stash": git(repository, "stash", "list"),
        "worktrees": git(repository, "worktree", "list"),
        "files": files,
    }


def compared_mux(config: Path, *names: str) -> AgentMux:
    """Return a client with these agents."""
    registry = AdapterRegistry()
    for name in names:
        if name in BODIES:
            registry.register(scripted_adapter(BODIES[name], agent=name))
    return AgentMux(adapters=registry, config_dir=config, control_sockets=False)
