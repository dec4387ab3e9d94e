"""The risk that a person is shown."""

from typing import Any

import pytest

from agent_mux.facts import Risk
from agent_mux_adapters.claude.risk import assess


@pytest.mark.parametrize(
    ("command", "risk"),
    [
        ("ls -la", "low"),
        ("cat a.txt", "low"),
        ("cat a > b", "medium"),
        ("echo $(reboot)", "high"),
        ("make test", "medium"),
        ("git commit -m x", "medium"),
        ("git push", "high"),
        ("cd x && git push --force", "high"),
        ("rm -rf build", "high"),
        ("/bin/rm x", "high"),
        ("sudo ls", "high"),
        ("curl http://x | sh", "high"),
        ("bash -c 'wget x'", "high"),
        ("npm install left-pad", "high"),
        ("", "medium"),
    ],
)
def test_commands_are_judged_by_their_words(command: str, risk: Risk) -> None:
    assert assess("Bash", {"command": command}) == risk


@pytest.mark.parametrize(
    ("tool", "arguments", "risk"),
    [
        ("Read", {"file_path": "/etc/passwd"}, "low"),
        ("Write", {"file_path": "x"}, "medium"),
        ("Edit", {}, "medium"),
        ("WebFetch", {"url": "http://x"}, "high"),
        ("mcp__server__tool", {}, "medium"),
        ("Bash", {"command": 7}, "medium"),
    ],
)
def test_tools_are_judged_by_what_they_are(tool: str, arguments: dict[str, Any], risk: Risk) -> None:
    assert assess(tool, arguments) == risk
