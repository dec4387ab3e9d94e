"""Sub-agents of omp: begun by a call, at work in the background, reported when they are done."""

from typing import Any

from tests.unit.adapters.pi_family import BEGINS, agent_end, answer, call_block, ends, result, starts
from tests.unit.adapters.recordings import Recordings
from tests.unit.adapters.talking import codec_of, facts_of, receive

from agent_mux import facts
from agent_mux.adapter import Codec
from agent_mux_adapters.omp import ADAPTER

ALL = Recordings(ADAPTER, "json")
KINDS = (facts.SubagentBegin, facts.SubagentDone, facts.InSubagent)
TASK = call_block("c", "task", agent="explore", task="look around")
USAGE = {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0.25}}


def working(job: str = "KindFox") -> Codec:
    """A sub-agent works in the background."""
    codec = codec_of(ADAPTER, "rpc")
    background = result("started", **{"async": {"jobId": job, "state": "running"}})
    receive(codec, BEGINS, answer(TASK), starts("c", "task"), ends("c", "task", background))
    return codec


def report(*results: str, custom_type: str = "async-result") -> dict[str, Any]:
    message = {"role": "custom", "customType": custom_type, "content": "\n".join(results)}
    return {"type": "message_end", "message": message}


def task_result(said: str, job: str = "KindFox", status: str = "completed") -> str:
    return f'<task-result id="{job}" agent="explore" status="{status}">\n<output>\n{said}\n</output>\n</task-result>'


def inside(event: dict[str, Any], job: str = "KindFox") -> dict[str, Any]:
    return {"type": "subagent_event", "payload": {"id": job, "event": event}}


def test_a_delegating_call_is_the_beginning_of_a_sub_agent() -> None:
    codec = codec_of(ADAPTER, "rpc")
    assert facts_of(receive(codec, answer(TASK))) == [facts.SubagentBegin("c", "explore", "look around")]
    assert facts_of(receive(codec, ends("c", "task", result("found it")))) == [facts.SubagentDone("c", "found it")]


def test_a_delegation_that_fails_is_the_end_of_it() -> None:
    codec = codec_of(ADAPTER, "rpc")
    receive(codec, answer(TASK))
    failed = ends("c", "task", result("no such agent"), is_error=True)
    assert facts_of(receive(codec, failed)) == [facts.SubagentDone("c", "no such agent", "no such agent")]


def test_work_in_the_background_ends_with_its_report() -> None:
    codec = working()
    assert facts_of(receive(codec, report(task_result('"found it"'))), *KINDS) == [facts.SubagentDone("c", "found it")]
    assert facts_of(receive(codec, report(task_result("again"))), *KINDS) == []


def test_the_agent_may_fetch_the_report_with_a_tool() -> None:
    fetched = ends("w", "hub", result(f"done:\n{task_result('found it')}"))
    assert facts_of(receive(working(), fetched), *KINDS) == [facts.SubagentDone("c", "found it")]


def test_a_report_of_a_failure_is_one() -> None:
    for said, error in (("boom", "boom"), ("", "the sub-agent failed")):
        [done] = facts_of(receive(working(), report(task_result(said, status="failed"))), *KINDS)
        assert done.error == error


def test_reports_may_be_of_somebody_else_or_broken() -> None:
    codec = working()
    assert facts_of(receive(codec, report(task_result("x", job="OtherFox")), report("<task-result")), *KINDS) == []
    assert facts_of(receive(codec, report(task_result("x"), custom_type="other")), *KINDS) == []
    assert facts_of(receive(codec, report(task_result('"\\ud800'))), *KINDS) == [facts.SubagentDone("c", '"\\ud800')]


def test_who_has_not_reported_when_all_is_over_was_heard_by_the_agent_alone() -> None:
    codec = working()
    assert facts_of(receive(codec, agent_end(isTerminal=False)), *KINDS) == []
    unheard = facts.SubagentDone("c", "the agent received the report without printing it")
    assert facts_of(receive(codec, agent_end(isTerminal=True)), *KINDS) == [unheard]


def test_what_happens_inside_is_inside() -> None:
    codec = working()
    lines = [
        inside({"type": "agent_start"}),
        inside(answer("looking", call_block("i", "read", path="a"))),
        inside({**starts("i", "read", path="a")}),
        inside(ends("i", "read", result("x"))),
        inside({"type": "message_end", "message": {"role": "user"}}),
    ]
    done = facts.ToolDone("i", output="x", name="read")
    assert facts_of(receive(codec, *lines)) == [
        facts.InSubagent("c", facts.Text("looking")),
        facts.InSubagent("c", facts.ToolReady("i", "read", {"path": "a"})),
        facts.InSubagent("c", done),
    ]


def test_what_happens_inside_costs_the_run_and_is_no_call_of_the_main_agent() -> None:
    codec = working()
    steps = receive(codec, inside(answer("a", usage=USAGE)), inside(answer("b", usage=USAGE)))
    assert facts_of(steps, facts.Usage) == []
    assert facts_of(steps, facts.RunCost)[-1].cost.total_usd == 0.5
    [done] = facts_of(receive(codec, report(task_result("x"))), *KINDS)
    assert done.cost is not None
    assert done.cost.total_usd == 0.5


def test_a_lifecycle_line_names_the_work_of_a_call() -> None:
    codec = codec_of(ADAPTER, "rpc")
    started = {"id": "KindFox", "parentToolCallId": "c", "status": "started"}
    receive(codec, BEGINS, answer(TASK), {"type": "subagent_lifecycle", "payload": started})
    [said] = facts_of(receive(codec, inside(answer("hi"))), facts.InSubagent)
    assert said == facts.InSubagent("c", facts.Text("hi"))


def test_fragments_inside_are_skipped_without_being_read() -> None:
    line = b'{"type":"subagent_event","payload":{"id":"KindFox","event":{"type":"message_update",' + b"x" * 1000
    assert facts_of(receive(working(), line)) == []


def test_events_of_somebody_unknown_say_nothing() -> None:
    assert facts_of(receive(working(), inside(answer("hi"), job="OtherFox"))) == []


def test_the_recordings_tell_the_whole_story() -> None:
    for name in ("18.2.3/rpc_subagent", "18.2.3/rpc_subagent_injected"):
        events = ALL.events(name, include_subagent_events=True)
        [spawned] = [event for event in events if event.type == "subagent_spawn"]
        [came] = [event for event in events if event.type == "subagent_result"]
        assert came.subagent_id == spawned.subagent_id
        assert any(event.subagent_id == spawned.subagent_id and event.type == "tool_result" for event in events)
