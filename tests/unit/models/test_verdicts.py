"""Whether a model is one that an agent has."""

import pytest
from tests.unit.models.known import BIG, MODELS, OLD

from agent_mux.models.matching import ModelMatch, match_model


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("big-2", ModelMatch(name="big-2", status="ok", model=BIG)),
        ("big", ModelMatch(name="big", status="alias", model=BIG)),
        ("big-1-20250101", ModelMatch(name="big-1-20250101", status="deprecated", model=OLD, successor="big-2")),
        ("gib-2", ModelMatch(name="gib-2", status="unknown", suggestions=("big-2",))),
    ],
)
def test_verdicts(name: str, expected: ModelMatch) -> None:
    assert match_model(MODELS, name) == expected


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("big", ""),
        ("big-1", "big-1 is deprecated and will be retired on 2026-12-01; use big-2 instead"),
        (
            "big-1:low",
            "big-1:low (resolves to big-1) is deprecated and will be retired on 2026-12-01; use big-2 instead",
        ),
        ("gib-2", "unknown toy model 'gib-2'; did you mean big-2?"),
        ("zzz", "unknown toy model 'zzz'; see `amux models list toy`"),
    ],
)
def test_what_is_said_of_them(name: str, sentence: str) -> None:
    assert match_model(MODELS, name).sentence("toy") == sentence


def test_that_a_name_is_passed_on_is_said_where_it_is_unknown() -> None:
    assert (
        match_model(MODELS, "zzz")
        .sentence("toy", is_passed_on=True)
        .startswith("unknown toy model 'zzz', passed on unchanged; ")
    )
    assert "passed" not in match_model(MODELS, "big-1").sentence("toy", is_passed_on=True)
