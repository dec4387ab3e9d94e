"""Requests that we send to the app-server, with their parameters from the run's options."""

from typing import Any

from agent_mux.sdk.codec import CodecContext

# approval mode -> (approvalPolicy, sandbox)
#   yolo    Codex asks for nothing and runs without a sandbox.
#   prompt  Codex's own default: it works freely inside the project and asks before it leaves the sandbox.
#   rules   Codex asks before every command and every change; an approved one may write inside the project.
#   plan    Codex reads freely, in its collaboration mode `plan`, and asks before anything else.
#   deny    Codex asks before every command and every change, and every request is denied.
PERMISSIONS = {
    "yolo": ("never", "danger-full-access"),
    "prompt": ("on-request", "workspace-write"),
    "rules": ("untrusted", "workspace-write"),
    "deny": ("untrusted", "read-only"),
    "plan": ("on-request", "read-only"),
}
_SANDBOX_TYPES = {
    "danger-full-access": "dangerFullAccess",
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
}
_HIGHEST = "xhigh"  # all models support it; only the newer ones support "max"
_MODELS_WITH_MAX = ("gpt-5.6", "gpt-6")
_CLIENT = {"name": "agent-mux", "title": "agent-mux", "version": "1"}


def effort_of(level: str | None, model: str | None) -> str | None:
    """Return Codex's name for a level of thinking effort."""
    if level != "max":
        return level
    return "max" if model is not None and model.startswith(_MODELS_WITH_MAX) else _HIGHEST


def initialize_params() -> dict[str, Any]:
    """Return the parameters of `initialize`. Without the experimental API the agent could not ask questions."""
    return {"clientInfo": _CLIENT, "capabilities": {"experimentalApi": True}}


def thread_request(context: CodecContext) -> tuple[str, dict[str, Any]]:
    """Return the request that opens the thread: `thread/start`, `thread/resume` or `thread/fork`.

    Permissions are part of all three: a resumed thread does not keep its own.
    """
    policy, sandbox = permissions_of(context)
    params: dict[str, Any] = {"cwd": context.cwd, "approvalPolicy": policy, "sandbox": sandbox}
    if context.model is not None:
        params["model"] = context.model
    if context.system_prompt is not None:
        replaces = context.system_prompt_mode == "replace"
        params["baseInstructions" if replaces else "developerInstructions"] = context.system_prompt
    before = context.session_id or context.fork_session_id
    if before is not None:
        # The result could contain the history, which is not needed here and may be long.
        params |= {"threadId": before, "excludeTurns": True}
        return ("thread/resume" if context.session_id is not None else "thread/fork"), params
    if context.no_session:
        params["ephemeral"] = True
    return "thread/start", params


def permissions_of(context: CodecContext) -> tuple[str, str]:
    """Return the approval policy and the sandbox of a run. A plan is made in the read-only sandbox, rules or not."""
    has_rules = context.asks_everything and context.approval_mode != "plan"
    return PERMISSIONS["rules" if has_rules else context.approval_mode]


def permission_overrides(context: CodecContext) -> dict[str, Any]:
    """Return the parameters of `turn/start` that change approval policy and sandbox from this turn on."""
    policy, sandbox = permissions_of(context)
    return {"approvalPolicy": policy, "sandboxPolicy": {"type": _SANDBOX_TYPES[sandbox]}}


def collaboration(mode: str, context: CodecContext, model: str | None) -> dict[str, Any]:
    """Return the parameter of `turn/start` that selects a collaboration mode, which has to repeat the model."""
    if model is None:
        return {}
    effort = effort_of(context.thinking_effort, context.model)
    settings = {"model": model, "reasoning_effort": effort, "developer_instructions": None}
    return {"collaborationMode": {"mode": mode, "settings": settings}}


def turn_params(
    context: CodecContext, thread_id: str, text: str, *, with_images: bool, model: str | None
) -> dict[str, Any]:
    """Return the parameters of `turn/start`.

    `with_images`: send the run's images too, with the first prompt. `model`: that of the thread, which a collaboration
    mode has to repeat.
    """
    params: dict[str, Any] = {"threadId": thread_id, "input": [{"type": "text", "text": text}]}
    if with_images:
        params["input"] += [_image(location) for location in context.images]
    effort = effort_of(context.thinking_effort, context.model)
    if effort is not None:
        params["effort"] = effort
    if context.approval_mode == "plan":
        params |= collaboration("plan", context, model)
    if context.output_schema is not None:
        params["outputSchema"] = context.output_schema
    return params


def _image(location: str) -> dict[str, str]:
    if location.startswith(("http:", "https:", "data:")):
        return {"type": "image", "url": location}
    return {"type": "localImage", "path": location}
