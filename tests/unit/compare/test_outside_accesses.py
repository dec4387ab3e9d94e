"""Tool inputs that name hidden places are found; ordinary inputs are not."""

from pathlib import Path
from typing import Any

import pytest

from agent_mux.compare.outside_accesses import outside_accesses

WORKSPACE = Path("/home/u/.agent-mux/workspaces/abc")
HIDDEN = (Path("/home/u/.agent-mux/comparisons"), Path("/home/u/.agent-mux/workspaces"), Path("/src/project"))


def paths_of(value: Any) -> list[str]:
    found = outside_accesses([("tool", value)], WORKSPACE, HIDDEN, Path("/home/u"))
    return [one.path for one in found]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"file_path": "/src/project/fix.py"}, "/src/project/fix.py"),
        ({"command": "cat /src/project/fix.py | head"}, "/src/project/fix.py"),
        ({"command": ["bash", "-lc", "ls '/src/project'"]}, "/src/project"),
        ({"command": "git --git-dir=/src/project/.git log"}, "/src/project/.git"),
        ({"command": "ls ~/.agent-mux/comparisons"}, "/home/u/.agent-mux/comparisons"),
        ({"command": "ls .."}, "/home/u/.agent-mux/workspaces"),
        ({"command": "cd deep && cat ../../other/fix"}, "/home/u/.agent-mux/workspaces/other/fix"),
        ({"path": "../other/fix.py"}, "/home/u/.agent-mux/workspaces/other/fix.py"),
        ({"path": "a/../../other"}, "/home/u/.agent-mux/workspaces/other"),
        ({"command": "git fsck --lost-found"}, "git fsck --lost-found"),
        ({"command": "find / -name '*.pack'"}, "find / -name '*.pack"),
        ({"command": "cat /proc/12/root/x"}, "/proc/12/root"),
        ("cat /src/project/x", "/src/project/x"),
    ],
)
def test_accesses_are_found(value: Any, expected: str) -> None:
    assert paths_of(value) == [expected]


@pytest.mark.parametrize(
    "value",
    [
        {"file_path": f"{WORKSPACE}/src/a.py"},
        {"command": f"cd {WORKSPACE} && pytest -q > /dev/null 2>&1"},
        {"command": "cd deep/down && cat ../file ../../README"},
        {"command": "/usr/bin/python3 -m pytest; ls /tmp /etc"},
        {"command": "cat > a.js <<'EOF'\nimport x from '../../../y'\nEOF\nnode a.js"},
        {"file_path": "a.js", "content": "import '../../../x' // /src/project"},
        {"command": "git log --all --oneline; git diff HEAD~1..HEAD"},
        {"command": "curl https://example.com/src/project/../x"},
        {"command": "find . -name '*.py'; ls /src/project-two"},
        {"command": "cd $PLACE && ls .."},
        {"limit": 3, "paths": ["a/b", "c"], "none": None},
    ],
)
def test_ordinary_inputs_are_no_accesses(value: Any) -> None:
    assert paths_of(value) == []


def test_access_is_reported_once_with_its_tool() -> None:
    found = outside_accesses([("Read", {"path": "/src/project/x"})] * 2, WORKSPACE, HIDDEN)
    assert [(one.tool, one.path, one.detail) for one in found] == [("Read", "/src/project/x", "/src/project/x")]
