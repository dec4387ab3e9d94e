"""Arguments as the tool declares them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.errors import InvalidArgumentsError
from agent_loop.tools.validation import validate_arguments

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
WORDS = st.sampled_from(
    ["true", "False", "yes", "no", "1", "0", "5", "-2.5", "1e3", "[1]", '{"a": 1}', "null", "", "x"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
TYPED = st.sampled_from(TYPES).map(lambda kind: {"type": kind})
SCHEMAS = st.one_of(
    st.just({}),
    TYPED,
    st.lists(st.sampled_from(TYPES), min_size=1, max_size=3).map(lambda kinds: {"type": kinds}),
    st.lists(TYPED, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
    st.lists(st.sampled_from(["a", "1", 1, 2.5, True, None]), min_size=1, max_size=3).map(lambda each: {"enum": each}),
)


def parameters(schema: Any, *, required: bool = False) -> dict[str, Any]:
    return {"type": "object", "properties": {"it": schema}, "required": ["it"] if required else []}


def coerced(schema: Any, value: Any) -> Any:
    return validate_arguments(parameters(schema), {"it": value}).arguments["it"]


def test_missing_required_arguments_fail() -> None:
    with pytest.raises(InvalidArgumentsError, match="required argument 'it' is missing"):
        validate_arguments(parameters({"type": "string"}, required=True), {})


def test_null_for_a_required_argument_fails() -> None:
    with pytest.raises(InvalidArgumentsError, match="required argument 'it' is null"):
        validate_arguments(parameters({"type": "string"}, required=True), {"it": None})
    with pytest.raises(InvalidArgumentsError, match="is null"):
        validate_arguments(parameters({}, required=True), {"it": None})


def test_null_for_a_required_argument_that_may_be_null_is_kept() -> None:
    either = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert validate_arguments(parameters(either, required=True), {"it": None}).arguments == {"it": None}


def test_null_for_an_optional_argument_is_dropped() -> None:
    found = validate_arguments(parameters({"type": "integer"}), {"it": None})
    assert found.arguments == {}
    assert found.coercions == ("it: null -> left out",)


@pytest.mark.parametrize("word", ["true", "yes", "1", "True", " YES "])
def test_words_for_true_become_true(word: str) -> None:
    assert coerced({"type": "boolean"}, word) is True


@pytest.mark.parametrize("word", ["false", "no", "0", "False"])
def test_words_for_false_become_false(word: str) -> None:
    assert coerced({"type": "boolean"}, word) is False


@pytest.mark.parametrize(
    ("kind", "text", "number"),
    [
        ("integer", "42", 42),
        ("integer", "-7", -7),
        ("integer", "3.0", 3),
        ("number", "2.5", 2.5),
        ("number", "1e3", 1000),
    ],
)
def test_numeric_strings_become_numbers(kind: str, text: str, number: float) -> None:
    found = validate_arguments(parameters({"type": kind}), {"it": text})
    assert found.arguments == {"it": number}
    assert found.coercions[0].startswith("it: string -> ")


def test_whole_numbers_become_integers_python_can_count_with() -> None:
    assert type(coerced({"type": "integer"}, 3.0)) is int


def test_json_strings_become_arrays_and_objects() -> None:
    assert coerced({"type": "array"}, '["a", 1]') == ["a", 1]
    assert coerced({"type": "object"}, '{"a": [1]}') == {"a": [1]}


@pytest.mark.parametrize(("value", "text"), [(5, "5"), (2.5, "2.5"), (True, "true"), (False, "false")])
def test_numbers_and_booleans_become_strings(value: Any, text: str) -> None:
    assert coerced({"type": "string"}, value) == text


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", "4.5"), ("integer", "many"), ("integer", "9" * 5000), ("integer", True), ("integer", 1e400),
        ("number", "nan"), ("number", "Infinity"), ("number", "1e999"), ("number", "0x10"), ("number", "\uff11"),
        ("boolean", "maybe"), ("boolean", 1), ("array", "{}"), ("array", "[1"), ("array", "[" * 100_000),
        ("array", "\ud800"), ("object", "[]"), ("string", ["a"]), ("string", float("inf")), ("null", "x"),
    ],
)  # fmt: skip
def test_value_without_a_matching_coercion_is_rejected(kind: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentsError, match=f"'it' must be {kind}, not "):
        coerced({"type": kind}, value)


def test_error_lists_all_problems_and_shortens_values() -> None:
    schema = {
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["b"],
        "additionalProperties": False,
    }
    with pytest.raises(InvalidArgumentsError) as error:
        validate_arguments(schema, {"a": "x" * 10_000, "c": 1})
    assert "'b' is missing" in str(error.value)
    assert "unknown argument 'c' (it takes a, b)" in str(error.value)
    assert "'a' must be integer" in str(error.value)
    assert len(str(error.value)) < 300


def test_unknown_arguments_are_kept_unless_the_schema_forbids_them() -> None:
    assert validate_arguments({"type": "object"}, {"more": 1}).arguments == {"more": 1}


def test_only_the_top_level_is_coerced() -> None:
    nested = {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert coerced(nested, {"n": "5"}) == {"n": "5"}


def test_unions_accept_matching_values_and_coerce_others() -> None:
    union = {"anyOf": [{"type": "integer"}, {"type": "array"}, {"type": "null"}]}
    assert coerced(union, None) is None
    assert coerced(union, "7") == 7
    assert coerced(union, "[7]") == [7]
    assert coerced({"type": ["boolean", "integer"]}, "1") == 1
    assert coerced({"type": ["integer", "string"]}, "1") == "1"


def test_enums_are_checked_and_coerced_to() -> None:
    assert coerced({"enum": [1, 2]}, "2") == 2
    assert coerced({"type": "string", "enum": ["1", "2"]}, 2) == "2"
    with pytest.raises(InvalidArgumentsError, match="'it' must be one of 'a', 'b', not string 'c'"):
        coerced({"enum": ["a", "b"]}, "c")
    with pytest.raises(InvalidArgumentsError):
        coerced({"const": 1}, True)


def test_references_are_followed() -> None:
    schema = {"properties": {"it": {"$ref": "#/$defs/Count"}}, "$defs": {"Count": {"type": "integer"}}}
    assert validate_arguments(schema, {"it": "5"}).arguments == {"it": 5}
    with pytest.raises(InvalidArgumentsError, match="must be integer"):
        validate_arguments(schema, {"it": []})


def test_a_hostile_schema_ends() -> None:
    many = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(500)}
    own = {"anyOf": [{"$ref": "#/properties/it"}, {"$ref": "#/properties/it"}, {"type": "integer"}]}
    schema = {"properties": {"it": own, "deep": {"$ref": "#/$defs/d0"}, "odd": {"type": 5, "anyOf": 3}}, "$defs": many}
    assert validate_arguments(schema, {"it": "5", "deep": 1, "odd": 2}).arguments["deep"] == 1


@given(SCHEMAS, VALUES)
def test_valid_arguments_are_never_changed(schema: Any, value: Any) -> None:
    import jsonschema

    if jsonschema.Draft202012Validator(schema).is_valid(value):
        assert validate_arguments(parameters(schema), {"it": value}).arguments == {"it": value}


@given(SCHEMAS, VALUES)
def test_coercion_is_idempotent_and_its_result_is_valid(schema: Any, value: Any) -> None:
    import jsonschema

    try:
        once = validate_arguments(parameters(schema), {"it": value})
    except InvalidArgumentsError:
        assert not jsonschema.Draft202012Validator(schema).is_valid(value)
        return
    again = validate_arguments(parameters(schema), once.arguments)
    assert again.arguments == once.arguments
    assert again.coercions == ()
    if "it" in once.arguments:
        jsonschema.Draft202012Validator(schema).validate(once.arguments["it"])
