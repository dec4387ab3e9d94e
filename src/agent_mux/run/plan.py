"""Everything about a run that is decided before anything is started: a pure function, except for reading the disk."""

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import structs

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux._util.paths import config_dir
from agent_mux._util.sanitize import replace_surrogates, sanitize_unicode
from agent_mux._util.ulids import new_ulid
from agent_mux._util.version import __version__
from agent_mux.assembler import StreamContext
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.journal.records import Header
from agent_mux.process.executable import find_executable
from agent_mux.process.installed_version import installed_version
from agent_mux.redaction import (
    HIDDEN,
    Redactor,
    hide_secret_arguments,
    hide_secret_values,
    secret_values,
    secrets_of_servers,
)
from agent_mux.run.environment import base_environment, process_environment, temp_dir_of
from agent_mux.sdk.adapter import (
    Adapter,
    NativeProtocol,
    SpawnArgs,
    SpawnEnvironment,
    check_capabilities,
    default_context,
    spawn_args,
)
from agent_mux.sdk.codec import Codec, CodecContext
from agent_mux.sdk.models import prices_of
from agent_mux.sdk.native_options import add_extra_args
from agent_mux.sdk.options import ApprovalMode, McpServer, RunOptions, validate_options
from agent_mux.settings.resolver import ResolvedOptions

if TYPE_CHECKING:
    from agent_mux.loopback.callbacks import RunCallbacks
    from agent_mux.run.hooks import RunHooks
    from agent_mux.worktrees.worktree import WorktreePlan

ModelNotes = Callable[[Adapter, str | None], tuple[str, ...]]
"""Returns warnings about a model name, for an adapter and the name (None: no model is named)."""


def _no_notes(adapter: Adapter, model: str | None) -> tuple[str, ...]:  # noqa: ARG001  # the signature of ModelNotes
    return ()


MIN_HIDDEN_STRING = 4  # characters of a value of an MCP server that is hidden where it is a whole string


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """All decisions that the runner carries out."""

    options: RunOptions
    adapter: Adapter
    protocol: NativeProtocol
    spawn: SpawnArgs
    environ: Mapping[str, str]
    cwd: str
    temp_dir: Path
    header: Header
    context: CodecContext
    """As in the header, but with placeholders for the secrets that the agent needs."""
    redactor: Redactor
    """Replaces the run's secrets in everything that is recorded, and restores them in what is sent to the agent."""
    journal_path: Path | None
    requested_options: RunOptions
    """The options as given; `options` has the worktree, if any, as its `cwd`."""
    worktree: "WorktreePlan | None" = None
    callbacks: "RunCallbacks | None" = None
    """Serves the Python functions of the run to its agent; None: there are none."""
    hooks: "RunHooks | None" = None
    """The hooks that agent-mux calls during the run; None: it calls none."""
    resolved: ResolvedOptions | None = None
    """The options with their sources, if they were resolved."""
    command_prefix: tuple[str, ...] = ()
    """A program, with its arguments, that starts the agent's command, for example in a sandbox. It must become the
    command (`exec`), so that signals reach the agent."""
    claim: "Callable[[], Awaitable[bool]] | None" = None
    """Asked once when the run has a slot, before anything of it begins. False withdraws the run."""
    fallbacks: "tuple[RunPlan, ...]" = ()
    """What runs instead, in order, when the provider refuses: other agents or models, with the same run id."""

    @property
    def run_id(self) -> str:
        """ULID of the run."""
        return self.header.stream.run_id

    def new_codec(self, context: CodecContext) -> Codec:
        """Return a new codec, for the run or for deriving its events again; after a fallback, one of its agent."""
        wanted = context.agent, context.protocol
        for plan in (self, *self.fallbacks):
            if (plan.context.agent, plan.context.protocol) == wanted:
                return plan.protocol.codec(context)
        return self.protocol.codec(context)


def plan_run(  # noqa: PLR0913  # all but three have a default
    options: RunOptions,
    find_adapter: Callable[[str], Adapter],
    journal_dir: Path | None,
    *,
    now_ms: int | None = None,
    must_ask: bool = False,
    callbacks: "RunCallbacks | None" = None,
    worktrees: Path | None = None,
    model_notes: ModelNotes = _no_notes,
) -> RunPlan:
    """Check the options and decide everything that can be decided before the agent starts.

    Args:
        options: The options as the caller gave them.
        find_adapter: Returns the adapter of an agent's name or alias.
        journal_dir: Directory for journals without a path of their own; None: write no journal.
        now_ms: Start time in milliseconds since the epoch; default: now.
        callbacks: Serves the functions in `options.tools`; default: a new server.
        must_ask: Whether hooks decide what the agent may do, so that it must ask for every action it can.
        worktrees: Directory for the worktrees of runs; default: in the global directory.
        model_notes: Returns warnings about the model name, reported once by the run.

    Raises:
        AgentMuxError: The run cannot start with these options. See docs/spec/run-api.md, section 1.
    """
    validate_options(options)
    requested_options = options = _replace_surrogates_in(options)
    adapter = find_adapter(options.agent)
    native = _native_options(options, must_ask=must_ask)
    check_capabilities(native, adapter.capabilities)
    callbacks = callbacks or callbacks_of(options, adapter)
    if callbacks is not None and callbacks.has_tools:
        native = replace(native, mcp_servers=(*native.mcp_servers, callbacks.mcp_server(adapter.tools_over)))
    started_at = now_ms if now_ms is not None else time.time_ns() // 1_000_000
    run_id = options.run_id or new_ulid()
    environ = base_environment(options, adapter)
    worktree = None
    if options.isolation == "worktree":
        from agent_mux.worktrees.worktree import plan_worktree  # noqa: PLC0415  # most runs do not need it

        worktree, environ = plan_worktree(options, run_id, environ, worktrees or config_dir() / "worktrees")
        options, native = replace(options, cwd=worktree.cwd), replace(native, cwd=worktree.cwd)
    temp_dir = temp_dir_of(run_id)
    executable = find_executable(adapter, environ, options.command)
    spawn = spawn_args(
        adapter,
        native,
        SpawnEnvironment(
            executable=executable,
            arguments=tuple(options.command[1:]),
            temp_dir=str(temp_dir),
            environ=environ,
            is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
            hook_commands={} if callbacks is None else callbacks.hook_commands(temp_dir),
        ),
    )
    spawn = add_extra_args(adapter, spawn, options.extra_args)
    spawn = replace(spawn, notes=(*spawn.notes, *model_notes(adapter, options.model)))
    if callbacks is not None:
        spawn = replace(spawn, files={**spawn.files, **callbacks.files})
    _check_secrets_in_argv(native, spawn)
    protocol = find_protocol(adapter, spawn.protocol, find_adapter)
    spawn = replace(spawn, notes=(*spawn.notes, *_notes_on_conditions(options, adapter, protocol)))
    cwd = options.working_directory()
    codec = (adapter.context or partial(default_context, adapter.agent))(native, spawn)
    final = process_environment(environ, spawn, run_id)
    redactor = make_redactor(native, final, [] if callbacks is None else [callbacks.token])
    context = mask_secrets(codec, redactor)
    version = installed_version(executable) if adapter.tested_version else None  # else it may be an interpreter
    stream = _stream_context(native, options.approval_mode, adapter, protocol, run_id, codec.cwd or cwd)
    header = Header(
        package_version=__version__,
        started_at=started_at,
        codec=without_secrets(context),
        stream=structs.replace(stream, agent_version=version),
        framing=protocol.framing,
        argv=hide_secret_arguments(spawn.argv),
        tags=tuple(options.tags),
        options=redact_options(requested_options),
    )
    return RunPlan(
        options=options,
        adapter=adapter,
        protocol=protocol,
        spawn=spawn,
        environ=final,
        cwd=cwd,
        temp_dir=temp_dir,
        header=mask_secrets(header, redactor),
        context=context,
        redactor=redactor,
        journal_path=_journal_path(options, journal_dir, run_id),
        requested_options=requested_options,
        worktree=worktree,
        callbacks=callbacks,
    )


def callbacks_of(options: RunOptions, adapter: Adapter) -> "RunCallbacks | None":
    """Return a server of the functions that the agent itself calls; None if there are none."""
    functions = options.hooks if isinstance(options.hooks, Mapping) else {}
    called = {name: function for name, function in functions.items() if name in adapter.hooks_for_run}
    if not options.tools and not called:
        return None
    from agent_mux.loopback.callbacks import RunCallbacks  # noqa: PLC0415  # most runs have no functions
    from agent_mux.loopback.hooks import FunctionHooks  # noqa: PLC0415

    native = adapter.installation().hooks if called else None
    hooks = None if native is None else FunctionHooks(called, native.decides, is_native=True)
    return RunCallbacks(options.tools, hooks, native)


_Plain = TypeVar("_Plain", Header, CodecContext)


def mask_secrets(plain: _Plain, redactor: Redactor) -> _Plain:
    """Return the value without recognizable secrets, because events are made from it, now and later."""
    try:
        encoded = msgspec.json.encode(plain)
    except UnicodeEncodeError:  # for example a directory whose name is not UTF-8
        encoded = msgspec.json.encode(sanitize_unicode(plain))
    clean = redactor.mask(encoded)
    return plain if clean is encoded else msgspec.json.decode(clean, type=type(plain))


def _notes_on_conditions(options: RunOptions, adapter: Adapter, protocol: NativeProtocol) -> Iterator[str]:
    """Yield a warning about conditions of `fail_on` whose evidence the protocol does not report."""
    unseen = [name for name in ("length", "filtered") if name in options.fail_on]
    if unseen and not protocol.reports_early_ends:
        agent, missed = adapter.agent, ", ".join(unseen)
        yield f"{agent} does not report that an answer with text was cut or blocked; fail_on {missed} may miss it"


def _check_secrets_in_argv(options: RunOptions, spawn: SpawnArgs) -> None:
    """Reject MCP servers with secrets if the agent takes servers on its command line, which all users can read.

    The `args` of a server are on a command line in any case, so they are not checked.
    """
    arguments = "\0".join(spawn.argv)
    allowed = f"without secrets: {options.agent} gets it on its command line; headers and env are safe"
    exposed = [
        FieldError(f"mcp_servers[{index}]", HIDDEN, allowed)
        for index, server in enumerate(options.mcp_servers)
        if any(secret in arguments for secret in secrets_of_servers([replace(server, args=())]))
    ]
    if exposed:
        raise ValidationError(exposed)


def make_redactor(options: RunOptions, environ: Mapping[str, str], more: Iterable[str] = ()) -> Redactor:
    """Return the redactor for all secrets that the agent can know."""
    servers = options.mcp_servers
    values = {value for server in servers for value in (*server.env.values(), *server.headers.values())}
    return Redactor(
        secret_values(environ) | secrets_of_servers(servers) | set(more),
        strings=(value for value in values if len(value) >= MIN_HIDDEN_STRING),
    )


def _native_options(options: RunOptions, *, must_ask: bool) -> RunOptions:
    """Return the options for the agent: with a policy or hooks the agent has to ask, whatever the approval mode.

    Hooks are treated as a policy whose rules are not known in advance.
    """
    if options.policy is None and must_ask:
        from agent_mux.sdk.policy import Policy  # noqa: PLC0415  # most runs do not need it

        options = replace(options, policy=Policy())
    if options.agents_doc is not None or options.skills:
        from agent_mux.run.guidance import add_guidance  # noqa: PLC0415  # most runs do not need it

        options = add_guidance(options)
    if options.policy is None or options.approval_mode == "plan":
        return options
    return replace(options, approval_mode="prompt")


def _replace_surrogates_in(options: RunOptions) -> RunOptions:
    # Command-line arguments may contain bytes that are not characters; no protocol can carry them.
    return replace(
        options,
        prompt=replace_surrogates(options.prompt_text),
        system_prompt=None if options.system_prompt is None else replace_surrogates(options.system_prompt),
        model=None if options.model is None else replace_surrogates(options.model),
        tags=tuple(map(replace_surrogates, options.tags)),
    )


def find_protocol(adapter: Adapter, name: str, find_adapter: Callable[[str], Adapter]) -> NativeProtocol:
    """Return a protocol of this adapter, or, for `agent/protocol`, of another one whose recording is replayed."""
    owner, _, rest = name.partition("/")
    if rest:
        adapter, name = find_adapter(owner), rest
    if name not in adapter.protocols:
        known = ", ".join(sorted(adapter.protocols))
        raise AgentMuxError("VALIDATION_ERROR", f"{adapter.agent} has no protocol {name!r}; it has: {known}")
    return adapter.protocols[name]


def redact_options(options: RunOptions) -> dict[str, Any]:
    """Return the options as plain data for display: no callbacks, no values of environments and headers."""
    plain = asdict(replace(options, on_approval_request=None, on_input_required=None, tools=(), hooks=None))
    plain["tools"] = _tool_names(options)
    plain["hooks"] = sorted(options.hooks) if isinstance(options.hooks, Mapping) else options.hooks
    return {
        name: hide_secret_arguments(value) if name == "extra_args" else hide_secret_values(name, value)
        for name, value in plain.items()
        if value not in (None, "", (), [], {}, False)
    }


def _tool_names(options: RunOptions) -> tuple[str, ...]:
    if not options.tools:
        return ()
    from agent_mux.sdk.in_process import as_tool  # noqa: PLC0415  # most runs have none

    return tuple(as_tool(tool).tool_name for tool in options.tools)


def without_secrets(context: CodecContext) -> CodecContext:
    """Return what may be journaled of a codec's context."""
    return structs.replace(context, mcp_servers=tuple(map(_without_secrets, context.mcp_servers)))


def _without_secrets(server: McpServer) -> McpServer:
    return replace(
        server,
        args=hide_secret_arguments(server.args),
        env=dict.fromkeys(server.env, HIDDEN),
        headers=dict.fromkeys(server.headers, HIDDEN),
        url=HIDDEN if _may_have_secret(server.url) else server.url,
    )


def _may_have_secret(url: str | None) -> bool:
    return url is not None and bool({"@", "?"} & set(url))


def _stream_context(  # noqa: PLR0913, PLR0917  # the caller decides all of them
    options: RunOptions, mode: ApprovalMode, adapter: Adapter, protocol: NativeProtocol, run_id: str, cwd: str
) -> StreamContext:
    has_rules = options.policy is not None
    shows_approvals = mode != "yolo" or options.on_approval_request is not None or has_rules
    return StreamContext(
        run_id=run_id,
        agent=adapter.agent,
        display_name=adapter.display_name,
        cwd=cwd,
        streams=protocol.streams,
        buffered=options.stream is False,
        show_approvals=shows_approvals,
        show_requests=mode != "deny" or has_rules,
        permission_pending=shows_approvals,
        interactive=options.interactive,
        include_subagent_events=options.include_subagent_events,
        resumed=options.session_id is not None,
        forked_from=options.fork_session_id,
        max_turns=options.max_model_calls or 0,
        max_text_bytes=options.max_text_bytes,
        model=options.model or adapter.default_model,
        prices=prices_of(adapter.models()),
        tested_versions=adapter.tested_versions,
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
