"""What a hook is told, and what it may say. One vocabulary for all agents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

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
