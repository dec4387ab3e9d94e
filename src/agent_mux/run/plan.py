"""Everything about a run that can be decided before anything is started. Pure but for looking at the disk."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs
from ulid import ULID

from agent_mux.adapter import (
    Adapter,
    Codec,
    CodecContext,
    NativeProtocol,
    SpawnArgs,
    SpawnEnvironment,
    default_context,
)
from agent_mux.assembler import StreamContext
from agent_mux.capabilities import check_capabilities
from agent_mux.errors import AgentMuxError
from agent_mux.events.mending import without_surrogates
from agent_mux.models import prices_of
from agent_mux.options import McpServer, RunOptions, validate_options
from agent_mux.process.marker import marker_variable
from agent_mux.run.records import Header
from agent_mux.run.tempdir import temp_dir_of
from agent_mux.version import __version__

MINIMAL_ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TERM", "TMPDIR", "SHELL", "TZ")
HIDDEN = "[hidden]"
_SHOWN_AS_NAMES = frozenset({"env", "headers"})  # their values may be secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What the runner carries out."""

    options: RunOptions
    adapter: Adapter
    protocol: NativeProtocol
    spawn: SpawnArgs
    environ: Mapping[str, str]
    cwd: str
    temp_dir: Path
    header: Header
    context: CodecContext
    """As in the header, with the secrets that the agent has to be told."""
    secrets: frozenset[str]
    """Values that no journal may hold."""
    journal_path: Path | None

    @property
    def run_id(self) -> str:
        """ULID of the run."""
        return self.header.stream.run_id

    def new_codec(self, context: CodecContext) -> Codec:
        """A codec for the run, or for deriving its events again."""
        return self.protocol.codec(context)


def plan_run(
    options: RunOptions, find_adapter: Callable[[str], Adapter], journal_dir: Path | None, *, now_ms: int | None = None
) -> RunPlan:
    """Check the options and decide everything. Raises before anything is started (run API, section 1)."""
    validate_options(options)
    options = _sound(options)
    adapter = find_adapter(options.agent)
    check_capabilities(options, adapter.capabilities)
    started_at = now_ms if now_ms is not None else time.time_ns() // 1_000_000
    run_id = options.run_id or str(ULID())
    environ = _environment(options)
    temp_dir = temp_dir_of(run_id)
    spawn = adapter.spawn(
        options,
        SpawnEnvironment(
            executable=find_executable(adapter, environ, options.command),
            arguments=tuple(options.command[1:]),
            temp_dir=str(temp_dir),
            environ=environ,
            is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
        ),
    )
    protocol = find_protocol(adapter, spawn.protocol, find_adapter)
    cwd = options.working_directory()
    codec = (adapter.context or partial(default_context, adapter.agent))(options, spawn)
    header = Header(
        package_version=__version__,
        started_at=started_at,
        codec=without_secrets(codec),
        stream=_stream_context(options, adapter, protocol, run_id, codec.cwd or cwd),
        framing=protocol.framing,
        argv=spawn.argv,
        tags=tuple(options.tags),
        options=redacted(options),
    )
    return RunPlan(
        options=options,
        adapter=adapter,
        protocol=protocol,
        spawn=spawn,
        environ=_final_environment(environ, spawn, run_id),
        cwd=cwd,
        temp_dir=temp_dir,
        header=header,
        context=codec,
        secrets=secrets_of(codec.mcp_servers),
        journal_path=_journal_path(options, journal_dir, run_id),
    )


def _sound(options: RunOptions) -> RunOptions:
    # Arguments of a command line may hold bytes that are no characters; no protocol can carry them.
    return replace(
        options,
        prompt=without_surrogates(options.prompt_text),
        system_prompt=None if options.system_prompt is None else without_surrogates(options.system_prompt),
        model=None if options.model is None else without_surrogates(options.model),
        tags=tuple(map(without_surrogates, options.tags)),
    )


def find_executable(adapter: Adapter, environ: Mapping[str, str], command: Sequence[str] = ()) -> str:
    """The agent's program: by its command, named by its variable, or looked for on PATH.

    Raises AGENT_NOT_INSTALLED when it is not there, VALIDATION_ERROR when a command is given that the adapter does not
    take, or none that it needs.
    """
    if command and not adapter.takes_command:
        only = f"{adapter.agent} has a program of its own and takes no command"
        raise AgentMuxError("VALIDATION_ERROR", f"{only}; {adapter.executable_variable} can name another program")
    if command:
        found = shutil.which(command[0], path=environ.get("PATH", os.defpath))
        if found is None:
            raise AgentMuxError("AGENT_NOT_INSTALLED", f"{command[0]} is not a program on PATH, nor an executable file")
        return str(Path(found).absolute())
    named = environ.get(adapter.executable_variable)
    if named:
        found = shutil.which(named, path=environ.get("PATH"))
        if found is None:
            raise AgentMuxError(
                "AGENT_NOT_INSTALLED", f"{adapter.executable_variable} names {named}, which is not an executable file"
            )
        return str(Path(found).absolute())
    for candidate in adapter.executables:
        found = shutil.which(candidate, path=environ.get("PATH", os.defpath))
        if found is not None:
            return str(Path(found).absolute())
    if adapter.takes_command:
        how = f"say which with command (--command), or {adapter.executable_variable}"
        raise AgentMuxError("VALIDATION_ERROR", f"{adapter.agent} drives any program: {how}")
    hint = f"; try: {adapter.install[0].command}" if adapter.install else ""
    missing = f"{adapter.agent} is not installed (no {adapter.executables[0]} on PATH){hint}"
    raise AgentMuxError("AGENT_NOT_INSTALLED", missing)


def find_protocol(adapter: Adapter, name: str, find_adapter: Callable[[str], Adapter]) -> NativeProtocol:
    """A protocol of this adapter, or `agent/protocol`: of another (a replayed recording is read by its own codec)."""
    owner, _, rest = name.partition("/")
    if rest:
        adapter, name = find_adapter(owner), rest
    if name not in adapter.protocols:
        known = ", ".join(sorted(adapter.protocols))
        raise AgentMuxError("VALIDATION_ERROR", f"{adapter.agent} has no protocol {name!r}; it has: {known}")
    return adapter.protocols[name]


def redacted(options: RunOptions) -> dict[str, Any]:
    """The options as plain data for people: no callbacks, no values of environments and headers."""

    def plain(name: str, value: Any) -> Any:
        if name in _SHOWN_AS_NAMES and isinstance(value, Mapping):
            return dict.fromkeys(value, HIDDEN)
        if name == "base64" and value is not None:
            return HIDDEN
        if isinstance(value, Mapping):
            return {key: plain(str(key), item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain("", item) for item in value]
        return value if isinstance(value, str | int | float | bool | None) else str(value)

    return {
        name: plain(name, value)
        for name, value in asdict(options).items()
        if not name.startswith("on_") and value not in (None, "", (), [], {}, False)
    }


def without_secrets(context: CodecContext) -> CodecContext:
    """What may be journaled of a codec's context."""
    return structs.replace(context, mcp_servers=tuple(map(_without_secrets, context.mcp_servers)))


def _without_secrets(server: McpServer) -> McpServer:
    return replace(
        server,
        env=dict.fromkeys(server.env, HIDDEN),
        headers=dict.fromkeys(server.headers, HIDDEN),
        url=HIDDEN if _is_secret(server.url) else server.url,
    )


def secrets_of(servers: Iterable[McpServer]) -> frozenset[str]:
    """What may not be journaled of MCP servers: it is written to the standard input of some agents."""
    values = {value for server in servers for value in (*server.env.values(), *server.headers.values())}
    urls = {server.url for server in servers if _is_secret(server.url) and server.url is not None}
    return frozenset(value for value in values | urls if value)


def hide(data: bytes, secrets: Iterable[str]) -> bytes:
    """What is written to an agent, as it may be journaled."""
    for secret in sorted(secrets, key=len, reverse=True):
        for spelled in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
            data = data.replace(spelled.encode("utf-8", "replace"), HIDDEN.encode())
    return data


def _is_secret(url: str | None) -> bool:
    return url is not None and bool({"@", "?"} & set(url))


def _environment(options: RunOptions) -> dict[str, str]:
    names = os.environ if options.inherit_env else [name for name in MINIMAL_ENVIRONMENT if name in os.environ]
    inherited = {name: os.environ[name] for name in names}
    return {**inherited, **options.env}


def _final_environment(environ: Mapping[str, str], spawn: SpawnArgs, run_id: str) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if name not in spawn.unset_env}
    return {**kept, **spawn.env, marker_variable(run_id): "1"}


def _stream_context(
    options: RunOptions, adapter: Adapter, protocol: NativeProtocol, run_id: str, cwd: str
) -> StreamContext:
    mode = options.approval_mode
    asks = mode != "yolo" or options.on_approval_request is not None
    return StreamContext(
        run_id=run_id,
        agent=adapter.agent,
        display_name=adapter.display_name,
        cwd=cwd,
        streams=protocol.streams,
        buffered=options.stream is False,
        show_approvals=asks,
        show_requests=mode != "deny",
        permission_pending=asks,
        interactive=options.interactive,
        include_subagent_events=options.include_subagent_events,
        resumed=options.session_id is not None,
        forked_from=options.fork_session_id,
        max_turns=options.max_turns or 0,
        model=options.model or adapter.default_model,
        prices=prices_of(adapter.models()),
        auth_guidance=adapter.auth_guidance,
    )


def _journal_path(options: RunOptions, journal_dir: Path | None, run_id: str) -> Path | None:
    match options.journal:
        case False:
            return None
        case True:
            return journal_dir / f"{run_id}.journal" if journal_dir is not None else None
        case path:
            return Path(path)
