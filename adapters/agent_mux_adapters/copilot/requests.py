"""Parameters of the requests that we send to the headless runtime, from the run's options."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.sdk.codec import CodecContext

READ_RULES: Mapping[str, Any] = {"approved": [{"kind": "read", "argument": None}], "denied": []}
"""Permission rules that allow reading inside the project, as in Copilot's own terminal."""
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
    if context.thinking_effort is not None:
        params["reasoningEffort"] = context.thinking_effort
    if context.system_prompt is not None:
        mode = "replace" if context.system_prompt_mode == "replace" else "append"
        params["systemMessage"] = {"mode": mode, "content": context.system_prompt}
    return params


def permission_request(context: HeadlessContext, session_id: str) -> tuple[str, dict[str, Any]]:
    """Return the request that sets which tool calls need no permission."""
    if context.approves_all:
        return f"{PERMISSIONS}setMode", {"sessionId": session_id, "mode": "allow-all"}
    return f"{PERMISSIONS}configure", {"sessionId": session_id, "rules": READ_RULES}


def prompt_params(context: HeadlessContext, session_id: str, text: str, *, is_first: bool) -> dict[str, Any]:
    """Return the parameters of `session.send` for a prompt. The first prompt has the attachments of the run."""
    params: dict[str, Any] = {"sessionId": session_id, "prompt": text}
    if is_first and context.attachments:
        params["attachments"] = list(context.attachments)
    if context.output_schema is not None:
        schema = {"name": "answer", "schema": context.output_schema}
        params["responseFormat"] = {"type": "json_schema", "jsonSchema": schema}
    return params
