"""The hook contract: hook calls, decisions, and how an agent's native hooks are configured.

An adapter describes the hooks that its agent calls itself (`NativeHooks`); the run calls all others from its events.
See docs/spec/run-api.md, section 7.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux.sdk.checked import Checked
from agent_mux.sdk.config import ConfigFile
from agent_mux.sdk.declarations import Declaration
from agent_mux.sdk.documents import FieldPath
from agent_mux.sdk.hook_types import GUARDED_HOOK_TYPES, HOOK_TYPES, HookType

__all__ = [
    "ANY_AGENT",
    "CALLED_FROM_EVENTS",
    "GUARDED_HOOK_TYPES",
    "HOOK_TYPES",
    "NO_OPINION",
    "HookCall",
    "HookDecision",
    "HookOutcome",
    "HookResponse",
    "HookType",
    "NativeHooks",
]

ANY_AGENT = "*"
"""Agent name of a handler that applies to all agents."""
CALLED_FROM_EVENTS = "AGENT_MUX_HOOKS_FROM_EVENTS"
"""Environment variable of a run with the hooks that the run calls from its events, as `AGENT:TYPE,TYPE`.

It prevents that a handler is called twice. The agent's name excludes other agents that this agent starts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """The data of one hook call, in the same form for all agents. None: the agent does not report it."""

    agent: str
    """Registered name of the agent."""
    hook_type: HookType
    """What the agent does: the kind of hook."""
    session_id: str | None = None
    """The agent's own session id."""
    cwd: str | None = None
    """Absolute working directory of the agent."""
    prompt: str | None = None
    """Text of the prompt, for `prompt_submit`."""
    tool_call_id: str | None = None
    """Id of the tool call, as in its events."""
    tool_name: str | None = None
    """The agent's name of the tool."""
    tool_input: Mapping[str, Any] | None = None
    """Arguments of the tool call."""
    command: str | None = None
    """Command line that the tool runs, if any. Policy rules match `command` and `paths`."""
    paths: tuple[str, ...] = ()
    """Files that the tool reads or changes: absolute, or relative to `cwd`."""
    diff: str | None = None
    """Unified diff of the files that the tool would change, for `permission_request` of a run."""
    tool_output: Any = None
    """Result of the tool, for `post_tool_use`."""
    message: str | None = None
    """Text of a `notification`, last answer for `stop`, reason for `session_start` and `session_end`."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The agent's own data, unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookDecision(Checked):
    """The response of a handler to a hook call."""

    behavior: Literal["allow", "deny", "ask"] | None = None
    """None: no decision, the agent proceeds as it would without hooks."""
    reason: str | None = None
    """Reason for the decision, shown to the agent and the user."""
    modified_input: Mapping[str, Any] | None = None
    """Tool arguments that replace those of the same name."""
    context: str | None = None
    """Text that is added to the agent's context."""


NO_OPINION = HookDecision()


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """The combined decision of all handlers of a hook call."""

    decision: HookDecision
    """The merged decision of all handlers."""
    warnings: tuple[str, ...] = ()
    """Failures of handlers, one sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResponse:
    """The output and exit code of a hook's process, in the form that the agent expects."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


def _no_caller(environ: Mapping[str, str]) -> str | None:  # noqa: ARG001
    return None


def _not_disabled(data: Mapping[str, Any]) -> bool:  # noqa: ARG001
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeHooks(Declaration):
    """The native hooks of an agent: where they are configured and how they are called."""

    files: tuple[ConfigFile, ...]
    """Configuration files; their `table` contains the hooks."""
    types: Mapping[HookType, tuple[str, ...]]
    """The agent's names of each supported type; several where the agent distinguishes more types than we do."""
    decides: frozenset[HookType]
    """Types whose decision has an effect, for example the refusal of a tool call."""
    place: Callable[[str], FieldPath]
    """Returns the path below the table for a type, given the agent's name of the type."""
    add: Callable[[Any, str, str], Any]
    """Returns the value at `place` with a hook added, given the value (None: unset), the agent's type and a command."""
    remove: Callable[[Any, Callable[[str], bool]], Any]
    """Returns the value at `place` without the hooks whose command line matches; None if none remain."""
    commands: Callable[[Any], tuple[str, ...]]
    """Returns the command lines in the value at `place`."""
    read: Callable[[HookType, Mapping[str, Any]], HookCall]
    """Parses the hook's standard input. Never raises on input from the agent."""
    answer: Callable[[HookCall, HookDecision], HookResponse]
    """Formats a decision for the agent."""
    preamble: Mapping[FieldPath, Any] | None = None
    """Fields outside of the table that the file requires, for example a version; set if missing."""
    runs: frozenset[str] = frozenset()
    """Native protocols in which the agent calls these hooks reliably; in others the run calls them from its events."""
    consent: str | None = None
    """What a person must do before the agent calls new hooks, as a sentence; None: nothing."""
    off: Callable[[Mapping[str, Any]], bool] = _not_disabled
    """Returns whether the content of a file disables all hooks, or ours."""
    caller: Callable[[Mapping[str, str]], str | None] = _no_caller
    """Returns the name of another agent that reads these files and called the hook, given the hook's environment."""
