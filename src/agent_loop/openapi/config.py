"""Settings of OpenAPI tools: the service, its authentication, limits, and which operations become tools."""

import base64
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote, quote_plus

from agent_loop.errors import ConfigurationError

MAX_RESPONSE_BYTES = 65_536
HIDDEN = "****"
"""What replaces a secret in results and errors."""
_SECRET_WORDS = ("auth", "cookie", "key", "pass", "secret", "token")
"""Parts of the names of headers whose values are secrets."""
_SHORTEST_SECRET = 4
"""Characters from which a secret is replaced; shorter ones would be replaced everywhere."""


@dataclass(frozen=True, slots=True)
class BearerAuth:
    """The header `Authorization: Bearer TOKEN`."""

    token: str = field(repr=False)

    def headers(self) -> dict[str, str]:
        """Return the headers that authenticate a request."""
        return {"authorization": f"Bearer {self.token}"}

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must not appear in results."""
        return (self.token,)


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """The header `Authorization: Basic` with a user name and a password."""

    username: str
    password: str = field(repr=False)

    def headers(self) -> dict[str, str]:
        """Return the headers that authenticate a request."""
        return {"authorization": f"Basic {self._encoded()}"}

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must not appear in results."""
        return self.password, self._encoded()

    def _encoded(self) -> str:
        return base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


@dataclass(frozen=True, slots=True)
class ApiKeyAuth:
    """An API key in a header, a parameter of the query or a cookie with this name."""

    name: str
    value: str = field(repr=False)
    location: Literal["header", "query", "cookie"] = "header"

    def headers(self) -> dict[str, str]:
        """Return the headers that authenticate a request, except for a cookie."""
        return {self.name.lower(): self.value} if self.location == "header" else {}

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that must not appear in results."""
        return (self.value,)


OpenApiAuth = BearerAuth | BasicAuth | ApiKeyAuth


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApiConfig:
    """Settings of the tools of one document. Raises `ConfigurationError` for invalid values."""

    base_url: str | None = None
    """The URL of the service; None: the first server in the document."""
    auth: OpenApiAuth | None = None
    """The authentication of each request. Its secrets are replaced in results and errors, and are never logged."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request. The values of those that are named like a secret are replaced like one."""
    max_response_bytes: int = MAX_RESPONSE_BYTES
    """The bytes of a response that the model gets; the rest is left out."""
    timeout: float = 30.0
    """The time limit of a call in seconds."""
    name_prefix: str | None = None
    """Tools are named `PREFIX__OPERATION`."""
    allow_private: bool = False
    """Whether the document and the service may be at addresses of this machine and of private networks."""

    def __post_init__(self) -> None:
        if self.timeout <= 0 or self.max_response_bytes < 1:
            raise ConfigurationError("timeout and max_response_bytes of OpenAPI tools must be above 0")
        for name, value in (*self.headers.items(), *(self.auth.headers() if self.auth else {}).items()):
            if not is_header(name, value):
                raise ConfigurationError(f"the header {name!r} of OpenAPI tools has an invalid name or value")
        if self.auth is not None and not all(self.auth.secrets()):
            raise ConfigurationError("a secret of the authentication of OpenAPI tools is empty")

    def redact(self, text: str) -> str:
        """Return the text without the secrets of this configuration, plain or encoded."""
        for secret in self._secrets():
            text = text.replace(secret, HIDDEN)
        return text

    @property
    def longest_secret(self) -> int:
        """The bytes of the longest secret, 0 without one."""
        return max((len(form.encode()) for form in self._secrets()), default=0)

    def _secrets(self) -> list[str]:
        """Return all forms of all secrets, the longest first."""
        named = [value for name, value in self.headers.items() if any(word in name.lower() for word in _SECRET_WORDS)]
        plain = [*(self.auth.secrets() if self.auth else ()), *named]
        # "Bearer TOKEN" in a header of the caller: the token alone is a secret, too.
        plain += [value.rpartition(" ")[2] for value in named]
        forms = {form for each in plain for form in _forms(each)}
        return sorted((form for form in forms if len(form) >= _SHORTEST_SECRET), key=len, reverse=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFilter:
    """Which operations become tools: those that match every criterion that is set. None matches all."""

    operation_ids: Collection[str] | None = None
    tags: Collection[str] | None = None
    """An operation needs one of these tags."""
    methods: Collection[str] | None = None
    """For example `("GET",)`; in any case of letters."""
    path_prefix: str | None = None

    def __post_init__(self) -> None:
        if any(isinstance(each, str) for each in (self.operation_ids, self.tags, self.methods)):
            raise ConfigurationError("operation_ids, tags and methods of OperationFilter are lists of strings")

    def matches(self, operation_id: str, tags: Collection[str], method: str, path: str) -> bool:
        """Whether an operation becomes a tool."""
        return (
            (self.operation_ids is None or operation_id in self.operation_ids)
            and (self.tags is None or not set(self.tags).isdisjoint(tags))
            and (self.methods is None or method.upper() in {each.upper() for each in self.methods})
            and path.startswith(self.path_prefix or "")
        )


def _forms(secret: str) -> tuple[str, ...]:
    """Return a secret as a service may repeat it: plain, in a URL, in JSON."""
    in_json = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    return secret, quote(secret, safe=""), quote(secret), quote_plus(secret), *in_json


def is_header(name: str, value: str) -> bool:
    """Whether name and value of a header contain nothing that could begin another one."""
    return name.isascii() and name.isprintable() and not set(name) & set(' :,"') and name != "" and value.isprintable()
