"""Reading fields of native lines with values of any type."""

from typing import Any

import pytest

from agent_mux_adapters._dialects import tolerant

ODD = [None, True, 7, -1.5, "x", [], [1], {}, float("nan"), float("inf"), 10**400]


@pytest.mark.parametrize("value", ODD)
def test_values_of_any_type_yield_defaults(value: Any) -> None:
    assert isinstance(tolerant.mapping(value), dict)
    assert isinstance(tolerant.text(value), str)
    assert tolerant.rows(value) == []
    assert 0 <= tolerant.whole(value) <= tolerant.LARGEST
    assert 0 <= tolerant.dollars(value) <= tolerant.LARGEST


@pytest.mark.parametrize(
    ("value", "count"),
    [(3, 3), (2.9, 2), (-4, 0), (True, 0), ("3", 0), (None, 0), (float("nan"), 0), (10**400, tolerant.LARGEST)],
)
def test_counts_are_whole_and_never_negative(value: Any, count: int) -> None:
    assert tolerant.whole(value) == count


def test_missing_number_is_none() -> None:
    assert [tolerant.optional_whole(value) for value in (0, 5, None, True, "5")] == [0, 5, None, None, None]


@pytest.mark.parametrize("value", [0, -1, True, "1", float("nan"), float("inf")])
def test_only_positive_finite_amounts_count(value: Any) -> None:
    assert tolerant.dollars(value) == 0.0


def test_missing_required_field_raises() -> None:
    line = {"name": "x", "empty": "", "inside": {}}
    assert (tolerant.need_text(line, "name"), tolerant.need_mapping(line, "inside")) == ("x", {})
    for key in ("empty", "inside", "missing"):
        with pytest.raises(tolerant.WrongShapeError):
            tolerant.need_text(line, key)
    with pytest.raises(tolerant.WrongShapeError):
        tolerant.need_mapping(line, "name")


def test_kind_includes_the_subtype() -> None:
    assert tolerant.kind_of({"type": "system", "subtype": "init"}) == "system/init"
    assert tolerant.kind_of({"type": "assistant", "subtype": 3}) == "assistant"
    assert tolerant.kind_of({"type": []}) == ""


def test_integers_of_any_size_are_written() -> None:
    assert tolerant.as_json({"n": 10**30, "é": []}) == f'{{"n":{10**30},"é":[]}}'
