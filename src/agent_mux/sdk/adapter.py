"""The adapter contract: capabilities, native protocols, and how to start the agent.

An adapter is a value of `Adapter`: data and pure functions. The registry finds it through the entry-point group
`agent_mux.adapters`, built-in and third-party alike. See docs/how-to/write-an-adapter/README.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_mux.errors import CapabilityError
from agent_mux.sdk.codec import Codec, CodecContext, TerminalSize
from agent_mux.sdk.framing import Framing
from agent_mux.sdk.installation import AgentInstallation
from agent_mux.sdk.models import ModelCapabilities, ModelListing
from agent_mux.sdk.options import ApprovalMode, RunOptions
from agent_mux.sdk.sessions import SessionStore


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCapabilities:
    """What the agent can do, as proven by recordings and live tests. Source: run API, section 5."""

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
    emits: frozenset[str] = frozenset()
    """Event types that recordings of this agent produce: tested both ways."""


def check_capabilities(options: RunOptions, capabilities: AgentCapabilities) -> None:
    """Check what this agent must be able to do. Raises `CapabilityError` for the first thing it cannot."""
    needs: tuple[tuple[bool, bool, str], ...] = (
        (options.stream is True, capabilities.text_streaming, "text streaming (stream=True)"),
        (options.session_id is not None, capabilities.can_resume, "resuming a session"),
        (options.fork_session_id is not None, capabilities.can_fork, "forking a session"),
        (bool(options.mcp_servers), capabilities.mcp, "MCP servers"),
        (options.interactive, capabilities.interactive_mode, "interactive runs"),
        (options.output_schema is not None, capabilities.structured_output, "an output schema"),
        (bool(options.attachments), capabilities.image_input or capabilities.file_attachments, "attachments"),
        (
            options.thinking_effort is not None or options.thinking_budget_tokens is not None,
            capabilities.thinking,
            "setting the thinking effort",
        ),
        (options.policy is not None, "prompt" in capabilities.approval_modes, "asking first, which a policy needs"),
        (
            options.approval_mode not in capabilities.approval_modes,
            False,
            f"approval mode {options.approval_mode!r}",
        ),
    )
    for wanted, able, what in needs:
        if wanted and not able:
            raise CapabilityError(capabilities.agent, what, options.model)


TRANSCRIPTS_ONLY = "nothing: transcripts only"
"""`NativeProtocol.chosen_for` of a protocol that no options lead to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeProtocol:
    """One of the native protocols an agent speaks."""

    name: str
    codec: Callable[[CodecContext], Codec]
    streams: frozenset[Literal["text", "tool_calls", "thinking"]]
    """What arrives in fragments; the rest arrives whole (and is announced by `stream_fallback`)."""
    two_way: bool
    """Approvals, questions and further prompts are possible."""
    sniff: Callable[[Mapping[str, Any]], bool]
    """This parsed native line can only be from this protocol."""
    chosen_for: str = TRANSCRIPTS_ONLY
    """Which runs speak it, as a phrase for the support matrix."""
    loses: tuple[str, ...] | None = None
    """What it does not tell, though it happens: phrases for the support matrix, proven by recordings. Empty: nothing
    known. None: nobody has looked."""
    framing: Framing = "lines"
    """How messages are told apart on stdin and stdout. Where it is not by lines, "line" means message."""
    quiet_after: float | None = None
    """Seconds without output after which the codec, then a `WatchesTerminal`, is told so; None: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnEnvironment:
    """What `Adapter.spawn` may know about the machine."""

    executable: str
    """Absolute path of the agent's program."""
    arguments: tuple[str, ...] = ()
    """Behind the program in `RunOptions.command`."""
    temp_dir: str
    """A directory of this run's own, mode 0700, removed at its end. Files for the agent (configs, schemas) go here."""
    environ: Mapping[str, str]
    """The environment the agent will inherit, `RunOptions.env` included."""
    is_root: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnArgs:
    """How to start the agent for these options."""

    argv: tuple[str, ...]
    protocol: str
    """Which of `Adapter.protocols` it will speak."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Set on top of the inherited environment. The place for secrets, never argv."""
    unset_env: tuple[str, ...] = ()
    stdin: Literal["pipe", "null"] = "pipe"
    stdin_text: str | None = None
    """Written at once, then stdin is closed: for one-shot prompts, which never belong into argv."""
    terminal: TerminalSize | None = None
    """Start the agent at a terminal of this size; then `stdin` is that terminal, and there is no standard error."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Name -> content (0600) to be written into the run's temp dir before the start."""
    counts_turns: bool = True
    """The agent keeps to `max_turns` itself; otherwise the mux counts model calls and ends the run at the limit."""
    notes: tuple[str, ...] = ()
    """Options that this agent cannot honour, one sentence each: reported once as `debug`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallMethod:
    """One way to install the agent."""

    kind: Literal["npm", "pip", "brew", "gh-extension", "curl", "winget", "scoop", "manual"]
    command: str
    """What a person would type."""
    platforms: tuple[str, ...] = ("linux", "darwin", "win32")
    requires: tuple[str, ...] = ()
    """Programs that must be there first."""


def _no_store() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One agent. A value, not a base class."""

    agent: str
    """Registered name."""
    display_name: str
    aliases: tuple[str, ...] = ()
    executables: tuple[str, ...]
    """Names to look for on PATH, in order. None where it needs a command."""
    takes_command: bool = False
    """It drives any program that speaks its protocol: `RunOptions.command` says which."""
    executable_variable: str
    """Environment variable that names the program outright, for example `AMUX_CLAUDE_EXECUTABLE`."""
    min_version: str
    """Lowest version the codecs are tested with."""
    tested_version: str
    """The version of the recordings."""
    version_argv: tuple[str, ...] = ("--version",)
    capabilities: AgentCapabilities
    protocols: Mapping[str, NativeProtocol]
    spawn: Callable[[RunOptions, SpawnEnvironment], SpawnArgs]
    context: Callable[[RunOptions, SpawnArgs], CodecContext] | None = None
    """How the codec's context differs from the default one made of the options; None: not at all."""
    install: tuple[InstallMethod, ...]
    auth_guidance: str
    """What a person does when the agent says it is not authenticated."""
    default_model: str | None = None
    models: Callable[[], tuple[ModelCapabilities, ...]] = tuple
    """What is known of the models it can use; called when somebody wants to know."""
    takes_any_model: bool = True
    """It has no list of its own that a name must be on: models of other providers, gateways, one's own."""
    model_listing: ModelListing | None = None
    """How it lists its models itself; None: it has no command for that."""
    sessions: Callable[[], SessionStore | None] = _no_store
    """How the sessions that it stored are read; None where they cannot be. Called when somebody wants to know."""
    home: Callable[[], AgentInstallation] = AgentInstallation
    """What it keeps on a machine besides: configuration, credentials, MCP servers, skills, plugins, hooks."""

    @property
    def needs_command(self) -> bool:
        """It has no program of its own: a command has to say which."""
        return self.takes_command and not self.executables


def default_context(agent: str, options: RunOptions, spawn: SpawnArgs) -> CodecContext:
    """What a codec knows of these options. The prompt only where the codec is to send it."""
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
        max_turns=options.max_turns,
        output_schema=dict(options.output_schema) if options.output_schema is not None else None,
        images=tuple(a.file_path for a in options.attachments if a.file_path is not None),
        mcp_servers=tuple(options.mcp_servers),
        debug=options.debug,
    )
