"""The risk of a call that a person is shown."""

from typing import Any

import pytest

from agent_mux.sdk.facts import Risk
from agent_mux_adapters.claude.tools import risk_of


@pytest.mark.parametrize(
    ("tool", "arguments", "risk"),
    [
        ("Read", {"file_path": "/etc/passwd"}, "low"),
        ("Write", {"file_path": "x"}, "medium"),
        ("Edit", {}, "medium"),
        ("WebFetch", {"url": "http://x"}, "high"),
        ("mcp__server__tool", {}, "medium"),
        ("Bash", {"command": 7}, "medium"),
        ("Bash", {"command": "rm x"}, "high"),
    ],
)
def test_tools_are_judged_by_what_they_are(tool: str, arguments: dict[str, Any], risk: Risk) -> None:
    assert risk_of(tool, arguments) == risk
