"""Merging layers of options: field by field, the strongest one wins."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_mux.sdk.options import RetryPolicy, RunOptions
from agent_mux.settings.layers import MERGED_FIELDS, Layer, deep_merge, merge, non_default_fields

PLAIN = ("model", "timeout", "tags", "stream", "no_session", "system_prompt")
values = st.none() | st.integers(0, 3) | st.just(False) | st.just("") | st.lists(st.integers(), max_size=2)
parts = st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=3)
layers = st.lists(
    st.fixed_dictionaries(
        {}, optional={**dict.fromkeys(PLAIN, values), **{name: st.none() | parts for name in sorted(MERGED_FIELDS)}}
    ),
    max_size=6,
)


def first_value(layers: list[Mapping[str, Any]], name: str) -> tuple[int, Any] | None:
    return next(((at, one[name]) for at, one in enumerate(layers) if one.get(name) is not None), None)


@given(layers)
def test_strongest_layer_wins(layers: list[dict[str, Any]]) -> None:
    merged = merge([Layer(str(at), one) for at, one in enumerate(layers)])
    for name in PLAIN:
        first = first_value(layers, name)
        assert (name in merged.fields) == (first is not None)
        if first is not None:
            assert (merged.sources[name], merged.fields[name]) == (str(first[0]), first[1])
            assert type(merged.fields[name]) is type(first[1])


@given(layers)
def test_mappings_are_merged_by_key(layers: list[dict[str, Any]]) -> None:
    merged = merge([Layer(str(at), one) for at, one in enumerate(layers)])
    for name in MERGED_FIELDS:
        values = [one[name] for one in layers if one.get(name) is not None]
        assert merged.fields.get(name, {}) == {
            part: next(one[part] for one in values if part in one) for one in values for part in one
        }
        assert (name in merged.fields) == bool(values)


@given(layers)
def test_unset_fields_change_nothing(layers: list[dict[str, Any]]) -> None:
    nothing = dict.fromkeys((*PLAIN, *MERGED_FIELDS))
    with_unset = [layer for one in layers for layer in (Layer("nobody", nothing), Layer("x", one))]
    assert merge(with_unset).fields == merge([Layer("x", one) for one in layers]).fields


@given(layers, layers)
def test_merging_is_associative(strong: list[dict[str, Any]], weak: list[dict[str, Any]]) -> None:
    both = [Layer("x", one) for one in (*strong, *weak)]
    halves = [Layer("x", merge([Layer("x", one) for one in half]).fields) for half in (strong, weak)]
    assert merge(both).fields == merge(halves).fields


json_values = st.recursive(
    st.none() | st.integers() | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)


@given(objects, objects)
def test_objects_are_merged_and_other_values_replaced(over: dict[str, Any], under: dict[str, Any]) -> None:
    made = deep_merge(over, under)
    assert set(made) == {name for name in over if over[name] is not None} | set(under)
    for name, value in made.items():
        above, below = over.get(name), under.get(name)
        if isinstance(above, dict) and isinstance(below, dict):
            assert value == deep_merge(above, below)
        else:
            assert value == (below if above is None else above)


def test_non_default_fields() -> None:
    assert non_default_fields(RunOptions(agent="a", timeout=0.0, tags=["x"], env={})) == {"agent": "a", "tags": ["x"]}
    assert non_default_fields(RetryPolicy(max_attempts=3, base_delay=2.0)) == {"base_delay": 2.0}
    assert {spec.name for spec in fields(RunOptions)} >= MERGED_FIELDS
