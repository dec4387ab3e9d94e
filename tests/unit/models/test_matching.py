"""Matching model names: which model a name means, similar names, and warnings."""

import pytest
from tests.unit.models.known import BIG, MODELS, OLD, SMALL

from agent_mux.models.matching import ModelMatch, find_model, match_model, similar_names
from agent_mux.sdk.models import ModelCapabilities

PREFIXED = tuple(
    ModelCapabilities(model_id=name, provider=name.partition("/")[0])
    for name in ("maker/big-2", "other/big-2", "maker/big-2-5", "maker/small")
)


@pytest.mark.parametrize(
    "name",
    ["big-2", "big", "big-2-20260101", "big-2@20260101", "big-2[1m]", "big-2:high", "maker/big-2", "maker/big:low"],
)
def test_names_that_mean_a_model(name: str) -> None:
    assert find_model(MODELS, name) is BIG


@pytest.mark.parametrize("name", ["big-3", "", "big-2-mini", "bi", "big-2/x", "BIG-2", "big-2[", "big-2:loud"])
def test_names_that_mean_no_model(name: str) -> None:
    assert find_model(MODELS, name) is None


def test_id_takes_precedence_over_alias() -> None:
    other = ModelCapabilities(model_id="x", provider="p", alias=("small-1.5",))
    assert find_model((SMALL, other), "small-1.5") is SMALL


def test_name_without_provider_means_the_first() -> None:
    assert find_model(PREFIXED, "big-2") is PREFIXED[0]
    assert find_model(PREFIXED, "other/big-2") is PREFIXED[1]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("big", ("maker/big-2", "other/big-2", "maker/big-2-5")), ("BIG-2.5", ("maker/big-2-5",)),
        ("smoll", ("maker/small",)), ("zzzzzz", ()), ("", ()), ("x/", ()),
    ],
)  # fmt: skip
def test_similar_names(name: str, near: tuple[str, ...]) -> None:
    assert similar_names(PREFIXED, name)[: len(near) or None] == near


def test_aliases_are_suggested_and_deprecated_models_are_not() -> None:
    assert similar_names(MODELS, "bgi") == ("big",)
    assert similar_names(MODELS, "big-1") == ("big-2", "big")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("big-2", ModelMatch(name="big-2", status="ok", model=BIG)),
        ("big", ModelMatch(name="big", status="alias", model=BIG)),
        ("big-1-20250101", ModelMatch(name="big-1-20250101", status="deprecated", model=OLD, successor="big-2")),
        ("gib-2", ModelMatch(name="gib-2", status="unknown", suggestions=("big-2",))),
    ],
)
def test_match_model(name: str, expected: ModelMatch) -> None:
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
def test_sentence(name: str, sentence: str) -> None:
    assert match_model(MODELS, name).sentence("toy") == sentence


def test_sentence_states_that_unknown_names_are_passed_on() -> None:
    assert (
        match_model(MODELS, "zzz")
        .sentence("toy", is_passed_on=True)
        .startswith("unknown toy model 'zzz', passed on unchanged; ")
    )
    assert "passed" not in match_model(MODELS, "big-1").sentence("toy", is_passed_on=True)
