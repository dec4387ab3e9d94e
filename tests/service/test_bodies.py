"""Bodies are made into what everything behind can take."""

from typing import Any

import pytest

from agent_mux.errors import ValidationError
from agent_mux.service.routes.requests import normalized


@pytest.mark.parametrize(
    ("told", "made"),
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
def test_whole_numbers_are_whole(told: Any, made: Any) -> None:
    tidy = normalized(told)
    assert tidy == made
    assert type(tidy) is type(made)


@pytest.mark.parametrize(
    ("told", "path"),
    [("\0", "(body)"), ({"a": {"b": "x\0"}}, "a.b"), ({"a": ["", "\0"]}, "a[1]"), ({"\0": 1}, "(body)")],
)
def test_nul_is_refused_by_its_place(told: Any, path: str) -> None:
    with pytest.raises(ValidationError) as raised:
        normalized(told)
    assert [one.path for one in raised.value.fields] == [path]
