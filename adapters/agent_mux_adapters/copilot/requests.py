"""Parameters of the requests that we send to the headless runtime, from the run's options."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.native_options import merge_native_options

READ_RULES: Mapping[str, Any] = {"approved": [{"kind": "read", "argument": None}], "denied": []}
"""Permission rules that allow reading inside the project, as in Copilot's own terminal."""
_PERMISSION_KINDS = ("shell", "write", "read", "url", "memory")
PERMISSIONS = "session.permissions."
"""Prefix of the requests that set which tool calls need no permission."""


class HeadlessContext(CodecContext, frozen=True, kw_only=True):
    """The context of the headless codec. Its additional fields affect only what the codec sends, not what it reads."""

    provider: dict[str, Any] | None = None
    """The user's own model provider (`COPILOT_PROVIDER_*`), with a command that prints the key in place of the key."""
    approves_all: bool = False
    """Whether Copilot runs all tools without asking for permission."""
    answers_questions: bool = True
    """Whether the consumer can answer questions; otherwise the model does not get the tool that asks."""
    streams_subagents: bool = True
    """Whether the messages of sub-agents are streamed, too."""
    effort_override: str | None = None
    """A reasoning effort that has no name of ours."""
    leaves_plan: bool = False
    """Whether the session may be in plan mode, although the approval mode is another."""
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    native_options: dict[str, Any] = msgspec.field(default_factory=dict)
    """Further parameters of the session."""
    attachments: tuple[dict[str, str], ...] = ()
    """The attachments of the first prompt."""


def headless_context(context: CodecContext) -> HeadlessContext:
    """Return a context with all fields. A journal stores only those that every codec has."""
    if isinstance(context, HeadlessContext):
        return context
    return HeadlessContext(**{name: getattr(context, name) for name in context.__struct_fields__})


def with_images(context: HeadlessContext) -> HeadlessContext:
    """Add the images of a context without attachments as attachments."""
    if context.attachments or not context.images:
        return context
    files = tuple({"type": "file", "path": path, "displayName": path.rsplit("/", 1)[-1]} for path in context.images)
    return msgspec.structs.replace(context, attachments=files)


def session_params(context: HeadlessContext) -> dict[str, Any]:
    """Return the parameters of `session.create`, and those of `session.resume` except for the session's id."""
    params: dict[str, Any] = {
        "workingDirectory": context.cwd,
        "streaming": True,
        "includeSubAgentStreamingEvents": context.streams_subagents,
        "requestPermission": True,
        "requestUserInput": context.answers_questions,
        # Without it, a headless session has none of the user's skills and agents, and no MCP server of the project.
        # Those of a project that the user does not trust are still left out.
        "enableConfigDiscovery": True,
    }
    if context.model is not None:
        params["model"] = context.model
    if context.provider is not None:
        params["provider"] = context.provider
    effort = context.effort_override or context.thinking_effort
    if effort is not None:
        params["reasoningEffort"] = effort
    excluded = [name for name in context.disallowed_tools if permission_rule(name) is None]
    if excluded:
        params["excludedTools"] = excluded
    if context.system_prompt is not None:
        mode = "replace" if context.system_prompt_mode == "replace" else "append"
        params["systemMessage"] = {"mode": mode, "content": context.system_prompt}
    return merge_native_options("copilot", params, context.native_options) if context.native_options else params


def permission_rule(name: str) -> dict[str, Any] | None:
    """Return the permission rule that a name stands for: `shell(git:*)`, `write`. None: it is the name of a tool."""
    kind, parenthesis, argument = name.partition("(")
    if not parenthesis and kind not in _PERMISSION_KINDS:
        return None
    return {"kind": kind, "argument": argument.removesuffix(")") if parenthesis else None}


def permission_requests(context: HeadlessContext, session_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the requests that set which tool calls need no permission, and which are denied."""
    session = {"sessionId": session_id}
    denied = [rule for name in context.disallowed_tools if (rule := permission_rule(name)) is not None]
    if context.approves_all:
        requests = [(f"{PERMISSIONS}setMode", {**session, "mode": "allow-all"})]
        rules = {"approved": [], "denied": denied}
        return [*requests, (f"{PERMISSIONS}configure", {**session, "rules": rules})] if denied else requests
    allowed = [] if context.asks_everything else context.allowed_tools
    approved = [rule for name in allowed if (rule := permission_rule(name)) is not None]
    rules = {"approved": [*READ_RULES["approved"], *approved], "denied": denied}
    return [(f"{PERMISSIONS}configure", {**session, "rules": rules})]


def prompt_params(context: HeadlessContext, session_id: str, text: str, *, is_first: bool) -> dict[str, Any]:
    """Return the parameters of `session.send` for a prompt. The first prompt has the attachments of the run."""
    params: dict[str, Any] = {"sessionId": session_id, "prompt": text}
    if context.approval_mode == "plan":
        params["agentMode"] = "plan"
    elif context.leaves_plan:
        params["agentMode"] = "interactive"
    if is_first and context.attachments:
        params["attachments"] = list(context.attachments)
    if context.output_schema is not None:
        schema = {"name": "answer", "schema": context.output_schema}
        params["responseFormat"] = {"type": "json_schema", "jsonSchema": schema}
    return params
