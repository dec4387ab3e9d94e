"""Notifications of the app-server that belong to no item: most are ignored, some become notes."""

from typing import Any

import msgspec

from agent_mux.sdk.facts import Fact, Ignored, Note
from agent_mux_adapters.codex.wire import read

IGNORED = {
    "account/gatewayOAuth/changed": "the user's account",
    "account/login/completed": "the user's account",
    "account/updated": "the user's account",
    "app/list/updated": "the user's apps",
    "autoApprovalReview/strictReviewRequired": "Codex's own reviewer; the items show its decisions",
    "command/exec/outputDelta": "a command that another client runs",
    "externalAgentConfig/import/completed": "the user's configuration",
    "externalAgentConfig/import/progress": "the user's configuration",
    "fs/changed": "a file watch of another client",
    "fuzzyFileSearch/sessionCompleted": "a search of another client",
    "fuzzyFileSearch/sessionUpdated": "a search of another client",
    "hook/started": "reported on completion",
    "item/autoApprovalReview/completed": "Codex's own reviewer; the item shows its decision",
    "item/autoApprovalReview/started": "Codex's own reviewer; the item shows its decision",
    "item/commandExecution/terminalInteraction": "the terminal's output contains the input",
    "item/fileChange/outputDelta": "the completed item has all of it",
    "item/fileChange/patchUpdated": "the completed item has all of it",
    "item/mcpToolCall/progress": "the completed item has the result",
    "item/plan/delta": "fragments may differ from the plan; the completed item has it",
    "item/reasoning/summaryPartAdded": "its text follows",
    "mcpServer/event/stream/notification": "events of an MCP server for its own client",
    "mcpServer/oauthLogin/completed": "the user's account",
    "model/safetyBuffering/updated": "a hint for a user interface",
    "model/verification": "the user's account",
    "process/exited": "a process that another client runs",
    "process/outputDelta": "a process that another client runs",
    "project/changed": "how a user interface sorts threads",
    "rawResponse/completed": "internal; the token usage has its own notification",
    "rawResponseItem/completed": "internal; the items have the same content",
    "remoteControl/status/changed": "not about this run",
    "skills/changed": "a hint to read the skills again",
    "thread/archived": "how a user interface sorts threads",
    "thread/attachment/updated": "a hint for a user interface",
    "thread/compacted": "deprecated; replaced by the contextCompaction item",
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
    "thread/reverted": "another client reverted turns",
    "thread/section/changed": "how a user interface sorts threads",
    "thread/settings/updated": "affects only what follows",
    "thread/unarchived": "how a user interface sorts threads",
    "turn/diff/updated": "the sum of all patches; each has its own item",
    "turn/moderationMetadata": "internal",
    "windows/worldWritableWarning": "about the machine",
    "windowsSandbox/setupCompleted": "about the machine",
}
"""Ignored notifications, and why."""
_FIRST_VERSION = "codex/event/"
_REALTIME = "thread/realtime/"


class _MessageParams(msgspec.Struct, frozen=True, gc=False):
    message: str


class _SummaryParams(msgspec.Struct, frozen=True, gc=False):
    summary: str
    details: str | None = None


class _McpStatusParams(msgspec.Struct, frozen=True, gc=False):
    name: str
    status: str
    error: str | None = None


class _ReroutedParams(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    from_model: str
    to_model: str


class _HookRun(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    event_name: str
    status: str
    status_message: str | None = None


class _HookParams(msgspec.Struct, frozen=True, gc=False):
    run: _HookRun


def _message(params: Any) -> Fact | None:
    notice = read(_MessageParams, params)
    return None if notice is None else Note(notice.message, "warn")


def _summary(params: Any) -> Fact | None:
    notice = read(_SummaryParams, params)
    if notice is None:
        return None
    return Note(f"{notice.summary}\n{notice.details}" if notice.details else notice.summary)


def _mcp_status(params: Any) -> Fact | None:
    server = read(_McpStatusParams, params)
    if server is None:
        return None
    if server.status != "failed":
        return Ignored("mcpServer/startupStatus/updated", "the MCP server works")
    return Note(f"the MCP server {server.name} does not work: {server.error or 'it did not start'}", "warn")


def _rerouted(params: Any) -> Fact | None:
    models = read(_ReroutedParams, params)
    if models is None:
        return None
    return Note(f"codex answers with {models.to_model} instead of {models.from_model}", "warn")


def _hook(params: Any) -> Fact | None:
    completed = read(_HookParams, params)
    if completed is None:
        return None
    run = completed.run
    detail = f": {run.status_message}" if run.status_message else ""
    return Note(f"the hook {run.event_name} {run.status}{detail}", "info" if run.status == "completed" else "warn")


_NOTED = {
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
KNOWN_NOTICES = IGNORED.keys() | _NOTED.keys()


def read_notice(method: str, params: Any) -> Fact | None:
    """Return the fact for a notification; None when its method or the shape of its parameters is unknown."""
    if method in IGNORED:
        return Ignored(method, IGNORED[method])
    if method.startswith(_REALTIME):
        return Ignored(method, "a voice conversation of another client")
    if method.startswith(_FIRST_VERSION):
        return Ignored(method, "the same event in the first version of the protocol, until 0.110")
    return _NOTED[method](params) if method in _NOTED else None
