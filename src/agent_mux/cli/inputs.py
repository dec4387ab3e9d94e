"""Parse values from the command line and from the files that it names.

Unusable values raise VALIDATION_ERROR with a message that names the option or file.
"""

import json
import math
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agent_mux._util import durations
from agent_mux.cli.errors import usage_error
from agent_mux.cli.terminal import is_terminal, one_line
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.options import Attachment, McpServer, RetryPolicy
from agent_mux.settings.durations import SECOND, with_units
from agent_mux.settings.json_files import parse_object, parse_value
from agent_mux.settings.options_json import is_text_key

STDIN = "-"
LONGEST_SHOWN = 60  # characters of a prompt in an error
_URL = ("http://", "https://")
_OLD_TRANSPORT = "sse+"


def read_bytes(source: str | Path) -> bytes:
    """Read a whole file, or standard input for `-`."""
    if str(source) == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(source, error) from error


def unreadable(source: str | Path, error: OSError | ValueError) -> AgentMuxError:
    """Return the VALIDATION_ERROR for a file that cannot be read."""
    reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    return usage_error(f"cannot read {source}: {reason}; name a readable file, or - for standard input")


def read_json_object(path: Path, what: str) -> dict[str, Any]:
    """Read a file that contains one JSON object. `what` describes the object in error messages."""
    try:
        value = json.loads(read_bytes(path))
    except json.JSONDecodeError as error:
        raise usage_error(
            f"{path} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}; correct it"
        ) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise usage_error(f"{path} is not JSON: {error}; correct it") from error
    if not isinstance(value, dict):
        raise usage_error(f"{path} does not contain a JSON object ({what} is expected)")
    return value


def pipe_prompt() -> str:
    """Read the prompt from standard input. Raise VALIDATION_ERROR if that is a terminal."""
    if is_terminal(sys.stdin):
        raise usage_error("no prompt: pass PROMPT or --prompt, or pipe it on stdin")
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not prompt.strip():
        raise usage_error("prompt is empty: pass PROMPT or --prompt, or pipe it on stdin")
    return prompt


def command(text: str) -> tuple[str, ...]:
    """Split a command with shell quoting; nothing is expanded."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise usage_error(f"--command {text!r}: {error}; quote it as for a shell") from error
    if not words:
        raise usage_error("--command is empty; name a program")
    return words


def split_names(values: Iterable[str]) -> tuple[str, ...]:
    """Split lists of names that are separated by commas."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def environment(assignments: Iterable[str]) -> dict[str, str]:
    """Parse `NAME=VALUE` assignments. Values may be secrets and never appear in messages."""
    pairs = [assignment.partition("=") for assignment in assignments]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise usage_error("--env expects NAME=VALUE")
    return {name: value for name, _, value in pairs}


def native_settings(flag: str, assignments: Iterable[str]) -> dict[str, Any]:
    """Parse `KEY=VALUE` assignments: a value is JSON, or else a text. Values may be secrets: messages omit them."""
    found: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not key.strip() or not equals:
            raise usage_error(f"{flag} expects KEY=VALUE")
        if key in found:
            raise usage_error(f"{flag} {key} is given twice; give it once, with a JSON value for several values")
        try:
            found[key] = json.loads(text)
        except (ValueError, RecursionError):
            found[key] = text
    return found


def retry_policy(attempts: int | None, delay: float | None) -> dict[str, Any] | None:
    """Return the `RetryPolicy` fields that the flags set: number of attempts and initial delay; None without flags."""
    if attempts is None:
        if delay is not None:
            raise usage_error("--retry-delay requires --retry")
        return None
    if attempts < 1:
        raise usage_error(f"--retry expects the total number of attempts, at least 1; got {attempts}")
    if delay is None:
        return {"max_attempts": attempts}
    if not 0 <= delay < math.inf:
        raise usage_error(f"--retry-delay expects seconds, at least 0; got {delay:g}")
    longer = {"max_delay": delay} if delay > RetryPolicy().max_delay else {}
    return {"max_attempts": attempts, "base_delay": delay, **longer}


def longest_wait(text: str | None) -> float | None:
    """Parse the value of `--wait-for-quota`: a duration, or 0 for no limit. Returns seconds; None without the flag."""
    if text is None:
        return None
    try:
        return durations.parse_duration(text)
    except ValueError as error:
        raise usage_error(f"--wait-for-quota {text!r} is not a duration; give {durations.EXPECTED}") from error


def names_agent(word: str) -> bool:
    """Return whether a word is, or closely resembles, the name of an agent; otherwise it is a prompt."""
    from agent_mux._util.suggestions import closest_names
    from agent_mux.sdk.registry import AdapterRegistry

    if len(word.split()) != 1:
        return False
    registry = AdapterRegistry()
    return word in registry or bool(closest_names(word, registry.names(), similarity=0.8))


def check_agent_name(name: str) -> None:
    """Raise AGENT_NOT_FOUND, with the known names, unless this is the name of an agent."""
    from agent_mux.sdk.registry import AdapterRegistry

    AdapterRegistry().get(name)


def missing_agent_error(words: list[str]) -> AgentMuxError:
    """Return the VALIDATION_ERROR for a command line that names no agent, with the ways to name one."""
    first = f" ({one_line(words[0], LONGEST_SHOWN)!r} is not an agent)" if words else ""
    prompt = shlex.quote(one_line(" ".join(words), LONGEST_SHOWN)) if words else "PROMPT"
    return usage_error(
        f"agent is missing{first}: use `amux run AGENT {prompt}`, "
        "or set a default with AGENT_MUX_DEFAULT_AGENT or `amux config set amux defaultAgent AGENT`"
    )


def attachments(named: Iterable[str]) -> tuple[Attachment, ...]:
    """Convert file names and URLs to attachments."""
    return tuple(
        Attachment(url=name) if name.startswith(_URL) else Attachment(file_path=str(Path(name).absolute()))
        for name in named
    )


def mcp_servers(specs: Iterable[str]) -> tuple[McpServer, ...]:
    """Parse `NAME=COMMAND ARGS...`, `NAME=URL` or `@FILE`; see the help of `--mcp-server`."""
    return tuple(server for spec in specs for server in _mcp_servers(spec))


def _mcp_servers(spec: str) -> list[McpServer]:
    if spec.startswith("@"):
        path = Path(spec[1:])
        listed = read_json_object(path, "an object of MCP servers")
        servers = listed.get("mcpServers", listed)
        if not isinstance(servers, dict):
            raise usage_error(f"{path}: mcpServers is not an object; it holds one object for each server name")
        return [_server_from_json(path, name, server) for name, server in servers.items()]
    name, _, target = spec.partition("=")
    if not name or not target.strip():
        raise usage_error(f"--mcp-server expects NAME=COMMAND, NAME=URL or @FILE; got {spec!r}")
    old, address = target.startswith(_OLD_TRANSPORT), target.removeprefix(_OLD_TRANSPORT)
    if address.startswith(_URL):
        return [McpServer(name, "sse" if old else "streamable-http", url=address)]
    try:
        command, *arguments = shlex.split(target)
    except ValueError as error:
        raise usage_error(f"--mcp-server {name}: {error}; quote the command as for a shell") from error
    return [McpServer(name, command=command, args=tuple(arguments))]


_TRANSPORTS: Mapping[Any, Any] = {"sse": "sse", "http": "streamable-http", "streamable-http": "streamable-http"}


def _server_from_json(path: Path, name: str, server: Any) -> McpServer:
    known = {"type", "command", "args", "env", "url", "headers"}
    if not isinstance(server, dict) or not known.issuperset(server):
        raise usage_error(f"{path}: server {name!r} must be an object with the fields {', '.join(sorted(known))}")
    texts: dict[str, Any] = {key: server.get(key) for key in ("command", "url", "type")}
    maps = {key: server.get(key, {}) for key in ("env", "headers")}
    arguments = server.get("args", [])
    is_valid = (
        all(value is None or isinstance(value, str) for value in texts.values())
        and all(isinstance(value, dict) and _all_text(value.values()) for value in maps.values())
        and isinstance(arguments, list)
        and _all_text(arguments)
    )
    if not is_valid:
        raise usage_error(
            f"{path}: server {name!r} has a field of the wrong type; command, url and type are text, args is a list"
        )
    named = _TRANSPORTS.get(texts.pop("type"), "streamable-http")
    transport = "stdio" if texts["command"] is not None else named
    return McpServer(name=name, args=tuple(arguments), **{**texts, **maps, "transport": transport})


def _all_text(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


_AGO = r"(\d{1,6})([mhdw])"
LONGEST_DURATION = timedelta(days=36525)
_TIME_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_time(text: str | None, flag: str, *, now: datetime | None = None) -> datetime | None:
    """Parse a day, a point in time, or a time ago such as `7d` (m, h, d, w). Local time unless an offset is given."""
    if text is None:
        return None
    ago = re.fullmatch(_AGO, text.strip())
    if ago is not None:
        return (now or datetime.now().astimezone()) - timedelta(**{_TIME_UNITS[ago[2]]: int(ago[1])})
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError) as error:
        allowed = "give a day (2026-11-21), a time (2026-11-21T14:30) or how long ago (7d, 12h)"
        raise usage_error(f"{flag} {text!r} is not a valid time; {allowed}") from error


def parse_duration(text: str, flag: str) -> timedelta:
    """Parse a duration such as `24h` (s, m, h, d, w). A number without a unit is refused: it might mean days."""
    is_valid = durations.has_unit(text)
    seconds = durations.parse_duration(text) if is_valid else math.inf
    if seconds > LONGEST_DURATION.total_seconds():
        raise usage_error(
            f"{flag} {text!r} is not a valid duration; give a number and s, m, h, d or w (24h, 90d), up to 100 years"
        )
    return timedelta(seconds=seconds)


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Parse `KEY=VALUE` assignments; `a.b` is a key in an object.

    A value is JSON, or else text; a duration without a unit is seconds, as in flags. None (`KEY=`) removes the key.
    """
    values: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not all(key.split(".")):
            raise usage_error(f"expected KEY=VALUE, got {assignment!r}")
        if key in values:
            raise usage_error(f"{key} is given twice; give it once")
        values[key] = value if value and is_text_key(key) else _assigned_value(value)
    return with_units(values, bare=SECOND)


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file, or from standard input for `-`."""
    try:
        return parse_object(read_bytes(path).decode(), str(path))
    except AgentMuxError as error:
        raise usage_error(error.message) from error
    except UnicodeDecodeError as error:
        raise usage_error(f"{path} is not UTF-8: byte {error.start}; convert it") from error


def _assigned_value(text: str) -> Any:
    if not text:
        return None
    try:
        return parse_value(text)
    except (ValueError, RecursionError):
        return text
