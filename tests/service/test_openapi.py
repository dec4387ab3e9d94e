"""The OpenAPI document is valid, complete, and matches the service."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from docs.pages.http_api import document
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.service.fuzzing import NOWHERE, STORE, fuzzed_server
from tests.service.serving import Serving

from agent_mux.service import application
from agent_mux.service.openapi import document as document_module
from agent_mux.service.openapi.descriptions import REFUSAL_DESCRIPTIONS, TAGS, ResponseSpec
from agent_mux.service.openapi.document import openapi_document
from agent_mux.service.openapi.operations import OperationGroup
from agent_mux.service.problems import METHODS, STATUS
from agent_mux.service.security.tokens import needed_scope
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.views import RunView
from agent_mux.sessions.export import Format

Operation = tuple[str, str, dict[str, Any]]


def operations() -> Iterator[Operation]:
    for path, methods in document()["paths"].items():
        for method, data in methods.items():
            yield method.upper(), path, data


ALL = [pytest.param(one, id=f"{one[0]} {one[1]}") for one in operations()]


def found(data: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in data:
        place: Any = document()
        for part in data["$ref"].removeprefix("#/").split("/"):
            place = place[part]
        data = place
    return data


def checker(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": document()["components"]})


@pytest.mark.slow
def test_the_document_is_valid() -> None:
    OpenAPIV31SpecValidator(document()).validate()
    assert document()["openapi"].startswith("3.1")


@pytest.mark.slow
def test_every_schema_is_valid() -> None:
    for schema in document()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_every_route_is_in_it() -> None:
    made = application.make_application(ServiceSettings(config_dir=Path("unused")))
    routes = [one for one in made.routes if isinstance(one, Route) and one.path != "/openapi.json"]
    known = {(method, one.path_format) for one in routes for method in one.methods or ()}
    assert {(method, path) for method, path, _ in operations()} == {one for one in known if one[0] != "HEAD"}
    assert len(known) > 40


def test_an_operation_without_a_docstring_is_an_error() -> None:
    group = OperationGroup("/v1/runs", tag="runs")

    @group.get("/{run_id}", ResponseSpec(RunView))
    async def get_run(_: Request) -> Response:
        return Response()

    with pytest.raises(ValueError, match=r"GET /v1/runs/\{run_id\} \(get_run\) is not described"):
        openapi_document([*group])


def test_a_tag_that_is_not_described_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {name: about for name, about in TAGS.items() if name != "cost"}
    monkeypatch.setattr(document_module, "TAGS", known)
    with pytest.raises(ValueError, match=r"tags without a description in TAGS: cost"):
        openapi_document(application.OPERATIONS)


@pytest.mark.parametrize("operation", ALL)
def test_everything_has_a_meaning(operation: Operation) -> None:
    method, path, data = operation
    assert data["description"]
    assert data["tags"]
    assert all(one["description"] for one in data["parameters"])
    named = {one["name"] for one in data["parameters"] if one["in"] == "path"}
    assert named == set(re.findall(r"{(\w+)}", path))
    for status, answer in data["responses"].items():
        assert found(answer)["description"], status
    scopes = [scheme["bearer"] for scheme in data["security"] if "bearer" in scheme]
    assert scopes == ([] if needed_scope(method.upper(), path) is None else [[needed_scope(method.upper(), path)]])


UNBOUNDED = {
    "agent", "model", "session_id", "run_id", "webhook_id", "comparison_id", "trial", "types", "cursor", "last-event-id"
}  # fmt: skip
"""Names and ids are compared with what there is; the length of a line of a request is bounded by the server."""


def test_numbers_and_texts_of_parameters_are_bounded() -> None:
    for _, path, data in operations():
        for one in data["parameters"]:
            shape = one["schema"]
            is_bounded = {"maximum", "maxLength", "maxItems", "enum", "pattern"} & set(shape) or shape[
                "type"
            ] == "boolean"
            assert is_bounded or one["name"] in UNBOUNDED, (path, one["name"])


def test_documented_codes_have_their_status() -> None:
    for _, path, data in operations():
        for status, answer in data["responses"].items():
            if int(status) >= 400 and int(status) not in REFUSAL_DESCRIPTIONS:
                codes = re.findall(r"`(\w+)`", found(answer)["description"])
                assert codes, path
                assert {str(STATUS.get(code, 500)) for code in codes} == {status}


def test_operations_that_links_name_are_there() -> None:
    ids = [data["operationId"] for _, _, data in operations()]
    assert len(ids) == len(set(ids))
    for _, _, data in operations():
        for answer in data["responses"].values():
            assert {link["operationId"] for link in found(answer).get("links", {}).values()} <= set(ids)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(STORE))
        with fuzzed_server(tmp_path_factory.mktemp("served") / "config") as server:
            yield server


def test_the_served_document_equals_the_stored_one(served: Serving) -> None:
    kept = (Path(__file__).parents[2] / "docs" / "reference" / "openapi.json").read_text()
    assert served.http.get("/openapi.json").json() == json.loads(kept)


STREAMS = {
    "/v1/runs/{run_id}/events",
    "/v1/comparisons/{comparison_id}/events",
    "/v1/sessions/{agent}/{session_id}/events",
}


def methods_of(path: str) -> set[str]:
    """HEAD is where GET is, but for streams."""
    known = {method.upper() for method in document()["paths"][path]}
    return known | {"HEAD"} if "GET" in known and path not in STREAMS else known


@pytest.mark.parametrize("operation", ALL)
def test_other_methods_are_refused_and_the_right_ones_named(served: Serving, operation: Operation) -> None:
    _, path, _ = operation
    known = methods_of(path)
    url = re.sub(r"{\w+}", "x", path)
    for method in (*METHODS, "TRACE"):
        if method not in known and (method, url) != ("GET", "/v1/sessions/search"):
            answer = served.http.request(method, url)
            assert answer.status_code == 405
            assert set(answer.headers["allow"].split(", ")) == known


def bounded_parameters() -> Iterator[Any]:
    for method, path, data in operations():
        for one in data["parameters"]:
            if one["in"] == "query" and one["name"] not in UNBOUNDED:
                yield pytest.param(method, path, one["name"], id=f"{method} {path} {one['name']}")


@pytest.mark.parametrize(("method", "path", "name"), list(bounded_parameters()))
def test_every_documented_parameter_is_validated(served: Serving, method: str, path: str, name: str) -> None:
    hook = served.http.post("/v1/webhooks", json={"url": NOWHERE, "events": ["run.ended"]}).json()["webhookId"]
    url = path.format(
        agent="claude",
        session_id="1c2b5137",
        name="review",
        run_id="01K0000000000000000000000A",
        webhook_id=hook,
        comparison_id="01K0000000000000000000000A",
        trial="null-1",
        path="x",
    )
    answer = served.http.request(method, url, params={"q": "x", name: "w" * 5000})
    served.http.delete(f"/v1/webhooks/{hook}")
    assert answer.status_code == 422, answer.text
    assert answer.json()["fields"][0]["path"] == name


def examples() -> Iterator[Any]:
    for method, path, data in operations():
        body = data.get("requestBody", {}).get("content", {}).get("application/json", {})
        for name, example in body.get("examples", {}).items():
            yield pytest.param(method, path, body["schema"], example["value"], id=f"{method} {path} {name}")


@pytest.mark.parametrize(("method", "path", "schema", "example"), list(examples()))
def test_examples_fit_and_work(
    served: Serving, method: str, path: str, schema: dict[str, Any], example: dict[str, Any]
) -> None:
    checker(schema).validate(example)
    ids = dict.fromkeys(("run_id", "webhook_id", "comparison_id"), "01K0000000000000000000000A")
    url = path.format(name="review", trial="null-1", agent="claude", session_id="none", **ids)
    answer = served.http.request(method, url, json=example)
    is_of_nothing = "_id}" in path  # but for what it is about, it was understood
    assert answer.status_code in ({404} if is_of_nothing else {200, 201}), answer.text


def schema_of(path: str, method: str = "get", status: str = "200", kind: str = "application/json") -> dict[str, Any]:
    answer = found(document()["paths"][path][method]["responses"][status])
    schema: dict[str, Any] = answer["content"][kind]["schema"]
    return schema


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/health", "/health"),
        ("/ready", "/ready"),
        ("/v1/agents", "/v1/agents"),
        ("/v1/agents/{agent}", "/v1/agents/claude"),
        ("/v1/agents/{agent}/capabilities", "/v1/agents/claude/capabilities"),
        ("/v1/detect", "/v1/detect"),
        ("/v1/models", "/v1/models"),
        ("/v1/models/{agent}", "/v1/models/claude"),
        ("/v1/models/{agent}/{model}", "/v1/models/claude/opus"),
        ("/v1/sessions", "/v1/sessions"),
        ("/v1/sessions/search", "/v1/sessions/search?q=question"),
        ("/v1/sessions/{agent}/{session_id}", "/v1/sessions/claude/1c2b5137"),
        ("/v1/sessions/{agent}/{session_id}/export", "/v1/sessions/claude/1c2b5137/export"),
        ("/v1/sessions/{agent}/{session_id}/checkpoints", "/v1/sessions/claude/1c2b5137/checkpoints"),
        *(("/v1/cost", f"/v1/cost?by={by}") for by in ("agent", "model", "day", "tag")),
    ],
)
def test_responses_match_their_schemas(served: Serving, path: str, asked: str) -> None:
    answer = served.http.get(asked)
    assert answer.status_code == 200
    assert answer.json()
    checker(schema_of(path)).validate(answer.json())


def sse_messages(text: str) -> list[dict[str, str]]:
    return [dict(line.split(": ", 1) for line in block.split("\n")) for block in text.split("\n\n")[:-1]]


@pytest.mark.slow
@pytest.mark.parametrize("query", ["", "?snapshots=true", "?snapshots=true&accumulated=true", "?snapshots=true&types="])
def test_every_message_of_a_stream_matches_exactly_one_schema(served: Serving, query: str) -> None:
    demo = {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "40"}, "tags": ["x"]}
    run = served.http.post("/v1/runs", json=demo).json()["runId"]
    schema = schema_of("/v1/runs/{run_id}/events", kind="text/event-stream")
    whole, branches = checker(schema), [checker(branch) for branch in schema["oneOf"]]
    contents = [checker(branch["properties"]["data"]["contentSchema"]) for branch in schema["oneOf"]]
    seen = [0, 0]
    messages = sse_messages(served.http.get(f"/v1/runs/{run}/events{query}").text)
    for message in (*messages[:40], *messages[40::25], messages[-1]):
        whole.validate(message)
        (kind,) = [number for number, branch in enumerate(branches) if branch.is_valid(message)]
        contents[kind].validate(json.loads(message["data"]))
        seen[kind] += 1
    assert seen[0]
    assert bool(seen[1]) == ("snapshots" in query)


def test_a_run_and_its_events_match_their_schemas(served: Serving) -> None:
    demo = {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "0"}, "tags": ["x"]}
    run = served.http.post("/v1/runs", json=demo).json()
    path = f"/v1/runs/{run['runId']}"
    lines = served.http.get(f"{path}/events", headers={"accept": "application/jsonl"}).text.splitlines()
    line = checker(schema_of("/v1/runs/{run_id}/events", kind="application/jsonl"))
    for one in (lines[0], *lines[1:-1:25], lines[-1]):
        line.validate(json.loads(one))
    checker(schema_of("/v1/runs", "post", "201")).validate(run)
    checker(schema_of("/v1/runs/{run_id}")).validate(served.http.get(path).json())
    checker(schema_of("/v1/runs")).validate(served.http.get("/v1/runs").json())
    checker(schema_of("/v1/runs/{run_id}/interactions")).validate(served.http.get(f"{path}/interactions").json())
    data = served.http.post(f"{path}/abort")
    checker(schema_of("/v1/runs/{run_id}/abort", "post")).validate(data.json())
    problem = served.http.get("/v1/runs/none").json()
    checker({"$ref": "#/components/schemas/ProblemDetails"}).validate(problem)


def test_what_no_answer_is_does_not_fit(served: Serving) -> None:
    run = served.http.get("/v1/runs").json()
    assert not checker(schema_of("/v1/runs")).is_valid({**run, "runs": [{}]})
    assert not checker({"$ref": "#/components/schemas/AgentEvent"}).is_valid({"type": "text_delta"})
    assert not checker({"$ref": "#/components/schemas/RunRequest"}).is_valid({"timeout": "soon"})


def test_every_export_format_is_documented() -> None:
    (parameter,) = (
        one
        for one in document()["paths"]["/v1/sessions/{agent}/{session_id}/export"]["get"]["parameters"]
        if one["name"] == "format"
    )
    assert tuple(parameter["schema"]["enum"]) == get_args(Format)
