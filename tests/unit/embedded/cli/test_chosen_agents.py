"""The agent of a run: where it is found, its settings and prompt, and the decision about its plans."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.cli.asked_tools import SHELL, WRITE, Collected, gate_of

from agent_loop.behavior import NO_LIMITS, Behavior, ExecutionLimits
from agent_loop.cli.agents import choose_agent, known_agents, with_preset, without_user
from agent_loop.cli.agents_command import agent_lines
from agent_loop.cli.approvals import NO_PLAN_REVIEWER, REFUSED, Approvals, InteractionDecision
from agent_loop.cli.errors import UsageError
from agent_loop.cli.protocol import McpServerSettings, StartCommand
from agent_loop.cli.settings import behavior_of, limits_of, mcp_servers_of
from agent_loop.cli.stream import ApprovalMode
from agent_loop.cli.system_prompt import PLAN_PROMPT, SYSTEM_PROMPT, system_prompt_of
from agent_loop.errors import ConfigurationError, ToolError
from agent_loop.mcp import McpServer
from agent_loop.presets import BUILD_AGENT, PLAN_AGENT, Preset
from agent_loop.presets.plan_mode import ONLY_PLANS, PLAN_INSTRUCTIONS
from agent_loop.tools.builtin.plan import PlanDecision
from agent_loop.tools.tool import ToolContext
from agent_mux.assembler import Ending
from agent_mux.contract import validate

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(place: str, text: str) -> Path:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"AMUX_AGENT_HOME": str(tmp_path / "home")}


# -- which agent


def test_agent_is_build_unless_another_is_named(environ: dict[str, str], tmp_path: Path) -> None:
    assert choose_agent(StartCommand(), environ, tmp_path).preset == BUILD_AGENT
    assert choose_agent(StartCommand(agent="plan"), environ, tmp_path).preset == PLAN_AGENT


def test_agents_of_the_project_take_precedence_over_those_of_the_user(
    write: Write, environ: dict[str, str], tmp_path: Path
) -> None:
    write("home/agents/both.yaml", "description: of the user\nmode: yolo")
    write("home/agents/mine.yaml", "description: mine\nmode: yolo")
    write("work/.agents/agents/both.yaml", "description: of the project")
    work = tmp_path / "work"
    assert choose_agent(StartCommand(agent="both"), environ, work).preset.description == "of the project"
    assert choose_agent(StartCommand(agent="mine"), environ, work).start.approval_mode == "yolo"


def test_file_cannot_replace_a_built_in_agent(write: Write, environ: dict[str, str], tmp_path: Path) -> None:
    write("home/agents/plan.yaml", "mode: yolo")
    chosen = choose_agent(StartCommand(agent="plan"), environ, tmp_path)
    assert (chosen.preset, len(chosen.problems)) == (PLAN_AGENT, 1)
    assert "'plan' is a built-in agent" in chosen.problems[0]


def test_agent_of_a_project_gets_permissions_only_as_a_named_file(
    write: Write, environ: dict[str, str], tmp_path: Path
) -> None:
    write(".agents/agents/bold.yaml", "mode: yolo")
    with pytest.raises(UsageError, match=r"no agent is named 'bold'.*bold\.yaml:1: mode: .* --agent-file"):
        choose_agent(StartCommand(agent="bold"), environ, tmp_path)
    chosen = choose_agent(StartCommand(agent_file=".agents/agents/bold.yaml"), environ, tmp_path)
    assert chosen.start.approval_mode == "yolo"


def test_unknown_agent_is_an_error_with_the_names(write: Write, environ: dict[str, str], tmp_path: Path) -> None:
    write("home/agents/mine.yaml", "")
    write("home/agents/yours.yaml", "description: x")
    with pytest.raises(UsageError, match=r"no agent is named 'x'; use one of build, plan, yours, .*mine\.yaml:1: "):
        choose_agent(StartCommand(agent="x"), environ, tmp_path)


def test_list_of_agents_has_aligned_descriptions_of_the_width_of_the_terminal(
    write: Write, environ: dict[str, str], tmp_path: Path
) -> None:
    write("home/agents/reviewer.yaml", "description: " + "word " * 30)
    known = known_agents(environ, tmp_path)
    lines = list(agent_lines(known, 80))
    assert max(map(len, lines)) <= 80
    assert {line[10].isspace() for line in lines} == {False}
    assert [line[:10].strip() for line in lines if not line.startswith(" ")] == ["build", "plan", "reviewer"]
    assert len(list(agent_lines(known, None))) == 3


def test_name_and_file_cannot_be_combined(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be combined"):
        choose_agent(StartCommand(agent="plan", agent_file="x.yaml"), environ, tmp_path)
    with pytest.raises(ConfigurationError, match=r"x\.yaml cannot be read"):
        choose_agent(StartCommand(agent_file="x.yaml"), environ, tmp_path)


def test_agents_are_found_without_a_home_directory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)
    write(".agents/agents/mine.yaml", "description: x")
    assert [each.preset.name for each in known_agents({}, tmp_path).files] == ["mine"]


# -- its settings


def test_settings_of_the_agent_count_where_start_has_none() -> None:
    preset = Preset(model="a:b", fallbacks=["c:d"], mode="accept-edits", approved_tools=["x"], excluded_tools=["y"])
    start = with_preset(StartCommand(allowed_tools=["z"]), preset)
    assert (start.model, start.fallback_models, start.allowed_tools) == ("a:b", ["c:d"], ["z", "x"])
    assert (start.approval_mode, start.accept_edits, start.disallowed_tools) == ("prompt", True, ["y"])


def test_settings_of_start_take_precedence() -> None:
    start = with_preset(
        StartCommand(model="e:f", approval_mode="deny"), Preset(model="a:b", fallbacks=["c:d"], mode="yolo")
    )
    assert (start.model, start.fallback_models, start.approval_mode) == ("e:f", [], "deny")


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("requested", "after"),
    [(None, "prompt"), ("plan", "prompt"), ("prompt", "prompt"), ("deny", "deny"), ("yolo", "yolo")],
)
def test_planner_begins_in_plan_mode_and_continues_in_the_requested_one(
    environ: dict[str, str], tmp_path: Path, requested: ApprovalMode | None, after: ApprovalMode
) -> None:
    chosen = choose_agent(StartCommand(agent="plan", approval_mode=requested), environ, tmp_path)
    assert (chosen.start.approval_mode, chosen.mode_after_plan) == ("plan", after)


def test_only_an_agent_that_plans_presents_plans(environ: dict[str, str], tmp_path: Path) -> None:
    assert choose_agent(StartCommand(approval_mode="plan"), environ, tmp_path).mode_after_plan is None


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("fields", "mode"),
    [
        ({}, "deny"),
        ({"approval_mode": "prompt"}, "deny"),
        ({"approval_mode": "prompt", "accept_edits": True}, "prompt"),
        ({"approval_mode": "plan"}, "plan"),
        ({"approval_mode": "yolo"}, "yolo"),
    ],
)
def test_without_a_user_what_would_be_asked_is_denied(fields: dict[str, Any], mode: str) -> None:
    assert without_user(StartCommand(**fields)).approval_mode == mode


def test_behavior_and_limits_of_the_agent_lie_between_start_and_the_defaults() -> None:
    limits = ExecutionLimits(max_turns=5, max_total_tokens=None, max_duration=None, max_cost_usd=2.0)
    own = Behavior(temperature=0.5, top_k=3, limits=limits)
    start = StartCommand(temperature=0.1, max_cost_usd=1.0)
    behavior = behavior_of(start, own)
    assert (behavior.temperature, behavior.top_k, behavior.max_tokens) == (0.1, 3, 16_384)
    assert limits_of(start, own) == ExecutionLimits(
        max_turns=5, max_total_tokens=None, max_duration=None, max_cost_usd=1.0
    )
    assert limits_of(StartCommand(), Behavior(top_k=3)) == NO_LIMITS


def test_servers_of_start_replace_those_of_the_agent_with_the_same_name(tmp_path: Path) -> None:
    start = StartCommand()
    own = [McpServer(name="a", command="x"), McpServer(name="b", command="x")]
    assert [server.cwd for server in mcp_servers_of(start, tmp_path, own)] == [str(tmp_path)] * 2
    given = StartCommand(mcp_servers=[McpServerSettings(name="a", command="y")])
    assert [(server.name, server.command) for server in mcp_servers_of(given, tmp_path, own)] == [
        ("b", "x"), ("a", "y"),
    ]  # fmt: skip


# -- its prompt


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("preset", "start", "prompt"),
    [
        (Preset(system_prompt="Own."), StartCommand(), f"{SYSTEM_PROMPT}\n\nOwn.\n\nHere"),
        (Preset(system_prompt="Own.", prompt_mode="replace"), StartCommand(), "Own."),
        (Preset(system_prompt="Own."), StartCommand(system_prompt="More."),
         f"{SYSTEM_PROMPT}\n\nOwn.\n\nMore.\n\nHere"),
        (Preset(system_prompt="Own."), StartCommand(system_prompt="All.", system_prompt_mode="replace"), "All."),
        (Preset(mode="plan"), StartCommand(approval_mode="plan"),
         f"{SYSTEM_PROMPT}\n\nHere\n\n{PLAN_INSTRUCTIONS}"),
        (Preset(), StartCommand(approval_mode="plan"), f"{SYSTEM_PROMPT}\n\nHere\n\n{PLAN_PROMPT}"),
    ],
)  # fmt: skip
def test_prompts_of_the_program_the_agent_and_start_are_combined(
    preset: Preset, start: StartCommand, prompt: str
) -> None:
    assert system_prompt_of(start, "Here", preset) == prompt


# -- the decision about a plan

CONTEXT = ToolContext(call_id="c1", tool_name="present_plan")


async def reviewed(
    approvals: Approvals, seen: Collected, decision: InteractionDecision
) -> tuple[PlanDecision, list[Any]]:
    """Review a plan, answer the request, and return the decision and the requests."""
    results: list[PlanDecision] = []

    async def review() -> None:
        results.append(await approvals.review_plan("1. Write.", CONTEXT))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(review)
            await anyio.wait_all_tasks_blocked()
            for one in seen.stream.pending:
                assert approvals.answer(one.interaction_id, decision, "approval")
    return results[0], seen.of("approval_request")


async def passes(approvals: Approvals, seen: Collected, tool: Any, **arguments: str) -> bool:
    """Return whether a call passes the gate without a request."""
    gate = gate_of(tool, f"g{tool.name}", **arguments)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approvals.gate, gate)
            await anyio.wait_all_tasks_blocked()
            is_waiting = bool(seen.stream.pending)
            tasks.cancel_scope.cancel()
    return not is_waiting and not gate.block


@pytest.mark.anyio
async def test_accepted_plan_ends_plan_mode_and_further_calls_are_asked_for() -> None:
    seen = Collected("plan")
    approvals = Approvals(seen.stream, "plan", mode_after_plan="prompt")
    gate = gate_of(WRITE)
    await approvals.gate(gate)
    assert (gate.block, gate.reason) == (True, ONLY_PLANS)
    decision, (request,) = await reviewed(approvals, seen, InteractionDecision(granted=True))
    assert decision.accepted
    assert (request.action, request.detail, request.tool_input) == (
        "carry out a plan (present_plan)", "1. Write.", {"plan": "1. Write."},
    )  # fmt: skip
    assert not await passes(approvals, seen, WRITE)
    seen.stream.end(Ending(code=0))
    assert validate(seen.events) == []


@pytest.mark.anyio
async def test_plan_that_is_always_approved_accepts_edits_as_well() -> None:
    seen = Collected("plan")
    approvals = Approvals(seen.stream, "plan", mode_after_plan="prompt")
    await reviewed(approvals, seen, InteractionDecision(granted=True, always=True))
    assert await passes(approvals, seen, WRITE)
    assert not await passes(approvals, seen, SHELL, command="ls")


@pytest.mark.anyio
async def test_rejected_plan_has_its_reason_and_plan_mode_continues() -> None:
    seen = Collected("plan")
    approvals = Approvals(seen.stream, "plan", mode_after_plan="prompt")
    decision, _ = await reviewed(approvals, seen, InteractionDecision(granted=False, text="not yet"))
    assert decision == PlanDecision(accepted=False, reason="not yet")
    gate = gate_of(WRITE, "g2")
    await approvals.gate(gate)
    assert gate.reason == ONLY_PLANS


@pytest.mark.anyio
async def test_rejection_without_a_reason_has_none() -> None:
    seen = Collected("plan")
    approvals = Approvals(seen.stream, "plan", mode_after_plan="prompt")
    decision, _ = await reviewed(approvals, seen, InteractionDecision(granted=False, text=REFUSED))
    assert decision == PlanDecision(accepted=False)


@pytest.mark.anyio
async def test_mode_that_the_user_sets_during_the_decision_is_kept() -> None:
    seen = Collected("plan")
    approvals = Approvals(seen.stream, "plan", mode_after_plan="prompt")
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(approvals.review_plan, "1.", CONTEXT)
            await anyio.wait_all_tasks_blocked()
            approvals.set_mode("yolo")
            (request,) = seen.stream.pending
            approvals.answer(request.interaction_id, InteractionDecision(granted=True))
    assert await passes(approvals, seen, SHELL, command="ls")


@pytest.mark.anyio
async def test_mode_yolo_accepts_a_plan_without_a_request() -> None:
    seen = Collected("plan")
    approvals = Approvals(seen.stream, "plan", mode_after_plan="yolo")
    assert (await approvals.review_plan("1.", CONTEXT)).accepted
    assert seen.of("approval_request") == []
    assert await passes(approvals, seen, SHELL, command="ls")


@pytest.mark.anyio
async def test_plan_without_a_user_is_an_error_that_asks_for_the_answer() -> None:
    seen = Collected("plan")
    approvals = Approvals(seen.stream, "plan", mode_after_plan="prompt")
    approvals.stop_asking()
    with pytest.raises(ToolError, match=NO_PLAN_REVIEWER):
        await approvals.review_plan("1.", CONTEXT)


@pytest.mark.anyio
async def test_plan_after_plan_mode_was_left_needs_no_decision() -> None:
    seen = Collected("plan")
    approvals = Approvals(seen.stream, "plan", mode_after_plan="prompt")
    approvals.set_mode("prompt")
    assert (await approvals.review_plan("1.", CONTEXT)).accepted
    assert seen.of("approval_request") == []
