"""Secrets by value: collect them from environments and from the MCP servers of a run."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from agent_mux.redaction.names import is_secret_name

MIN_LENGTH = 8  # bytes; a shorter value occurs as an ordinary word in any output
_PLAIN_WORD = re.compile(r"[a-z]{1,11}|[A-Z]{1,11}|[\d.:+-]+|(.)\1*", re.DOTALL)
"""`postgres`, `changeme`, a number, a row of dots: hiding every occurrence would reveal more than it protects."""
_RANDOM = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S{12,}")


class Server(Protocol):
    """The settings of an MCP server that may contain secrets; `McpServer` conforms to it."""

    @property
    def args(self) -> Sequence[str]:
        """The arguments of its command."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """The environment variables of its process."""
        ...

    @property
    def url(self) -> str | None:
        """The URL of a remote server; None for a local one."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers of requests to it."""
        ...


def is_worth_hiding(value: str) -> bool:
    """Return whether the value is long and unusual enough not to hide ordinary output."""
    return len(value.encode("utf-8", "surrogateescape")) >= MIN_LENGTH and _PLAIN_WORD.fullmatch(value) is None


def _looks_random(value: str) -> bool:
    return _RANDOM.fullmatch(value) is not None and "://" not in value and not value.startswith(("/", "~", "."))


def secret_values(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the secrets of an environment: values of variables with secret names, and passwords in URLs."""
    found: set[str] = set()
    for name, value in environ.items():
        if is_secret_name(name) and not _is_file(value):
            found.update(_parts(value))
        if "://" in value and "@" in value:
            found.update(_secrets_of_url(value))
    return frozenset(filter(is_worth_hiding, found))


def secrets_of_servers(servers: Iterable[Server]) -> frozenset[str]:
    """Return the secrets of MCP servers: values under secret names, and values that look random."""
    return frozenset(value for server in servers for value in _secrets_of_server(server) if is_worth_hiding(value))


def _secrets_of_server(server: Server) -> Iterator[str]:
    for name, value in (*server.env.items(), *server.headers.items()):
        if is_secret_name(name) or _looks_random(value.rpartition(" ")[2]):
            yield from _parts(value)
            yield value.rpartition(" ")[2]  # the part after `Bearer`
    if server.url is not None:
        yield from _secrets_of_url(server.url)
    is_next_secret = False
    for argument in server.args:
        name, sign, value = argument.partition("=")
        if is_next_secret or (sign and is_secret_name(name)):
            yield argument if is_next_secret else value
        is_next_secret = argument.startswith("-") and not sign and is_secret_name(argument)


def _secrets_of_url(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    if parts.password:
        yield parts.password
        yield unquote(parts.password)
    for name, value in parse_qsl(parts.query):
        if is_secret_name(name) or _looks_random(value):
            yield value
            yield url
    if parts.query or parts.password:
        yield from (segment for segment in parts.path.split("/") if _looks_random(segment))


def _parts(value: str) -> Iterator[str]:
    """Yield the parts of a value that may be printed alone: lines of a key, secrets of a JSON object, or the whole."""
    parsed = _json_object(value)
    if parsed is not None:
        yield from _secret_strings(parsed)
    elif "\n" in value:
        yield from (line.strip() for line in value.splitlines() if not line.startswith("-----"))
    else:
        yield value.strip()


def _json_object(value: str) -> Any:
    if not value.lstrip().startswith("{"):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _secret_strings(value: Any) -> Iterator[str]:
    """Yield the strings in plain data that have secret names or look random, line by line."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            for name, item in part.items():
                if isinstance(item, str) and (is_secret_name(str(name)) or _looks_random(item)):
                    yield from (line for line in item.splitlines() if not line.startswith("-----"))
                elif isinstance(item, dict | list):
                    pending.append(item)
        elif isinstance(part, list):
            pending.extend(part)


def _is_file(value: str) -> bool:
    """Return whether the value is the path of a file, as in `GOOGLE_APPLICATION_CREDENTIALS`."""
    try:
        return value.startswith(("/", "~")) and Path(os.path.expanduser(value)).exists()
    except (OSError, ValueError):
        return False
