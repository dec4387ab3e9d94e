"""What we ask for: the parameters of the handshake, of sessions and of prompts, and the settings of a session."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_mux.adapter import CodecContext
from agent_mux.facts import Note
from agent_mux.version import __version__
from agent_mux_adapters._dialects.acp.wire import choice_of, option_of, values_of
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

PROTOCOL_VERSION = 1
_CLIENT = {"name": "agent-mux", "title": "agent-mux", "version": __version__}
_EFFORTS = {"max": ("max", "xhigh", "high")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to be made."""

    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A session that is open."""

    session_id: str
    result: Mapping[str, Any]
    """The answer that opened it: `modes`, `models`, `configOptions`."""

    @property
    def modes(self) -> list[str]:
        """The ids of the modes it can be in."""
        return [text(mode.get("id")) for mode in rows(mapping(self.result.get("modes")).get("availableModes"))]

    @property
    def mode(self) -> str:
        """The id of the mode it is in."""
        return text(mapping(self.result.get("modes")).get("currentModeId"))

    def set_mode(self, mode_id: str) -> Request:
        """Be in this mode."""
        return Request(method="session/set_mode", params={"sessionId": self.session_id, "modeId": mode_id})

    def set_option(self, config_id: str, value: str) -> Request:
        """Have this value in a configuration option."""
        params = {"sessionId": self.session_id, "configId": config_id, "value": value}
        return Request(method="session/set_config_option", params=params)

    def set_model(self, model: str) -> Request | Note | None:
        """Use this model; None when it does so already, a note when the agent does not let us choose."""
        option = option_of(self.result, "model")
        if option is not None:
            value = _spelled(model, values_of(option))
            return None if value == choice_of(option) else self.set_option(text(option.get("id")), value)
        models = mapping(self.result.get("models"))
        if not models:
            return Note(f"the agent does not let a client choose the model: {model} is ignored", "warn")
        value = _spelled(model, [text(row.get("modelId")) for row in rows(models.get("availableModels"))])
        if value == models.get("currentModelId"):
            return None
        return Request(method="session/set_model", params={"sessionId": self.session_id, "modelId": value})

    def set_effort(self, level: str) -> Request | Note | None:
        """Think that hard; None when it does so already, a note when the agent does not let us choose."""
        option = option_of(self.result, "thought_level")
        wanted = [value for value in _EFFORTS.get(level, (level,)) if value in values_of(option)]
        if not wanted:
            return Note(f"the agent offers no thinking effort {level!r}: ignored", "warn")
        return None if wanted[0] == choice_of(option) else self.set_option(text(option.get("id")), wanted[0])


def usual_settings(context: CodecContext, opened: Opened) -> Sequence[Request | Note]:
    """The model and the effort that were asked for. The model first: the levels of effort may depend on it."""
    model = opened.set_model(context.model) if context.model is not None else None
    effort = opened.set_effort(context.thinking_effort) if context.thinking_effort is not None else None
    return [one for one in (model, effort) if one is not None]


def switched_mode(opened: Opened, *, to: Sequence[str], out_of: Collection[str] | None = None) -> Request | None:
    """Be in the first of these modes that is offered; `out_of`: only when the session is in one of those."""
    mode = next((mode for mode in to if mode in opened.modes), None)
    is_due = opened.mode in out_of if out_of is not None else opened.mode != mode
    return opened.set_mode(mode) if mode is not None and is_due else None


def initialize_params(capabilities: Mapping[str, Any], *, asks_questions: bool) -> dict[str, Any]:
    """`initialize`."""
    questions: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}} if asks_questions else {}
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": {**capabilities, **questions},
        "clientInfo": _CLIENT,
    }


def session_params(context: CodecContext, servers: Sequence[Mapping[str, Any]], before: str | None) -> dict[str, Any]:
    """`session/new`, or with the session `before`: `session/load`, `session/resume`, `session/fork`."""
    params: dict[str, Any] = {"cwd": context.cwd, "mcpServers": list(servers)}
    return params if before is None else {"sessionId": before, **params}


def prompt_params(session_id: str, text_of_prompt: str, blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`session/prompt`."""
    return {"sessionId": session_id, "prompt": [{"type": "text", "text": text_of_prompt}, *blocks]}


def _spelled(model: str, offered: Sequence[str]) -> str:
    """The model as the agent spells it: some put the provider before its name."""
    if model in offered:
        return model
    return next((value for value in offered if value.endswith(f"/{model}")), model)
