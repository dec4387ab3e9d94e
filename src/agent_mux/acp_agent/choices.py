"""What a person can choose for a session in the editor: what is allowed, the model, how hard to think.

Editors show choices in one of two ways, as modes or as options of the session. Both say the same here.
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

from agent_mux.capabilities import AgentCapabilities
from agent_mux.errors import FieldError, ValidationError

MODE, MODEL, EFFORT = "mode", "model", "thought_level"
FIELDS: Mapping[str, str] = {MODE: "approval_mode", MODEL: "model", EFFORT: "thinking_effort"}
"""The option of a run that each choice is."""
DEFAULT = "default"
"""The value of a choice that is left to the agent."""
_MODE_TEXTS: Mapping[str, tuple[str, str]] = {
    "prompt": ("Ask", "Ask before what needs permission"),
    "yolo": ("Allow everything", "Ask for nothing: the agent may do all that this user may"),
    "deny": ("Allow nothing", "Deny whatever needs permission, without asking"),
}
SessionOption = SessionConfigOptionSelect | SessionConfigOptionBoolean
ModelNames = Sequence[tuple[str, str]]
"""Their names for the agent, and for people."""


@dataclass(slots=True)
class SessionChoices:
    """What is chosen in one session."""

    capabilities: AgentCapabilities
    models: ModelNames
    defaults: Mapping[str, Any]
    """What holds as long as nobody chooses, by field."""
    chosen: dict[str, Any] = field(default_factory=dict)
    """What was chosen in the editor, by field."""

    @property
    def mode(self) -> str:
        """The approval mode."""
        return str(self._current(MODE))

    def current(self) -> tuple[Any, ...]:
        """All of it, to be compared."""
        return tuple(self._current(name) for name in FIELDS)

    def choose(self, name: str, value: Any) -> None:
        """Choose. Raises `ValidationError` for a choice that there is not."""
        offered = [option.value for one in self.options() if one.id == name for option in _select_options(one)]
        if value not in offered:
            raise ValidationError([FieldError(name, value, ", ".join(offered) or "no choice: there is none")])
        self.chosen[FIELDS[name]] = None if value == DEFAULT else value

    def modes(self) -> SessionModeState:
        """What is allowed, as modes."""
        offered = [
            SessionMode(id=mode, name=_MODE_TEXTS[mode][0], description=_MODE_TEXTS[mode][1])
            for mode in _MODE_TEXTS
            if mode in self.capabilities.approval_modes
        ]
        return SessionModeState(current_mode_id=self.mode, available_modes=offered)

    def options(self) -> list[SessionOption]:
        """All choices, as options of the session."""
        modes = [(one.id, one.name, one.description) for one in self.modes().available_modes]
        options: list[SessionOption] = [_select_option(MODE, "Permissions", self.mode, modes)]
        if self.models:
            options.append(self._open_choice(MODEL, "Model", self.models))
        if self.capabilities.thinking_effort_levels:
            levels = [(level, level.capitalize()) for level in self.capabilities.thinking_effort_levels]
            options.append(self._open_choice(EFFORT, "Thinking", levels))
        return options

    def _open_choice(self, name: str, title: str, offered: ModelNames) -> SessionConfigOptionSelect:
        """One that can be left to the agent, and that the command line may have made in its own words."""
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
