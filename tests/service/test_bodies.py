"""Normalization of request bodies."""

from typing import Any

import pytest

from agent_mux.errors import ValidationError
from agent_mux.service.routes.requests import normalized


@pytest.mark.parametrize(
    ("body", "made"),
    [
        (5.0, 5),
        (-0.0, 0),
        (5.5, 5.5),
        (1e300, 1e300),
        (True, True),
        (None, None),
        ("5.0", "5.0"),
        ({"a": [1.0, {"b": 2.0}]}, {"a": [1, {"b": 2}]}),
    ],
)
def test_whole_numbers_are_whole(body: Any, made: Any) -> None:
    tidy = normalized(body)
    assert tidy == made
    assert type(tidy) is type(made)


@pytest.mark.parametrize(
    ("body", "path"),
    [("\0", "(body)"), ({"a": {"b": "x\0"}}, "a.b"), ({"a": ["", "\0"]}, "a[1]"), ({"\0": 1}, "(body)")],
)
def test_nul_is_refused_by_its_place(body: Any, path: str) -> None:
    with pytest.raises(ValidationError) as raised:
        normalized(body)
    assert [one.path for one in raised.value.fields] == [path]
