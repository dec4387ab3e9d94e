"""How the options of a run are said in the words of the headless protocol."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.adapter import CodecContext

READS: Mapping[str, Any] = {"approved": [{"kind": "read", "argument": None}], "denied": []}
"""Reading inside the project is not asked about, as in Copilot's own terminal."""


class HeadlessContext(CodecContext, frozen=True, kw_only=True):
    """What the headless codec needs to know besides. Only for what it sends: nothing that it reads depends on it."""

    provider: dict[str, Any] | None = None
    """The user's own model provider (`COPILOT_PROVIDER_*`), without its key: a command for the runtime tells that."""
    asks_nobody: bool = False
    """Permissions are neither asked for nor shown."""
    answers_questions: bool = True
    """There is somebody to answer a question; otherwise the model is not offered to ask any."""
    shows_insides: bool = True
    """What sub-agents say is streamed, too."""
    attachments: tuple[dict[str, str], ...] = ()
    """For the first prompt."""


def extended(context: CodecContext) -> HeadlessContext:
    """The context with all its fields; a journal keeps only those of every codec."""
    if isinstance(context, HeadlessContext):
        return context
    return HeadlessContext(**{name: getattr(context, name) for name in context.__struct_fields__})


def session_params(context: HeadlessContext) -> dict[str, Any]:
    """`session.create`, and `session.resume` but for the id."""
    params: dict[str, Any] = {
        "workingDirectory": context.cwd,
        "streaming": True,
        "includeSubAgentStreamingEvents": context.shows_insides,
        "requestPermission": True,
        "requestUserInput": context.answers_questions,
        # Without it, a headless session knows none of the user's skills and agents, and no MCP server of the project.
        # Those of a project that the user does not trust are left out all the same.
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
    """The request that says what needs no permission."""
    if context.asks_nobody:
        return "session.permissions.setMode", {"sessionId": session_id, "mode": "allow-all"}
    return "session.permissions.configure", {"sessionId": session_id, "rules": READS}


def prompt_params(context: HeadlessContext, session_id: str, text: str, *, is_first: bool) -> dict[str, Any]:
    """`session.send` with a prompt; what is attached to the run goes with the first one."""
    params: dict[str, Any] = {"sessionId": session_id, "prompt": text}
    if is_first and context.attachments:
        params["attachments"] = list(context.attachments)
    if context.output_schema is not None:
        schema = {"name": "answer", "schema": context.output_schema}
        params["responseFormat"] = {"type": "json_schema", "jsonSchema": schema}
    return params


def with_images(context: HeadlessContext) -> HeadlessContext:
    """Images that only the common context names, as attachments."""
    if context.attachments or not context.images:
        return context
    files = tuple({"type": "file", "path": path, "displayName": path.rsplit("/", 1)[-1]} for path in context.images)
    return msgspec.structs.replace(context, attachments=files)
