"""Which model a name means, and which names are near."""

import pytest
from tests.unit.models.known import BIG, MODELS, SMALL

from agent_mux.models.matching import find_model, similar_names
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
def test_names_that_mean_none(name: str) -> None:
    assert find_model(MODELS, name) is None


def test_a_name_of_its_own_counts_before_an_alias() -> None:
    other = ModelCapabilities(model_id="x", provider="p", alias=("small-1.5",))
    assert find_model((SMALL, other), "small-1.5") is SMALL


def test_without_a_provider_the_first_one_is_meant() -> None:
    assert find_model(PREFIXED, "big-2") is PREFIXED[0]
    assert find_model(PREFIXED, "other/big-2") is PREFIXED[1]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("big", ("maker/big-2", "other/big-2", "maker/big-2-5")), ("BIG-2.5", ("maker/big-2-5",)),
        ("smoll", ("maker/small",)), ("zzzzzz", ()), ("", ()), ("x/", ()),
    ],
)  # fmt: skip
def test_near_names(name: str, near: tuple[str, ...]) -> None:
    assert similar_names(PREFIXED, name)[: len(near) or None] == near


def test_an_alias_may_be_near_and_what_is_deprecated_is_not_suggested() -> None:
    assert similar_names(MODELS, "bgi") == ("big",)
    assert similar_names(MODELS, "big-1") == ("big-2", "big")
