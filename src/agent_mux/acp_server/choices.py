"""What a user can choose for a session in the editor: approval mode, model and thinking effort.

The protocol has two forms for choices, session modes and session options. The approval mode is offered in both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acp.schema import (
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.adapter import AgentCapabilities

MODE, MODEL, EFFORT = "mode", "model", "thought_level"
FIELDS: Mapping[str, str] = {MODE: "approval_mode", MODEL: "model", EFFORT: "thinking_effort"}
"""The run option of each choice."""
PLAN = "plan"
"""The approval mode of agents with a plan mode."""
DEFAULT = "default"
"""The value of a choice that is left to the agent."""
_MODE_TEXTS: Mapping[str, tuple[str, str]] = {
    "prompt": ("Ask", "Ask before actions that need permission"),
    "yolo": ("Allow everything", "Never ask: the agent may do everything that this user may do"),
    "deny": ("Allow nothing", "Deny everything that needs permission, without asking"),
    PLAN: ("Plan", "Read and plan; ask before the plan is carried out"),
}
SessionOption = SessionConfigOptionSelect | SessionConfigOptionBoolean
ModelNames = Sequence[tuple[str, str]]
"""Model ids with their display names."""


@dataclass(slots=True)
class SessionChoices:
    """The choices of one session."""

    capabilities: AgentCapabilities
    models: ModelNames
    defaults: Mapping[str, Any]
    """The option values without a choice in the editor, by field."""
    chosen: dict[str, Any] = field(default_factory=dict)
    """The values chosen in the editor, by field."""

    @property
    def mode(self) -> str:
        """The current approval mode of the session."""
        return str(self._current(MODE))

    def current(self) -> tuple[Any, ...]:
        """Return the values of all choices, for comparison."""
        return tuple(self._current(name) for name in FIELDS)

    def choose(self, name: str, value: Any) -> None:
        """Set a choice. Raise `ValidationError` for a value that is not offered."""
        offered = [option.value for one in self.options() if one.id == name for option in _select_options(one)]
        if value not in offered:
            raise ValidationError([FieldError(name, value, ", ".join(offered) or "no values")])
        self.chosen[FIELDS[name]] = None if value == DEFAULT else value

    def restore(self, values: Mapping[str, Any]) -> None:
        """Set stored choices again, as far as they are still offered."""
        for name, option in FIELDS.items():
            if option in values:
                try:
                    self.choose(name, DEFAULT if values[option] is None else values[option])
                except ValidationError:
                    continue  # the agent or its list of models changed: the default counts

    def modes(self) -> SessionModeState:
        """Return the approval modes as session modes."""
        offered = [
            SessionMode(id=mode, name=_MODE_TEXTS[mode][0], description=_MODE_TEXTS[mode][1])
            for mode in _MODE_TEXTS
            if mode in self.capabilities.approval_modes
        ]
        return SessionModeState(current_mode_id=self.mode, available_modes=offered)

    def options(self) -> list[SessionOption]:
        """Return all choices as session options."""
        modes = [(one.id, one.name, one.description) for one in self.modes().available_modes]
        options: list[SessionOption] = [_select_option(MODE, "Permissions", self.mode, modes)]
        if self.models:
            options.append(self._open_choice(MODEL, "Model", self.models))
        if self.capabilities.thinking_effort_levels:
            levels = [(level, level.capitalize()) for level in self.capabilities.thinking_effort_levels]
            options.append(self._open_choice(EFFORT, "Thinking", levels))
        return options

    def _open_choice(self, name: str, title: str, offered: ModelNames) -> SessionConfigOptionSelect:
        """Return an option with the value `default`, and with the current value even if the agent does not list it."""
        current = str(self._current(name) or DEFAULT)
        known = {DEFAULT: "Default", **dict(offered)}
        known.setdefault(current, current)
        return _select_option(name, title, current, [(value, words, None) for value, words in known.items()])

    def _current(self, name: str) -> Any:
        option = FIELDS[name]
        return self.chosen[option] if option in self.chosen else self.defaults.get(option)


def _select_option(
    name: str, title: str, current: str, offered: Sequence[tuple[str, str, str | None]]
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect.model_validate(
        {
            "type": "select",
            "id": name,
            "name": title,
            "category": name,
            "currentValue": current,
            "options": [{"value": value, "name": words, "description": more} for value, words, more in offered],
        }
    )


def _select_options(option: SessionOption) -> list[SessionConfigSelectOption]:
    if isinstance(option, SessionConfigOptionBoolean):
        return []
    return [one for one in option.options if isinstance(one, SessionConfigSelectOption)]
