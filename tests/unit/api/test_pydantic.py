"""Public classes in pydantic: accepted as instances and as JSON, written as `to_dict()`, described for OpenAPI."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pydantic
import pytest
from hypothesis import given
from pydantic import BaseModel, Field, TypeAdapter
from pydantic_core import PydanticSerializationError
from tests.unit.events.event_strategies import EVENTS
from tests.unit.run.test_result_wire import results

from agent_mux import (
    AgentEvent,
    Attachment,
    Breach,
    McpServer,
    PendingInteraction,
    Policy,
    RetryPolicy,
    Rule,
    RunError,
    RunOptions,
    RunResult,
    TokenUsage,
    Worktree,
)
from agent_mux.errors import FieldError
from agent_mux.events import (
    ALL_EVENTS,
    BaseEvent,
    CostEvent,
    CostRecord,
    MessageStopEvent,
    TextDeltaEvent,
    ToolResultEvent,
    UnknownEvent,
    decode_event,
    encode_event,
    event_to_dict,
)
from agent_mux.run.ledger import Ledger
from agent_mux.sdk.interactions import ApprovalDetail, Approve, Choice, Deny, InputDetail, Response, Text

PAGE = Path(__file__).parents[3] / "docs/reference/events.md"
WHO = {"runId": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "agent": "claude", "timestamp": 1712345678901}
EVENT = TypeAdapter(AgentEvent)
RESULT = TypeAdapter(RunResult)
SAMPLES: dict[str, str] = {
    json.loads(line)["type"]: line for line in PAGE.read_text("utf-8").splitlines() if line.startswith('{"type"')
}
BY_TYPE = {event.type: event for event in ALL_EVENTS}


def errors_of(adapter: TypeAdapter[Any], data: Any) -> list[tuple[str, tuple[Any, ...], str]]:
    """Return type, location and message of each error; type and location are the same for JSON."""
    with pytest.raises(pydantic.ValidationError) as caught:
        adapter.validate_python(data)
    with pytest.raises(pydantic.ValidationError) as caught_json:
        adapter.validate_json(json.dumps(data))
    found = [(one["type"], one["loc"], one["msg"]) for one in caught.value.errors()]
    assert [(one["type"], one["loc"]) for one in caught_json.value.errors()] == [one[:2] for one in found]
    return found


def sample(kind: str) -> Any:
    """Return the event of a type that its reference page has as an example."""
    return decode_event(SAMPLES[kind])


# Import


def test_a_run_does_not_import_pydantic(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom agent_mux import BlockingAgentMux, AgentEvent, RunOptions\n"
        "with BlockingAgentMux() as mux:\n"
        "    result = mux.run(agent='replay', prompt='demo', approval_mode='yolo').result()\n"
        "print(result.exit_reason, 'pydantic' in sys.modules, 'pydantic_core' in sys.modules)"
    )
    variables = {"AMUX_REPLAY_SPEED": "0", "AGENT_MUX_CONFIG_DIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=variables,
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["completed", "False", "False"]


def test_events_have_no_dict_and_are_not_tracked_by_the_garbage_collector() -> None:
    for kind in (*ALL_EVENTS, CostRecord):
        assert not hasattr(kind, "__dict__") or not kind.__dictoffset__
        assert not kind.__struct_config__.gc


# Events


@pytest.mark.slow
@given(EVENTS)
def test_an_event_is_accepted_and_written_as_in_a_stream(event: Any) -> None:
    assert EVENT.validate_python(event) is event
    line = encode_event(event)
    assert EVENT.validate_json(line) == event
    assert EVENT.validate_python(json.loads(line)) == event
    assert json.dumps(json.loads(EVENT.dump_json(event))) == json.dumps(json.loads(line))  # the order of keys, too
    assert EVENT.dump_python(event) == event_to_dict(event)
    assert EVENT.dump_python(event, mode="json") == json.loads(line)


@pytest.mark.parametrize("kind", BY_TYPE)
def test_every_class_of_event_is_a_type_of_its_own(kind: str) -> None:
    event, adapter = sample(kind), TypeAdapter(BY_TYPE[kind])
    assert adapter.validate_json(adapter.dump_json(event)) == event
    other = sample("log" if kind == "debug" else "debug")
    (error,) = errors_of(adapter, event_to_dict(other))
    assert error == ("invalid_value", ("type",), f"Invalid value {other.type!r}; expected {kind!r}")


def test_text_that_json_cannot_represent_is_sanitized_as_in_a_stream() -> None:
    event = MessageStopEvent("r", "claude", 1, text="\ud800")
    assert json.loads(EVENT.dump_json(event)) == json.loads(encode_event(event))


def test_a_number_that_json_cannot_represent_is_null_as_in_a_stream() -> None:
    event = ToolResultEvent("r", "claude", 1, tool_call_id="t", tool_name="n", output=math.nan, duration_ms=1)
    assert json.loads(EVENT.dump_json(event)) == json.loads(encode_event(event))
    assert json.loads(EVENT.dump_json(event))["output"] is None


def test_a_compact_delta_is_accepted() -> None:
    event = EVENT.validate_python({"type": "text_delta", **WHO, "delta": "hi"})
    assert event.accumulated == "hi"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            {"type": "message_stop", **WHO},
            ("missing", ("message_stop", "text"), "Object missing required field `text`"),
        ),
        (
            {"type": "cost", **WHO, "cost": {"totalUsd": 1, "inputTokens": "1", "outputTokens": 1}},
            ("invalid_value", ("cost", "cost", "inputTokens"), "Expected `int`, got `str`"),
        ),
        (
            {"type": "cost", **WHO, "cost": {"totalUsd": -1, "inputTokens": 1, "outputTokens": 1}},
            ("invalid_value", ("cost", "cost", "totalUsd"), "Expected `float` >= 0.0"),
        ),
    ],
)
def test_errors_of_an_event_have_the_location_and_the_message_of_ours(data: Any, expected: Any) -> None:
    assert errors_of(EVENT, data) == [expected]


@pytest.mark.parametrize("data", [{}, {"type": "no_such"}, {"type": []}, 5, "x", None, [], {"type": None}])
def test_other_values_are_validation_errors(data: Any) -> None:
    for kind in (
        AgentEvent,
        BaseEvent,
        TextDeltaEvent,
        UnknownEvent,
        RunResult,
        RunOptions,
        PendingInteraction,
        CostRecord,
        Ledger,
    ):
        if not (data == {"type": "no_such"} and kind in {BaseEvent, UnknownEvent}):
            assert errors_of(TypeAdapter(kind), data)


def test_base_event_is_any_event_and_those_of_newer_peers() -> None:
    adapter = TypeAdapter(BaseEvent)
    newer = {"type": "hologram", **WHO, "depth": 3}
    event = adapter.validate_python(newer)
    assert isinstance(event, UnknownEvent)
    assert json.loads(adapter.dump_json(event)) == newer
    assert adapter.validate_python(event_to_dict(sample("log"))) == sample("log")
    assert errors_of(TypeAdapter(UnknownEvent), event_to_dict(sample("log")))
    jsonschema.validate(newer, TypeAdapter(UnknownEvent).json_schema())


def test_a_union_of_some_events_has_a_discriminator() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[TextDeltaEvent | CostEvent, Field(discriminator="type")])
    assert adapter.validate_python(event_to_dict(sample("cost"))) == sample("cost")
    assert adapter.json_schema()["discriminator"]["mapping"]["cost"] == "#/$defs/CostEvent"
    ((kind, _, _),) = errors_of(adapter, event_to_dict(sample("log")))
    assert kind == "union_tag_invalid"


@pytest.mark.parametrize("value", [-(2**70), 1e400, 0])
def test_numbers_out_of_range_are_validation_errors(value: Any) -> None:
    with pytest.raises(pydantic.ValidationError):
        EVENT.validate_python({"type": "message_start", **WHO, "timestamp": value})


def test_a_value_that_is_nested_too_deeply_is_written_as_in_a_stream() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    event = EVENT.validate_python({"type": "tool_call_ready", **WHO, "toolCallId": "t", "toolName": "n", "input": deep})
    assert EVENT.dump_json(event) == encode_event(event)


# Results


@given(results)
def test_a_result_is_accepted_and_written_as_to_dict(result: RunResult) -> None:
    plain = result.to_dict()
    assert RESULT.validate_python(result) is result
    assert RESULT.dump_python(result) == plain
    assert json.dumps(json.loads(RESULT.dump_json(result))) == json.dumps(plain)
    read = RESULT.validate_json(RESULT.dump_json(result))
    assert read == result
    assert read.text == result.text


def a_result(**fields: Any) -> RunResult:
    plain = {
        "type": "run_result", "runId": WHO["runId"], "agent": "claude", "text": "done", "exitReason": "completed",
        "durationMs": 5, "turnCount": 1, "ledger": Ledger().to_dict(), **fields,
    }  # fmt: skip
    return RESULT.validate_python(plain)


@pytest.mark.parametrize(
    ("changes", "location"),
    [
        ({"durationMs": "soon"}, ("durationMs",)),
        ({"exitReason": "tired"}, ("exitReason",)),
        ({"cost": {"totalUsd": 1, "inputTokens": 1}}, ("cost", "outputTokens")),
        ({"error": {"code": "NOPE", "message": "", "recoverable": False}}, ("error", "code")),
        ({"events": [{"type": "log"}]}, ("events", 0, "runId")),
        ({"events": [5]}, ("events", 0)),
        ({"tags": "x"}, ("tags",)),
    ],
)
def test_errors_of_a_result_have_locations(changes: dict[str, Any], location: tuple[Any, ...]) -> None:
    ((_, found, _),) = errors_of(RESULT, {**a_result().to_dict(), **changes})
    assert found == location


def test_null_means_absent_in_a_result() -> None:
    assert a_result(model=None, cost=None) == a_result()


def test_fields_of_a_result_can_be_excluded() -> None:
    result = a_result(events=[event_to_dict(sample("log"))])
    assert set(RESULT.dump_python(result, include={"text", "exitReason"})) == {"text", "exitReason"}
    assert "events" not in RESULT.dump_python(result, exclude={"events"})
    assert "events" not in json.loads(RESULT.dump_json(result, exclude={"events"}))
    report = Report(result=result)
    assert "ledger" not in report.model_dump(exclude={"result": {"ledger": True}})["result"]
    assert "raw" not in RESULT.dump_python(result, exclude={"events": {0: {"raw"}}})["events"][0]


# Options, interactions and other values

PENDING = PendingInteraction(
    "i", "approval", "r", "run it?", ApprovalDetail("run", "ls", "Bash", "low", command="ls", paths=("/a",)), 5
)
QUESTION = PendingInteraction("i", "input", "r", "which?", InputDetail("which?", None, ("a", "b"), "agent"), 5)
OPTIONS = RunOptions(
    agent="claude",
    prompt=["a", "b"],
    cwd=Path("/tmp"),
    env={"A": "b"},
    timeout=1.5,
    policy=Policy(rules=(Rule(decision="deny", commands=("git push",)),)),
    retry_policy=RetryPolicy(max_attempts=2, retry_on=frozenset({"TIMEOUT"})),
    mcp_servers=(McpServer("docs", command="docs-server", args=("-v",)),),
    attachments=(Attachment(url="https://example.org/a.png"),),
    tags=["a"],
)
RULE = {"tools": [], "paths": [], "commands": [], "risk": [], "reason": None}
VALUES: list[tuple[Any, Any]] = [
    (CostRecord(1.5, 2, 3), {"totalUsd": 1.5, "inputTokens": 2, "outputTokens": 3}),
    (TokenUsage(1, 2, cached_tokens=3), {"inputTokens": 1, "outputTokens": 2, "cachedTokens": 3}),
    (RunError("TIMEOUT", "late"), {"code": "TIMEOUT", "message": "late", "recoverable": False}),
    (Worktree(path="/w", base_commit="c", is_changed=True), {"path": "/w", "baseCommit": "c", "isChanged": True}),
    (Ledger(), {"lines": 0, "mapped": 0, "ignored": {}, "reasons": {}, "unknown": {}}),
    (Breach("5.1", "twice", 3, "log"), {"rule": "5.1", "message": "twice", "index": 3, "eventType": "log"}),
    (FieldError("tags[0]", 5, "a text"), {"path": "tags[0]", "received": 5, "allowed": "a text"}),
    (
        PENDING,
        {
            "id": "i",
            "type": "approval",
            "runId": "r",
            "description": "run it?",
            "detail": {
                "action": "run",
                "detail": "ls",
                "toolName": "Bash",
                "riskLevel": "low",
                "command": "ls",
                "paths": ["/a"],
            },
            "createdAt": 5,
        },
    ),
    (
        QUESTION,
        {
            "id": "i",
            "type": "input",
            "runId": "r",
            "description": "which?",
            "detail": {"question": "which?", "options": ["a", "b"], "source": "agent"},
            "createdAt": 5,
        },
    ),
    (Attachment(file_path="/a", mime_type="text/plain"), {"filePath": "/a", "mimeType": "text/plain"}),
    (McpServer("x", command="d", args=("-v",)), {"name": "x", "transport": "stdio", "command": "d", "args": ["-v"]}),
    (RetryPolicy(max_attempts=5, base_delay=0.5), {"maxAttempts": 5, "baseDelay": 500}),
    (
        Policy(rules=(Rule(decision="allow", tools=("Read",)),)),
        {
            "rules": [{**RULE, "decision": "allow", "tools": ["Read"]}],
            "default": "ask",
            "timeout": 300.0,
            "on_timeout": "deny",
        },
    ),
    (
        OPTIONS,
        {
            "agent": "claude",
            "prompt": ["a", "b"],
            "cwd": "/tmp",
            "env": {"A": "b"},
            "timeout": 1500,
            "policy": {
                "rules": [{**RULE, "decision": "deny", "commands": ["git push"]}],
                "default": "ask",
                "timeout": 300.0,
                "on_timeout": "deny",
            },
            "retryPolicy": {"maxAttempts": 2, "retryOn": ["TIMEOUT"]},
            "mcpServers": [{"name": "docs", "transport": "stdio", "command": "docs-server", "args": ["-v"]}],
            "attachments": [{"url": "https://example.org/a.png"}],
            "tags": ["a"],
        },
    ),
    (Approve(always=True), {"always": True}),
    (Deny("no"), {"reason": "no"}),
    (Text("a"), {"text": "a"}),
    (Choice(1), {"option": 1}),
]


@pytest.mark.parametrize(("value", "plain"), VALUES, ids=lambda value: type(value).__name__)
def test_a_value_is_accepted_and_written_as_json(value: Any, plain: Any) -> None:
    adapter = TypeAdapter(type(value))
    assert adapter.validate_python(value) is value
    assert json.loads(adapter.dump_json(value)) == plain
    assert adapter.dump_python(value) == plain
    assert adapter.validate_json(json.dumps(plain)) == value
    assert adapter.validate_python(plain) == value


@pytest.mark.parametrize(("value", "plain"), VALUES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_the_schema_describes_what_is_written(value: Any, plain: Any, mode: Any) -> None:
    jsonschema.Draft202012Validator(TypeAdapter(type(value)).json_schema(mode=mode)).validate(plain)


def test_errors_of_options_have_locations_and_hide_secrets() -> None:
    adapter = TypeAdapter(RunOptions)
    data = {"agent": "claude", "tags": [5], "retryPolicy": {"maxAttempts": "2"}, "colour": 1}
    assert {location for _, location, _ in errors_of(adapter, data)} == {
        ("tags",),
        ("retryPolicy", "maxAttempts"),
        ("colour",),
    }
    assert errors_of(adapter, {"prompt": "hi"}) == [("missing", ("agent",), "Object missing required field `agent`")]
    for invalid in ({"agent": "claude", "env": {"TOKEN": ["s3cr3t"]}}, {"env": {"TOKEN": "s3cr3t"}}):
        with pytest.raises(pydantic.ValidationError) as caught:
            adapter.validate_python(invalid)
        assert "s3cr3t" not in caught.value.json()
    assert errors_of(TypeAdapter(RetryPolicy), {"maxAttempts": 0})[0][1] == ("maxAttempts",)
    assert errors_of(TypeAdapter(McpServer), {"name": "x", "port": 1})[0][1] == ("port",)


def test_options_that_have_a_meaning_in_this_process_only_are_not_written() -> None:
    with pytest.raises(PydanticSerializationError, match=r"collectEvents: .*cannot be sent"):
        TypeAdapter(RunOptions).dump_json(RunOptions(agent="claude", collect_events=True))


# Schemas and models


class Report(BaseModel):
    result: RunResult
    events: list[AgentEvent] = []
    last: AgentEvent | None = None
    pending: tuple[PendingInteraction, ...] = ()
    options: RunOptions | None = None
    answer: Response | None = None


@pytest.mark.slow
def test_fields_of_a_model_are_read_back() -> None:
    report = Report(
        result=a_result(),
        events=[sample("log"), sample("cost")],
        last=sample("log"),
        pending=(PENDING, QUESTION),
        options=OPTIONS,
    )
    assert Report.model_validate_json(report.model_dump_json()) == report
    assert Report.model_validate(report.model_dump()) == report
    assert report.model_dump()["result"] == a_result().to_dict()
    assert json.loads(report.model_dump_json())["events"] == [event_to_dict(event) for event in report.events]
    jsonschema.validate(json.loads(report.model_dump_json()), Report.model_json_schema(mode="serialization"))
    assert errors_of(TypeAdapter(Report), {"result": a_result().to_dict(), "events": [{"type": "log"}]})[0][1] == (
        "events",
        0,
        "log",
        "runId",
    )


def references(schema: Any) -> set[str]:
    match schema:
        case dict():
            own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
            own |= set(schema.get("discriminator", {}).get("mapping", {}).values()) if "oneOf" in schema else set()
            return own.union(*map(references, schema.values()))
        case list():
            return set().union(*map(references, schema))
    return set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(AgentEvent, id="AgentEvent"),
        pytest.param(list[AgentEvent], id="events"),
        BaseEvent,
        RunResult,
        RunOptions,
        PendingInteraction,
        Policy,
        Report,
    ],
)
@pytest.mark.parametrize("template", ["#/$defs/{model}", "#/components/schemas/{model}"])
@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_references_resolve_and_follow_the_template(kind: Any, template: str, mode: Any) -> None:
    schema = TypeAdapter(kind).json_schema(ref_template=template, mode=mode)
    jsonschema.Draft202012Validator.check_schema(schema)
    targets = {template.format(model=name) for name in schema["$defs"]}
    assert references(schema) == targets


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_the_union_of_events_keeps_its_discriminator(mode: Any) -> None:
    schema = TypeAdapter(AgentEvent).json_schema(mode=mode)
    mapping = {event.type: f"#/$defs/{event.__name__}" for event in ALL_EVENTS}
    assert schema["discriminator"] == {"propertyName": "type", "mapping": mapping}
    assert len(schema["oneOf"]) == len(ALL_EVENTS)


@pytest.mark.slow
@given(EVENTS)
def test_the_schema_of_the_union_accepts_every_event(event: Any) -> None:
    UNION.validate(json.loads(encode_event(event)))


UNION = jsonschema.Draft202012Validator(EVENT.json_schema(mode="serialization"))


def test_a_subclass_without_a_json_form_is_an_error_with_the_classes_that_have_one() -> None:
    class ShoutedError(RunError):
        __slots__ = ()

    with pytest.raises(TypeError, match="ShoutedError has no JSON form; use one of"):
        TypeAdapter(ShoutedError)


def test_a_value_of_another_class_is_a_warning() -> None:
    report = Report.model_construct(result="none", events=[])
    with pytest.warns(UserWarning, match="Expected `RunResult` but got `str`"):
        assert report.model_dump()["result"] == "none"
