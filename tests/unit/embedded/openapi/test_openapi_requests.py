"""Calls of OpenAPI tools as requests to a service on the loopback interface."""

import json
import logging
from typing import Any
from urllib.parse import parse_qsl

import pytest
from tests.unit.embedded.openapi.service import (
    Reply,
    Request,
    Service,
    document,
    execute,
    operation,
    parameter,
    tools_of,
)

from agent_loop import Agent, ScriptedProvider
from agent_loop.errors import ConfigurationError, InvalidArgumentsError, ToolError
from agent_loop.openapi import ApiKeyAuth, BasicAuth, BearerAuth, OpenApiAuth, OpenApiConfig
from agent_loop.providers.script import call, say

SECRET = "s3cret/value+x"  # noqa: S105  # of no service
ARRAY = {"type": "array", "items": {"type": "string"}}
OBJECT = {"type": "object"}


def one_tool(service: Service, path: str = "/things", method: str = "get", **fields: Any) -> Any:
    settings = {"auth": fields.pop("auth", None), "headers": fields.pop("headers", {})}
    settings |= {
        name: fields.pop(name) for name in ("timeout", "max_response_bytes", "allow_private") if name in fields
    }
    content = document({path: {method: operation("thing", **fields)}}, servers=[{"url": service.url + "/api/"}])
    return tools_of(content, **settings)["thing"]


def test_parameters_are_sent_in_path_query_headers_and_cookies(service: Service) -> None:
    parameters = [
        parameter("id", "path"),
        parameter("id", "query", {"type": "integer"}),
        parameter("X-Trace", "header"),
        parameter("theme", "cookie"),
        parameter("page[size]", "query", {"type": "integer"}),
        parameter("filter", "query", content={"application/json": {"schema": OBJECT}}),
    ]
    del parameters[-1]["schema"]
    tool = one_tool(service, "/things/{id}", parameters=parameters)
    assert list(tool.parameters["properties"]) == ["id", "id_query", "X-Trace", "theme", "page_size_", "filter"]
    values = {"X-Trace": "t 1", "page_size_": 5, "filter": {"a": "&"}}
    result = execute(tool, id="a/b?c", id_query=7, theme="dark; x=1", **values)
    assert not result.is_error
    path, _, query = service.last.path.partition("?")
    assert path == "/api/things/a%2Fb%3Fc"
    assert parse_qsl(query) == [("id", "7"), ("page[size]", "5"), ("filter", '{"a": "&"}')]
    assert service.last.headers["x-trace"] == "t 1"
    assert service.last.headers["cookie"] == "theme=dark%3B%20x%3D1"
    assert result.text.startswith(f"GET {service.url}/api{service.last.path[4:]} -> 200")
    assert result.text.endswith('{"ok": true}')


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("settings", "value", "query"),
    [
        ({}, ["a", "b"], "p=a&p=b"),
        ({"explode": False}, ["a", "b,"], "p=a,b%2C"),
        ({"style": "spaceDelimited", "explode": False}, ["a", "b"], "p=a%20b"),
        ({"style": "pipeDelimited", "explode": False}, ["a", "b"], "p=a%7Cb"),
        ({"style": "deepObject"}, {"a": 1, "b": [True, False]}, "p%5Ba%5D=1&p%5Bb%5D=true&p%5Bb%5D=false"),
        ({}, {"a": 1, "b": None}, "a=1"),
        ({"explode": False}, {"a": 1}, "p=a,1"),
        ({"allowReserved": True}, "a/b&c", "p=a/b%26c"),
    ],
)
def test_values_of_the_query_have_the_declared_style(
    service: Service, settings: dict[str, Any], value: Any, query: str
) -> None:
    schema = ARRAY if isinstance(value, list) else OBJECT if isinstance(value, dict) else {"type": "string"}
    execute(one_tool(service, parameters=[parameter("p", "query", schema, **settings)]), p=value)
    assert service.last.path == f"/api/things?{query}"


@pytest.mark.parametrize(
    ("settings", "value", "path"),
    [
        ({}, ["a", "b"], "a,b"),
        ({"explode": True}, {"a": 1}, "a=1"),
        ({"style": "label", "explode": True}, ["a", "b"], ".a.b"),
        ({"style": "matrix"}, ["a", "b"], ";p=a,b"),
        ({"style": "matrix", "explode": True}, ["a", "b"], ";p=a;p=b"),
    ],
)
def test_values_of_the_path_have_the_declared_style(
    service: Service, settings: dict[str, Any], value: Any, path: str
) -> None:
    schema = ARRAY if isinstance(value, list) else OBJECT
    execute(one_tool(service, "/things/{p}", parameters=[parameter("p", "path", schema, **settings)]), p=value)
    assert service.last.path == f"/api/things/{path}"


@pytest.mark.parametrize("value", ["", ".", "..", []])
def test_value_that_would_lead_to_another_path_is_refused(service: Service, value: Any) -> None:
    tool = one_tool(service, "/things/{p}", parameters=[parameter("p", "path", {})])
    with pytest.raises(InvalidArgumentsError, match=r"part of the path|another operation"):
        execute(tool, p=value)
    assert service.requests == []


def test_header_value_with_a_line_break_is_refused(service: Service) -> None:
    tool = one_tool(service, parameters=[parameter("X-A", "header")])
    with pytest.raises(InvalidArgumentsError, match="printable ASCII"):
        execute(tool, **{"X-A": "a\r\nX-B: c"})
    assert service.requests == []


def test_headers_of_the_transport_are_no_parameters(service: Service) -> None:
    names = ("Authorization", "Content-Type", "Host", "Accept", "X-Fine")
    tool = one_tool(service, parameters=[parameter(name, "header") for name in names])
    assert list(tool.parameters["properties"]) == ["X-Fine"]


def body_of(kind: str, schema: Any = OBJECT, **fields: Any) -> dict[str, Any]:
    return {"requestBody": {"content": {kind: {"schema": schema}}, **fields}}


def test_json_body_is_sent_with_its_content_type(service: Service) -> None:
    tool = one_tool(service, method="post", **body_of("application/merge-patch+json", required=True))
    assert tool.parameters["required"] == ["body"]
    execute(tool, body={"name": "é", "tags": [1, None]})
    assert service.last.headers["content-type"] == "application/merge-patch+json"
    assert json.loads(service.last.body) == {"name": "é", "tags": [1, None]}


def test_form_body_is_sent_as_pairs(service: Service) -> None:
    tool = one_tool(service, method="post", **body_of("application/x-www-form-urlencoded"))
    execute(tool, body={"a": "x&y", "b": [1, 2], "c": {"d": True}, "e": None})
    assert service.last.headers["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qsl(service.last.body.decode()) == [("a", "x&y"), ("b", "1"), ("b", "2"), ("c", '{"d": true}')]
    with pytest.raises(InvalidArgumentsError, match="the body is a form"):
        execute(tool, body="a=b")


def test_multipart_body_has_fields_and_files(service: Service) -> None:
    properties = {"note": {"type": "string"}, "file": {"type": "string", "format": "binary"}}
    tool = one_tool(service, method="post", **body_of("multipart/form-data", {**OBJECT, "properties": properties}))
    execute(tool, body={"note": "hello", "file": "content"})
    assert service.last.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'name="note"\r\n\r\nhello\r\n' in service.last.body
    assert b'name="file"; filename="file"' in service.last.body


def test_argument_of_the_body_has_another_name_beside_a_parameter_body(service: Service) -> None:
    tool = one_tool(service, method="post", parameters=[parameter("body", "query")], **body_of("application/json"))
    execute(tool, body="q", _request_body={"a": 1})
    assert service.last.path == "/api/things?body=q"
    assert json.loads(service.last.body) == {"a": 1}


# -- authentication and redaction


def echo(request: Request) -> Reply:
    """Repeat everything, as services for tests do."""
    return Reply(body=json.dumps({"path": request.path, "headers": request.headers}).encode())


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        (BearerAuth(SECRET), ("authorization", f"Bearer {SECRET}")),
        (BasicAuth("ann", SECRET), ("authorization", "Basic YW5uOnMzY3JldC92YWx1ZSt4")),
        (ApiKeyAuth("X-Key", SECRET), ("x-key", SECRET)),
        (ApiKeyAuth("k", SECRET, "cookie"), ("cookie", "k=s3cret%2Fvalue%2Bx")),
        (ApiKeyAuth("k", SECRET, "query"), ("", "k=s3cret%2Fvalue%2Bx")),
    ],
    ids=["bearer", "basic", "header", "cookie", "query"],
)
def test_secret_is_sent_and_reaches_neither_results_nor_logs(
    service: Service, auth: OpenApiAuth, expected: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    service.reply = echo
    keys = [parameter("X-Key", "header"), parameter("k", "cookie"), parameter("k", "query"), parameter("q", "query")]
    tool = one_tool(service, auth=auth, parameters=keys)
    with caplog.at_level(logging.DEBUG):
        result = execute(tool, q="1")
    name, value = expected
    if name:
        assert service.last.headers[name] == value
    else:
        assert service.last.path == f"/api/things?q=1&{value}"
    everything = [result.text, repr(tool), repr(auth), caplog.text, json.dumps(tool.parameters), tool.description]
    secrets = [SECRET, "s3cret%2Fvalue%2Bx", "YW5uOnMzY3JldC92YWx1ZSt4"]
    assert [text for text in everything for secret in secrets if secret in text] == []
    assert "****" in result.text
    if isinstance(auth, ApiKeyAuth):
        count = len(keys) - 1
        assert len(tool.parameters["properties"]) == count, "the model cannot set the key"


def test_secret_at_the_size_limit_is_replaced_whole(service: Service) -> None:
    service.reply = Reply(body=b"x" * 90 + SECRET.encode() + b"y" * 90, headers={"content-type": "text/plain"})
    result = execute(one_tool(service, auth=BearerAuth(SECRET), max_response_bytes=96))
    assert "x****y" in result.text
    assert "s3cr" not in result.text
    assert "[cut at 96 bytes" in result.text


def test_headers_of_the_configuration_are_sent_and_secret_ones_are_replaced(service: Service) -> None:
    service.reply = echo
    tool = one_tool(service, headers={"X-Session-Token": SECRET, "X-Tenant": "tenant-7"})
    result = execute(tool)
    assert service.last.headers["x-session-token"] == SECRET
    assert SECRET not in result.text
    assert "tenant-7" in result.text


@pytest.mark.parametrize(
    "settings",
    [
        {"auth": BearerAuth("")},
        {"auth": BearerAuth("a\nb")},
        {"headers": {"X\r\nY": "a"}},
        {"timeout": 0},
        {"max_response_bytes": 0},
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        OpenApiConfig(**settings)


def test_secret_reaches_neither_the_events_nor_the_messages_of_a_run(service: Service) -> None:
    service.reply = echo
    tool = one_tool(service, auth=ApiKeyAuth("key", SECRET, "query"))
    agent = Agent(ScriptedProvider([call("thing"), say("{{result}}")]), tools=[tool])
    events: list[Any] = []

    async def record(event: Any) -> None:
        events.append(event)

    result = agent.run_sync("go", on_event=record)
    assert "/api/things?key=****" in result.text
    recorded = "".join(map(repr, [*events, *agent.messages]))
    assert "things" in recorded
    assert "s3cret" not in recorded


# -- responses


@pytest.mark.parametrize("status", [302, 404, 500])
def test_other_statuses_are_error_results_with_the_body(service: Service, status: int) -> None:
    headers = {"content-type": "application/problem+json", "location": "/other"}
    service.reply = Reply(status, b'{"detail": "no such thing"}', headers)
    result = execute(one_tool(service))
    assert result.is_error
    assert f"-> {status}\n" in result.text
    assert "no such thing" in result.text
    assert "redirects are not followed; this one leads to /other" in result.text
    assert len(service.requests) == 1


def test_other_content_than_text_is_described(service: Service) -> None:
    service.reply = Reply(body=b"\x89PNG....", headers={"content-type": "image/png"})
    assert execute(one_tool(service)).text.endswith("(8 bytes of image/png, which is not text)")
    service.reply = Reply(204, b"")
    assert execute(one_tool(service)).text.endswith("(no body)")


def test_service_that_does_not_respond_is_a_tool_error(service: Service) -> None:
    import threading

    released = threading.Event()

    def wait(_: Request) -> Reply:
        released.wait(60)
        return Reply()

    service.reply = wait
    with pytest.raises(ToolError, match=r"GET http://127.* failed: the service did not respond within 0\.5 seconds"):
        execute(one_tool(service, timeout=0.5))
    released.set()


def test_addresses_that_are_not_public_are_refused(service: Service) -> None:
    with pytest.raises(ToolError, match=r"has the address 127\.0\.0\.1, which is not public"):
        execute(one_tool(service, allow_private=False))
    assert service.requests == []
