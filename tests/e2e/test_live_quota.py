"""The provider's quota: reported as data, waited for, and left for another agent."""

import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.e2e.harness import LiveAgent
from tests.e2e.ways import BOTH_WAYS, WAYS

from agent_mux import AgentMux, QuotaWindow
from agent_mux_testing.live import KitContext, Say, answer, kit_of, launch
from agent_mux_testing.model_server import ScriptStep
from agent_mux_testing.provision import find_agent

pytestmark = pytest.mark.anyio
OTHER = {"claude": "codex", "codex": "claude"}
RESET = 10
"""Seconds until a quota resets: after the refusal, because Claude Code 2.1.332 omits times in the past."""
ACCOUNT = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-dummy", "ANTHROPIC_API_KEY": ""}
"""Claude Code reports the quota of an account, and none with an API key."""


def headers_of(agent: str, used: float, resets_at: int) -> dict[str, str]:
    """Return the headers with which the provider of an agent reports its quota."""
    if agent == "codex":
        return {
            "x-codex-primary-used-percent": f"{100 * used:.0f}",
            "x-codex-primary-window-minutes": "300",
            "x-codex-primary-reset-at": str(resets_at),
            "x-codex-rate-limit-reached-type": "rate_limit_reached",  # a report, also when the provider still answers
        }
    unified = "anthropic-ratelimit-unified"
    return {
        f"{unified}-status": "rejected" if used >= 1 else "allowed",
        f"{unified}-reset": str(resets_at),
        f"{unified}-5h-utilization": str(used),
        f"{unified}-5h-reset": str(resets_at),
        f"{unified}-representative-claim": "five_hour",
    }


def refusal(live: LiveAgent, resets_at: int) -> ScriptStep:
    """Return the refusal of a provider whose quota is used up until `resets_at`."""
    step = live.refusal("rate_limited")
    assert step.error is not None
    body = step.error.body
    if live.agent == "codex":
        body = {"error": {"type": "usage_limit_reached", "message": "used up", "resets_at": resets_at}}
    return replace(step, error=replace(step.error, body=body, headers=headers_of(live.agent, 1.0, resets_at)))


def options_of(live: LiveAgent, way: str = "two_way") -> dict[str, Any]:
    return {"env": ACCOUNT if live.agent == "claude" else {}, **WAYS[way]}


@BOTH_WAYS
async def test_quota_is_reported(live: LiveAgent, way: str) -> None:
    resets_at = int(time.time()) + 3600
    live.script(replace(live.answer(Say("Hello.")), headers=headers_of(live.agent, 0.91, resets_at)))
    done = await live.run(**options_of(live, way))
    window = QuotaWindow("five_hour", 0.91, resets_at * 1000)
    assert done.result.exit_reason == "completed"
    assert done.result.quota == (window,)
    assert [event.quota for event in done.all("token_usage") if event.quota] == [(window,)]
    assert done.all("rate_limited") == []
    live.assert_usage(done, calls=1)
    known = AgentMux(config_dir=live.config_directory).quota.get(live.agent)
    assert known is not None
    assert (known.windows, known.run_id) == ((window,), done.result.run_id)


async def test_stored_sessions_have_the_quota(live: LiveAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    resets_at = int(time.time()) + 3600
    live.script(replace(live.answer(Say("Hello.")), headers=headers_of(live.agent, 0.91, resets_at)))
    done = await live.run(**options_of(live, "one_shot"))
    for name, value in live.launch.environment.items():
        monkeypatch.setenv(name, value)
    known = AgentMux(config_dir=live.home / "elsewhere").quota.get(live.agent)
    assert known is not None
    assert known.windows == (QuotaWindow("five_hour", 0.91, resets_at * 1000),)
    assert known.session_id == f"{live.agent}:{done.result.session_id}"


async def test_exhausted_quota_is_waited_for(live: LiveAgent) -> None:
    live.script(refusal(live, int(time.time()) + RESET), live.answer(Say("Answered.")))
    done = await live.run(**options_of(live), wait_for_quota=30)
    assert (done.result.exit_reason, done.result.text) == ("completed", "Answered.")
    assert len(done.result.attempts) == 1
    attempt = done.result.attempts[0]
    assert attempt.quota
    assert attempt.quota[0].is_exhausted
    assert attempt.session_id != done.result.session_id
    assert done.types("retry", "rate_limit_error") == ["retry"]
    assert len(live.model.requests) == 2
    live.assert_usage(done, calls=1)


async def test_exhausted_quota_is_an_error_without_a_wait(live: LiveAgent) -> None:
    live.script(refusal(live, int(time.time()) + 3600))
    done = await live.run(**options_of(live), wait_for_quota=30)
    assert done.result.exit_reason == "failed"
    assert done.result.error is not None
    assert done.result.error.code == "RATE_LIMITED"
    assert done.result.quota[0].is_exhausted
    assert any("more than wait_for_quota allows" in event.message for event in done.all("debug"))


async def test_exhausted_quota_falls_back_to_another_agent(live: LiveAgent, tmp_path: Path) -> None:
    assert live.agent in OTHER
    provisioned = find_agent(OTHER[live.agent], None)
    if provisioned is None:
        pytest.skip(f"{OTHER[live.agent]} is not installed")
    kit = kit_of(provisioned.agent)
    live.script(refusal(live, int(time.time()) + 3600), answer(kit, live.workspace, Say("From the other.")))
    other = launch(
        kit, KitContext(url=live.model.url, home=tmp_path / "other", path=provisioned.path), str(provisioned.program)
    )
    ours = live.launch.environment
    given = options_of(live)
    env = {**other.environment, **ours, **given.pop("env"), "PATH": f"{ours['PATH']}:{other.environment['PATH']}"}
    done = await live.run(**given, env=env, fallback=[provisioned.agent])
    assert (done.result.exit_reason, done.result.text) == ("completed", "From the other.")
    assert done.result.agent == provisioned.agent
    (attempt,) = done.result.attempts
    assert attempt.agent == live.agent
    assert attempt.quota[0].is_exhausted
    assert done.one("retry").next_agent == provisioned.agent
    assert {event.agent for event in done.events} == {live.agent, provisioned.agent}
    assert done.result.cost is not None
    assert done.result.cost.output_tokens > 0
    assert done.all("cost")[-1].cost == done.result.cost == done.one("session_end").cost
