"""The contract between the core and an adapter: all that an adapter may import, besides facts, effects and actions.

An adapter is a value of `Adapter`: data and pure functions. It is found through the entry-point group
`agent_mux.adapters`, built-in or third-party alike. See docs/how-to/write-an-adapter/README.md.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from agent_mux.actions import AnyAction
from agent_mux.capabilities import AgentCapabilities
from agent_mux.effects import Effect
from agent_mux.facts import Fact
from agent_mux.framing import Framing
from agent_mux.home import AgentHome
from agent_mux.models import ModelCapabilities, ModelListing
from agent_mux.options import ApprovalMode, McpServer, RunOptions
from agent_mux.sessions.store import SessionStore

__all__ = [
    "STDOUT",
    "Adapter",
    "AgentCapabilities",
    "Codec",
    "CodecContext",
    "Exit",
    "InstallMethod",
    "ModelCapabilities",
    "ModelListing",
    "NativeProtocol",
    "Source",
    "SpawnArgs",
    "SpawnEnvironment",
    "Step",
    "TerminalSize",
    "WatchesTerminal",
    "default_context",
]

Step = Fact | Effect
TRANSCRIPTS_ONLY = "nothing: transcripts only"
"""`NativeProtocol.chosen_for` of a protocol that no options lead to."""


class Source(Enum):
    """Which stream a native line came from."""

    STDOUT = "stdout"
    STDERR = "stderr"
    STDIN = "stdin"
    """Our own side of the conversation, seen in a transcript that somebody else recorded. Never in a live run."""


STDOUT = Source.STDOUT
"""For hot paths: before Python 3.12, naming a member of an enum by its class costs as much as calling a function."""


class Exit(msgspec.Struct, frozen=True):
    """How the agent's process ended; both None when nobody knows (a transcript)."""

    code: int | None = None
    """None when a signal ended it."""
    signal: int | None = None


class CodecContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a codec knows about its run: plain data, to be journaled. No secrets, no clock, no environment."""

    agent: str
    protocol: str
    """The name of the native protocol, one of `Adapter.protocols`."""
    cwd: str = ""
    prompt: str | None = None
    """What `start()` sends, where the protocol takes prompts on stdin. None: only observe; `start()` has no effects."""
    system_prompt: str | None = None
    system_prompt_mode: str = "append"
    model: str | None = None
    thinking_effort: str | None = None
    approval_mode: ApprovalMode = "prompt"
    asks_everything: bool = False
    """Rules decide what the agent may do: it has to ask for as much as it can be made to."""
    interactive: bool = False
    """Stay open for more prompts after the first."""
    session_id: str | None = None
    fork_session_id: str | None = None
    no_session: bool = False
    max_turns: int | None = None
    output_schema: dict[str, Any] | None = None
    images: tuple[str, ...] = ()
    """Absolute paths of images to send with the prompt."""
    mcp_servers: tuple[McpServer, ...] = ()
    """To be announced, where the protocol takes them. Secrets that can be recognised are stand-ins, here and in
    `prompt`; the agent is sent the real ones."""
    settings: dict[str, Any] = {}
    """Whatever the adapter's own `context` wants its codec to know. Plain data."""
    debug: bool = False


class Codec(Protocol):
    """Native lines in, facts out; actions in, effects out. One per run; sans-IO; no clock, no randomness.

    None of the methods raises on native input. `receive` returns at least one fact for every line:
    `Ignored` when the line is known and says nothing, `Unknown` when it is not known.
    """

    def start(self) -> Iterable[Step]:
        """The process runs: handshakes and the first prompt, as effects."""
        ...

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line, without its line ending."""
        ...

    def request(self, action: AnyAction) -> Iterable[Step]:
        """The consumer wants something. What cannot be done is answered with `Refuse`."""
        ...

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002  # the word of the trade; nobody calls exit() here
        """The process is gone and all its output was received. The assembler closes whatever is still open."""
        ...


@runtime_checkable
class WatchesTerminal(Protocol):
    """A codec for an agent at a terminal: it does not say when it is done, it shows something and then it waits."""

    def quiet(self) -> Iterable[Step]:
        """Nothing was printed for `NativeProtocol.quiet_after` seconds."""
        ...

    def resized(self, size: "TerminalSize") -> Iterable[Step]:
        """The terminal has another size now."""
        ...


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


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """How many characters a terminal shows."""

    columns: int = 120
    rows: int = 40


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
    home: Callable[[], AgentHome] = AgentHome
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
