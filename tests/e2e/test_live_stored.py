"""Stored sessions agree with the events of the runs that created them."""

import json
from typing import Any

import pytest
from tests.e2e.harness import PROMPT, FinishedRun, LiveAgent
from tests.e2e.terminal import amux
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, CORE, TWO_WAY, WAYS

from agent_mux import CapabilityError
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.summary import SessionFilter
from agent_mux_testing.live import Say, Shell, Write

pytestmark = pytest.mark.anyio


def stored(live: LiveAgent) -> Sessions:
    """Return the sessions in the agent's home. Skipping a file raises AssertionError."""

    def fail(skipped: Any) -> None:
        raise AssertionError(str(skipped))

    if live.adapter.sessions() is None:
        raise CapabilityError(live.agent, "stored sessions")
    return Sessions(environ=live.launch.environment, on_skipped=fail)


def texts(events: Any) -> list[str]:
    return [event.text for event in events if event.type == "message_stop" and event.subagent_id is None]


def calls(events: Any) -> list[tuple[str, Any]]:
    return [(event.tool_name, event.input) for event in events if event.type == "tool_call_ready"]


def assert_session_matches_runs(sessions: Sessions, live: LiveAgent, *runs: FinishedRun) -> None:
    """Assert that the only stored session has the messages, calls and results of these runs."""
    emitted = [event for run in runs for event in run.events]
    found = sessions.list(SessionFilter(agent=live.agent))
    assert len(found) == 1
    summary = found[0]
    assert summary.native_id == runs[-1].result.session_id
    assert summary.cwd == str(live.workspace)
    assert summary.turn_count == len(runs)
    stored_events = list(sessions.events(summary.id))
    assert texts(stored_events) == texts(emitted)
    assert calls(stored_events) == calls(emitted)
    ends = [
        [event.type for event in stream if event.type in {"tool_result", "tool_error"}]
        for stream in (stored_events, emitted)
    ]
    assert ends[0] == ends[1]
    session = sessions.get(summary.native_id)
    answers = [message.text for message in session.messages if message.role == "assistant" and message.text]
    assert answers == texts(emitted)
    used = [(tool.name, tool.input) for message in session.messages for tool in message.tools]
    assert used == calls(emitted)


def assert_costs_match_runs(sessions: Sessions, *runs: FinishedRun) -> None:
    """Assert that the cost of the only session is the sum of the costs of its runs."""
    [summary] = sessions.list()
    costs = [run.result.cost for run in runs]
    assert None not in costs
    for field in ("input_tokens", "output_tokens"):
        assert getattr(summary.cost, field) == sum(getattr(cost, field) for cost in costs)
    if any(cost.source == "native" for cost in costs if cost is not None):
        assert summary.cost.total_usd == pytest.approx(sum(cost.total_usd for cost in costs if cost is not None))


@CORE
@ALL_AGENTS
@BOTH_WAYS
async def test_stored_session(live: LiveAgent, way: str) -> None:
    live.script(
        live.answer(Say("Writing."), Write("a.txt", "one\n")),
        live.answer(Shell("echo out; exit 3")),
        live.answer(Say("All done.")),
    )
    done = await live.run(**WAYS[way])
    sessions = stored(live)
    assert_session_matches_runs(sessions, live, done)
    session = sessions.get(done.result.session_id or "")
    assert session.messages[0].text == PROMPT
    assert_costs_match_runs(sessions, done)


@ALL_AGENTS
@BOTH_WAYS
async def test_stored_session_resumed(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Say("First answer.")))
    first = await live.run("first question", **WAYS[way])
    live.script(live.answer(Shell("echo out")), live.answer(Say("Second answer.")))
    second = await live.run("second question", session_id=first.result.session_id, **WAYS[way])
    sessions = stored(live)
    assert_session_matches_runs(sessions, live, first, second)
    assert_costs_match_runs(sessions, first, second)
    prompts = [
        message.text for message in sessions.get(first.result.session_id or "").messages if message.role == "user"
    ]
    assert prompts == ["first question", "second question"]


@ALL_AGENTS
async def test_stored_session_forked(live: LiveAgent) -> None:
    live.script(live.answer(Say("First answer.")))
    first = await live.run("first question")
    live.script(live.answer(Say("Second answer.")))
    fork = await live.run("second question", fork_session_id=first.result.session_id)
    sessions = stored(live)
    found = {summary.native_id: summary for summary in sessions.list()}
    assert set(found) == {first.result.session_id, fork.result.session_id}
    assert found[fork.result.session_id or ""].turn_count == 2
    difference = sessions.diff(first.result.session_id or "", fork.result.session_id or "")
    assert difference.common == 2
    assert [len(change.removed) for change in difference.changes] == [0]
    # The first call is counted once, although both sessions contain it.
    costs = [run.result.cost for run in (first, fork)]
    [total] = sessions.total_cost().values()
    assert total.input_tokens == sum(cost.input_tokens for cost in costs if cost is not None)


async def test_stored_subagent(live: LiveAgent) -> None:
    """The sub-agent is part of the session of its parent, not a separate session."""
    live.script(*live.delegation("count the files", Say("Three files.")), live.answer(Say("All done.")))
    done = await live.run(**TWO_WAY)
    sessions = stored(live)
    [summary] = sessions.list()
    again = list(sessions.events(summary.id))
    assert texts(again) == texts(done.events)
    kinds = [event.type for event in again if event.type.startswith("subagent_")]
    assert kinds == done.types("subagent_spawn", "subagent_result")
    assert_costs_match_runs(sessions, done)


def test_stored_session_resumes_from_the_command_line(live: LiveAgent) -> None:
    """`amux sessions list`, `show`, `resume`, `fork` and `diff` of one session."""
    live.script(live.answer(Say("First answer.")))
    assert amux(live, "run", *live.agent_arguments, "first question", "--yolo", "--cwd", str(live.workspace)).code == 0
    [listed] = json.loads(amux(live, "sessions", "list", "--json").out)["data"]
    assert (listed["title"], listed["turnCount"]) == ("first question", 1)
    live.script(live.answer(Shell("touch made")), live.answer(Say("Second answer.")))
    resumed = amux(live, "sessions", "resume", listed["nativeId"][:13], "second question", "--yolo")
    assert (resumed.code, resumed.out) == (0, "Second answer.\n"), resumed
    assert live.file("made").exists()  # in the session's own directory
    assert "Second answer." in amux(live, "sessions", "show", listed["id"]).out
    live.script(live.answer(Say("Another answer.")))
    forked = amux(live, "sessions", "fork", listed["id"], "another question", "--yolo")
    assert (forked.code, forked.out) == (0, "Another answer.\n"), forked
    summaries = json.loads(amux(live, "sessions", "list", "--json").out)["data"]
    assert [summary["turnCount"] for summary in summaries] == [3, 2]
    compared = amux(live, "sessions", "diff", *(summary["id"] for summary in reversed(summaries)))
    assert compared.code == 1
    assert "+ user: another question" in compared.out


@ALL_AGENTS
async def test_stored_session_is_renamed_and_deleted(live: LiveAgent) -> None:
    """The agent's own commands change its sessions; an agent without them is refused with the next step."""
    live.script(live.answer(Say("All done.")))
    commands, sessions = live.adapter.installation().sessions, stored(live)
    done = await live.run("remember 7", **TWO_WAY)
    session = f"{live.agent}:{done.result.session_id}"
    renamed = amux(live, "sessions", "rename", session, "Seven and more", "--json")
    can_rename, can_delete = commands is not None and commands.rename, commands is not None and commands.delete
    assert renamed.code == (0 if can_rename else 6), renamed
    assert not can_rename or sessions.find(session).summary.title == "Seven and more"
    assert can_rename or "amux sessions tag" in renamed.out
    deleted = amux(live, "sessions", "delete", session, "--yes", "--json")
    assert deleted.code == (0 if can_delete else 6), deleted
    assert len(sessions.list(SessionFilter(agent=live.agent))) == (0 if can_delete else 1)
