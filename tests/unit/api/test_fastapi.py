"""Public classes in an application of FastAPI: bodies, responses, and the OpenAPI document."""

import json
import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from tests.unit.api.test_pydantic import sample

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from fastapi import Body, FastAPI
from fastapi.testclient import TestClient
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import BaseModel

from agent_mux import AgentEvent, PendingInteraction, RunOptions, RunResult
from agent_mux.events import ALL_EVENTS, event_from_dict, event_to_dict

PAGE = Path(__file__).parents[3] / "docs/how-to/use-with-pydantic.md"
EVENT = {"type": "message_stop", "runId": "r", "agent": "claude", "timestamp": 1, "text": "hi"}
RESULT = {
    "type": "run_result", "runId": "r", "agent": "claude", "text": "done", "exitReason": "completed", "durationMs": 5,
    "turnCount": 1, "cost": {"totalUsd": 0.5, "inputTokens": 1, "outputTokens": 2}, "toolCalls": 0, "toolErrors": 0,
    "denials": [], "changedFiles": [], "events": [EVENT],
    "ledger": {"lines": 0, "mapped": 0, "ignored": {}, "reasons": {}, "unknown": {}},
}  # fmt: skip


class Job(BaseModel):
    options: RunOptions
    result: RunResult | None = None
    events: list[AgentEvent] = []


def application() -> FastAPI:
    app = FastAPI()

    @app.post("/event")
    def event(event: Annotated[AgentEvent, Body()]) -> AgentEvent:
        return event

    @app.post("/events")
    def events(events: list[AgentEvent]) -> list[AgentEvent]:
        return events

    @app.post("/result")
    def result(result: RunResult) -> RunResult:
        return result

    @app.post("/summary", response_model=RunResult, response_model_exclude={"events"})
    def summary(result: RunResult) -> Any:
        return result

    @app.post("/plain", response_model=RunResult)
    def plain(result: RunResult) -> Any:
        return result.to_dict()

    @app.post("/both")
    def both(event: Annotated[AgentEvent, Body()], options: Annotated[RunOptions, Body()]) -> list[Any]:
        return [type(event).__name__, options.timeout]

    @app.post("/job")
    def job(job: Job) -> Job:
        return job

    @app.get("/pending")
    def pending() -> list[PendingInteraction]:
        return []

    return app


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(application())


@pytest.mark.parametrize("kind", ALL_EVENTS, ids=lambda kind: kind.type)
def test_every_event_is_accepted_and_returned(client: TestClient, kind: Any) -> None:
    sent = event_to_dict(sample(kind.type))
    answer = client.post("/event", json=sent)
    assert answer.status_code == 200
    assert json.dumps(answer.json()) == json.dumps(sent)
    assert event_from_dict(answer.json()) == event_from_dict(sent)


@pytest.mark.parametrize("path", ["/result", "/plain"])
def test_a_result_is_returned_as_to_dict(client: TestClient, path: str) -> None:
    answer = client.post(path, json=RESULT)
    assert (answer.status_code, list(answer.json())) == (200, list(RESULT))
    assert answer.json() == RESULT == RunResult.from_dict(RESULT).to_dict()


def test_fields_of_a_response_can_be_excluded(client: TestClient) -> None:
    assert client.post("/summary", json=RESULT).json() == {key: RESULT[key] for key in RESULT if key != "events"}


def test_models_with_our_classes_are_accepted_and_returned(client: TestClient) -> None:
    job = {"options": {"agent": "claude", "prompt": "hi", "timeout": 500}, "result": RESULT, "events": [EVENT]}
    assert client.post("/job", json=job).json() == job
    assert client.post("/events", json=[EVENT, EVENT]).json() == [EVENT, EVENT]
    answer = client.post("/both", json={"event": EVENT, "options": {"agent": "claude", "timeout": 500}})
    assert answer.json() == ["MessageStopEvent", 0.5]


@pytest.mark.parametrize(
    ("path", "body", "location", "message"),
    [
        ("/event", {**EVENT, "text": 5}, ["body", "message_stop", "text"], "Expected `str`, got `int`"),
        ("/events", [EVENT, {**EVENT, "text": 5}], ["body", 1, "message_stop", "text"], "Expected `str`, got `int`"),
        ("/result", {**RESULT, "turnCount": "1"}, ["body", "turnCount"], "Expected `int`, got `str`"),
        (
            "/job",
            {"options": {"agent": "claude", "timeout": "1"}},
            ["body", "options", "timeout"],
            "allowed: a number of milliseconds",
        ),
    ],
)
def test_errors_name_the_field(client: TestClient, path: str, body: Any, location: list[Any], message: str) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    (error,) = answer.json()["detail"]
    assert (error["loc"], error["msg"]) == (location, message)


@pytest.mark.slow
def test_the_openapi_document_is_valid_and_its_references_resolve(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    OpenAPIV31SpecValidator(document).validate()  # resolves every reference
    schemas = document["components"]["schemas"]
    assert "$defs" not in json.dumps(document)
    assert {kind.__name__ for kind in ALL_EVENTS} | {"AgentEvent", "RunResult", "CostRecord"} <= set(schemas)
    assert not [name for name in schemas if name.endswith(("-Input", "-Output"))]
    reference = {"$ref": "#/components/schemas/AgentEvent"}
    assert document["paths"]["/event"]["post"]["requestBody"]["content"]["application/json"]["schema"] == reference
    assert schemas["RunResult"]["properties"]["events"]["items"] == reference
    mapping = {kind.type: f"#/components/schemas/{kind.__name__}" for kind in ALL_EVENTS}
    assert schemas["AgentEvent"]["discriminator"] == {"propertyName": "type", "mapping": mapping}


@pytest.mark.slow
def test_the_application_of_the_how_to_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("AMUX_REPLAY_SPEED", "0")
    text = next(
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) if "app =" in block
    )
    text = text.replace('agent="claude"', 'agent="replay"').replace('"deny"', '"yolo"')
    names: dict[str, Any] = {}
    exec(compile(text, PAGE.name, "exec"), names)  # noqa: S102  # our own docs
    client = TestClient(names["app"])
    answer = client.post("/fixes", json={"prompt": "demo"}).json()
    assert (answer["exitReason"], "ledger" in answer) == ("completed", False)
    assert client.post("/events", json=EVENT).json() == "message_stop"
