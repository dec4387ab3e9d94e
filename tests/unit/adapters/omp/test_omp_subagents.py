"""omp's sub-agents: started by a call, running in the background, ended by their report."""

from typing import Any

from tests.unit.adapters.codec_conversation import codec_of, facts_of, receive
from tests.unit.adapters.pi_family import AGENT_START, agent_end, answer, call_block, result, tool_end, tool_start
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Codec
from agent_mux_adapters.omp import ADAPTER

ALL = Recordings(ADAPTER, "json")
KINDS = (facts.SubagentBegin, facts.SubagentDone, facts.InSubagent)
TASK = call_block("c", "task", agent="explore", task="look around")
USAGE = {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0.25}}


def working(job: str = "KindFox") -> Codec:
    """Return a codec with a sub-agent that runs in the background."""
    codec = codec_of(ADAPTER, "rpc")
    background = result("started", **{"async": {"jobId": job, "state": "running"}})
    receive(codec, AGENT_START, answer(TASK), tool_start("c", "task"), tool_end("c", "task", background))
    return codec


def report(*results: str, custom_type: str = "async-result") -> dict[str, Any]:
    message = {"role": "custom", "customType": custom_type, "content": "\n".join(results)}
    return {"type": "message_end", "message": message}


def task_result(text: str, job: str = "KindFox", status: str = "completed") -> str:
    return f'<task-result id="{job}" agent="explore" status="{status}">\n<output>\n{text}\n</output>\n</task-result>'


def inside(event: dict[str, Any], job: str = "KindFox") -> dict[str, Any]:
    return {"type": "subagent_event", "payload": {"id": job, "event": event}}


def test_task_call_begins_a_sub_agent() -> None:
    codec = codec_of(ADAPTER, "rpc")
    assert facts_of(receive(codec, answer(TASK))) == [facts.SubagentBegin("c", "explore", "look around")]
    assert facts_of(receive(codec, tool_end("c", "task", result("found it")))) == [facts.SubagentDone("c", "found it")]


def test_failed_task_call_ends_the_sub_agent() -> None:
    codec = codec_of(ADAPTER, "rpc")
    receive(codec, answer(TASK))
    failed = tool_end("c", "task", result("no such agent"), is_error=True)
    assert facts_of(receive(codec, failed)) == [facts.SubagentDone("c", "no such agent", "no such agent")]


def test_background_job_ends_with_its_report() -> None:
    codec = working()
    assert facts_of(receive(codec, report(task_result('"found it"'))), *KINDS) == [facts.SubagentDone("c", "found it")]
    assert facts_of(receive(codec, report(task_result("again"))), *KINDS) == []


def test_fetched_report_ends_the_sub_agent() -> None:
    fetched = tool_end("w", "hub", result(f"done:\n{task_result('found it')}"))
    assert facts_of(receive(working(), fetched), *KINDS) == [facts.SubagentDone("c", "found it")]


def test_failure_report_is_an_error() -> None:
    for text, error in (("boom", "boom"), ("", "the sub-agent failed")):
        [done] = facts_of(receive(working(), report(task_result(text, status="failed"))), *KINDS)
        assert done.error == error


def test_unknown_and_broken_reports_are_ignored() -> None:
    codec = working()
    assert facts_of(receive(codec, report(task_result("x", job="OtherFox")), report("<task-result")), *KINDS) == []
    assert facts_of(receive(codec, report(task_result("x"), custom_type="other")), *KINDS) == []
    assert facts_of(receive(codec, report(task_result('"\\ud800'))), *KINDS) == [facts.SubagentDone("c", '"\\ud800')]


def test_sub_agent_without_report_ends_with_the_turn() -> None:
    codec = working()
    assert facts_of(receive(codec, agent_end(isTerminal=False)), *KINDS) == []
    unheard = facts.SubagentDone("c", "the agent received the report without printing it")
    assert facts_of(receive(codec, agent_end(isTerminal=True)), *KINDS) == [unheard]


def test_facts_of_a_sub_agent_are_wrapped() -> None:
    codec = working()
    lines = [
        inside({"type": "agent_start"}),
        inside(answer("looking", call_block("i", "read", path="a"))),
        inside({**tool_start("i", "read", path="a")}),
        inside(tool_end("i", "read", result("x"))),
        inside({"type": "message_end", "message": {"role": "user"}}),
    ]
    done = facts.ToolDone("i", output="x", name="read")
    assert facts_of(receive(codec, *lines)) == [
        facts.InSubagent("c", facts.WholeText("looking")),
        facts.InSubagent("c", facts.ToolReady("i", "read", {"path": "a"})),
        facts.InSubagent("c", done),
    ]


def test_sub_agent_calls_add_cost_but_no_main_usage() -> None:
    codec = working()
    steps = receive(codec, inside(answer("a", usage=USAGE)), inside(answer("b", usage=USAGE)))
    assert facts_of(steps, facts.Usage) == []
    assert facts_of(steps, facts.RunCost)[-1].cost.total_usd == 0.5
    [done] = facts_of(receive(codec, report(task_result("x"))), *KINDS)
    assert done.cost is not None
    assert done.cost.total_usd == 0.5


def test_lifecycle_line_links_job_and_call() -> None:
    codec = codec_of(ADAPTER, "rpc")
    started = {"id": "KindFox", "parentToolCallId": "c", "status": "started"}
    receive(codec, AGENT_START, answer(TASK), {"type": "subagent_lifecycle", "payload": started})
    [text] = facts_of(receive(codec, inside(answer("hi"))), facts.InSubagent)
    assert text == facts.InSubagent("c", facts.WholeText("hi"))


def test_sub_agent_deltas_are_skipped_undecoded() -> None:
    line = b'{"type":"subagent_event","payload":{"id":"KindFox","event":{"type":"message_update",' + b"x" * 1000
    assert facts_of(receive(working(), line)) == []


def test_events_of_unknown_sub_agents_are_ignored() -> None:
    assert facts_of(receive(working(), inside(answer("hi"), job="OtherFox"))) == []


def test_recordings_contain_complete_sub_agents() -> None:
    for name in ("18.2.3/rpc_subagent", "18.2.3/rpc_subagent_injected"):
        events = ALL.events(name, include_subagent_events=True)
        [spawned] = [event for event in events if event.type == "subagent_spawn"]
        [came] = [event for event in events if event.type == "subagent_result"]
        assert came.subagent_id == spawned.subagent_id
        assert any(event.subagent_id == spawned.subagent_id and event.type == "tool_result" for event in events)
