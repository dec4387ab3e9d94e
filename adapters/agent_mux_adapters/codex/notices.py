"""Notifications of the app-server that are about no item: most say nothing about the run, some are worth a note."""

from typing import Any

import msgspec

from agent_mux.facts import Fact, Ignored, Note, RateLimited
from agent_mux_adapters.codex.wire import read

IGNORED = {
    "account/gatewayOAuth/changed": "the user's account",
    "account/login/completed": "the user's account",
    "account/updated": "the user's account",
    "app/list/updated": "the user's apps",
    "autoApprovalReview/strictReviewRequired": "Codex's own reviewer; its decisions are told by the items",
    "command/exec/outputDelta": "a command that another client runs",
    "externalAgentConfig/import/completed": "the user's configuration",
    "externalAgentConfig/import/progress": "the user's configuration",
    "fs/changed": "a file watch of another client",
    "fuzzyFileSearch/sessionCompleted": "a search of another client",
    "fuzzyFileSearch/sessionUpdated": "a search of another client",
    "hook/started": "told when it is completed",
    "item/autoApprovalReview/completed": "Codex's own reviewer; its decision is told by the item",
    "item/autoApprovalReview/started": "Codex's own reviewer; its decision is told by the item",
    "item/commandExecution/terminalInteraction": "what the agent types is in the output of the terminal",
    "item/fileChange/outputDelta": "the completed item has all of it",
    "item/fileChange/patchUpdated": "the completed item has all of it",
    "item/mcpToolCall/progress": "the completed item has the result",
    "item/plan/delta": "fragments of a plan need not add up to it; the completed item has it",
    "item/reasoning/summaryPartAdded": "its text follows",
    "mcpServer/event/stream/notification": "events of an MCP server for its own client",
    "mcpServer/oauthLogin/completed": "the user's account",
    "model/safetyBuffering/updated": "a hint for a user interface",
    "model/verification": "the user's account",
    "process/exited": "a process that another client runs",
    "process/outputDelta": "a process that another client runs",
    "project/changed": "how a user interface sorts threads",
    "rawResponse/completed": "internal; the token usage is told by its own notification",
    "rawResponseItem/completed": "internal; the items tell it",
    "remoteControl/status/changed": "not about this run",
    "skills/changed": "a hint to read the skills again",
    "thread/archived": "how a user interface sorts threads",
    "thread/attachment/updated": "a hint for a user interface",
    "thread/compacted": "deprecated; the contextCompaction item tells it",
    "thread/deleted": "how a user interface sorts threads",
    "thread/environment/connected": "where commands run",
    "thread/environment/disconnected": "where commands run",
    "thread/goal/cleared": "a hint for a user interface",
    "thread/goal/updated": "a hint for a user interface",
    "thread/name/updated": "a hint for a user interface",
    "thread/prediction/updated": "a hint for a user interface",
    "thread/project/updated": "how a user interface sorts threads",
    "thread/queue/changed": "a queue of another client",
    "thread/readState/changed": "a hint for a user interface",
    "thread/reverted": "another client took turns back",
    "thread/section/changed": "how a user interface sorts threads",
    "thread/settings/updated": "told by what follows",
    "thread/unarchived": "how a user interface sorts threads",
    "turn/diff/updated": "the sum of the patches; each is told by its item",
    "turn/moderationMetadata": "internal",
    "windows/worldWritableWarning": "about the machine",
    "windowsSandbox/setupCompleted": "about the machine",
}
_REALTIME = "thread/realtime/"


class _Said(msgspec.Struct, frozen=True, gc=False):
    message: str


class _Summary(msgspec.Struct, frozen=True, gc=False):
    summary: str
    details: str | None = None


class _McpStatus(msgspec.Struct, frozen=True, gc=False):
    name: str
    status: str
    error: str | None = None


class _Limits(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    rate_limit_reached_type: str | None = None


class _LimitParams(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    rate_limits: _Limits


class _Rerouted(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    from_model: str
    to_model: str


class _Hook(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    event_name: str
    status: str
    status_message: str | None = None


class _HookParams(msgspec.Struct, frozen=True, gc=False):
    run: _Hook


def _message(params: Any) -> Fact | None:
    said = read(_Said, params)
    return None if said is None else Note(said.message, "warn")


def _summary(params: Any) -> Fact | None:
    said = read(_Summary, params)
    return None if said is None else Note(f"{said.summary}\n{said.details}" if said.details else said.summary)


def _mcp_status(params: Any) -> Fact | None:
    said = read(_McpStatus, params)
    if said is None:
        return None
    if said.status != "failed":
        return Ignored("mcpServer/startupStatus/updated", "an MCP server that works is told by its calls")
    return Note(f"the MCP server {said.name} does not work: {said.error or 'it did not start'}", "warn")


def _limits(params: Any) -> Fact | None:
    said = read(_LimitParams, params)
    if said is None:
        return None
    if said.rate_limits.rate_limit_reached_type is None:
        return Ignored("account/rateLimits/updated", "no limit was reached")
    return RateLimited()


def _rerouted(params: Any) -> Fact | None:
    said = read(_Rerouted, params)
    return None if said is None else Note(f"codex answers with {said.to_model} instead of {said.from_model}", "warn")


def _hook(params: Any) -> Fact | None:
    said = read(_HookParams, params)
    if said is None:
        return None
    told = f": {said.run.status_message}" if said.run.status_message else ""
    level = "info" if said.run.status == "completed" else "warn"
    return Note(f"the hook {said.run.event_name} {said.run.status}{told}", "warn" if level == "warn" else "info")


_NOTED = {
    "account/rateLimits/updated": _limits,
    "configWarning": _summary,
    "deprecationNotice": _summary,
    "guardianWarning": _message,
    "hook/completed": _hook,
    "mcpServer/startupStatus/updated": _mcp_status,
    "model/rerouted": _rerouted,
    "modelProvider/authRecoveryCompleted": _message,
    "modelProvider/authRecoveryStarted": _message,
    "warning": _message,
}
KNOWN = IGNORED.keys() | _NOTED.keys()


def notice(method: str, params: Any) -> Fact | None:
    """What a notification says; None when it is not known, or does not have its known shape."""
    if method in IGNORED:
        return Ignored(method, IGNORED[method])
    if method.startswith(_REALTIME):
        return Ignored(method, "a voice conversation of another client")
    return _NOTED[method](params) if method in _NOTED else None
