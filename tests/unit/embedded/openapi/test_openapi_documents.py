"""Documents to tools: formats, filters, names, schemas, servers, and what is refused."""

import json
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.openapi.service import Reply, Service, document, execute, operation, parameter, tools_of

from agent_loop.errors import ConfigurationError
from agent_loop.json_schema import check_schema
from agent_loop.openapi import (
    BearerAuth,
    OpenApiConfig,
    OpenApiTool,
    OperationFilter,
    openapi_tools_from_file,
    openapi_tools_from_text,
    openapi_tools_from_url,
)
from agent_loop.openapi.schemas import MAX_SCHEMA
from agent_loop.tools.coercion import fits
from agent_loop.tools.tool import Tool, is_read_only, risk_of
from agent_loop.tools.toolset import Toolset

HERE = Path(__file__).parent
USPTO = HERE / "uspto.json"
"""The API of the United States Patent and Trademark Office, an example of the OpenAPI Initiative."""
PETSTORE = HERE / "petstore.json"
OURS = HERE.parents[3] / "docs" / "reference" / "openapi.json"
SERVERS = [{"url": "http://127.0.0.1/"}]


def from_url(url: str, config: OpenApiConfig | None = None) -> tuple[OpenApiTool, ...]:
    async def bounded() -> tuple[OpenApiTool, ...]:
        with anyio.fail_after(60):
            return await openapi_tools_from_url(url, config or OpenApiConfig(allow_private=True))

    return anyio.run(bounded)


@pytest.mark.parametrize(("path", "count"), [(USPTO, 3), (PETSTORE, 20), (OURS, 50)], ids=["uspto", "petstore", "ours"])
def test_real_documents_become_valid_tools(path: Path, count: int) -> None:
    tools = openapi_tools_from_file(path, OpenApiConfig(base_url="https://api.example/"))
    assert len(tools) >= count
    assert len(Toolset(tools)) == len(tools)
    for tool in tools:
        assert isinstance(tool, Tool)
        check_schema(tool.parameters)
        assert len(json.dumps(tool.parameters)) < 3 * MAX_SCHEMA
        assert tool.description
        assert is_read_only(tool) == (tool.operation.method == "GET")


def test_operation_of_a_real_document_sends_its_form(service: Service) -> None:
    tools = {tool.name: tool for tool in openapi_tools_from_file(USPTO, OpenApiConfig(base_url=service.url,
                                                                                      allow_private=True))}  # fmt: skip
    result = execute(tools["perform-search"], version="v1", dataset="oa_citations", body={"criteria": "a:b", "rows": 2})
    assert not result.is_error
    assert service.last.method == "POST"
    assert service.last.path == "/oa_citations/v1/records"
    assert service.last.body == b"criteria=a%3Ab&rows=2"


def test_petstore_upload_and_deletion_are_requests(service: Service) -> None:
    config = OpenApiConfig(base_url=service.url, allow_private=True, name_prefix="pets")
    tools = {tool.name: tool for tool in openapi_tools_from_file(PETSTORE, config)}
    execute(tools["pets__uploadFile"], petId=1, body={"file": "data"})
    assert b'filename="file"' in service.last.body
    execute(tools["pets__deletePet"], petId=7, api_key="k")
    assert (service.last.method, service.last.path, service.last.headers["api_key"]) == ("DELETE", "/pet/7", "k")
    assert risk_of(tools["pets__deletePet"]) == "high"
    execute(tools["pets__findPetsByStatus"], status=["sold", "pending"])
    assert service.last.path == "/pet/findByStatus?status=sold&status=pending"


THREE = document(
    {
        "/a": {"get": operation("read", tags=["one"]), "post": operation("write", tags=["one", "two"])},
        "/b/c": {"get": operation("other")},
    },
    servers=SERVERS,
)


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ["read", "write", "other"]),
        ({"operation_ids": ["other"]}, ["other"]),
        ({"tags": ["two", "three"]}, ["write"]),
        ({"methods": ["get"]}, ["read", "other"]),
        ({"path_prefix": "/b"}, ["other"]),
        ({"tags": ["one"], "methods": ["POST"]}, ["write"]),
    ],
)
def test_filter_selects_operations(settings: dict[str, Any], names: list[str]) -> None:
    assert list(tools_of(THREE, chosen=OperationFilter(**settings))) == names


def test_filter_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="no operation with an operationId that matches the filter"):
        tools_of(THREE, chosen=OperationFilter(operation_ids=["raed"]))
    with pytest.raises(ConfigurationError, match="lists of strings"):
        OperationFilter(tags="one")


def test_operation_without_an_id_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    content = document(
        {"/a": {"get": {"responses": {"200": {"description": "OK"}}}, "post": operation("b")}}, servers=SERVERS
    )
    with caplog.at_level(logging.WARNING):
        assert list(tools_of(content)) == ["b"]
    assert "GET /a has no operationId and is left out" in caplog.text


def test_names_that_providers_refuse_are_changed_and_stay_unique() -> None:
    paths = {f"/{each}": {"get": operation(each)} for each in ("pets.list", "pets/list", "x" * 80)}
    tools = tools_of(document(paths, servers=SERVERS), name_prefix="v1")
    Toolset(tools.values())
    assert next(iter(tools)) == "v1__pets_list"
    assert len(tools) == 3


def test_yaml_is_detected_and_its_numbers_and_dates_are_text() -> None:
    text = """
        openapi: 3.0.3
        info: {title: T, version: 2020-01-01}
        servers: [{url: "{scheme}://h/v1", variables: {scheme: {default: https}}}]
        paths:
          /a:
            get: {operationId: a, responses: {200: {description: OK}}}
    """
    (tool,) = openapi_tools_from_text(text)
    assert tool.base_url == "https://h/v1"


def test_schemas_of_30_become_json_schemas() -> None:
    schemas = {
        "Node": {
            "type": "object",
            "required": ["id", "name"],
            "properties": {
                "id": {"type": "string", "readOnly": True},
                "name": {"type": "string", "nullable": True, "example": "x"},
                "count": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
            },
        }
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}, "required": True}
    content = document(
        {"/a": {"post": operation("a", requestBody=body)}},
        version="3.0.3",
        servers=SERVERS,
        components={"schemas": schemas},
    )
    parameters = tools_of(content)["a"].parameters
    check_schema(parameters)
    assert parameters["properties"]["body"] == {"$ref": "#/$defs/Node"}
    node = parameters["$defs"]["Node"]
    assert node["required"] == ["name"]
    assert node["properties"] == {
        "name": {"type": ["string", "null"]},
        "count": {"type": "integer", "exclusiveMinimum": 0},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
    }
    assert fits({"name": None}, parameters["properties"]["body"], parameters)


def test_shared_parameters_bodies_and_paths_are_resolved() -> None:
    components = {
        "parameters": {"Id": parameter("id", "path", {"type": "integer"}), "Q": parameter("q", "query")},
        "requestBodies": {"B": {"content": {"application/json": {"schema": {"type": "array"}}}}},
    }
    item = {
        "parameters": [{"$ref": "#/components/parameters/Id"}, parameter("q", "query", description="of the path")],
        "put": operation(
            "a", parameters=[{"$ref": "#/components/parameters/Q"}],
            requestBody={"$ref": "#/components/requestBodies/B"},
        ),
    }  # fmt: skip
    tool = tools_of(document({"/a/{id}": item}, servers=SERVERS, components=components))["a"]
    assert tool.parameters["properties"] == {
        "id": {"type": "integer"}, "q": {"type": "string"}, "body": {"type": "array"},
    }  # fmt: skip
    assert tool.parameters["required"] == ["id"]


def test_definitions_beyond_the_size_limit_allow_every_value() -> None:
    schemas = {
        f"S{number}": {
            "type": "object",
            "description": "d" * 400,
            "properties": {"next": {"$ref": f"#/components/schemas/S{number + 1}"}},
        }
        for number in range(1500)
    }
    schemas["S1500"] = {"type": "string"}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}
    paths = {"/a": {"post": operation("a", requestBody=body)}}
    tool = tools_of(document(paths, servers=SERVERS, components={"schemas": schemas}))["a"]
    assert len(json.dumps(tool.parameters)) < 2 * MAX_SCHEMA
    assert {} in tool.parameters["$defs"].values()


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + each)}: &{chr(98 + each)} [{','.join([f'*{chr(97 + each)}'] * 9)}]\n" for each in range(9)
)


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid JSON"),
        ("a: [", "is not valid YAML"),
        ("[]", "is not an OpenAPI 3 document"),
        ('{"swagger": "2.0"}', "convert this Swagger 2.0 document to OpenAPI 3 first"),
        ('{"openapi": "4.0.0"}', "has OpenAPI version '4.0.0'; 3.0 to 3.2 are supported"),
        ('{"openapi": "3.0.0"}', "is not a valid OpenAPI document: at /"),
        ("[" * 100_000, "nested too deeply"),
        ("a: " + "[" * 200 + "]" * 200, "nested too deeply"),
        (BOMB, "has more than 2,000,000 values"),
    ],
    ids=["json", "yaml", "list", "swagger", "version", "structure", "deep-json", "deep-yaml", "aliases"],
)
def test_invalid_document_is_an_error_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        openapi_tools_from_text(text)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("file:///etc/passwd", "outside of the document; bundle it"),
        ("http://127.0.0.1:1/x.json", "outside of the document; bundle it"),
        ("#/components/parameters/Nowhere", "which it does not contain"),
        ("#/components/parameters/Loop", "lead to each other without end"),
    ],
)
def test_reference_that_cannot_be_resolved_is_an_error(reference: str, message: str) -> None:
    components = {"parameters": {"Loop": {"$ref": "#/components/parameters/Loop"}}}
    paths = {"/a": {"get": operation("a", parameters=[{"$ref": reference}])}}
    with pytest.raises(ConfigurationError, match=message):
        tools_of(document(paths, servers=SERVERS, components=components))


def test_path_with_an_undeclared_parameter_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    paths = {"/a/{id}": {"get": operation("a")}, "/b": {"get": operation("b")}}
    assert list(tools_of(document(paths, servers=SERVERS))) == ["b"]
    assert "does not declare its path parameters id" in caplog.text


def test_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        openapi_tools_from_file(tmp_path / "missing.json")


def test_without_a_server_the_base_url_is_required() -> None:
    content = document({"/a": {"get": operation("a")}})
    with pytest.raises(ConfigurationError, match="set base_url"):
        tools_of(content)
    assert tools_of(content, base_url="http://h/v1/")["a"].base_url == "http://h/v1"


def test_server_of_the_operation_takes_precedence() -> None:
    item: dict[str, Any] = {"get": operation("a", servers=[{"url": "http://one/"}]), "post": operation("b")}
    item |= {"servers": [{"url": "http://two"}]}
    tools = tools_of(document({"/a": item}, servers=SERVERS))
    assert [tool.base_url for tool in tools.values()] == ["http://one", "http://two"]


# -- documents on the web


def serve(service: Service, content: dict[str, Any]) -> str:
    service.reply = Reply(body=json.dumps(content).encode())
    return service.url + "/spec/openapi.json?key=abc"


def test_document_of_a_url_names_its_server_relative_to_itself(service: Service) -> None:
    url = serve(service, document({"/a": {"get": operation("a")}}, servers=[{"url": "../v2"}]))
    (tool,) = from_url(url)
    assert tool.base_url == service.url + "/v2"
    execute(tool)
    assert service.last.path == "/v2/a"


def test_document_of_a_url_cannot_choose_who_gets_the_credentials(service: Service) -> None:
    url = serve(service, document({"/a": {"get": operation("a")}}, servers=[{"url": "https://elsewhere.example"}]))
    config = OpenApiConfig(allow_private=True, auth=BearerAuth("token-of-mine"))
    with pytest.raises(ConfigurationError, match=r"elsewhere\.example:443', which is of another origin; set base_url"):
        from_url(url, config)
    assert "authorization" not in service.last.headers
    assert from_url(url)[0].base_url == "https://elsewhere.example"


@pytest.mark.slow
def test_document_of_a_url_is_bounded_and_from_public_addresses(service: Service) -> None:
    url = serve(service, document({"/a": {"get": operation("a")}}))
    with pytest.raises(ConfigurationError, match=r"spec/openapi\.json cannot be fetched: .*is not public") as caught:
        from_url(url, OpenApiConfig())
    assert "abc" not in str(caught.value)
    service.reply = Reply(404, b"")
    with pytest.raises(ConfigurationError, match="cannot be fetched: status 404"):
        from_url(url)
    service.reply = Reply(302, b"", {"location": "/again"})
    with pytest.raises(ConfigurationError, match="more than 5 redirects"):
        from_url(url)
    with pytest.raises(ConfigurationError, match="not an http or https URL"):
        from_url("file:///etc/passwd")
