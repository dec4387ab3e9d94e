"""Hook calls and decisions, and how an agent's native hooks are configured.

An adapter describes the hooks that its agent calls itself (`NativeHooks`); the run calls the others from its events.
See docs/spec/run-api.md, section 7.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from agent_mux.sdk.config import ConfigFile
from agent_mux.sdk.documents import FieldPath

HookType = Literal[
    "session_start",
    "session_end",
    "prompt_submit",
    "pre_tool_use",
    "post_tool_use",
    "permission_request",
    "notification",
    "stop",
    "subagent_start",
    "subagent_stop",
    "pre_compact",
]
HOOK_TYPES: tuple[HookType, ...] = get_args(HookType)
GUARDED: frozenset[HookType] = frozenset({"pre_tool_use", "permission_request"})
"""Here something is about to happen: what keeps a guard from judging it keeps it from happening."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """Something happened, or is about to. What the agent does not say is None."""

    agent: str
    hook_type: HookType
    session_id: str | None = None
    cwd: str | None = None
    prompt: str | None = None
    """Of `prompt_submit`."""
    tool_call_id: str | None = None
    tool_name: str | None = None
    tool_input: Mapping[str, Any] | None = None
    command: str | None = None
    """The command line that the tool runs, where it runs one. With `paths`, what the rules of a policy look at."""
    paths: tuple[str, ...] = ()
    """The files that the tool is about: absolute, or relative to `cwd`."""
    tool_output: Any = None
    """Of `post_tool_use`."""
    message: str | None = None
    """Of a notification; of `stop`, the agent's last answer; of `session_start` and `session_end`, the reason."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """As the agent said it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookDecision:
    """What is to become of it."""

    behavior: Literal["allow", "deny", "ask"] | None = None
    """None: no opinion, the agent goes on as it would."""
    reason: str | None = None
    """For the agent, and whoever watches."""
    modified_input: Mapping[str, Any] | None = None
    """The tool is called with these values instead of those of the same name."""
    context: str | None = None
    """What the agent is told in addition."""


NO_OPINION = HookDecision()


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """What a hook's process leaves behind."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


def _nobody(environ: Mapping[str, str]) -> str | None:  # noqa: ARG001
    return None


def _never(data: Mapping[str, Any]) -> bool:  # noqa: ARG001
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeHooks:
    """The hooks of an agent that has some."""

    files: tuple[ConfigFile, ...]
    """Their `table` holds the hooks."""
    types: Mapping[HookType, tuple[str, ...]]
    """What the agent calls those that it has: several names where it tells things apart that we do not."""
    decides: frozenset[HookType]
    """In which of them an answer counts: a tool call can be refused, say."""
    place: Callable[[str], FieldPath]
    """Where the hooks of a type (the agent's name of it) are, below the table."""
    add: Callable[[Any, str, str], Any]
    """What stands there (None: nothing), the agent's name of the type, and a command line: what shall stand there."""
    remove: Callable[[Any, Callable[[str], bool]], Any]
    """What stands there without the hooks whose command line answers to the question; None: nothing is left."""
    commands: Callable[[Any], tuple[str, ...]]
    """The command lines of what stands there."""
    read: Callable[[HookType, Mapping[str, Any]], HookCall]
    """What the agent writes to the hook's standard input. Never raises on what an agent may say."""
    answer: Callable[[HookCall, HookDecision], HookAnswer]
    """A decision, as the agent wants to hear it."""
    preamble: Mapping[FieldPath, Any] | None = None
    """What a file has to say besides, outside of the table: a version, say. Set where it is missing."""
    runs: frozenset[str] = frozenset()
    """Native protocols in which our runs can count on these hooks; in others they are called from the events."""
    consent: str | None = None
    """What a person has to do before the agent calls hooks that are new to it; None: nothing."""
    off: Callable[[Mapping[str, Any]], bool] = _never
    """A file that says this keeps the agent from calling any hook, or ours."""
    caller: Callable[[Mapping[str, str]], str | None] = _nobody
    """By the environment of a hook: the other agent that calls it, as it reads these files, too."""


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """What came of a call."""

    decision: HookDecision
    warnings: tuple[str, ...] = ()
    """Handlers that failed, a sentence each."""


CALLED_FROM_EVENTS = "AGENT_MUX_HOOKS_FROM_EVENTS"
"""In the environment of a run: `AGENT:TYPE,TYPE`, what the run calls itself. Nobody is called twice; an agent that this
one starts is another one."""


ANY_AGENT = "*"
