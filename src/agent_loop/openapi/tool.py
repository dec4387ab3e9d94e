"""An operation of an OpenAPI document as a tool of the agent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from agent_loop.errors import ToolError
from agent_loop.messages import Text
from agent_loop.openapi.config import ApiKeyAuth, OpenApiConfig
from agent_loop.openapi.documents import Document
from agent_loop.openapi.operations import Operation
from agent_loop.openapi.requests import RequestParts, build_request, key_of
from agent_loop.openapi.schemas import SchemaConverter
from agent_loop.tools.pinned_http import HTTPResponse, send
from agent_loop.tools.tool import Output, Risk, ToolContext, ToolKind, ToolResult

MAX_DESCRIPTION = 4_000
"""Characters of a description that the model gets."""
BODY = "body"
OTHER_BODY = "_request_body"
"""The argument of the body if a parameter is named "body"."""
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_INVALID = re.compile(r"[^A-Za-z0-9_.-]", re.ASCII)
_LONGEST_ARGUMENT = 64
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/javascript", "application/x-ndjson")
_TEXT_SUFFIXES = ("+json", "+xml")
_TEXT_PARTS = ("yaml", "x-www-form-urlencoded")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApiTool:
    """A tool whose calls are requests to a service. Create it with `openapi_tools_from_file` and its siblings."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    operation: Operation
    base_url: str
    config: OpenApiConfig
    label: str = ""
    kind: ToolKind = "fetch"
    risk: Risk = "medium"
    read_only: bool = False
    """Whether the method changes nothing by definition of HTTP, so that several calls may run concurrently."""
    arguments: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The keys of the parameters by argument, because two places may have a parameter of one name."""
    body_argument: str | None = None

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:  # noqa: ARG002  # the protocol
        """Send a call to the service and return its response; other statuses than 2xx are an error result.

        Raises `InvalidArgumentsError` for values that cannot be sent, and `ToolError` if the service does not respond.
        """
        values = {self.arguments[name]: value for name, value in arguments.items() if name in self.arguments}
        body = arguments.get(self.body_argument) if self.body_argument is not None else None
        request = build_request(self.operation, self.base_url, self.config, values, body)
        try:
            response = await self._send(request)
        except ToolError as error:
            raise ToolError(self.config.redact(f"{request.method} {request.url} failed: {error}")) from None
        head = self.config.redact(f"{request.method} {request.url} -> {response.status}")
        text = f"{head}\n\n{_body_of(response, self.config)}"
        return ToolResult((Text(text),), is_error=not 200 <= response.status < 300)

    async def _send(self, request: RequestParts) -> HTTPResponse:
        config = self.config
        try:
            with anyio.fail_after(config.timeout):
                return await send(
                    request.method,
                    request.whole_url,
                    headers=request.headers,
                    # More than the model gets, so that a secret that the limit would cut is still found.
                    max_bytes=config.max_response_bytes + config.longest_secret,
                    allow_private=config.allow_private,
                    **request.body,
                )
        except TimeoutError:
            raise ToolError(f"the service did not respond within {config.timeout:g} seconds") from None


def openapi_tool(
    document: Document, operation: Operation, name: str, base_url: str, config: OpenApiConfig
) -> OpenApiTool:
    """Return the tool of an operation. Raises `ConfigurationError` for references that cannot be resolved."""
    converter = SchemaConverter(document)
    properties: dict[str, Any] = {}
    required: list[str] = []
    arguments: dict[str, str] = {}
    for parameter in operation.parameters:
        if _is_key(parameter.location, parameter.name, config):
            continue  # the model neither sees nor sets it
        argument = _argument(parameter.name, parameter.location, properties)
        properties[argument] = _described(converter.convert(parameter.schema), parameter.description)
        arguments[argument] = key_of(parameter)
        if parameter.required:
            required.append(argument)
    body_argument = None
    if operation.body is not None:
        body_argument = BODY if BODY not in properties else OTHER_BODY
        body = operation.body
        properties[body_argument] = _described(converter.convert(body.schema), body.description)
        if body.required:
            required.append(body_argument)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    if converter.definitions:
        schema["$defs"] = converter.definitions
    is_safe = operation.method in _SAFE_METHODS
    return OpenApiTool(
        name=name,
        description=operation.description[:MAX_DESCRIPTION],
        parameters=schema,
        operation=operation,
        base_url=base_url,
        config=config,
        label=f"{operation.method} {operation.path}",
        risk="high" if operation.method == "DELETE" else "medium",
        read_only=is_safe,
        arguments=arguments,
        body_argument=body_argument,
    )


def _is_key(location: str, name: str, config: OpenApiConfig) -> bool:
    """Whether the configuration sets this parameter."""
    auth = config.auth
    if isinstance(auth, ApiKeyAuth) and auth.location == location:
        is_same = auth.name.lower() == name.lower() if location == "header" else auth.name == name
        if is_same:
            return True
    return location == "header" and name.lower() in {each.lower() for each in config.headers}


def _argument(name: str, location: str, taken: Mapping[str, Any]) -> str:
    """Return a unique argument that providers accept: the name, or one with its place."""
    valid = _INVALID.sub("_", name)[:_LONGEST_ARGUMENT] or location
    candidates = [valid, f"{valid[: _LONGEST_ARGUMENT - 7]}_{location}"]
    numbered = (f"{valid[: _LONGEST_ARGUMENT - 7]}_{number}" for number in range(2, len(taken) + 4))
    return next(each for each in (*candidates, *numbered) if each not in taken)


def _described(schema: Any, description: str) -> Any:
    """Return a schema with the description of its parameter, which is more specific than that of its type."""
    if schema is True or schema is False:
        schema = {}
    return {**schema, "description": description[:MAX_DESCRIPTION]} if description else schema


def _body_of(response: HTTPResponse, config: OpenApiConfig) -> str:
    """Return the body of a response as text without secrets, or a line about it."""
    kind = response.content_type
    is_text = kind.startswith(_TEXT_TYPES) or kind.endswith(_TEXT_SUFFIXES) or any(part in kind for part in _TEXT_PARTS)
    location = response.headers.get("location")
    lines = [config.redact(f"[redirects are not followed; this one leads to {location}]")] if location else []
    if not response.data:
        lines.append("(no body)")
    elif not is_text:
        size = f"{len(response.data)}{' or more' if response.is_cut else ''} bytes"
        lines.append(f"({size} of {kind[:100]}, which is not text)")
    else:
        most = config.max_response_bytes
        data = config.redact(response.text).encode()
        lines.append(data[:most].decode(errors="ignore"))
        if len(response.data) > most:
            lines.append(f"[cut at {most} bytes; ask for less, for example with a filter or a page size]")
    return "\n".join(lines)
