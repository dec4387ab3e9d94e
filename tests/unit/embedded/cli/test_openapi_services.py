"""OpenAPI services on the command line and in `start`."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.openapi.service import document, operation

from agent_loop.cli.arguments import parse_arguments
from agent_loop.cli.errors import UsageError
from agent_loop.cli.openapi_services import (
    ApiKeySettings,
    BasicSettings,
    OpenApiSettings,
    openapi_tools,
    parse_settings,
    secret_variables,
)
from agent_loop.cli.protocol import StartCommand, parse_command
from agent_loop.openapi import ApiKeyAuth, BasicAuth, BearerAuth, OpenApiTool

PATHS = {"/a": {"get": operation("read", tags=["x"]), "delete": operation("remove", tags=["x"])}}


def tools_of(directory: Path, services: list[str | OpenApiSettings], **environ: str) -> list[OpenApiTool]:
    async def bounded() -> list[OpenApiTool]:
        with anyio.fail_after(60):
            return await openapi_tools(services, directory, environ)

    return anyio.run(bounded)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "api.json").write_text(json.dumps(document(PATHS, servers=[{"url": "https://a.example"}])))
    return tmp_path


def test_flag_and_start_line_name_documents_or_settings(directory: Path) -> None:
    settings = {"document": "api.json", "methods": ["GET"], "namePrefix": "p", "timeout": 5.0}
    flags = parse_arguments(["--openapi", json.dumps(settings), "--openapi=api.json", "go"]).flags
    start = StartCommand(**flags)
    line = json.dumps({"type": "start", "openapi": [settings, "api.json"]}).encode()
    parsed = parse_command(line)
    assert isinstance(parsed, StartCommand)
    for services in (start.openapi, parsed.openapi):
        tools = tools_of(directory, services)
        assert [tool.name for tool in tools] == ["p__read", "read", "remove"]
        assert [tool.config.timeout for tool in tools] == [5.0, 30.0, 30.0]


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ({"type": "bearer", "variable": "V"}, BearerAuth("secret")),
        ({"type": "basic", "username": "ann", "variable": "V"}, BasicAuth("ann", "secret")),
        ({"type": "apiKey", "name": "k", "in": "query", "variable": "V"}, ApiKeyAuth("k", "secret", "query")),
    ],
)
def test_secrets_are_read_from_the_environment(directory: Path, auth: dict[str, Any], expected: Any) -> None:
    settings = parse_settings(json.dumps({"document": "api.json", "auth": auth}))
    assert tools_of(directory, [settings], V="secret")[0].config.auth == expected
    with pytest.raises(UsageError, match=r"V is not set; it has the credentials for api\.json"):
        tools_of(directory, [settings])


def test_commands_do_not_get_the_variables_with_secrets() -> None:
    services: list[str | OpenApiSettings] = [
        "a.json",
        OpenApiSettings(document="b", auth=BasicSettings(username="u", variable="ONE")),
        OpenApiSettings(document="c", auth=ApiKeySettings(name="k", variable="TWO")),
        OpenApiSettings(document="d"),
    ]
    assert secret_variables(services) == {"ONE", "TWO"}


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"document": 3}', '{"document": "a", "method": ["GET"]}', '{"document": "a", "auth": {}}']
)
def test_invalid_settings_are_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="--openapi"):
        parse_arguments(["--openapi", text])
