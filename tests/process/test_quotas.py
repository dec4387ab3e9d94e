"""Runs whose provider refuses: quota as data, waiting for the reset, and falling back. Every wait is bounded."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.process.checked_runs import run_to_end, types, watch
from tests.process.local_and_remote import LocalOnly, local_only
from tests.process.scripted import MakeClient

from agent_mux import AgentMuxError, QuotaWindow, RetryPolicy, RunResult
from agent_mux.client.fallbacks import with_fallbacks

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]

COUNTED = """
from pathlib import Path
tries = Path("tries"); number = len(tries.read_text()) if tries.exists() else 0; tries.write_text("x" * (number + 1))
read(); emit(session=f"S{number}")
"""
REFUSED = "emit(cost=0.25); emit(failed='RATE_LIMITED'); drain(); sys.exit()"
EXHAUSTED = f"{COUNTED}\nemit(quota=[['five_hour', 1.0, int(time.time() * 1000) + 100]])\nif number < 1: {REFUSED}\n"
LATER = f"read(); emit(session='A1'); emit(quota=[['seven_day', 1.0, 4102444800000]]); {REFUSED}"
DONE = "emit(cost=0.5); emit(done=True); drain()"
ANSWER = f"read(); emit(session='B1'); emit(text=os.environ['SCRIPTED_MODEL'] or 'other'); {DONE}"


async def run_with_others(
    make_client: MakeClient, body: str, others: dict[str, str], client: dict[str, Any] | None = None, **fields: Any
) -> tuple[list[Any], RunResult]:
    with anyio.fail_after(20):
        async with make_client(body, others=others, **(client or {})) as mux:
            return await watch(mux.run(**{"prompt": "hi", **fields}))


async def test_reported_quota_is_in_the_result_and_in_an_event(make_client: MakeClient) -> None:
    body = (
        "read(); emit(text='x'); emit(quota=[['five_hour', 0.91, 1795300000000], ['seven_day', 0.2]])\n"
        "emit(used=[4, 1]); emit(quota=[['five_hour', 0.91, 1795300000000]])\n"
        "emit(quota=[['five_hour', 0.92]]); emit(done=True); drain()"
    )
    events, result = await run_to_end(make_client, body)
    last = (QuotaWindow("five_hour", 0.92), QuotaWindow("seven_day", 0.2))
    assert result.quota == last
    reports = [event.quota for event in events if event.type == "token_usage"]
    assert reports == [(QuotaWindow("five_hour", 0.91, 1795300000000), last[1]), (), last]
    assert types(events, "rate_limited") == []
    assert result.token_usage is not None
    assert (result.token_usage.input_tokens, result.token_usage.output_tokens) == (4, 1)


async def test_run_without_a_report_has_no_quota(make_client: MakeClient) -> None:
    _, result = await run_to_end(make_client, "read(); emit(text='x'); emit(done=True); drain()")
    assert (result.quota, result.attempts) == ((), ())
    assert not {"quota", "attempts"} & result.to_dict().keys()


# -- waiting


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 15])
async def test_run_waits_for_the_reset_and_starts_again(make_client: MakeClient, tmp_path: Path, limit: float) -> None:
    body = f"{EXHAUSTED}\nemit(text='answer'); emit(cost=0.5); emit(done=True); drain()"
    events, result = await run_to_end(make_client, body, wait_for_quota=limit, cwd=tmp_path)
    assert (result.exit_reason, result.text, result.session_id) == ("completed", "answer", "S1")
    retries = [(event.attempt, event.max_attempts, event.next_agent) for event in events if event.type == "retry"]
    assert retries == [(1, 0, None)]
    assert [(attempt.session_id, attempt.cost and attempt.cost.total_usd) for attempt in result.attempts] == [
        ("S0", 0.25)
    ]
    assert result.cost is not None
    assert result.cost.total_usd == 0.75


async def test_run_does_not_wait_longer_than_allowed(make_client: MakeClient) -> None:
    events, result = await run_to_end(make_client, LATER, wait_for_quota=5)
    assert (result.exit_reason, result.error and result.error.code) == ("failed", "RATE_LIMITED")
    assert types(events, "retry") == []
    assert [event.message for event in events if event.type == "debug" and "more than wait_for_quota" in event.message]


async def test_run_does_not_wait_for_an_unknown_reset(make_client: MakeClient) -> None:
    events, result = await run_to_end(make_client, f"read(); {REFUSED}", wait_for_quota=0)
    assert (result.exit_reason, result.error and result.error.code) == ("failed", "RATE_LIMITED")
    notes = [event.message for event in events if event.type == "debug"]
    assert notes == ["this run does not wait for the quota: the provider did not report when it resets"]


async def test_run_that_waits_can_be_aborted(make_client: MakeClient) -> None:
    with anyio.fail_after(20):
        async with make_client(LATER) as mux:
            run = mux.run(prompt="hi", wait_for_quota=0)
            async for event in run:
                if event.type == "retry":
                    await run.abort()
            events, result = await watch(run)
    assert result.exit_reason == "aborted"
    assert types(events, "retry", "aborted") == ["retry", "aborted"]


@pytest.mark.slow
async def test_timeout_includes_the_wait(make_client: MakeClient) -> None:
    _, result = await run_to_end(make_client, LATER, wait_for_quota=0, timeout=1)
    assert result.exit_reason == "timeout"


# -- falling back


async def test_refused_run_falls_back_to_another_agent(make_client: MakeClient) -> None:
    events, result = await run_with_others(make_client, LATER, {"other": ANSWER}, fallback=["other:big"], model="small")
    assert (result.exit_reason, result.text) == ("completed", "big")
    assert (result.agent, result.model, result.session_id, result.quota) == ("other", "big", "B1", ())
    (attempt,) = result.attempts
    assert (attempt.agent, attempt.model, attempt.session_id) == ("scripted", "small", "A1")
    assert attempt.reason == "the agent reported a failure"
    assert attempt.quota == (QuotaWindow("seven_day", 1.0, 4102444800000),)
    assert result.cost is not None
    assert (result.cost.total_usd, result.cost.source) == (0.75, "native")
    (retry,) = (event for event in events if event.type == "retry")
    assert (retry.agent, retry.next_agent, retry.next_model, retry.delay_ms) == ("scripted", "other", "big", 0)
    change = events.index(retry)
    assert {event.agent for event in events[: change + 1]} == {"scripted"}
    assert {event.agent for event in events[change + 1 :]} == {"other"}
    assert types(events, "session_start", "session_end") == ["session_start", "session_end"]


async def test_other_agent_gets_no_model_of_the_first(make_client: MakeClient) -> None:
    _, result = await run_with_others(make_client, LATER, {"other": ANSWER}, fallback=["other"], model="small")
    assert (result.agent, result.model, result.text) == ("other", None, "other")


async def test_refused_run_falls_back_to_another_model(make_client: MakeClient, tmp_path: Path) -> None:
    body = f"{COUNTED}\nif number < 1: {REFUSED}\nemit(text=os.environ['SCRIPTED_MODEL']); emit(done=True); drain()"
    events, result = await run_to_end(make_client, body, fallback=["scripted:big"], model="small", cwd=tmp_path)
    assert (result.exit_reason, result.text, result.model, result.session_id) == ("completed", "big", "big", "S1")
    assert [(event.next_agent, event.next_model) for event in events if event.type == "retry"] == [("scripted", "big")]


async def test_last_refusal_is_the_result(make_client: MakeClient) -> None:
    others = {"second": LATER, "third": LATER}
    events, result = await run_with_others(make_client, LATER, others, fallback=["second", "third"])
    assert (result.exit_reason, result.agent, result.error and result.error.code) == ("failed", "third", "RATE_LIMITED")
    assert [attempt.agent for attempt in result.attempts] == ["scripted", "second"]
    assert [(event.attempt, event.next_agent) for event in events if event.type == "retry"] == [
        (1, "second"),
        (2, "third"),
    ]
    assert types(events, "rate_limit_error") == ["rate_limit_error"]


@pytest.mark.parametrize("end", ["sys.exit(4)", "emit(failed='AUTH_ERROR'); drain()", "emit(failed='AGENT_CRASH')"])
async def test_other_failures_do_not_fall_back(make_client: MakeClient, end: str) -> None:
    _, result = await run_with_others(
        make_client, f"read(); emit(text='x'); {end}", {"other": ANSWER}, fallback=["other"]
    )
    assert (result.agent, result.attempts) == ("scripted", ())
    assert result.exit_reason in {"crashed", "failed"}


async def test_retries_come_before_the_fallback(make_client: MakeClient, tmp_path: Path) -> None:
    policy = RetryPolicy(max_attempts=2, base_delay=0.01, jitter=0)
    events, result = await run_with_others(
        make_client, f"{COUNTED}\n{REFUSED}", {"other": ANSWER}, fallback=["other"], retry_policy=policy, cwd=tmp_path
    )
    assert (result.agent, result.exit_reason) == ("other", "completed")
    assert [(event.attempt, event.next_agent) for event in events if event.type == "retry"] == [(1, None), (2, "other")]
    assert result.cost is not None
    assert result.cost.total_usd == 1.0


@pytest.mark.slow
async def test_wait_comes_before_the_fallback_if_it_is_short(make_client: MakeClient, tmp_path: Path) -> None:
    body = f"{EXHAUSTED}\nemit(text='first'); emit(done=True); drain()"
    _, result = await run_with_others(
        make_client, body, {"other": ANSWER}, fallback=["other"], wait_for_quota=15, cwd=tmp_path
    )
    assert (result.agent, result.text) == ("scripted", "first")


@pytest.mark.slow
@local_only(LocalOnly.INTERNALS)
async def test_fallback_takes_a_slot_of_its_agent(make_client: MakeClient) -> None:
    slow = "read(); emit(text='x'); time.sleep(1); emit(done=True); drain()"
    with anyio.fail_after(20):
        async with make_client(
            LATER, others={"other": slow}, max_concurrent_runs_per_agent={"other": 1, "scripted": 1}
        ) as mux:
            blocking = mux.run(agent="other", prompt="hi")
            run = mux.run(prompt="hi", fallback=["other"])
            await anyio.lowlevel.checkpoint()
            started = mux.run(prompt="hi")  # the slot of the first agent becomes free
            assert (await started).agent == "scripted"
            assert not run.withdraw()
            result, first = await run, await blocking
    assert (result.agent, result.exit_reason, first.exit_reason) == ("other", "completed", "completed")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"fallback": ["nobody"]}, "AGENT_NOT_FOUND"),
        ({"fallback": [""]}, "VALIDATION_ERROR"),
        ({"fallback": "other"}, "VALIDATION_ERROR"),
        ({"wait_for_quota": -1}, "VALIDATION_ERROR"),
    ],
)
@local_only(LocalOnly.INTERNALS)
async def test_bad_fallback_is_refused_before_the_start(
    make_client: MakeClient, fields: dict[str, Any], error: str
) -> None:
    async with make_client(LATER, others={"other": ANSWER}) as mux:
        with pytest.raises(AgentMuxError) as raised:
            mux.run(prompt="hi", **fields)
    assert raised.value.code == error


@local_only(LocalOnly.INTERNALS)
async def test_other_agent_does_not_continue_a_session(make_client: MakeClient) -> None:
    async with make_client(LATER, others={"other": ANSWER}) as mux:
        plan = mux.plan(prompt="hi")
        options = replace(plan.requested_options, session_id="S1", fallback=["other", "scripted:big"])
        resumed = with_fallbacks(
            replace(plan, requested_options=options), mux.adapters, lambda one: mux.plan(replace(one, session_id=None))
        )
    assert resumed.spawn.notes == ("fallback other is not used: other cannot continue a session of scripted",)
    assert [(one.adapter.agent, one.options.model, one.run_id) for one in resumed.fallbacks] == [
        ("scripted", "big", plan.run_id)
    ]


@pytest.mark.parametrize("fallback", [["scripted"], ["scripted:small"]])
async def test_fallback_to_the_run_itself_is_skipped(make_client: MakeClient, fallback: list[str]) -> None:
    _, result = await run_to_end(make_client, LATER, fallback=fallback, model="small")
    assert (result.error and result.error.code, result.attempts) == ("RATE_LIMITED", ())


async def test_conversation_is_not_ended_by_a_refusal(make_client: MakeClient) -> None:
    body = "read(); emit(failed='RATE_LIMITED'); drain()"
    with anyio.fail_after(20):
        async with make_client(body, others={"other": ANSWER}) as mux:
            run = mux.run(prompt="hi", fallback=["other"], interactive=True)
            events, result = await watch(run)
    assert (result.agent, result.attempts) == ("scripted", ())
    assert types(events, "retry") == []
