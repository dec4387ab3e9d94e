"""Warnings of a run about its model."""

from pathlib import Path

import pytest
from tests.unit.models.known import agent, program, registry

from agent_mux import RunOptions
from agent_mux.models.matching import model_notes
from agent_mux.run.plan import plan_run
from agent_mux.sdk.adapter import Adapter

STRICT = agent(takes_any_model=False)


@pytest.mark.parametrize("model", [None, "big-2", "big", "big-2[1m]", "big-2-20260101"])
def test_known_models_have_no_notes(model: str | None) -> None:
    assert model_notes(STRICT, model) == ()


@pytest.mark.parametrize("adapter", [agent(), agent(takes_any_model=False, models=tuple)])
def test_agents_without_a_model_list_have_no_notes(adapter: Adapter) -> None:
    assert model_notes(adapter, "gib-2") == ()


def test_unknown_and_deprecated_models() -> None:
    assert model_notes(STRICT, "gib-2") == ("unknown toy model 'gib-2', passed on unchanged; did you mean big-2?",)
    assert model_notes(STRICT, "big-1") == ("big-1 is deprecated and will be retired on 2026-12-01; use big-2 instead",)


def test_the_plan_has_the_note_and_passes_the_model_on(tmp_path: Path) -> None:
    options = RunOptions(agent="toy", prompt="hi", model="gib-2", env=program(tmp_path / "bin", ""))
    plan = plan_run(options, registry(STRICT).get, None, model_notes=model_notes)
    assert [note for note in plan.spawn.notes if "gib-2" in note] == [*model_notes(STRICT, "gib-2")]
    assert plan.context.model == "gib-2"
