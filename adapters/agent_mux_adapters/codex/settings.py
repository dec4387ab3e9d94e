"""How the options of a run are said in Codex's words. Shared by the command line and the app-server's requests."""

from typing import Any

from agent_mux.adapter import CodecContext

# approval mode -> (approvalPolicy, sandbox)
#   yolo    nothing is asked and nothing is confined.
#   prompt  Codex's own default: it works freely inside the project and asks before it leaves the sandbox.
#   rules   Codex asks before every command and every change, and what is granted may write inside the project.
#   deny    Codex asks before every command and every change, and every request is denied.
PERMISSIONS = {
    "yolo": ("never", "danger-full-access"),
    "prompt": ("on-request", "workspace-write"),
    "rules": ("untrusted", "workspace-write"),
    "deny": ("untrusted", "read-only"),
}
_HIGHEST = "xhigh"  # every model has it; "max" only the newer ones
_MODELS_WITH_MAX = ("gpt-5.6", "gpt-6")
_CLIENT = {"name": "agent-mux", "title": "agent-mux", "version": "1"}


def effort_of(level: str | None, model: str | None) -> str | None:
    """Our level of thinking effort as Codex's."""
    if level != "max":
        return level
    return "max" if model is not None and model.startswith(_MODELS_WITH_MAX) else _HIGHEST


def initialize_params() -> dict[str, Any]:
    """`initialize`. Without the experimental API the agent could not ask questions."""
    return {"clientInfo": _CLIENT, "capabilities": {"experimentalApi": True}}


def thread_request(context: CodecContext) -> tuple[str, dict[str, Any]]:
    """`thread/start`, `thread/resume` or `thread/fork`. A resumed thread has to be told its permissions again."""
    policy, sandbox = PERMISSIONS["rules" if context.asks_everything else context.approval_mode]
    params: dict[str, Any] = {"cwd": context.cwd, "approvalPolicy": policy, "sandbox": sandbox}
    if context.model is not None:
        params["model"] = context.model
    if context.system_prompt is not None:
        replaces = context.system_prompt_mode == "replace"
        params["baseInstructions" if replaces else "developerInstructions"] = context.system_prompt
    before = context.session_id or context.fork_session_id
    if before is not None:
        # The history is not needed here, and may be long.
        params |= {"threadId": before, "excludeTurns": True}
        return ("thread/resume" if context.session_id is not None else "thread/fork"), params
    if context.no_session:
        params["ephemeral"] = True
    return "thread/start", params


def turn_params(context: CodecContext, thread_id: str, text: str, *, with_images: bool) -> dict[str, Any]:
    """`turn/start` with a prompt; the images of the run go with the first one."""
    params: dict[str, Any] = {"threadId": thread_id, "input": [{"type": "text", "text": text}]}
    if with_images:
        params["input"] += [_image(place) for place in context.images]
    effort = effort_of(context.thinking_effort, context.model)
    if effort is not None:
        params["effort"] = effort
    if context.output_schema is not None:
        params["outputSchema"] = context.output_schema
    return params


def _image(place: str) -> dict[str, str]:
    if place.startswith(("http:", "https:", "data:")):
        return {"type": "image", "url": place}
    return {"type": "localImage", "path": place}
