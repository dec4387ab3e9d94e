"""OpenAPI services of a run: their settings in `start` and on the command line, and their tools.

Settings name the environment variables of secrets, never the secrets: they are recorded with the run.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from anyio import to_thread

from agent_loop.cli.errors import UsageError

if TYPE_CHECKING:
    from agent_loop.openapi import OpenApiAuth, OpenApiTool


class _Settings(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """Settings whose misspelled fields are errors: a filter or an authentication that is ignored would be dangerous."""


class BearerSettings(_Settings, frozen=True, tag="bearer"):
    """A bearer token."""

    variable: str
    """The environment variable with the token."""


class BasicSettings(_Settings, frozen=True, tag="basic"):
    """A user name and a password."""

    username: str
    variable: str
    """The environment variable with the password."""


class ApiKeySettings(_Settings, frozen=True, tag="apiKey"):
    """An API key in a header, a parameter of the query, or a cookie."""

    name: str
    variable: str
    """The environment variable with the key."""
    location: Literal["header", "query", "cookie"] = msgspec.field(default="header", name="in")


class OpenApiSettings(_Settings, frozen=True):
    """A service whose operations become tools."""

    document: str
    """The path or URL of its OpenAPI document."""
    base_url: str | None = None
    name_prefix: str | None = None
    auth: BearerSettings | BasicSettings | ApiKeySettings | None = None
    operation_ids: list[str] | None = None
    tags: list[str] | None = None
    methods: list[str] | None = None
    path_prefix: str | None = None
    timeout: float = 30.0
    """The limit of a call in seconds."""
    max_response_bytes: int = 65_536
    allow_private: bool = False
    """Whether addresses of this machine and of private networks are allowed."""


def parse_settings(text: str) -> OpenApiSettings:
    """Return the settings of a flag: a JSON object, or the path or URL of a document. Raises `ValueError`."""
    if not text.lstrip().startswith("{"):
        return OpenApiSettings(document=text)
    return msgspec.json.decode(text, type=OpenApiSettings)  # msgspec's errors are ValueErrors


def secret_variables(services: Sequence[str | OpenApiSettings]) -> frozenset[str]:
    """Return the environment variables with secrets of the services, which commands of the model must not have."""
    settings = [each for each in services if isinstance(each, OpenApiSettings)]
    return frozenset(each.auth.variable for each in settings if each.auth is not None)


async def openapi_tools(
    services: Sequence[str | OpenApiSettings], directory: Path, environ: Mapping[str, str]
) -> "list[OpenApiTool]":
    """Return the tools of the services. Paths are relative to `directory`.

    Raises `UsageError` if a variable is not set, and `ConfigurationError` for a document that cannot be used.
    """
    found: list[OpenApiTool] = []
    for each in services:
        settings = OpenApiSettings(document=each) if isinstance(each, str) else each
        found += await _tools_of(settings, directory, environ)
    return found


async def _tools_of(
    settings: OpenApiSettings, directory: Path, environ: Mapping[str, str]
) -> "tuple[OpenApiTool, ...]":
    from agent_loop import openapi  # noqa: PLC0415  # most runs have no such services

    config = openapi.OpenApiConfig(
        base_url=settings.base_url,
        auth=_auth_of(settings, environ),
        name_prefix=settings.name_prefix,
        timeout=settings.timeout,
        max_response_bytes=settings.max_response_bytes,
        allow_private=settings.allow_private,
    )
    operations = openapi.OperationFilter(
        operation_ids=settings.operation_ids,
        tags=settings.tags,
        methods=settings.methods,
        path_prefix=settings.path_prefix,
    )
    if settings.document.startswith(("http://", "https://")):
        return await openapi.openapi_tools_from_url(settings.document, config, operations)
    path = directory / settings.document
    return await to_thread.run_sync(lambda: openapi.openapi_tools_from_file(path, config, operations))


def _auth_of(settings: OpenApiSettings, environ: Mapping[str, str]) -> "OpenApiAuth | None":
    from agent_loop import openapi  # noqa: PLC0415  # most runs have no such services

    auth = settings.auth
    if auth is None:
        return None
    secret = environ.get(auth.variable, "")
    if not secret:
        raise UsageError(
            f"{auth.variable} is not set; it has the credentials for {settings.document.partition('?')[0]}"
        )
    match auth:
        case BearerSettings():
            return openapi.BearerAuth(secret)
        case BasicSettings(username=username):
            return openapi.BasicAuth(username, secret)
        case ApiKeySettings(name=name, location=location):
            return openapi.ApiKeyAuth(name, secret, location)
