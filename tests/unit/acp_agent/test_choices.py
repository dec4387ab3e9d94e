"""The choices of a session in the editor."""

import pytest

from agent_mux.acp_server.choices import SessionChoices
from agent_mux.errors import ValidationError
from agent_mux.sdk.adapter import AgentCapabilities

CAN = AgentCapabilities(agent="a", approval_modes=("yolo", "prompt"), thinking_effort_levels=("low", "high"))
SETTLED = {"approval_mode": "prompt", "model": "mine", "thinking_effort": None}


def choices() -> SessionChoices:
    return SessionChoices(CAN, [("big", "The big one")], SETTLED)


def test_only_supported_choices_are_offered() -> None:
    assert [mode.id for mode in choices().modes().available_modes] == ["prompt", "yolo"]
    assert [option.id for option in choices().options()] == ["mode", "model", "thought_level"]
    bare = SessionChoices(
        AgentCapabilities(agent="a", approval_modes=("yolo",)), [], {**SETTLED, "approval_mode": "yolo"}
    )
    assert [option.id for option in bare.options()] == ["mode"]


def test_a_model_of_the_command_line_is_a_choice_too() -> None:
    [_, model, _] = choices().options()
    assert model.current_value == "mine"
    assert [option.value for option in model.options] == ["default", "big", "mine"]


def test_a_choice_is_kept_and_default_resets_it() -> None:
    chosen = choices()
    before = chosen.current()
    chosen.choose("model", "big")
    chosen.choose("mode", "yolo")
    assert chosen.current() == ("yolo", "big", None) != before
    assert chosen.chosen == {"model": "big", "approval_mode": "yolo"}
    chosen.choose("model", "default")
    assert chosen.current() == ("yolo", None, None)


@pytest.mark.parametrize(("name", "value"), [("mode", "deny"), ("model", "small"), ("colour", "red"), ("mode", True)])
def test_a_value_that_is_not_offered_is_rejected(name: str, value: object) -> None:
    chosen = choices()
    with pytest.raises(ValidationError, match=name):
        chosen.choose(name, value)
    assert chosen.chosen == {}
