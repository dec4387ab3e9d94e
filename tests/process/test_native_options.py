"""Options that are bound to the settings of the embedded agent: what it does and refuses with them."""

from pathlib import Path
from typing import Any

import pytest
from tests.process.embedded_agent import Sandbox

from agent_mux import AgentMux, Approve, RunResult, ValidationError

pytestmark = pytest.mark.anyio
WRITE = {"tool_calls": [{"name": "write_file", "arguments": {"path": "note.txt", "content": "x"}}]}
SHELL = {"tool_calls": [{"name": "shell", "arguments": {"command": "touch touched"}}]}
DONE = {"text": "Done."}


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


async def run(sandbox: Sandbox, *steps: dict[str, Any], **options: Any) -> RunResult:
    async with AgentMux(config_dir=sandbox.root / "config", timeout=60) as mux:
        settings = {"agent": "native", "prompt": "go", "cwd": sandbox.work, "model": sandbox.script(*steps)}
        settings |= {"env": {"AMUX_AGENT_HOME": str(sandbox.home)}, "collect_events": True, "track_changes": False}
        return await mux.run(**{**settings, **options})


def types(result: RunResult) -> list[str]:
    return [event.type for event in result.events or ()]


@pytest.mark.slow
async def test_allowed_tool_runs_without_a_request(sandbox: Sandbox) -> None:
    result = await run(sandbox, WRITE, DONE, approval_mode="deny", allowed_tools=["write_file"])
    assert (result.exit_reason, (sandbox.work / "note.txt").read_text()) == ("completed", "x")
    assert "approval_denied" not in types(result)


@pytest.mark.slow
async def test_disallowed_tool_is_refused_in_mode_yolo(sandbox: Sandbox) -> None:
    result = await run(sandbox, SHELL, DONE, approval_mode="yolo", disallowed_tools=["shell"])
    assert result.exit_reason == "completed"
    assert not (sandbox.work / "touched").exists()
    assert "tool_error" in types(result)


@pytest.mark.slow
async def test_plan_mode_changes_nothing_and_says_so_to_the_model(sandbox: Sandbox) -> None:
    result = await run(sandbox, WRITE, SHELL, DONE, approval_mode="plan")
    assert (result.exit_reason, [*sandbox.work.iterdir()]) == ("completed", [])
    reasons = [event.reason for event in result.events or () if event.type == "approval_denied"]
    assert len(reasons) == 2
    assert all("only plans" in reason for reason in reasons)


async def test_further_directory_is_writable_and_others_are_not(sandbox: Sandbox, tmp_path: Path) -> None:
    shared, other = tmp_path / "shared", tmp_path / "other"
    shared.mkdir()
    other.mkdir()
    writes = [
        {"tool_calls": [{"name": "write_file", "arguments": {"path": str(one / "a" / "b"), "content": "x"}}]}
        for one in (shared, other)
    ]
    await run(sandbox, *writes, DONE, approval_mode="yolo", add_dirs=[shared])
    assert (shared / "a" / "b").read_text() == "x"
    assert [*other.iterdir()] == []


async def test_script_of_a_trusted_projects_skill_needs_an_approval_that_shows_its_command(sandbox: Sandbox) -> None:
    skill = sandbox.work / ".agents" / "skills" / "pdf"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: pdf\ndescription: Reads PDF files.\n---\nRun count.sh.\n")
    (skill / "count.sh").write_text("touch ran; echo counted $1")
    steps = [
        {"tool_calls": [{"name": "skills_use", "arguments": {"name": "pdf"}}]},
        {"tool_calls": [{"name": "skills_read", "arguments": {"name": "pdf", "path": "count.sh"}}]},
        {
            "tool_calls": [
                {"name": "skills_run_script", "arguments": {"name": "pdf", "path": "count.sh", "args": ["7"]}}
            ]
        },
        {"text": "{{result}}"},
    ]
    had_run: list[bool] = []

    def approve(_: Any) -> Approve:
        had_run.append((sandbox.work / "ran").exists())
        return Approve()

    trusted = {"approval_mode": "prompt", "native_options": {"trustProjectSkills": True}}
    result = await run(sandbox, *steps, on_approval_request=approve, **trusted)
    assert result.text.startswith("counted 7\n(exit 0")
    assert had_run == [False]
    commands = [event.command for event in result.events or () if event.type in {"approval_request", "shell_start"}]
    assert commands == [f"{skill}/count.sh 7"] * 2
    assert [event.skill_name for event in result.events or () if event.type == "skill_invoked"] == ["pdf"]
    assert {"file_read", "shell_start", "shell_exit"} <= {*types(result)}


@pytest.mark.slow
async def test_extra_argument_reaches_the_agent(sandbox: Sandbox) -> None:
    slow = {"tool_calls": [{"name": "shell", "arguments": {"command": "sleep 60"}}]}
    result = await run(sandbox, slow, DONE, approval_mode="yolo", extra_args=["--max-duration=0.5"])
    assert result.exit_reason != "completed"


@pytest.mark.slow
async def test_native_option_reaches_the_agent_and_a_conflict_names_both(sandbox: Sandbox) -> None:
    slow = {"tool_calls": [{"name": "shell", "arguments": {"command": "sleep 60"}}]}
    result = await run(sandbox, slow, DONE, approval_mode="yolo", native_options={"maxDuration": 0.5})
    assert result.exit_reason != "completed"
    with pytest.raises(ValidationError, match=r"native_options.maxTurns.*one of maxDuration, skills, agentsDocs"):
        await run(sandbox, DONE, native_options={"maxTurns": 3})
    with pytest.raises(ValidationError, match="sets approvalMode of native to 'prompt'"):
        await run(sandbox, DONE, command=["true"], native_options={"approvalMode": "yolo"})
