"""The options of a run and their validation. See docs/spec/run-api.md, section 2.

Durations are seconds (float) unless the name ends in another unit, or a text with a unit (`10m`); 0 means no limit.
"""

import math
import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from msgspec import Meta

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux._util.pydantic_support import PydanticCompatible
from agent_mux.errors import NO_DIRECTORY, AgentMuxError, ErrorCode, FieldError, ValidationError
from agent_mux.sdk.checked import Checked

if TYPE_CHECKING:
    from agent_mux.sdk.hooks import HookType
    from agent_mux.sdk.in_process import HookFunction, Tool
    from agent_mux.sdk.interactions import Responder
    from agent_mux.sdk.policy import Policy

ApprovalMode = Literal["yolo", "prompt", "deny", "plan"]
APPROVAL_MODES: tuple[ApprovalMode, ...] = get_args(ApprovalMode)
StreamMode = Literal["auto", True, False]
SystemPromptMode = Literal["prepend", "append", "replace"]
Isolation = Literal["none", "worktree"]
FailOn = Literal["denied", "tool_error", "no_change", "length", "filtered"]
"""A condition of `fail_on`: an approval was denied, a tool call failed, no file changed, the last answer was cut at a
token limit, or the provider blocked it.
"""
FAIL_ON: tuple[FailOn, ...] = get_args(FailOn)
ThinkingEffort = Literal["low", "medium", "high", "max"]

RUN_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PROFILE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FALLBACK = re.compile(r"[a-zA-Z0-9_-]{1,64}(:[^\x00]+)?")
PROFILE_NAMES = "1 to 64 letters, digits, _ or -"
MAX_TAG_LENGTH = 256  # characters; indexes of databases have a limit
MAX_ITEMS: Mapping[str, int] = {
    "prompt": 1000, "command": 1000, "skills": 100, "attachments": 100, "env": 1000, "mcp_servers": 100,
    "tools": 100, "tags": 100,
    "extra_args": 100, "allowed_tools": 100, "disallowed_tools": 100, "add_dirs": 100, "native_options": 100,
    "thinking_override": 100,
}  # fmt: skip
"""Maximum number of items of an option. An environment of more variables than that starts no program anyway."""
MAX_SERVER_ITEMS = 1000
"""Maximum number of arguments, variables and headers of an MCP server."""
MIN_THINKING_BUDGET = 1024  # below this every provider refuses
RETRY_DURATIONS = frozenset({"base_delay", "max_delay"})
"""Fields of a retry policy that are durations."""
DURATIONS = RETRY_DURATIONS | {"timeout", "inactivity_timeout", "grace_period", "approval_timeout", "wait_for_quota"}
"""Fields in seconds in Python, in milliseconds on the wire, with a unit in files."""
MIN_MAX_TEXT_BYTES = 1024
DEFAULT_MAX_TEXT_BYTES = 4 << 20
"""A text of this size is longer than any answer of a model; outputs of commands may be longer."""
DEPRECATED_FIELDS: Mapping[str, str] = {"max_turns": "max_model_calls"}
"""Old names of options that are still accepted, and the name that replaces each."""


@dataclass(frozen=True, slots=True)
class Attachment(Checked, PydanticCompatible):
    """A file to send with the prompt: exactly one of a path, a URL or inline data."""

    file_path: Annotated[str | None, Meta(description="Absolute path of an existing file.")] = None
    url: Annotated[str | None, Meta(description="URL from which the agent loads the file.")] = None
    base64: Annotated[str | None, Meta(description="Content of the file in base64.")] = field(default=None, repr=False)
    mime_type: Annotated[str | None, Meta(description="MIME type of the content; required with `base64`.")] = None

    def check(self) -> None:
        """Raise `ValidationError` unless exactly one of path, URL and data is given, data with its type."""
        _check("Attachment", self, _check_attachment_fields)


@dataclass(frozen=True, slots=True)
class McpServer(Checked, PydanticCompatible):
    """An MCP server for this run only; the user's configuration is not changed. Its repr hides secrets."""

    name: Annotated[
        str, Meta(description="Name under which the agent lists the server: 1 to 64 letters, digits, _ or -.")
    ]
    transport: Annotated[
        Literal["stdio", "sse", "streamable-http"],
        Meta(description="How the agent connects: `stdio` starts `command`, the others connect to `url`."),
    ] = "stdio"
    command: Annotated[str | None, Meta(description="Program of a `stdio` server.")] = None
    args: Annotated[tuple[str, ...], Meta(description="Arguments of the program.")] = ()
    env: Annotated[Mapping[str, str], Meta(description="Variables added to the environment of the program.")] = field(
        default_factory=dict, repr=False
    )
    url: Annotated[str | None, Meta(description="URL of a server with any other transport.")] = field(
        default=None, repr=False
    )
    headers: Annotated[Mapping[str, str], Meta(description="HTTP headers of requests to the server.")] = field(
        default_factory=dict, repr=False
    )


RETRYABLE: frozenset[ErrorCode] = frozenset({"RATE_LIMITED", "NETWORK_ERROR", "AGENT_CRASH", "EMPTY_ANSWER", "TIMEOUT"})
"""Errors after which a run is retried by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy(Checked, PydanticCompatible):
    """How often, when and after which errors a run is retried. Each attempt is a new process under the same handle."""

    durations: ClassVar[frozenset[str]] = RETRY_DURATIONS

    max_attempts: Annotated[int, Meta(description="Number of attempts, including the first.")] = 3
    base_delay: Annotated[
        float, Meta(description="Seconds before the second attempt; doubles with each further attempt.")
    ] = 1.0
    max_delay: Annotated[float, Meta(description="Upper limit of the delay in seconds, without jitter.")] = 30.0
    jitter: Annotated[
        float, Meta(description=("Random fraction of the delay added at most, so that many runs do not retry at once."))
    ] = 0.1
    retry_on: Annotated[frozenset[ErrorCode], Meta(description="Error codes after which a run is retried.")] = RETRYABLE

    def check(self) -> None:
        """Raise `ValidationError` for numbers out of range."""
        _check("RetryPolicy", self, _check_retry)

    def delay_after(self, attempt: int, chance: Callable[[], float] = random.random) -> float:
        """Return the seconds between attempt number `attempt` (from 1) and the next.

        `chance` returns a random number from 0 to 1.
        """
        return min(self.base_delay * 2.0 ** (attempt - 1), self.max_delay) * (1 + self.jitter * chance())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(PydanticCompatible):
    """The options of one run. None means that the option is not set."""

    durations: ClassVar[frozenset[str]] = DURATIONS - RETRY_DURATIONS

    agent: Annotated[str, Meta(description="Registered name or alias of the agent.")]
    prompt: Annotated[
        str | Sequence[str], Meta(description="Non-empty text; the items of a list are joined with blank lines.")
    ] = ""
    command: Annotated[
        Sequence[str],
        Meta(
            description=(
                "Program and arguments, for adapters that drive any program (`acp`, `terminal`). No shell is involved."
            )
        ),
    ] = ()
    system_prompt: Annotated[
        str | None,
        Meta(
            description=(
                "System instructions. An agent without such an option receives them at the start of the prompt."
            )
        ),
    ] = None
    system_prompt_mode: Annotated[
        SystemPromptMode, Meta(description="How the system prompt combines with the agent's own instructions.")
    ] = "append"
    agents_doc: Annotated[
        str | os.PathLike[str] | None,
        Meta(description=("Extra instructions file (like AGENTS.md) for this run, passed on like the system prompt.")),
    ] = None
    skills: Annotated[
        Sequence[str], Meta(description="Skill folders (each with a `SKILL.md`) that the agent can read in this run.")
    ] = ()
    attachments: Annotated[Sequence[Attachment], Meta(description="Files to send with the prompt.")] = ()
    model: Annotated[
        str | None, Meta(description="Model name or alias; names outside of the model registry are passed through.")
    ] = None
    thinking_effort: Annotated[
        ThinkingEffort | None, Meta(description="Reasoning effort, for agents that support it.")
    ] = None
    thinking_budget_tokens: Annotated[
        int | None, Meta(description="Thinking tokens per answer, at least 1024; overrides the effort.")
    ] = None
    thinking_override: Annotated[
        Mapping[str, Any],
        Meta(
            description=(
                "The agent's own thinking settings, by the keys in its capability `thinking_override`; they replace "
                "`thinking_effort` and `thinking_budget_tokens`."
            )
        ),
    ] = field(default_factory=dict)
    fallback_model: Annotated[
        str | None,
        Meta(description="Model that the agent itself uses when the first one is overloaded or not available."),
    ] = None
    temperature: Annotated[float | None, Meta(description="Sampling temperature, 0 to 2.")] = None
    top_p: Annotated[float | None, Meta(description="Nucleus sampling threshold, 0 to 1.")] = None
    top_k: Annotated[int | None, Meta(description="Number of most likely tokens to sample from, at least 1.")] = None
    max_tokens: Annotated[int | None, Meta(description="Output tokens of one answer, at least 1.")] = None
    max_output_tokens: Annotated[int | None, Meta(description="Overrides `max_tokens`.")] = None
    session_id: Annotated[str | None, Meta(description="Continue this session.")] = None
    fork_session_id: Annotated[str | None, Meta(description="Start a new session from this session's history.")] = None
    session_name: Annotated[
        str | None,
        Meta(description="Continue the last session of this name in the working directory, else start it."),
    ] = None
    no_session: Annotated[bool, Meta(description="Store no session, where the agent supports this.")] = False
    stream: Annotated[
        StreamMode,
        Meta(
            description=(
                "Stream text: `auto` as far as the agent can, true always (else CAPABILITY_ERROR), false never."
            )
        ),
    ] = "auto"
    output_schema: Annotated[Mapping[str, Any] | None, Meta(description="JSON Schema of the final answer.")] = None
    cwd: Annotated[
        str | os.PathLike[str] | None,
        Meta(description="Absolute path of an existing directory; default: the current directory."),
    ] = None
    add_dirs: Annotated[
        Sequence[str | os.PathLike[str]],
        Meta(description="Absolute paths of further directories in which the agent may work."),
    ] = ()
    isolation: Annotated[
        Isolation,
        Meta(
            description=(
                "`worktree`: use a separate git worktree of the commit that the repository of `cwd` has checked out; "
                "without a repository, a copy of `cwd`."
            )
        ),
    ] = "none"
    carry_changes: Annotated[
        bool,
        Meta(description="Begin a separate worktree with the uncommitted changes of the repository."),
    ] = True
    setup_command: Annotated[
        Sequence[str],
        Meta(
            description=(
                "Program and arguments that prepare a separate worktree before the agent starts. No shell is involved."
            )
        ),
    ] = ()
    track_changes: Annotated[
        bool,
        Meta(
            description=(
                "Compare the git working tree before and after the run for `changed_files`; "
                "false: only as the agent reports."
            )
        ),
    ] = True
    fail_on: Annotated[
        Sequence[FailOn],
        Meta(description="Conditions under which a run that the agent completed counts as failed."),
    ] = ()
    env: Annotated[
        Mapping[str, str],
        Meta(
            description=("Variables added to the environment of the agent. May contain secrets, so it is never shown.")
        ),
    ] = field(default_factory=dict, repr=False)
    inherit_env: Annotated[bool, Meta(description="False: the agent receives a minimal environment plus `env`.")] = True
    timeout: Annotated[
        float, Meta(description="Seconds for the whole run, from when it leaves the queue; 0 means no limit.")
    ] = 0.0
    inactivity_timeout: Annotated[
        float,
        Meta(
            description=(
                "Seconds without output, not counted while the run is paused or waits for an answer; 0 means no limit."
            )
        ),
    ] = 0.0
    grace_period: Annotated[float, Meta(description="Seconds from SIGTERM to SIGKILL.")] = 5.0
    max_model_calls: Annotated[int | None, Meta(description="Stop before a model call beyond this number.")] = None
    max_cost_usd: Annotated[
        float | None, Meta(description="Stop once the reported cost exceeds this amount in US dollars.")
    ] = None
    max_tokens_total: Annotated[
        int | None, Meta(description="Stop once the total of input, output and cached tokens exceeds this.")
    ] = None
    approval_mode: Annotated[
        ApprovalMode,
        Meta(
            description=(
                "How approval requests are answered: `yolo` allows all, `prompt` asks, `deny` refuses all. `plan`: the "
                "agent's plan mode, in which it reads and plans, but changes nothing."
            )
        ),
    ] = "prompt"
    allowed_tools: Annotated[
        Sequence[str],
        Meta(description="Tools that the agent may use without asking, as the agent names them."),
    ] = ()
    disallowed_tools: Annotated[
        Sequence[str], Meta(description="Tools that the agent may not use, as the agent names them.")
    ] = ()
    policy: Annotated[
        "Policy | None", Meta(description="Rules that decide before the callbacks and the approval mode do.")
    ] = None
    hooks: Annotated[
        "bool | Mapping[HookType, HookFunction] | None",
        Meta(
            description=(
                "Run registered hooks that the agent does not call itself. None: if any apply; false: none. A mapping "
                "of functions of this process by hook type: these and the registered ones."
            )
        ),
    ] = None
    approval_timeout: Annotated[
        float | None,
        Meta(
            description=(
                "Deny unanswered requests after this many seconds; 0 waits forever. None: the timeout of the "
                "policy, else 0."
            )
        ),
    ] = None
    on_approval_request: Annotated[
        "Responder | None",
        Meta(
            description=(
                "Function or coroutine function that returns the response to an approval request: `Approve`, `Deny`, "
                "True or False; `Defer` leaves it pending."
            )
        ),
    ] = None
    on_input_required: Annotated[
        "Responder | None",
        Meta(
            description=(
                "Function or coroutine function that returns the response to a question: `Text`, `Choice` or `Deny`; "
                "`Defer` leaves it pending."
            )
        ),
    ] = None
    mcp_servers: Annotated[
        Sequence[McpServer], Meta(description="MCP servers for this run, in addition to those of the agent.")
    ] = ()
    extra_args: Annotated[
        Sequence[str],
        Meta(description="Arguments for the agent's command line, for flags that no option of agent-mux sets."),
    ] = ()
    native_options: Annotated[
        Mapping[str, Any],
        Meta(
            description=(
                "Settings of the agent for this run, with its own keys; a dot separates the levels of a nested key."
            )
        ),
    ] = field(default_factory=dict)
    tools: Annotated[
        "Sequence[Tool | Callable[..., Any]]",
        Meta(description="Python functions of this process that the agent can call; local runs only."),
    ] = ()
    run_id: Annotated[str | None, Meta(description="ULID of the run; generated when not set.")] = None
    tags: Annotated[
        Sequence[str], Meta(description="Labels for finding the run and grouping costs, at most 256 characters each.")
    ] = ()
    project_id: Annotated[str | None, Meta(description="Project to which the run's cost is attributed.")] = None
    collect_events: Annotated[bool, Meta(description="Keep all events in `RunResult.events`.")] = False
    event_buffer_size: Annotated[
        int,
        Meta(
            description=(
                "Number of events kept in memory for live readers; slower readers are served from the journal."
            )
        ),
    ] = 1000
    max_text_bytes: Annotated[
        int,
        Meta(
            description=(
                "Bytes of UTF-8 after which a message, a thinking block or a tool's output is cut in events and in the "
                "result (at least 1024); the journal has the whole text. 0 means no limit."
            )
        ),
    ] = DEFAULT_MAX_TEXT_BYTES
    retry_policy: Annotated[
        RetryPolicy | None,
        Meta(description=("When to start the agent again after a failure, under the same handle. None: never.")),
    ] = None
    wait_for_quota: Annotated[
        float | None,
        Meta(
            description=(
                "When the provider refuses and names the time of the reset: wait for it, up to this many seconds in "
                "all, and start again; 0 means no limit. None: do not wait."
            )
        ),
    ] = None
    fallback: Annotated[
        Sequence[str],
        Meta(
            description=(
                "`AGENT` or `AGENT:MODEL`, in order: what answers the prompt instead when the provider refuses because "
                "of a rate limit or an exhausted quota."
            )
        ),
    ] = ()
    interactive: Annotated[
        bool,
        Meta(
            description=(
                "True: the run accepts prompts until `close()`. False: it ends when all prompts are processed."
            )
        ),
    ] = False
    include_subagent_events: Annotated[
        bool, Meta(description="Emit events from inside sub-agents, marked with `subagentId`.")
    ] = False
    debug: Annotated[bool, Meta(description="Add the native line to each event as `raw`.")] = False
    journal: Annotated[
        bool | str | os.PathLike[str],
        Meta(
            description=(
                "Path of the journal; true: the default path; false: no journal (slow readers then lose events)."
            )
        ),
    ] = True
    profile: Annotated[
        str | None,
        Meta(
            description=(
                "Name of a profile whose options apply where the call sets none; empty: no profile, even if a "
                "file names one."
            )
        ),
    ] = None

    max_turns: InitVar[int | None] = None
    """Deprecated alias of `max_model_calls`; removed in the next release."""

    def __post_init__(self, max_turns: int | None) -> None:
        if max_turns is not None and self.max_model_calls is None:
            object.__setattr__(self, "max_model_calls", max_turns)
        if isinstance(self.add_dirs, list | tuple):
            paths = [os.fspath(one) if isinstance(one, os.PathLike) else one for one in self.add_dirs]
            object.__setattr__(self, "add_dirs", tuple(paths))
        from agent_mux.sdk.checked_values import check_fields  # noqa: PLC0415  # not needed until a run starts

        check_fields(self, "", without=FUNCTIONS)
        if self.hooks is not None or self.tools != ():
            _check("", self, _check_functions)

    @property
    def prompt_text(self) -> str:
        """The prompt as one text."""
        return self.prompt if isinstance(self.prompt, str) else "\n\n".join(self.prompt)

    @property
    def asks_everything(self) -> bool:
        """Whether the agent must ask before every action it can ask about, because a policy decides."""
        return self.policy is not None

    @property
    def answer_within(self) -> float:
        """Seconds after which an unanswered request is denied; 0 means never."""
        if self.approval_timeout is not None:
            return self.approval_timeout
        return 0.0 if self.policy is None else self.policy.timeout

    @property
    def output_limit(self) -> int | None:
        """Effective limit on output tokens."""
        return self.max_output_tokens if self.max_output_tokens is not None else self.max_tokens

    def working_directory(self) -> str:
        """Return the absolute path that the agent runs in."""
        if self.cwd is not None:
            return os.fspath(self.cwd)
        try:
            return str(Path.cwd())
        except FileNotFoundError as error:
            raise AgentMuxError("VALIDATION_ERROR", f"{NO_DIRECTORY}, or set cwd") from error


class _Problems:
    def __init__(self) -> None:
        self.fields: list[FieldError] = []

    def check(self, ok: bool, path: str, received: Any, allowed: str) -> None:
        if not ok:
            self.fields.append(FieldError(path, received, allowed))

    def stop(self) -> None:
        if self.fields:
            raise ValidationError(self.fields)


FUNCTIONS = frozenset({"hooks", "tools"})
"""Options of functions, which `validate_options` checks."""


def _check(path: str, value: Any, check: Callable[[str, Any, _Problems], None]) -> None:
    problems = _Problems()
    check(path, value, problems)
    problems.stop()


def validate_options(options: RunOptions) -> None:
    """Check everything that needs no adapter.

    Raises:
        ValidationError: Lists all invalid fields of the first group that has any.
    """
    for group in (_check_sizes, _check_session, _check_required, _check_ranges):
        problems = _Problems()
        group(options, problems)
        problems.stop()


def _check_sizes(options: RunOptions, problems: _Problems) -> None:
    def at_most(path: str, items: Any, limit: int) -> None:
        is_countable = hasattr(items, "__len__") and not isinstance(items, str)  # other types are checked later
        if is_countable and len(items) > limit:
            problems.check(False, path, f"{len(items)} items", f"at most {limit} items")

    for name, limit in MAX_ITEMS.items():
        at_most(name, getattr(options, name), limit)
    problems.stop()
    for index, server in enumerate(options.mcp_servers):
        for name in ("args", "env", "headers"):
            at_most(f"mcp_servers[{index}].{name}", getattr(server, name, ()), MAX_SERVER_ITEMS)


def _check_session(options: RunOptions, problems: _Problems) -> None:
    names = ("session_id", "fork_session_id", "session_name")
    given = [n for n in names if getattr(options, n) is not None] + (["no_session"] if options.no_session else [])
    problems.check(len(given) <= 1, " + ".join(given), given, f"at most one of {', '.join(names)}, no_session")
    name = options.session_name
    is_name = name is None or (isinstance(name, str) and PROFILE_NAME.fullmatch(name) is not None)
    problems.check(is_name, "session_name", name, PROFILE_NAMES)
    for name in ("session_id", "fork_session_id"):
        value = getattr(options, name)
        problems.check(value is None or bool(str(value).strip()), name, value, "a non-empty session id")


def _check_required(options: RunOptions, problems: _Problems) -> None:
    prompt: Any = options.prompt
    is_list = isinstance(prompt, Sequence) and all(isinstance(part, str) for part in prompt)
    is_text = isinstance(prompt, str) or is_list
    problems.check(is_text, "prompt", prompt, "a string or a list of strings")
    if is_text:
        problems.check(bool(options.prompt_text.strip()) or options.interactive, "prompt", prompt, "a non-empty text")
        problems.check("\0" not in options.prompt_text, "prompt", prompt, "a text without NUL characters")
    problems.check(_is_command(options.command), "command", options.command, "program and arguments")
    problems.check(bool(options.agent), "agent", options.agent, "the name of a registered agent")


def _is_command(command: Any) -> bool:
    is_command = isinstance(command, Sequence) and not isinstance(command, str)
    is_command = is_command and all(isinstance(word, str) and "\0" not in word for word in command)
    return is_command and (not command or bool(command[0]))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_ranges(options: RunOptions, problems: _Problems) -> None:
    def between(name: str, low: float, high: float | None = None, *, whole: bool = False) -> None:
        value = getattr(options, name)
        is_kind = isinstance(value, int) or not whole
        fits = value is None or (_number(value) and is_kind and value >= low and (high is None or value <= high))
        kind = "a whole number" if whole else "a number"
        problems.check(fits, name, value, f"{kind} from {low:g} to {high:g}" if high else f"{kind} >= {low:g}")

    def one_of(name: str, allowed: tuple[Any, ...]) -> None:
        value = getattr(options, name)
        known = any(value is choice or (value == choice and type(value) is type(choice)) for choice in allowed)
        problems.check(known, name, value, ", ".join(map(str, allowed)))

    between("temperature", 0, 2)
    between("top_p", 0, 1)
    for name in ("top_k", "max_tokens", "max_output_tokens", "max_model_calls"):
        between(name, 1, whole=True)
    between("thinking_budget_tokens", MIN_THINKING_BUDGET, whole=True)
    between("event_buffer_size", 1, whole=True)
    limit = options.max_text_bytes
    is_limit = isinstance(limit, int) and not isinstance(limit, bool) and (limit == 0 or limit >= MIN_MAX_TEXT_BYTES)
    problems.check(is_limit, "max_text_bytes", limit, f"a whole number >= {MIN_MAX_TEXT_BYTES}, or 0 for no limit")
    between("max_cost_usd", 0)
    for name in ("timeout", "inactivity_timeout", "grace_period", "approval_timeout", "wait_for_quota"):
        between(name, 0)
    between("max_tokens_total", 1, whole=True)
    _check_hooks(options.hooks, problems)
    one_of("approval_mode", APPROVAL_MODES)
    one_of("stream", ("auto", True, False))
    one_of("isolation", ("none", "worktree"))
    setup = options.setup_command
    allowed = "program and arguments, with isolation=worktree"
    problems.check(
        _is_command(setup) and (not setup or options.isolation == "worktree"), "setup_command", setup, allowed
    )
    one_of("system_prompt_mode", ("prepend", "append", "replace"))
    one_of("thinking_effort", (None, "low", "medium", "high", "max"))
    run_id = options.run_id
    problems.check(run_id is None or RUN_ID.fullmatch(run_id) is not None, "run_id", run_id, "a ULID (26 characters)")
    profile = options.profile
    problems.check(not profile or PROFILE_NAME.fullmatch(profile) is not None, "profile", profile, PROFILE_NAMES)
    for index, condition in enumerate(options.fail_on):
        problems.check(condition in FAIL_ON, f"fail_on[{index}]", condition, ", ".join(FAIL_ON))
    for index, tag in enumerate(options.tags):
        is_short = isinstance(tag, str) and len(tag) <= MAX_TAG_LENGTH
        problems.check(is_short, f"tags[{index}]", tag, f"a text of at most {MAX_TAG_LENGTH} characters")
    _check_fallback(options.fallback, problems)
    _check_paths_and_env(options, problems)
    _check_native(options, problems)
    for index, server in enumerate(options.mcp_servers):
        _check_mcp_server(f"mcp_servers[{index}]", server, problems)
    if options.tools:
        from agent_mux.sdk.in_process import check_tools  # noqa: PLC0415  # most runs have none

        check_tools(options.tools, [server.name for server in options.mcp_servers], problems.check)
    for index, attachment in enumerate(options.attachments):
        _check_attachment(f"attachments[{index}]", attachment, problems)


def _check_functions(_: str, options: RunOptions, problems: _Problems) -> None:
    _check_hooks(options.hooks, problems)
    if options.tools != () and not (isinstance(options.tools, Sequence) and len(options.tools) > MAX_ITEMS["tools"]):
        from agent_mux.sdk.in_process import check_tools  # noqa: PLC0415  # most runs have none

        check_tools(options.tools, (), problems.check)


def _check_hooks(hooks: Any, problems: _Problems) -> None:
    if hooks is not None and not isinstance(hooks, bool):
        from agent_mux.sdk.in_process import check_hooks  # noqa: PLC0415  # most runs have none

        check_hooks(hooks, problems.check)


def _check_retry(path: str, policy: RetryPolicy, problems: _Problems) -> None:
    problems.check(policy.max_attempts >= 1, f"{path}.max_attempts", policy.max_attempts, "a whole number >= 1")
    for name in ("base_delay", "max_delay", "jitter"):
        value = getattr(policy, name)
        problems.check(0 <= value < math.inf, f"{path}.{name}", value, "a number >= 0")


def _check_fallback(fallback: Any, problems: _Problems) -> None:
    is_list = isinstance(fallback, Sequence) and not isinstance(fallback, str)
    problems.check(is_list, "fallback", fallback, "a list of AGENT or AGENT:MODEL")
    for index, name in enumerate(fallback if is_list else ()):
        is_valid = isinstance(name, str) and FALLBACK.fullmatch(name) is not None
        problems.check(is_valid, f"fallback[{index}]", name, "AGENT or AGENT:MODEL")


def _check_paths_and_env(options: RunOptions, problems: _Problems) -> None:
    cwd: Any = options.cwd
    if cwd is not None:
        is_directory = isinstance(cwd, str | os.PathLike) and Path(cwd).is_absolute() and os.path.isdir(cwd)  # noqa: PTH112
        problems.check(is_directory, "cwd", str(cwd), "an absolute path of an existing directory")
    skills: Any = options.skills
    is_list = isinstance(skills, Sequence) and not isinstance(skills, str)
    is_valid = is_list and all(isinstance(path, str) and path for path in skills)
    problems.check(is_valid, "skills", skills, "a list of folders of skills")
    for name, value in options.env.items():
        named = isinstance(name, str) and ENV_NAME.fullmatch(name) is not None
        problems.check(named, "env", name, "names of letters, digits and underscores")
        # The value may be a secret, so the error does not contain it.
        is_valid = isinstance(value, str) and "\0" not in value
        problems.check(is_valid, f"env.{name}", "(hidden)", "a string without NUL characters")


def _check_native(options: RunOptions, problems: _Problems) -> None:
    """Check the options that are passed to the agent as they are."""
    for name in ("extra_args", "allowed_tools", "disallowed_tools"):
        values: Any = getattr(options, name)
        is_list = isinstance(values, Sequence) and not isinstance(values, str)
        problems.check(is_list, name, values, "a list of texts")
        for index, value in enumerate(values if is_list else ()):
            is_text = isinstance(value, str) and bool(value.strip()) and "\0" not in value
            problems.check(is_text, f"{name}[{index}]", value, "a non-empty text without NUL characters")
    both = sorted(set(map(str, options.allowed_tools)) & set(map(str, options.disallowed_tools)))
    problems.check(not both, "allowed_tools", both, "tools that disallowed_tools does not contain")
    allows_by_rules = options.policy is not None and bool(options.allowed_tools)
    problems.check(not allows_by_rules, "allowed_tools", list(options.allowed_tools),
                   "nothing beside a policy: allow these tools with a rule of the policy")  # fmt: skip
    for name in ("native_options", "thinking_override"):
        settings: Any = getattr(options, name)
        is_object = isinstance(settings, Mapping) and all(isinstance(key, str) and key.strip() for key in settings)
        problems.check(is_object, name, settings, "a mapping of non-empty names to values")
    fallback = options.fallback_model
    is_model = fallback is None or (isinstance(fallback, str) and bool(fallback.strip()) and "\0" not in fallback)
    problems.check(is_model, "fallback_model", fallback, "the name of a model")
    add_dirs: Any = options.add_dirs
    is_list = isinstance(add_dirs, Sequence) and not isinstance(add_dirs, str)
    problems.check(is_list, "add_dirs", add_dirs, "a list of directories")
    for index, path in enumerate(add_dirs if is_list else ()):
        is_directory = isinstance(path, str) and Path(path).is_absolute() and os.path.isdir(path)  # noqa: PTH112
        problems.check(is_directory, f"add_dirs[{index}]", path, "an absolute path of an existing directory")


def check_mcp_server(server: McpServer) -> None:
    """Raise `ValidationError` for an MCP server without a valid name, command or URL.

    The class itself checks types only: agents accept other names in their own files.
    """
    _check(server.name or "mcp_server", server, _check_mcp_server)


def _check_mcp_server(path: str, server: McpServer, problems: _Problems) -> None:
    problems.check(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", server.name) is not None, f"{path}.name", server.name,
                   "1 to 64 letters, digits, _ or -")  # fmt: skip
    if server.transport == "stdio":
        problems.check(bool(server.command) and server.url is None, path, server.name, "command (and no url) for stdio")
    else:
        problems.check(bool(server.url) and server.command is None, path, server.name,
                       f"url (and no command) for {server.transport}")  # fmt: skip
        problems.check(server.url is None or re.match(r"(?i)https?://\S", server.url) is not None, f"{path}.url",
                       "(hidden)", "an http or https URL")  # fmt: skip
    words = [word for word in (server.command, *server.args) if word is not None]
    problems.check(
        not any("\0" in word for word in words), f"{path}.command", "(hidden)", "words without NUL characters"
    )
    for name, value in server.env.items():  # a mapping can be changed after it was checked
        is_valid = isinstance(name, str) and isinstance(value, str) and name and not {"=", "\0"} & set(name)
        problems.check(bool(is_valid) and "\0" not in value, f"{path}.env.{name}", "(hidden)",
                       "a name without =, and a string without NUL characters")  # fmt: skip


def _check_attachment_fields(path: str, attachment: Attachment, problems: _Problems) -> None:
    given = [n for n in ("file_path", "url", "base64") if getattr(attachment, n) is not None]
    problems.check(len(given) == 1, path, given, "exactly one of file_path, url, base64")
    if attachment.base64 is not None:
        problems.check(bool(attachment.mime_type), f"{path}.mime_type", attachment.mime_type, "a MIME type")


def _check_attachment(path: str, attachment: Attachment, problems: _Problems) -> None:
    file_path = attachment.file_path
    if file_path is not None:
        is_file = Path(file_path).is_absolute() and os.path.isfile(file_path)  # noqa: PTH113  # Path.is_file may raise
        problems.check(is_file, f"{path}.file_path", file_path, "an absolute path of an existing file")
