"""Runs are traced while they run, however they end."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry.propagate import inject
from tests.process.installed_command import Installed
from tests.process.scripted import MakeClient, scripted_adapter
from tests.unit.redaction.key_samples import SAMPLES
from tests.unit.telemetry.recorder import Recorder, attributes

from agent_mux import AgentMux, Approve, BlockingAgentMux, decode_event, encode_event
from agent_mux.run.derivation import derive_events
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.telemetry.otel import instrument, observe_events

pytestmark = pytest.mark.anyio
FIXTURES = Path(__file__).parents[2] / "fixtures"
BOUND = 60.0
HELLO = (
    "read(); emit(session='S'); emit(call=1); emit(text='hello'); emit(used=[5, 2]); emit(cost=0.5); "
    "emit(done=True); drain()"
)
SHELL = "read(); emit(session='S'); emit(call=1); emit(shell='rm x'); emit(text='working'); drain()"
TRACED = "read(); emit(session='S'); emit(text=os.environ.get('TRACEPARENT', 'none')); emit(done=True); drain()"
TREE = ["invoke_agent scripted", "  turn 0", "    chat"]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def names(recorder: Recorder) -> list[str]:
    return [line.partition(" [")[0] for line in recorder.tree()]


async def carry_out(mux: AgentMux, **options: Any) -> Any:
    with anyio.fail_after(BOUND):
        async with mux:
            return await mux.run(prompt="hi", **options)


async def test_client_traces_its_runs(make_client: MakeClient, recorder: Recorder) -> None:
    mux = make_client(HELLO)
    stop = instrument(mux, **recorder.providers)
    with anyio.fail_after(BOUND):
        async with mux:
            results = [await mux.run(prompt="hi", model="m", run_id=None) for _ in range(2)]
            stop()
            stop()
            await mux.run(prompt="hi")
    assert names(recorder) == [line + (" m" if "chat" in line else "") for line in TREE] * 2
    roots = [attributes(span) for span in recorder.spans if span.parent is None]
    assert sorted(root["agent_mux.run.id"] for root in roots) == sorted(result.run_id for result in results)
    assert {root["gen_ai.request.model"] for root in roots} == {"m"}
    assert {root["agent_mux.cost.usd"] for root in roots} == {0.5}
    assert recorder.measured()["agent_mux.runs"] == {("scripted", "completed"): 2}
    assert recorder.measured()["gen_ai.client.token.usage"] == {
        ("scripted", "m", "chat", "m", "input"): 10,
        ("scripted", "m", "chat", "m", "output"): 4,
    }


async def test_trace_of_a_live_run_equals_that_of_its_journal(make_client: MakeClient, recorder: Recorder) -> None:
    with anyio.fail_after(BOUND):
        async with make_client(HELLO) as mux:
            run = mux.run(prompt="hi")
            instrument(run, **recorder.providers)
            events = [event async for event in run]
    assert names(recorder) == TREE
    again = Recorder()
    observe_events([decode_event(encode_event(event)) for event in events], **again.providers)
    assert names(again) == names(recorder)
    assert run.journal is not None
    derived = Recorder()
    observe_events(derive_events(Path(run.journal), run.adapter.protocols["lines"].codec), **derived.providers)
    assert derived.tree() == again.tree()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claude/2.1.330/tool_bash", "codex/0.169.0/as_exec"])
async def test_replayed_session_is_traced(name: str, recorder: Recorder, tmp_path: Path) -> None:
    mux = AgentMux(default_agent="replay", config_dir=tmp_path)
    instrument(mux, **recorder.providers)
    with anyio.fail_after(BOUND):
        async with mux:
            run = mux.run(prompt=str(FIXTURES / name), env={"AMUX_REPLAY_SPEED": "0"}, approval_mode="yolo")
            result = await run
    assert result.exit_reason == "completed"
    chats = [attributes(span) for span in recorder.spans if span.name.startswith("chat")]
    assert len(chats) >= 2
    assert {chat.get("gen_ai.response.model") for chat in chats} == {run.model}
    assert any(span.name.startswith("execute_tool") for span in recorder.spans)
    assert attributes(recorder.spans[-1])["gen_ai.conversation.id"] == result.session_id


@pytest.mark.parametrize(
    ("body", "options", "reason", "error"),
    [
        (SHELL, {"timeout": 0.5}, "timeout", "TIMEOUT"),
        (SHELL, {"inactivity_timeout": 0.3}, "inactivity", "INACTIVITY_TIMEOUT"),
        ("read(); emit(session='S'); emit(text='x'); os._exit(3)", {}, "crashed", "AGENT_CRASH"),
        ("read(); emit(session='S'); emit(text='x'); os.kill(os.getpid(), 9)", {}, "killed", "AGENT_CRASH"),
        ("read(); emit(text='x')", {}, "truncated", "AGENT_CRASH"),
        ("read(); emit(failed='RATE_LIMITED'); drain()", {}, "failed", "RATE_LIMITED"),
        (HELLO, {"max_cost_usd": 0.1}, "budget", "BUDGET_EXCEEDED"),
    ],
)
async def test_every_exit_reason_ends_the_spans(
    make_client: MakeClient, recorder: Recorder, body: str, options: dict[str, Any], reason: str, error: str
) -> None:
    mux = make_client(body)
    instrument(mux, **recorder.providers)
    result = await carry_out(mux, approval_mode="yolo", **options)
    root = attributes(recorder.span("invoke_agent scripted"))
    assert (result.exit_reason, root["agent_mux.exit_reason"], root["error.type"]) == (reason, reason, error)
    assert recorder.measured()["agent_mux.runs"] == {("scripted", reason): 1}


async def test_a_run_that_never_starts_has_a_span(make_client: MakeClient, recorder: Recorder) -> None:
    mux = make_client("", argv=("/not/there",))
    instrument(mux, **recorder.providers)
    await carry_out(mux)
    assert attributes(recorder.span("invoke_agent scripted"))["agent_mux.exit_reason"] == "crashed"


async def test_leaving_the_client_ends_the_spans(make_client: MakeClient, recorder: Recorder) -> None:
    mux = make_client(SHELL)
    instrument(mux, **recorder.providers)
    with anyio.fail_after(BOUND):
        async with mux:
            run = mux.run(prompt="hi", approval_mode="yolo", grace_period=0.5)
            async for event in run:
                if event.type == "tool_call_ready":
                    break
    assert sorted(names(recorder)) == sorted([*TREE, "    execute_tool Shell"])
    assert attributes(recorder.span("invoke_agent scripted"))["agent_mux.exit_reason"] == "aborted"


async def test_run_span_is_below_the_active_span_and_above_the_agent(
    make_client: MakeClient, recorder: Recorder
) -> None:
    mux = make_client(TRACED)
    instrument(mux, **recorder.providers)
    tracer = recorder.tracers.get_tracer("application")
    with anyio.fail_after(BOUND):
        async with mux:
            with tracer.start_as_current_span("application"):
                run = mux.run(prompt="hi")
            result = await run
            named = await mux.run(prompt="hi", env={"TRACEPARENT": "mine"})
    application = recorder.span("application")
    root = next(span for span in recorder.spans if span.name.startswith("invoke_agent"))
    assert root.parent is not None
    assert root.parent.span_id == application.context.span_id
    assert result.text.startswith(f"00-{root.context.trace_id:032x}-{root.context.span_id:016x}-")
    assert named.text == "mine"


async def test_active_span_reaches_the_agent_of_an_untraced_run(make_client: MakeClient, recorder: Recorder) -> None:
    carrier: dict[str, str] = {}
    with anyio.fail_after(BOUND):
        async with make_client(TRACED) as mux:
            with recorder.tracers.get_tracer("application").start_as_current_span("application"):
                inject(carrier)
                result = await mux.run(prompt="hi")
            alone = await mux.run(prompt="hi")
    assert (result.text, alone.text) == (carrier["traceparent"], "none")


async def test_captured_content_contains_no_secrets(make_client: MakeClient, recorder: Recorder) -> None:
    body = (
        "read(); emit(session='S'); emit(call=1); emit(text='it is ' + os.environ['OWN_API_KEY'] + ' indeed '); "
        "emit(shell='curl -H ' + os.environ['OWN_API_KEY']); print(os.environ['OWN_API_KEY'], file=sys.stderr); "
        "sys.stderr.flush(); os._exit(2)"
    )
    mux = make_client(body)
    instrument(mux, **recorder.providers, capture_content=True)
    own = "own-k3y-of-the-run"
    with anyio.fail_after(BOUND):
        async with mux:
            await mux.run(
                prompt=f"use {SAMPLES['npm']}", env={"OWN_API_KEY": own}, on_approval_request=lambda _: Approve()
            )
    content = recorder.everything()
    assert "it is *" in content
    assert "use npm_*" in content
    assert not [secret for secret in (own, SAMPLES["npm"]) if secret in content]


def test_blocking_client_traces_its_runs(recorder: Recorder, tmp_path: Path) -> None:
    registry = AdapterRegistry()
    registry.register(scripted_adapter(HELLO))
    with BlockingAgentMux(adapters=registry, default_agent="scripted", config_dir=tmp_path) as mux:
        instrument(mux, **recorder.providers)
        with recorder.tracers.get_tracer("application").start_as_current_span("application"):
            run = mux.run(prompt="hi")
        run.result()
    assert names(recorder) == ["application", *(f"  {line}" for line in TREE)]


SET_UP = """
import os
if "TRACES" in os.environ:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
    provider = TracerProvider()
    out = open(os.environ["TRACES"], "a")
    exporter = ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\\n")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
"""


@pytest.mark.slow
def test_command_is_traced_if_opentelemetry_is_configured(tmp_path: Path) -> None:
    installed = Installed(tmp_path)
    (tmp_path / "site" / "sitecustomize.py").write_text(SET_UP)
    traces = tmp_path / "traces"
    done = installed.run("run", "scripted", "hi", body=HELLO, TRACES=str(traces))
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert sorted(json.loads(line)["name"] for line in traces.read_text().splitlines()) == sorted(
        line.strip() for line in TREE
    )
