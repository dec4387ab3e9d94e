"""Agent files: a preset as YAML, and the directories in which they are found.

Files of a project are untrusted: they may restrict what the agent does, but not extend it (`UNTRUSTED`).
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from agent_loop.behavior import NO_LIMITS, Behavior, ContextSettings
from agent_loop.errors import ConfigurationError
from agent_loop.mcp.servers import McpServer
from agent_loop.presets.preset import Mode, Preset, PromptMode
from agent_loop.providers.provider import ThinkingLevel

SUFFIXES = (".yaml", ".yml")
MAX_BYTES = 256 * 1024
NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
MAX_NAME = 64
_STEP = re.compile(r"\.([^.\[\]`]+)|\[(\d+|\.\.\.)\]")
"""One step of a path in an error of msgspec: a key, or the index of an item; "..." for any key or item."""
_UNKNOWN_KEY = re.compile(r"unknown field `(.*?)`")

Name = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(gt=0)]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A mapping of the file, in which an unknown key is an error."""


class LimitsTable(_Table, frozen=True):
    """The limits of a run. Those that the file does not set are those of the program, in the library none."""

    max_turns: Count | None = None
    max_total_tokens: Count | None = None
    max_duration: Amount | None = None
    max_cost_usd: Amount | None = None


class BehaviorTable(_Table, frozen=True):
    """The options of `Behavior` that a file can set."""

    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    top_k: Count | None = None
    max_tokens: Count | None = None
    max_iterations: Count | None = None
    thinking: ThinkingLevel | None = None
    thinking_budget: Count | None = None
    request_timeout: Amount | None = None
    require_read_before_edit: bool | None = None
    tool_disclosure: Literal["eager", "lazy", "auto"] | None = None


class ServerTable(_Table, frozen=True):
    """An MCP server: a program, or a URL."""

    name: Name
    transport: Literal["stdio", "sse", "streamable-http"] = "stdio"
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    honor_read_only: bool = False
    disclosure: Literal["eager", "lazy"] | None = None


class AgentTable(_Table, frozen=True):
    """The keys of an agent file. Relative paths are relative to the directory of the file."""

    name: Name | None = None
    description: str | None = None
    model: Name | None = None
    fallback_models: list[Name] | None = None
    system_prompt: str | None = None
    system_prompt_mode: PromptMode | None = None
    mode: Mode | None = None
    tools: list[Name] | None = None
    disallowed_tools: list[Name] = []
    allowed_tools: list[Name] = []
    aliases: dict[str, Name] = {}
    skills: list[Name] | None = None
    memory: list[Name] | None = None
    handoffs: list[Name] = []
    without: list[Literal["skills", "memory", "todos"]] = []
    mcp_servers: list[ServerTable] = []
    behavior: BehaviorTable = BehaviorTable()
    limits: LimitsTable = LimitsTable()
    context_window: Annotated[int, msgspec.Meta(ge=1000)] | None = None


UNTRUSTED: Mapping[str, str] = {
    "mode": "give itself permissions",
    "allowed_tools": "give itself permissions",
    "mcp_servers": "start programs or connect to servers",
    "skills": "use skills",
    "memory": "use files outside of the project",
}
"""What an agent file that was found in a project must not do, by key."""
_RESTRICTING: frozenset[Mode | None] = frozenset({None, "plan", "ask"})


@dataclass(frozen=True, slots=True)
class FoundAgent:
    """An agent of a file."""

    preset: Preset
    path: Path


def read_agent(path: str | PathLike[str], *, project: Path | None = None) -> Preset:
    """Return the agent that a file describes. Blocking.

    `project`: the directory of the project in which the file was found, None for a file that the user names or owns.
    Raises `ConfigurationError` with file and line if the file cannot be read or is invalid.
    """
    file = Path(path)
    source = _Source(file, _read(file))
    table = source.convert()
    directory = file.absolute().parent
    if project is not None:
        _check_untrusted(table, source, directory, project)
    name = table.name or file.stem
    if len(name) > MAX_NAME or not NAME.fullmatch(name):
        raise source.error(f"the name {name!r} is invalid; use lowercase letters, digits, - and _", "name")
    return _preset_of(table, name, directory)


def find_agents(directory: Path, *, project: Path | None = None) -> tuple[list[FoundAgent], list[str]]:
    """Return the agents in the files of a directory, and a sentence for each file that is skipped. Blocking.

    `project` is as for `read_agent`. A directory that does not exist has none.
    """
    found: dict[str, FoundAgent] = {}
    problems: list[str] = []
    for path in _agent_files(directory):
        try:
            preset = read_agent(path, project=project)
        except ConfigurationError as error:
            problems.append(f"the agent file is skipped: {error}")
            continue
        first = found.setdefault(str(preset.name), FoundAgent(preset, path))
        if first.path != path:
            problems.append(f"the agent file {path} is skipped: {first.path} has the name {preset.name!r} already")
    return list(found.values()), problems


def _agent_files(directory: Path) -> Iterator[Path]:
    try:
        files = sorted(directory.iterdir())
    except OSError:
        return iter(())
    return (path for path in files if path.suffix in SUFFIXES and path.is_file())


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{path} cannot be read: {reason}; name an existing agent file") from None
    if len(data) > MAX_BYTES:
        raise ConfigurationError(f"{path} has more than {MAX_BYTES:,} bytes, which is too much for an agent file")
    return text


class _Source:
    """A file, its text as YAML nodes with their lines, and its content as plain data."""

    def __init__(self, path: Path, text: str) -> None:
        """Parse the text. Raises `ConfigurationError`."""
        from ruamel.yaml import YAML  # noqa: PLC0415  # slow to import, and most agents have no file
        from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415
        from ruamel.yaml.events import AliasEvent  # noqa: PLC0415

        self.path = path
        parser = YAML(typ="safe", pure=True)
        try:
            for event in parser.parse(text):
                if isinstance(event, AliasEvent):  # a short file could expand to gigabytes
                    raise ConfigurationError(f"{path}:{event.start_mark.line + 1}: YAML aliases are not supported")
            self._root: Any = parser.compose(text)
            self._data: Any = parser.load(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = f":{mark.line + 1}" if mark is not None else ""
            raise ConfigurationError(f"{path}{line}: invalid YAML: {error.problem or error.context}") from None
        except (YAMLError, ValueError, RecursionError) as error:
            raise ConfigurationError(f"{path}: invalid YAML: {str(error).splitlines()[0]}") from None

    def convert(self) -> AgentTable:
        """Return the content as an `AgentTable`. Raises `ConfigurationError` with the line of the first mistake."""
        if not isinstance(self._data, dict):
            raise ConfigurationError(f"{self.path}:1: an agent file must be a mapping, with keys such as `description`")
        try:
            return msgspec.convert(self._data, AgentTable)
        except msgspec.ValidationError as error:
            problem, _, where = str(error).partition(" - at `$")
            steps = [step[0] or step[1] for step in _STEP.findall(where)]
            unknown = _UNKNOWN_KEY.search(problem)
            if unknown is not None:
                problem = f"unknown key `{unknown[1]}`{_allowed_keys(steps)}"
                steps.append(unknown[1])
            shown = "" if unknown is not None or not steps else f"{'.'.join(steps)}: "
            raise self.error(f"{shown}{problem[:1].lower()}{problem[1:]}", *steps) from None

    def error(self, problem: str, *steps: str) -> ConfigurationError:
        """Return the error for a problem with the value at this path of keys and indexes."""
        return ConfigurationError(f"{self.path}:{self._line_of(steps)}: {problem}")

    def _line_of(self, steps: Sequence[str]) -> int:
        node, line = self._root, 1
        for step in steps:
            if isinstance(node.value, list) and step.isdigit() and int(step) < len(node.value):
                node = node.value[int(step)]
                line = node.start_mark.line + 1
                continue
            pairs = [pair for pair in node.value if isinstance(pair, tuple)] if isinstance(node.value, list) else []
            pair = next((pair for pair in pairs if pair[0].value == step), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        return line


def _allowed_keys(steps: Sequence[str]) -> str:
    tables: Mapping[str, type[_Table]] = {"behavior": BehaviorTable, "limits": LimitsTable, "mcp_servers": ServerTable}
    table = tables.get(steps[0], AgentTable) if steps else AgentTable
    return f"; use one of {', '.join(table.__struct_fields__)}"


def _check_untrusted(table: AgentTable, source: _Source, directory: Path, project: Path) -> None:
    root = project.resolve()
    memory = [Path(os.path.realpath(path)) for path in _absolute(table.memory, directory) or ()]
    refused = {
        "mode": table.mode not in _RESTRICTING,
        "allowed_tools": bool(table.allowed_tools),
        "mcp_servers": bool(table.mcp_servers),
        "skills": bool(table.skills),
        "memory": any(not path.is_relative_to(root) for path in memory),
    }
    for key, is_refused in refused.items():
        if is_refused:
            raise source.error(
                f"{key}: an agent of a project cannot {UNTRUSTED[key]}; read the file, and name it with --agent-file "
                "to trust it",
                key,
            )


def _preset_of(table: AgentTable, name: str, directory: Path) -> Preset:
    return Preset(
        name=name,
        description=table.description,
        model=table.model,
        fallbacks=table.fallback_models,
        system_prompt=table.system_prompt,
        prompt_mode=table.system_prompt_mode,
        mode=table.mode,
        tool_names=table.tools,
        excluded_tools=tuple(table.disallowed_tools),
        approved_tools=tuple(table.allowed_tools),
        aliases=table.aliases,
        behavior=_behavior_of(table),
        without=tuple(table.without),
        mcp_servers=tuple(McpServer(**msgspec.structs.asdict(server)) for server in table.mcp_servers),
        skills=_absolute(table.skills, directory),
        memory=_absolute(table.memory, directory),
        handoffs=tuple(table.handoffs),
    )


def _absolute(paths: Sequence[str] | None, directory: Path) -> list[Path] | None:
    return None if paths is None else [directory / Path(os.path.expanduser(path)) for path in paths]


def _behavior_of(table: AgentTable) -> Behavior | None:
    given: dict[str, Any] = _set_fields(table.behavior)
    limits = _set_fields(table.limits)
    if limits:
        given["limits"] = replace(NO_LIMITS, **limits)
    if table.context_window is not None:
        given["context"] = ContextSettings(max_context_tokens=table.context_window)
    return Behavior(**given) if given else None


def _set_fields(table: _Table) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(table).items() if value is not None}
