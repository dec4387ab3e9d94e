"""A deny rule never leads to a written file: it is refused when it is made, or it denies. Every wait is bounded."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.embedded_agent import Sandbox

from agent_mux import AgentMux, AgentMuxError, Policy, Rule

pytestmark = pytest.mark.anyio
WRITES = ({"tool_calls": [{"name": "write_file", "arguments": {"path": "out.txt", "content": "x"}}]}, {"text": "Done."})

RIGHT: dict[str, dict[str, Any]] = {
    "a tuple": {"decision": "deny", "tools": ("write_file",)},
    "a list": {"decision": "deny", "tools": ["write_file"]},
    "a path": {"decision": "deny", "paths": ("out.txt",)},
}
WRONG: dict[str, dict[str, Any]] = {
    "another word": {"decision": "block", "tools": ("write_file",)},
    "another case": {"decision": "Deny", "tools": ("write_file",)},
    "no decision": {"decision": None, "tools": ("write_file",)},
    "a text for a list": {"decision": "deny", "tools": "write_file"},
    "a text for paths": {"decision": "deny", "paths": "out.txt"},
    "a misspelled risk": {"decision": "deny", "risk": ("meduim",)},
    "a text for a risk": {"decision": "deny", "risk": "medium"},
    "bytes": {"decision": "deny", "tools": (b"write_file",)},
    "an empty pattern": {"decision": "deny", "tools": ("",)},
    "a nested list": {"decision": "deny", "tools": (["write_file"],)},
    "a misspelled field": {"decision": "deny", "tolls": ("write_file",)},
}


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    made = Sandbox(tmp_path)
    monkeypatch.setenv("AMUX_AGENT_HOME", str(made.home))
    return made


async def writes(sandbox: Sandbox, **options: Any) -> bool:
    """Run an agent that writes a file, and return whether the file is there."""
    with anyio.fail_after(120):
        async with AgentMux(config_dir=sandbox.root / "amux") as mux:
            model = sandbox.script(*WRITES)
            await mux.run(
                agent="native", prompt="go", cwd=sandbox.work, model=model, approval_mode="yolo", **options
            ).result()
    return (sandbox.work / "out.txt").exists()


async def test_file_is_written_without_a_rule(sandbox: Sandbox) -> None:
    assert await writes(sandbox)


@pytest.mark.parametrize("fields", RIGHT.values(), ids=RIGHT.keys())
async def test_right_rule_prevents_the_file(sandbox: Sandbox, fields: dict[str, Any]) -> None:
    assert not await writes(sandbox, policy=Policy(rules=(Rule(**fields),)))


@pytest.mark.parametrize("fields", WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("form", ["instances", "mappings", "a mapping in an instance"])
async def test_wrong_rule_starts_no_run(sandbox: Sandbox, fields: dict[str, Any], form: str) -> None:
    def policy() -> Any:
        if form == "instances":
            return Policy(rules=(Rule(**fields),))
        rules: Any = [fields]
        return {"rules": rules} if form == "mappings" else Policy(rules=rules)

    with pytest.raises((AgentMuxError, TypeError)):  # TypeError: an unknown argument
        await writes(sandbox, policy=policy())
    assert not (sandbox.work / "out.txt").exists()


@pytest.mark.parametrize("policy", [Rule(decision="deny", tools=("write_file",)), "deny", [], True])
async def test_value_that_is_no_policy_starts_no_run(sandbox: Sandbox, policy: Any) -> None:
    with pytest.raises(AgentMuxError, match="policy"):
        await writes(sandbox, policy=policy)
    assert not (sandbox.work / "out.txt").exists()
