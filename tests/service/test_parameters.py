"""Query parameters and headers: what is parsed, what is refused, and the schemas that describe them."""

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta
from starlette.datastructures import Headers, QueryParams

from agent_mux.errors import ValidationError
from agent_mux.service.parameters import (
    HeaderParameters,
    QueryParameters,
    allowed_values,
    parameters_of,
    parse_parameters,
)


class Filter(QueryParameters):
    """Parameters that several operations have."""

    since: Annotated[int, Meta(ge=0, le=99, description="Not before.")] | None = None
    tag: Annotated[list[Annotated[str, Meta(max_length=3)]], Meta(max_length=2, description="Tags.")] | None = None


class Search(Filter, kw_only=True):
    """Parameters of one operation."""

    q: Annotated[str, Meta(min_length=1, pattern=r"\S", description="Text.")]
    sort_by: Annotated[Literal["size", "date"], Meta(description="Order.")] = "size"
    full: Annotated[bool, Meta(description="Everything.")] = False


class Conditions(HeaderParameters):
    """A header."""

    last_event_id: Annotated[str, Meta(description="Position.")] | None = None


def refused(query: str) -> list[tuple[str, Any, str]]:
    with pytest.raises(ValidationError) as caught:
        parse_parameters(Search, QueryParams(query))
    return [(one.path, one.received, one.allowed) for one in caught.value.fields]


def test_absent_parameters_have_their_defaults() -> None:
    assert parse_parameters(Search, QueryParams("q=a")) == Search(q="a")


def test_all_parameters_are_parsed_by_their_public_names() -> None:
    parsed = parse_parameters(Search, QueryParams("q=a+b&sortBy=date&full=true&since=7&tag=x&tag=y"))
    assert parsed == Search(q="a b", sort_by="date", full=True, since=7, tag=["x", "y"])


def test_unknown_parameters_are_ignored() -> None:
    assert parse_parameters(Search, QueryParams("q=a&sort_by=date&other=1")) == Search(q="a")


def test_headers_are_found_whatever_their_case() -> None:
    headers = Headers({"Last-Event-ID": "null"})
    assert parse_parameters(Conditions, headers) == Conditions(last_event_id="null")


@pytest.mark.parametrize("value", ["null", "", "x", "-1", "100", "1.5", "true", "\u0661"])
def test_a_value_of_another_type_is_refused(value: str) -> None:
    assert refused(f"q=a&since={value}") == [("since", value, "integer, from 0, up to 99")]


@pytest.mark.parametrize("query", ["tag=1234", "tag=a&tag=b&tag=c"])
def test_lists_have_bounds(query: str) -> None:
    ((path, _, allowed),) = refused(f"q=a&{query}")
    assert (path, allowed) == ("tag", "several: string, up to 3 characters, up to 2")


def test_every_invalid_parameter_is_reported() -> None:
    assert refused("sortBy=x&full=maybe&since=1&since=2") == [
        ("since", "2 times", "once"),
        ("q", None, r"string, from 1, matching `\S`"),
        ("sortBy", "x", "`size`, `date`"),
        ("full", "maybe", "boolean"),
    ]


def test_schemas_have_no_null_no_description_and_choices_in_declared_order() -> None:
    schemas = {one.name: (one.schema, one.description, one.is_required) for one in parameters_of(Search)}
    assert schemas == {
        "since": ({"type": "integer", "minimum": 0, "maximum": 99}, "Not before.", False),
        "tag": ({"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 2}, "Tags.", False),
        "q": ({"type": "string", "minLength": 1, "pattern": r"\S"}, "Text.", True),
        "sortBy": ({"type": "string", "enum": ["size", "date"], "default": "size"}, "Order.", False),
        "full": ({"type": "boolean", "default": False}, "Everything.", False),
    }


def test_bounds_are_described() -> None:
    assert allowed_values({"type": "string", "minLength": 1, "maxLength": 9}) == "string, from 1, up to 9 characters"
