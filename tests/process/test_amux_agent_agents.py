"""Agents of `amux-agent` as a real program: plans that a user accepts or rejects, agent files, and named sub-agents."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.process.embedded_agent import Sandbox

PLAN = "1. Write the file."


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def agent_file(sandbox: Sandbox, name: str, text: str) -> Path:
    path = sandbox.work / ".agents" / "agents" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


WRITE = call("write_file", path="made", content="x")


def test_plan_is_presented_accepted_and_carried_out(sandbox: Sandbox) -> None:
    steps = (WRITE, call("present_plan", plan=PLAN), WRITE, {"text": "Done."})
    with sandbox.controlled(model=sandbox.script(*steps), agent="plan") as agent:
        agent.send("prompt", id="1", text="go")
        plan = agent.read_until("approval_request", toolName="present_plan")
        assert plan["detail"] == PLAN
        assert not (sandbox.work / "made").exists()
        agent.send("approve", id="2", requestId=plan["interactionId"])
        request = agent.read_until("approval_request", toolName="write_file")
        agent.send("approve", id="3", requestId=request["interactionId"])
        agent.read_until("turn_end")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.messages() == ["Done."]
    assert (sandbox.work / "made").read_text() == "x"


@pytest.mark.slow
def test_plan_is_rejected_with_a_reason_for_the_model(sandbox: Sandbox) -> None:
    steps = (
        call("present_plan", plan=PLAN),
        WRITE,
        {"text": "As you like.", "matches": "First read the tests."},
        {"text": "Without a reason."},
    )
    with sandbox.controlled(model=sandbox.script(*steps), agent="plan") as agent:
        agent.send("prompt", id="1", text="go")
        plan = agent.read_until("approval_request", toolName="present_plan")
        agent.send("deny", id="2", requestId=plan["interactionId"], reason="First read the tests.")
        agent.read_until("turn_end")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        errors = {line["toolName"]: line["error"] for line in agent.lines_of("tool_error")}
    assert errors["present_plan"].startswith("The user rejected the plan: First read the tests.")
    assert "plan mode allows only tools that read" in errors["write_file"]
    assert not (sandbox.work / "made").exists()


@pytest.mark.slow
def test_plan_without_a_user_ends_with_the_plan_as_the_answer(sandbox: Sandbox) -> None:
    model = sandbox.script(call("present_plan", plan=PLAN), WRITE, {"text": PLAN})
    done = sandbox.run("--agent=plan", "--model", model, "go")
    assert (done.returncode, done.stdout) == (0, f"{PLAN}\n"), done.stderr
    assert not (sandbox.work / "made").exists()


def test_agent_of_a_file_has_its_model_tools_and_mode(sandbox: Sandbox) -> None:
    steps = (WRITE, call("shell", command="touch ran"), {"text": "Done."})
    path = agent_file(
        sandbox, "writer", f"model: {sandbox.script(*steps)}\nmode: yolo\ntools: [read_file, write_file]\n"
    )
    done = sandbox.run("--agent-file", str(path), "go")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert [name for name in ("made", "ran") if (sandbox.work / name).exists()] == ["made"]


@pytest.mark.slow
def test_tool_that_an_agent_file_names_and_that_does_not_exist_is_reported(sandbox: Sandbox) -> None:
    path = agent_file(sandbox, "typing", "tools: [read_file, write_fil]\n")
    done = sandbox.run("--agent-file", str(path), "--json", "--model", sandbox.script({"text": "Done."}), "go")
    assert "tools that the agent names do not exist: write_fil" in done.stdout


@pytest.mark.slow
def test_missing_memory_of_an_agent_file_is_skipped(sandbox: Sandbox) -> None:
    (sandbox.work / "there.md").write_text("Be exact.\n")
    path = agent_file(sandbox, "careful", "memory: [../../there.md, ../../missing.md]\n")
    done = sandbox.run("--agent-file", str(path), "--json", "--model", sandbox.script({"text": "Done."}), "go")
    assert done.returncode == 0, done.stderr
    assert "there.md" in done.stdout
    assert "missing.md" not in done.stdout


@pytest.mark.slow
def test_mistake_in_an_agent_file_is_a_usage_error_with_file_and_line(sandbox: Sandbox) -> None:
    path = agent_file(sandbox, "broken", "description: x\ntemprature: 1\n")
    done = sandbox.run("--agent-file", str(path), "go")
    assert done.returncode == 2
    assert f"{path}:2: unknown key `temprature`" in done.stderr


@pytest.mark.slow
def test_agents_lists_the_agents_and_reports_broken_files(sandbox: Sandbox) -> None:
    path = agent_file(sandbox, "reviewer", "description: Review a change.")
    agent_file(sandbox, "bold", "mode: yolo")
    done = sandbox.run("agents")
    assert done.returncode == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == ["build", "plan", "reviewer"]
    assert done.stdout.splitlines()[2] == f"reviewer  Review a change.  ({path})"
    assert "bold.yaml:1: mode: an agent of a project cannot give itself permissions" in done.stderr
    assert sandbox.run("agents", "x").returncode == 2


@pytest.mark.slow
def test_named_sub_agent_is_that_of_the_file(sandbox: Sandbox) -> None:
    agent_file(sandbox, "searcher", "description: Search for things.\nmode: plan\nsystem_prompt: You search.\n")
    steps = (
        {**WRITE, "task": "find it"},
        {"text": "It is in a.py.", "task": "find it"},
        {**call("delegate", task="find it", agent="searcher"), "task": "go"},
        {"text": "{{result}}", "task": "go"},
    )
    with sandbox.controlled(model=sandbox.script(*steps), approvalMode="yolo") as agent:
        agent.send("prompt", id="1", text="go")
        agent.read_until("turn_end")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        (spawned,) = agent.lines_of("subagent_spawn")
        assert spawned["agentName"] == "searcher"
        assert agent.messages()[-1] == "It is in a.py."
    assert not (sandbox.work / "made").exists()


@pytest.mark.slow
def test_agent_of_a_file_hands_off_and_the_resumed_session_continues_with_its_target(sandbox: Sandbox) -> None:
    agent_file(sandbox, "writer", "description: Write.\nhandoffs: [reviewer]\n")
    agent_file(sandbox, "reviewer", "description: Review.\nmode: plan\nsystem_prompt: You review.\n")
    steps = (call("transfer_to_agent", agent="reviewer", message="check it"), WRITE, {"text": "Reviewed."})
    done = sandbox.run("--agent=writer", "--approval-mode=yolo", "--json", "--model", sandbox.script(*steps), "go")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    types = [line["type"] for line in lines]
    assert types.count("turn_end") == 1
    (note,) = [line for line in lines if line["type"] == "debug" and "hands off" in line["message"]]
    assert note["message"] == "writer hands off to reviewer: check it"
    (refused,) = [line for line in lines if line["type"] == "tool_error"]
    assert "this agent only reads" in refused["error"]
    session = next(line["sessionId"] for line in lines if line["type"] == "session_start")
    again = sandbox.run(
        "--session", session, "--approval-mode=yolo", "--json", "--model", sandbox.script(WRITE, {"text": "Still."}),
        "write it",
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert "this agent only reads" in again.stdout
    assert not (sandbox.work / "made").exists()
    listed = sandbox.run("agents").stdout
    assert "writer    Write.  (hands off to reviewer)  (" in listed


@pytest.mark.slow
def test_handoff_to_an_agent_that_does_not_exist_is_an_error_with_the_names(sandbox: Sandbox) -> None:
    agent_file(sandbox, "writer", "handoffs: [nobody]\n")
    done = sandbox.run("--agent=writer", "--model", sandbox.script({"text": "x"}), "go")
    assert done.returncode != 0
    assert "handoffs of the agent 'writer': no agent is named 'nobody'; use one of build, plan, writer" in done.stderr
