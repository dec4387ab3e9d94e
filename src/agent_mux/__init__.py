"""agent-mux: drive any coding-agent CLI through one typed event stream.

Example:
    async with AgentMux() as mux:
        run = mux.run(agent="claude", prompt="fix the failing test", approval_mode="yolo")
        async for event in run:
            print(event.type)
        result = await run

Public names are imported on first use, so that `amux --version` starts as fast as Python itself.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agent_mux._util.version import __version__

if TYPE_CHECKING:
    from agent_mux.assembler import ExitReason, RunAttempt
    from agent_mux.client import AgentMux, RemoteMux
    from agent_mux.client.attached import AttachedRun
    from agent_mux.client.blocking import BlockingAgentMux, BlockingRemoteMux, BlockingRun
    from agent_mux.client.remote import RemoteRun
    from agent_mux.compare.engine import ComparisonRun
    from agent_mux.contract import Breach, validate
    from agent_mux.errors import (
        AgentMuxError,
        AuthError,
        CapabilityError,
        ErrorCode,
        FieldError,
        MissingExtraError,
        ValidationError,
    )
    from agent_mux.events import (
        AgentEvent,
        BaseEvent,
        CostRecord,
        QuotaWindow,
        UnknownEvent,
        decode_event,
        encode_event,
    )
    from agent_mux.run.base import Boundary, Run, RunState
    from agent_mux.run.changed_files import ChangedFile
    from agent_mux.run.handle import RunHandle
    from agent_mux.run.interaction import InteractionChannel
    from agent_mux.run.plan import RunPlan
    from agent_mux.run.result import Denial, RunError, RunResult, TokenUsage
    from agent_mux.run.transcripts import parse_transcript
    from agent_mux.sdk.codec import Delivery
    from agent_mux.sdk.hooks import HookCall, HookDecision, HookType
    from agent_mux.sdk.in_process import Block, Tool
    from agent_mux.sdk.interactions import (
        ApprovalDetail,
        Approve,
        Choice,
        Defer,
        Deny,
        InputDetail,
        PendingInteraction,
        Responder,
        Response,
        Text,
    )
    from agent_mux.sdk.option_fields import RunOptionFields
    from agent_mux.sdk.options import ApprovalMode, Attachment, McpServer, RetryPolicy, RunOptions
    from agent_mux.sdk.policy import Policy, Rule, read_policy
    from agent_mux.sdk.registry import AdapterRegistry
    from agent_mux.settings.resolver import ResolvedOptions
    from agent_mux.worktrees.state import Worktree

_NAMES_BY_MODULE = {
    "agent_mux.assembler": ("ExitReason", "RunAttempt"),
    "agent_mux.client": ("AgentMux", "RemoteMux"),
    "agent_mux.client.attached": ("AttachedRun",),
    "agent_mux.client.blocking": ("BlockingAgentMux", "BlockingRemoteMux", "BlockingRun"),
    "agent_mux.client.remote": ("RemoteRun",),
    "agent_mux.compare.engine": ("ComparisonRun",),
    "agent_mux.contract": ("Breach", "validate"),
    "agent_mux.errors": (
        "AgentMuxError",
        "AuthError",
        "CapabilityError",
        "ErrorCode",
        "FieldError",
        "MissingExtraError",
        "ValidationError",
    ),
    "agent_mux.events": (
        "AgentEvent",
        "BaseEvent",
        "CostRecord",
        "QuotaWindow",
        "UnknownEvent",
        "decode_event",
        "encode_event",
    ),
    "agent_mux.run.base": ("Boundary", "Run", "RunState"),
    "agent_mux.run.changed_files": ("ChangedFile",),
    "agent_mux.run.handle": ("RunHandle",),
    "agent_mux.run.interaction": ("InteractionChannel",),
    "agent_mux.run.plan": ("RunPlan",),
    "agent_mux.run.result": ("Denial", "RunError", "RunResult", "TokenUsage"),
    "agent_mux.run.transcripts": ("parse_transcript",),
    "agent_mux.sdk.codec": ("Delivery",),
    "agent_mux.sdk.hooks": ("HookCall", "HookDecision", "HookType"),
    "agent_mux.sdk.in_process": ("Block", "Tool"),
    "agent_mux.sdk.interactions": (
        "ApprovalDetail",
        "Approve",
        "Choice",
        "Defer",
        "Deny",
        "InputDetail",
        "PendingInteraction",
        "Responder",
        "Response",
        "Text",
    ),
    "agent_mux.sdk.option_fields": ("RunOptionFields",),
    "agent_mux.sdk.options": ("ApprovalMode", "Attachment", "McpServer", "RetryPolicy", "RunOptions"),
    "agent_mux.sdk.policy": ("Policy", "Rule", "read_policy"),
    "agent_mux.sdk.registry": ("AdapterRegistry",),
    "agent_mux.settings.resolver": ("ResolvedOptions",),
    "agent_mux.worktrees.state": ("Worktree",),
}
_MODULE_BY_NAME = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}

__all__ = [
    "AdapterRegistry",
    "AgentEvent",
    "AgentMux",
    "AgentMuxError",
    "ApprovalDetail",
    "ApprovalMode",
    "Approve",
    "AttachedRun",
    "Attachment",
    "AuthError",
    "BaseEvent",
    "Block",
    "BlockingAgentMux",
    "BlockingRemoteMux",
    "BlockingRun",
    "Boundary",
    "Breach",
    "CapabilityError",
    "ChangedFile",
    "Choice",
    "ComparisonRun",
    "CostRecord",
    "Defer",
    "Delivery",
    "Denial",
    "Deny",
    "ErrorCode",
    "ExitReason",
    "FieldError",
    "HookCall",
    "HookDecision",
    "HookType",
    "InputDetail",
    "InteractionChannel",
    "McpServer",
    "MissingExtraError",
    "PendingInteraction",
    "Policy",
    "QuotaWindow",
    "RemoteMux",
    "RemoteRun",
    "ResolvedOptions",
    "Responder",
    "Response",
    "RetryPolicy",
    "Rule",
    "Run",
    "RunAttempt",
    "RunError",
    "RunHandle",
    "RunOptionFields",
    "RunOptions",
    "RunPlan",
    "RunResult",
    "RunState",
    "Text",
    "TokenUsage",
    "Tool",
    "UnknownEvent",
    "ValidationError",
    "Worktree",
    "__version__",
    "decode_event",
    "encode_event",
    "parse_transcript",
    "read_policy",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it."""
    module = _MODULE_BY_NAME.get(name)
    if module is None:
        raise AttributeError(f"module 'agent_mux' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
