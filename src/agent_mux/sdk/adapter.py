"""The adapter contract: capabilities, native protocols, and how to start the agent.

An adapter is a value of `Adapter`: data and pure functions. The registry finds it through the entry-point group
`agent_mux.adapters`, built-in and third-party alike. See docs/how-to/write-an-adapter/README.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux._util.suggestions import did_you_mean
from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.events.union import AgentEventType
from agent_mux.sdk.codec import Codec, CodecContext, TerminalSize
from agent_mux.sdk.declarations import Declaration
from agent_mux.sdk.framing import Framing
from agent_mux.sdk.hook_types import HookType
from agent_mux.sdk.models import ModelCapabilities, ModelListing
from agent_mux.sdk.options import ApprovalMode, RunOptions
from agent_mux.sdk.versions import sorted_versions

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation
    from agent_mux.sdk.sessions import SessionStore


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCapabilities(Declaration):
    """What the agent can do, as proven by recordings and live tests. See docs/spec/run-api.md, section 5."""

    agent: str
    can_resume: bool = False
    can_fork: bool = False
    supports_multi_turn: bool = False
    session_persistence: Literal["none", "file", "sqlite", "in-memory"] = "none"
    text_streaming: bool = False
    tool_call_streaming: bool = False
    thinking_streaming: bool = False
    native_tools: bool = True
    mcp: bool = False
    parallel_tool_calls: bool = False
    requires_tool_approval: bool = False
    approval_modes: tuple[ApprovalMode, ...] = ("yolo",)
    thinking: bool = False
    thinking_effort_levels: tuple[str, ...] = ()
    thinking_budget_tokens: bool = False
    thinking_override: Annotated[
        tuple[str, ...], Meta(description="Keys of the option `thinking_override`; empty: not supported.")
    ] = ()
    fallback_model: bool = False
    allowed_tools: bool = False
    disallowed_tools: bool = False
    add_dirs: bool = False
    extra_args: bool = False
    native_options: bool = False
    set_model: Annotated[bool, Meta(description="Whether the model can be changed during a run.")] = False
    set_approval_mode: Annotated[
        tuple[ApprovalMode, ...],
        Meta(
            description=(
                "Approval modes to which a run can change that was not started in a mode that asks. `yolo`, `prompt` "
                "and `deny` replace each other in every run in which the agent asks."
            )
        ),
    ] = ()
    json_mode: bool = False
    structured_output: bool = False
    skills: bool = False
    agents_md: bool = False
    subagent_dispatch: bool = False
    parallel_execution: bool = False
    max_parallel: int | None = None
    interactive_mode: bool = False
    stdin_injection: bool = False
    image_input: bool = False
    image_output: bool = False
    file_attachments: bool = False
    plugins: bool = False
    platforms: tuple[str, ...] = ("linux", "darwin", "win32")
    requires_git_repo: bool = False
    requires_pty: bool = False
    auth_methods: tuple[str, ...] = ()
    auth_files: tuple[str, ...] = ()
    emits: Annotated[
        frozenset[str], Meta(description="Exactly the event types that recordings of this agent produce.")
    ] = frozenset()

    def __post_init__(self) -> None:
        """Raise `TypeError` for a field of another type, `ValueError` for an unknown event type in `emits`."""
        Declaration.__post_init__(self)
        known = [event_type.value for event_type in AgentEventType]
        for name in sorted(self.emits.difference(known)):
            hint = did_you_mean(name, known, "see docs/reference/events.md")
            raise ValueError(
                f"AgentCapabilities of {self.agent!r}: emits has {name!r}, which is not an event type; {hint}"
            )


_APPROVAL_FLAGS: dict[ApprovalMode, str] = {
    "yolo": "yolo (--yolo)", "prompt": "prompt", "deny": "deny (--deny)", "plan": "plan (--plan)",
}  # fmt: skip
_NATIVE_HINTS: Mapping[str, str] = {
    "fallback_model": "name other agents or models in `fallback` (--fallback AGENT:MODEL)",
    "allowed_tools": "allow them with rules in `policy` (--policy FILE)",
    "disallowed_tools": "deny them with rules in `policy` (--policy FILE)",
    "add_dirs": "start the run in a directory that contains them (`cwd`)",
    "thinking_override": "use `thinking_effort` if the agent has it",
    "extra_args": "set what it needs in `env` or in the agent's own configuration",
    "native_options": "change the agent's own configuration (amux config AGENT set)",
}
"""Options that are bound to a setting of the agent, and what to do for an agent without one."""


def check_capabilities(options: RunOptions, capabilities: AgentCapabilities) -> None:
    """Check that the agent supports the options.

    Raises `CapabilityError` for the first option that it does not support, `ValidationError` for an unknown key of
    `thinking_override`.
    """
    needs: tuple[tuple[bool, bool, str], ...] = (
        (options.stream is True, capabilities.text_streaming, "text streaming (stream=True)"),
        (options.session_id is not None, capabilities.can_resume, "resuming a session"),
        (options.fork_session_id is not None, capabilities.can_fork, "forking a session"),
        (bool(options.mcp_servers), capabilities.mcp, "MCP servers"),
        (bool(options.tools), capabilities.mcp, "MCP servers, over which `tools` are offered"),
        (options.interactive, capabilities.interactive_mode, "interactive runs"),
        (options.output_schema is not None, capabilities.structured_output, "an output schema"),
        (bool(options.attachments), capabilities.image_input or capabilities.file_attachments, "attachments"),
        (
            options.thinking_effort is not None or options.thinking_budget_tokens is not None,
            capabilities.thinking,
            "setting the thinking effort",
        ),
        (options.policy is not None, "prompt" in capabilities.approval_modes, "asking first, which a policy needs"),
    )
    for is_requested, is_supported, capability in needs:
        if is_requested and not is_supported:
            raise CapabilityError(capabilities.agent, capability, options.model)
    if options.approval_mode not in capabilities.approval_modes:
        supported = " or ".join(_APPROVAL_FLAGS[mode] for mode in capabilities.approval_modes)
        raise CapabilityError(
            capabilities.agent, f"approval mode {options.approval_mode!r}", options.model, hint=f"choose {supported}"
        )
    for name, hint in _NATIVE_HINTS.items():
        if getattr(options, name) and not getattr(capabilities, name):
            raise CapabilityError(capabilities.agent, f"the option {name}", options.model, hint=hint)
    unknown = sorted(set(options.thinking_override) - set(capabilities.thinking_override))
    if unknown:
        allowed = f"some of {', '.join(capabilities.thinking_override)}, the thinking settings of {capabilities.agent}"
        raise ValidationError([FieldError(f"thinking_override.{key}", options.thinking_override[key], allowed)
                               for key in unknown])  # fmt: skip


TRANSCRIPTS_ONLY = "nothing: transcripts only"
"""`NativeProtocol.chosen_for` of a protocol that no run uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeProtocol(Declaration):
    """One of the native protocols of an agent."""

    name: str
    codec: Callable[[CodecContext], Codec]
    streams: frozenset[Literal["text", "tool_calls", "thinking"]]
    """Content that is streamed; other content arrives whole and is announced by `stream_fallback`."""
    two_way: bool
    """Whether approvals, questions and further prompts are possible."""
    sniff: Callable[[Any], bool]
    """Returns whether a parsed native line can only belong to this protocol. Accepts any JSON value."""
    chosen_for: str = TRANSCRIPTS_ONLY
    """Which runs use it, as a phrase for the support matrix."""
    loses: tuple[str, ...] | None = None
    """What the protocol does not report although it happens, as phrases for the support matrix, proven by recordings.

    Empty: no known loss. None: not examined.
    """
    reports_early_ends: bool = True
    """Whether it reports that an answer with text was cut by a token limit or blocked by a filter."""
    framing: Framing = "lines"
    """How messages are delimited on stdin and stdout. Without line framing, "line" means one message."""
    quiet_after: float | None = None
    """Seconds without output after which `WatchesTerminal.quiet` is called; None: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnEnvironment:
    """What `Adapter.spawn` may know about the machine."""

    executable: str
    """Absolute path of the agent's program."""
    arguments: tuple[str, ...] = ()
    """Arguments that follow the program in `RunOptions.command`."""
    temp_dir: str
    """Temporary directory of the run (mode 0700) for the agent's files; removed when the run ends."""
    environ: Mapping[str, str]
    """Environment that the agent inherits, including `RunOptions.env`."""
    is_root: bool = False
    hook_commands: Mapping[HookType, str] = field(default_factory=dict)
    """Command lines that the agent is to call as hooks in this run, for types of `Adapter.hooks_for_run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnArgs(Declaration):
    """How to start the agent for a run."""

    argv: tuple[str, ...]
    protocol: str
    """Native protocol of the run, a key of `Adapter.protocols`."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables added to the inherited environment. Secrets belong here, never in `argv`."""
    unset_env: tuple[str, ...] = ()
    stdin: Literal["pipe", "null"] = "pipe"
    stdin_text: str | None = None
    """Text that is written at once, after which stdin is closed: for one-shot prompts, which never belong in `argv`."""
    stdout: Literal["pipe", "file"] = "pipe"
    """`file` for a program that exits before a pipe has taken all its output: a private file is read as it grows."""
    terminal: TerminalSize | None = None
    """Start the agent in a terminal of this size; `stdin` is then the terminal, and standard error is not separate."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to write (mode 0600) into the temporary directory before the start: name to content."""
    counts_turns: bool = True
    """Whether the agent enforces `max_model_calls` itself; otherwise the runner counts model calls and ends the run."""
    notes: tuple[str, ...] = ()
    """Options that the agent does not support, one sentence each; reported once as `debug` events."""
    extra_args_at: int | None = None
    """Index in `argv` at which `RunOptions.extra_args` are inserted; None: at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallMethod(Declaration):
    """One way to install the agent."""

    kind: Literal["npm", "pip", "brew", "gh-extension", "curl", "winget", "scoop", "manual"]
    command: str
    """Command line as a person types it."""
    platforms: tuple[str, ...] = ("linux", "darwin", "win32")
    requires: tuple[str, ...] = ()
    """Programs that must be installed first."""


def _no_store() -> None:
    return None


def _keeps_nothing() -> "AgentInstallation":
    from agent_mux.sdk.installation import AgentInstallation  # noqa: PLC0415  # a run does without

    return AgentInstallation()


def _no_files(options: RunOptions) -> Mapping[str, str]:  # noqa: ARG001  # the signature of `Adapter.named_files`
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter(Declaration):
    """The description of one agent. A value, not a base class."""

    agent: str
    """Registered name of the agent."""
    display_name: str
    aliases: tuple[str, ...] = ()
    executables: tuple[str, ...]
    """Program names to look for on PATH, in order. Empty when a command is required."""
    takes_command: bool = False
    """Whether the adapter drives any program that speaks its protocol, given by `RunOptions.command`."""
    executable_variable: str
    """Environment variable that overrides the program, for example `AMUX_CLAUDE_EXECUTABLE`."""
    tested_version: str
    """Version that the live tests drive; empty if no recording is of the real program."""
    also_tested_versions: tuple[str, ...] = ()
    """Other versions that recordings prove to work, in every way in which the agent is driven."""
    version_argv: tuple[str, ...] = ("--version",)
    session_variables: tuple[str, ...] = ()
    """Variables that a session of the agent sets for the programs that it starts: its identity, sockets, tokens, state.

    Names, and families of names with `*`. A run does not inherit them, since it is a session of its own;
    `RunOptions.env` may set them. What users set as configuration does not belong here.
    """
    capabilities: AgentCapabilities
    protocols: Mapping[str, NativeProtocol]
    spawn: Callable[[RunOptions, SpawnEnvironment], SpawnArgs]
    context: Callable[[RunOptions, SpawnArgs], CodecContext] | None = None
    """Builds the codec context; None: `default_context` is used."""
    named_files: Callable[[RunOptions], Mapping[str, str]] = _no_files
    """Returns the files that this agent's own use of options names, such as a model that is a script: option to path.

    A service checks that they are in its allowed directories. Files of `attachments`, `agents_doc` and `skills` are
    known without it. It reads nothing and does not raise.
    """
    absolute_files: Callable[[Mapping[str, Any], Callable[[str], str]], Mapping[str, Any]] | None = None
    """Returns the fields of `RunOptions` that contain paths of `named_files`, with each path made absolute by the
    function; None: no option of this agent contains a path that only the adapter knows. It reads nothing and does not
    raise, whatever the types of the values are.
    """
    owned_flags: Mapping[str, str] = field(default_factory=dict)
    """Flags that `RunOptions.extra_args` may not contain: each with what to use instead, as a phrase.

    Flags that the run's command line has are refused without being listed, except for `repeatable_flags`.
    """
    repeatable_flags: frozenset[str] = frozenset()
    """Flags that may be on the command line several times, so that `RunOptions.extra_args` may add further ones."""
    install: tuple[InstallMethod, ...]
    auth_guidance: str
    """How a person authenticates the agent."""
    default_model: str | None = None
    models: Callable[[], tuple[ModelCapabilities, ...]] = tuple
    """Returns the models that ship with the adapter; called on first use."""
    hooks_for_run: frozenset[HookType] = frozenset()
    """The types of native hooks that the adapter can configure for one run, with the commands in
    `SpawnEnvironment.hook_commands`. The run calls the others from its events.
    """
    tools_over: Literal["streamable-http", "stdio"] = "stdio"
    """How the agent reaches the Python functions of `RunOptions.tools`: over HTTP, if it passes on the headers of a
    server of one run without writing them on a command line; else through a program on stdio.
    """
    takes_any_model: bool = True
    """Whether the agent accepts model names that are not in its list, for example of other providers."""
    model_listing: ModelListing | None = None
    """The agent's command that lists its models; None: it has none."""
    sessions: "Callable[[], SessionStore | None]" = _no_store
    """Returns the store of the agent's sessions, or None; called on first use."""
    installation: "Callable[[], AgentInstallation]" = _keeps_nothing
    """Returns what the agent keeps on a machine; called on first use."""

    def __post_init__(self) -> None:
        """Raise `TypeError` for a field of another type, `ValueError` for a protocol under another name."""
        Declaration.__post_init__(self)
        for key, protocol in self.protocols.items():
            if key != protocol.name:
                raise ValueError(f"Adapter of {self.agent!r}: protocols[{key!r}] is named {protocol.name!r}")

    @property
    def tested_versions(self) -> tuple[str, ...]:
        """All tested versions, oldest first. Those between the first and the last are expected to work.

        Empty for an adapter that drives any program: they are versions of one of those.
        """
        if self.takes_command:
            return ()
        return sorted_versions(filter(None, (self.tested_version, *self.also_tested_versions)))

    @property
    def min_version(self) -> str:
        """The lowest tested version; empty if there is none."""
        return next(iter(self.tested_versions), "")

    @property
    def needs_command(self) -> bool:
        """Whether `RunOptions.command` is required, because the adapter has no program of its own."""
        return self.takes_command and not self.executables


def spawn_args(adapter: Adapter, options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
    """Return what `Adapter.spawn` returns. Raise INTERNAL, naming the adapter, if the function is faulty."""
    try:
        spawn: Any = adapter.spawn(options, environment)
    except AgentMuxError:
        raise
    except Exception as error:
        # A function of a third-party package may raise anything; its user needs to know which package it is.
        raise AgentMuxError("INTERNAL", f"the adapter {adapter.agent!r} failed in spawn(): {error!r}") from error
    if not isinstance(spawn, SpawnArgs):
        message = f"the adapter {adapter.agent!r} returned {type(spawn).__name__} from spawn(), not SpawnArgs"
        raise AgentMuxError("INTERNAL", message)
    return spawn


def default_context(agent: str, options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """Return the codec context for these options. It has the prompt only if the codec sends it."""
    return CodecContext(
        agent=agent,
        protocol=spawn.protocol,
        cwd=options.working_directory(),
        prompt=options.prompt_text if spawn.stdin_text is None and spawn.stdin == "pipe" else None,
        system_prompt=options.system_prompt,
        system_prompt_mode=options.system_prompt_mode,
        model=options.model,
        thinking_effort=options.thinking_effort,
        approval_mode=options.approval_mode,
        asks_everything=options.asks_everything,
        interactive=options.interactive,
        session_id=options.session_id,
        fork_session_id=options.fork_session_id,
        no_session=options.no_session,
        max_turns=options.max_model_calls,
        output_schema=dict(options.output_schema) if options.output_schema is not None else None,
        images=tuple(a.file_path for a in options.attachments if a.file_path is not None),
        mcp_servers=tuple(options.mcp_servers),
        debug=options.debug,
    )
