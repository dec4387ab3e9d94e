"""The options of a run as keyword arguments, for type checkers and completion.

`AgentMux.run(**options: Unpack[RunOptionFields])` makes a misspelled option or a value of a wrong type an error of the
type checker. `None` means "not given" everywhere. Structured options also accept mappings with the fields of their
class. A test compares every key with `RunOptions`; docs/reference/python-api.md has the descriptions.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

from agent_mux.errors import ErrorCode
from agent_mux.sdk.options import (
    ApprovalMode,
    Attachment,
    FailOn,
    Isolation,
    McpServer,
    RetryPolicy,
    StreamMode,
    SystemPromptMode,
    ThinkingEffort,
)

if TYPE_CHECKING:
    from agent_mux.sdk.facts import Risk
    from agent_mux.sdk.hooks import HookType
    from agent_mux.sdk.in_process import HookFunction, Tool
    from agent_mux.sdk.interactions import Responder
    from agent_mux.sdk.policy import Decision, Policy, Rule


class AttachmentFields(TypedDict, total=False):
    """The fields of `Attachment`."""

    file_path: str | None
    url: str | None
    base64: str | None
    mime_type: str | None


class McpServerFields(TypedDict, total=False):
    """The fields of `McpServer`."""

    name: Required[str]
    transport: Literal["stdio", "sse", "streamable-http"]
    command: str | None
    args: Sequence[str]
    env: Mapping[str, str]
    url: str | None
    headers: Mapping[str, str]


class RetryPolicyFields(TypedDict, total=False):
    """The fields of `RetryPolicy`."""

    max_attempts: int
    base_delay: float | str
    max_delay: float | str
    jitter: float
    retry_on: Collection[ErrorCode]


class RuleFields(TypedDict, total=False):
    """The fields of a `Rule` of a policy."""

    decision: Required["Decision"]
    tools: Sequence[str]
    paths: Sequence[str]
    commands: Sequence[str]
    risk: Sequence["Risk"]
    reason: str | None


class PolicyFields(TypedDict, total=False):
    """The fields of `Policy`."""

    rules: "Sequence[Rule | RuleFields]"
    default: "Decision"
    timeout: float | str
    on_timeout: Literal["allow", "deny"]


class RemoteDefaults(TypedDict, total=False):
    """The options that `RemoteMux` accepts as defaults of its runs."""

    approval_mode: ApprovalMode | None
    timeout: float | str | None
    inactivity_timeout: float | str | None
    stream: StreamMode | None
    debug: bool | None
    event_buffer_size: int | None
    max_text_bytes: int | None
    retry_policy: RetryPolicy | RetryPolicyFields | None
    hooks: "bool | Mapping[HookType, HookFunction] | None"


class LocalDefaults(RemoteDefaults, total=False):
    """The options that `AgentMux` accepts as defaults of its runs."""

    journal: bool | str | os.PathLike[str] | None


class AttachOptions(TypedDict, total=False):
    """The options of `RemoteMux.attach`: those that a client itself uses."""

    on_approval_request: "Responder | None"
    on_input_required: "Responder | None"
    collect_events: bool | None
    event_buffer_size: int | None


class RunOptionFields(LocalDefaults, total=False):
    """The options of `AgentMux.run`, `start`, `plan` and `resolve_options`: the fields of `RunOptions`."""

    agent: str | None
    prompt: str | Sequence[str] | None
    command: Sequence[str] | None
    system_prompt: str | None
    system_prompt_mode: SystemPromptMode | None
    agents_doc: str | os.PathLike[str] | None
    skills: Sequence[str] | None
    attachments: Sequence[Attachment | AttachmentFields] | None
    model: str | None
    thinking_effort: ThinkingEffort | None
    thinking_budget_tokens: int | None
    thinking_override: Mapping[str, Any] | None
    fallback_model: str | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    max_tokens: int | None
    max_output_tokens: int | None
    session_id: str | None
    fork_session_id: str | None
    session_name: str | None
    no_session: bool | None
    output_schema: Mapping[str, Any] | None
    cwd: str | os.PathLike[str] | None
    add_dirs: Sequence[str | os.PathLike[str]] | None
    isolation: Isolation | None
    carry_changes: bool | None
    setup_command: Sequence[str] | None
    track_changes: bool | None
    fail_on: Sequence[FailOn] | None
    env: Mapping[str, str] | None
    inherit_env: bool | None
    grace_period: float | str | None
    max_model_calls: int | None
    max_turns: int | None
    """Deprecated name of `max_model_calls`."""
    max_cost_usd: float | None
    max_tokens_total: int | None
    allowed_tools: Sequence[str] | None
    disallowed_tools: Sequence[str] | None
    policy: "Policy | PolicyFields | None"
    approval_timeout: float | str | None
    on_approval_request: "Responder | None"
    on_input_required: "Responder | None"
    mcp_servers: Sequence[McpServer | McpServerFields] | None
    tools: "Sequence[Tool | Callable[..., Any]] | None"
    extra_args: Sequence[str] | None
    native_options: Mapping[str, Any] | None
    run_id: str | None
    tags: Sequence[str] | None
    project_id: str | None
    collect_events: bool | None
    wait_for_quota: float | str | None
    fallback: Sequence[str] | None
    interactive: bool | None
    include_subagent_events: bool | None
    profile: str | None
