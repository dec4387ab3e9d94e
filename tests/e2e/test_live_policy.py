"""Policy rules decide about requests of the agents. Actions without a request emit a warning."""

import pytest
from tests.e2e.harness import FinishedRun, LiveAgent
from tests.e2e.ways import ALL_AGENTS, CORE

from agent_mux import Policy, Rule
from agent_mux_testing.live import Read, Say, Shell, Write

pytestmark = pytest.mark.anyio
DANGEROUS_PREFIX = ("rm -rf ./nothing-there",)
"""The prefix of `Shell(asks=True)` commands for agents that request approval only of dangerous commands."""


def warned(done: FinishedRun, what: str) -> bool:
    """Return whether a warning reports this action as done without asking."""
    warnings = [event.message for event in done.all("debug") if event.level == "warn"]
    return any(what in message and "without asking" in message for message in warnings)


@CORE
@ALL_AGENTS
async def test_policy_decides_about_commands(live: LiveAgent) -> None:
    live.script(
        live.answer(Shell("touch allowed", asks=True)),
        live.answer(Shell("touch denied", asks=True)),
        live.answer(Say("Done.")),
    )
    rules = (Rule(decision="allow", commands=("touch allowed", *DANGEROUS_PREFIX)),)
    done = await live.run(policy=Policy(rules=rules, default="deny"), approval_mode="prompt")
    assert done.result.exit_reason == "completed"
    assert live.file("allowed").exists()
    assert not live.file("denied").exists()
    assert done.types("approval_granted", "approval_denied") == ["approval_granted", "approval_denied"]
    assert done.one("approval_denied").reason == "denied by the policy of this run"


@ALL_AGENTS
async def test_policy_rules_win_over_yolo(live: LiveAgent) -> None:
    live.script(
        live.answer(Shell("touch allowed", asks=True)),
        live.answer(Shell("touch denied", asks=True)),
        live.answer(Say("Done.")),
    )
    rules = (Rule(decision="deny", commands=("touch denied",), reason="not this one"),)
    done = await live.run(policy=Policy(rules=rules))  # the approval mode yolo decides about everything else
    assert done.result.exit_reason == "completed"
    assert live.file("allowed").exists()
    assert not live.file("denied").exists()
    assert done.one("approval_denied").reason == "not this one"


@ALL_AGENTS
async def test_policy_decides_about_changed_files(live: LiveAgent) -> None:
    live.file("src").mkdir()
    live.script(
        live.answer(Write("src/allowed.txt", "yes\n")),
        live.answer(Write("denied.txt", "no\n")),
        live.answer(Say("Done.")),
    )
    rules = (Rule(decision="allow", paths=("src/**",)), Rule(decision="deny", paths=("denied.txt",)))
    done = await live.run(policy=Policy(rules=rules, default="deny"), approval_mode="prompt")
    assert done.result.exit_reason == "completed"
    assert live.file("src/allowed.txt").read_text() == "yes\n"
    assert not live.file("denied.txt").exists()


@ALL_AGENTS
async def test_policy_decides_about_read_files(live: LiveAgent) -> None:
    live.file("secret.txt").write_text("the secret\n")
    live.script(live.answer(Read("secret.txt")), live.answer(Say("Done.")))
    rules = (Rule(decision="deny", paths=("secret.txt",)),)
    done = await live.run(policy=Policy(rules=rules, default="allow"), approval_mode="prompt")
    assert done.result.exit_reason == "completed"
    assert not live.model.received("the secret")


@ALL_AGENTS
async def test_actions_without_approval_emit_warnings(live: LiveAgent) -> None:
    live.file("secret.txt").write_text("the secret\n")
    live.script(live.answer(Read("secret.txt")), live.answer(Write("denied.txt", "no\n")), live.answer(Say("Done.")))
    rules = (Rule(decision="deny", paths=("secret.txt", "denied.txt")),)
    done = await live.run(policy=Policy(rules=rules, default="allow"), approval_mode="prompt")
    assert not live.model.received("the secret") or warned(done, "secret.txt")
    assert not live.file("denied.txt").exists() or warned(done, "denied.txt")


async def test_approval_timeout_denies(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("As you like.")))
    done = await live.run(approval_mode="prompt", approval_timeout=0.5)
    assert done.result.exit_reason == "completed"
    assert not live.file("made").exists()
    assert done.one("approval_denied").reason == "no answer within 0.5 s"
