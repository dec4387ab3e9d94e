"""The values that are secrets, out of environments and of what a run was given."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from agent_mux.redaction.names import is_secret_name

SHORTEST = 8  # bytes; what is shorter is a word of its own somewhere in any output
_PLAIN_WORD = re.compile(r"[a-z]{1,11}|[A-Z]{1,11}|[\d.:+-]+|(.)\1*", re.DOTALL)
"""`postgres`, `changeme`, a number, a row of dots: to hide it everywhere would tell more than it keeps."""
_RANDOM = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S{12,}")


class Server(Protocol):
    """What an MCP server is given: `McpServer` is one."""

    @property
    def args(self) -> Sequence[str]:
        """Of its command."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """Of its process."""
        ...

    @property
    def url(self) -> str | None:
        """Where it is."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Of requests to it."""
        ...


def is_worth_hiding(value: str) -> bool:
    """It can be told apart from what is printed anyway."""
    return len(value.encode("utf-8", "surrogateescape")) >= SHORTEST and _PLAIN_WORD.fullmatch(value) is None


def _looks_random(value: str) -> bool:
    return _RANDOM.fullmatch(value) is not None and "://" not in value and not value.startswith(("/", "~", "."))


def secret_values(environ: Mapping[str, str]) -> frozenset[str]:
    """The secrets in an environment: by the names of the variables, and passwords in URLs."""
    found: set[str] = set()
    for name, value in environ.items():
        if is_secret_name(name) and not _is_file(value):
            found.update(_parts(value))
        if "://" in value and "@" in value:
            found.update(_of_url(value))
    return frozenset(filter(is_worth_hiding, found))


def secrets_of_servers(servers: Iterable[Server]) -> frozenset[str]:
    """The secrets that MCP servers are given: named as such, or looking like one."""
    return frozenset(value for server in servers for value in _of_server(server) if is_worth_hiding(value))


def _of_server(server: Server) -> Iterator[str]:
    for name, value in (*server.env.items(), *server.headers.items()):
        if is_secret_name(name) or _looks_random(value.rpartition(" ")[2]):
            yield from _parts(value)
            yield value.rpartition(" ")[2]  # what follows `Bearer`
    if server.url is not None:
        yield from _of_url(server.url)
    names_secret = False
    for argument in server.args:
        name, sign, value = argument.partition("=")
        if names_secret or (sign and is_secret_name(name)):
            yield argument if names_secret else value
        names_secret = argument.startswith("-") and not sign and is_secret_name(argument)


def _of_url(url: str) -> Iterator[str]:
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
        yield from (piece for piece in parts.path.split("/") if _looks_random(piece))


def _parts(value: str) -> Iterator[str]:
    """A value as it may be printed: each line of a key, each secret of a JSON object, else the whole."""
    loaded = _json_object(value)
    if loaded is not None:
        yield from _leaves(loaded)
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


def _leaves(value: Any) -> Iterator[str]:
    """The strings in plain data that look like secrets."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            for name, item in part.items():
                if isinstance(item, str) and (is_secret_name(str(name)) or _looks_random(item)):
                    yield from (line for line in item.splitlines() if not line.startswith("-----"))
                elif isinstance(item, dict | list):
                    waiting.append(item)
        elif isinstance(part, list):
            waiting.extend(part)


def _is_file(value: str) -> bool:
    """`GOOGLE_APPLICATION_CREDENTIALS` and the like name a file."""
    try:
        return value.startswith(("/", "~")) and Path(value).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False
