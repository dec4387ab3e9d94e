"""Tools of an OpenAPI document: from a file, a URL or a text."""

import logging
import re
from os import PathLike
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import anyio

from agent_loop.errors import ConfigurationError, ToolError
from agent_loop.openapi.config import OpenApiConfig, OperationFilter
from agent_loop.openapi.documents import MAX_BYTES, Document, parse_document
from agent_loop.openapi.operations import Operation, operations_of
from agent_loop.openapi.tool import OpenApiTool, openapi_tool
from agent_loop.tools.pinned_http import HTTPResponse, is_available, send
from agent_loop.tools.toolset import NAME, derived_name

_log = logging.getLogger("agent_loop.openapi")
_INVALID = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_TEMPLATE = re.compile(r"\{([^{}]*)\}")
_MAX_REDIRECTS = 5


def openapi_tools_from_text(
    text: str, config: OpenApiConfig | None = None, operations: OperationFilter | None = None
) -> tuple[OpenApiTool, ...]:
    """Return a tool for each operation of a document, JSON or YAML, that matches the filter.

    Operations without `operationId` are skipped with a warning in the log. Blocks while it parses. Raises
    `ConfigurationError` if the document is invalid, no operation matches, or no URL of the service is known.
    """
    return _tools(parse_document(text, "the OpenAPI document"), config, operations)


def openapi_tools_from_file(
    path: str | PathLike[str], config: OpenApiConfig | None = None, operations: OperationFilter | None = None
) -> tuple[OpenApiTool, ...]:
    """Return the tools of a file as `openapi_tools_from_text` does. Blocks while it reads.

    Raises `ConfigurationError` also if the file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"the OpenAPI document {path} cannot be read: {reason}") from None
    return _tools(parse_document(text, str(path)), config, operations)


async def openapi_tools_from_url(
    url: str, config: OpenApiConfig | None = None, operations: OperationFilter | None = None
) -> tuple[OpenApiTool, ...]:
    """Return the tools of a document on the web as `openapi_tools_from_text` does. It is fetched without credentials.

    With authentication, the servers that the document names must be of its own origin; otherwise
    `OpenApiConfig.base_url` is required, so that a document cannot choose who gets the secret. Raises
    `ConfigurationError` also if the document cannot be fetched.
    """
    config = config or OpenApiConfig()
    _check_client()
    try:
        with anyio.fail_after(config.timeout):
            url, response = await _fetch(url, config)
    except TimeoutError:
        raise ConfigurationError(f"{_shown(url)} did not respond within {config.timeout:g} seconds") from None
    except ToolError as error:
        raise ConfigurationError(f"the OpenAPI document at {_shown(url)} cannot be fetched: {error}") from None
    if not 200 <= response.status < 300 or response.is_cut:
        reason = f"more than {MAX_BYTES:,} bytes" if response.is_cut else f"status {response.status}"
        raise ConfigurationError(f"the OpenAPI document at {_shown(url)} cannot be fetched: {reason}")
    text = response.text
    name = _shown(url)
    return await anyio.to_thread.run_sync(lambda: _tools(parse_document(text, name), config, operations, url))


async def _fetch(url: str, config: OpenApiConfig) -> tuple[str, HTTPResponse]:
    for _ in range(_MAX_REDIRECTS + 1):
        if not _origin(url):
            raise ToolError("it is not an http or https URL")
        headers = {"accept": "application/json, application/yaml;q=0.9, */*;q=0.5"}
        response = await send("GET", url, headers=headers, max_bytes=MAX_BYTES, allow_private=config.allow_private)
        location = response.headers.get("location")
        if not 300 <= response.status < 400 or not location:
            return url, response
        url = urljoin(url, location)
    raise ToolError(f"more than {_MAX_REDIRECTS} redirects")


def _tools(
    document: Document, config: OpenApiConfig | None, operations: OperationFilter | None, source: str | None = None
) -> tuple[OpenApiTool, ...]:
    config = config or OpenApiConfig()
    _check_client()
    tools: dict[str, OpenApiTool] = {}
    for operation in operations_of(document, operations or OperationFilter()):
        declared = {each.name for each in operation.parameters if each.location == "path"}
        if unknown := set(_TEMPLATE.findall(operation.path)) - declared:
            shown = ", ".join(sorted(unknown))
            _log.warning("%s: %s does not declare its path parameters %s", document.name, operation.path, shown)
            continue
        base_url = _base_url(document, operation, config, source)
        name = _tool_name(operation.operation_id, config.name_prefix)
        name = derived_name(f"{name} {operation.method} {operation.path}") if name in tools else name
        tools[name] = openapi_tool(document, operation, name, base_url, config)
    if not tools:
        raise ConfigurationError(f"{document.name} has no operation with an operationId that matches the filter")
    return tuple(tools.values())


def _base_url(document: Document, operation: Operation, config: OpenApiConfig, source: str | None) -> str:
    """Return the URL of the service without a slash at the end."""
    url = config.base_url
    if url is None:
        url = urljoin(source, operation.server or "/") if source is not None else operation.server
        if url is not None and source is not None and config.auth is not None and _origin(url) != _origin(source):
            raise ConfigurationError(
                f"{document.name} names the server {_origin(url) or url[:200]!r}, which is of another origin; set "
                "base_url to send it the credentials"
            )
    if url is None or not _origin(url):
        raise ConfigurationError(f"{document.name} does not name the URL of its service; set base_url")
    return url.rstrip("/")


def _tool_name(operation_id: str, prefix: str | None) -> str:
    """Return the name of a tool; characters that providers refuse become "_"."""
    whole = operation_id if prefix is None else f"{prefix}__{operation_id}"
    name = _INVALID.sub("_", whole)
    return name if NAME.fullmatch(name) else derived_name(whole)


def _origin(url: str) -> str:
    """Return scheme, host and port of an HTTP URL without credentials; empty for anything else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or not url.isprintable():
        return ""
    return f"{parts.scheme}://{parts.hostname}:{port or (80 if parts.scheme == 'http' else 443)}"


def _shown(url: str) -> str:
    """Return a URL without its query, which may have a secret."""
    return url.partition("?")[0][:200]


def _check_client() -> None:
    if not is_available():
        raise ConfigurationError("OpenAPI tools need httpx; try: pip install 'agent-mux[openapi]'")
