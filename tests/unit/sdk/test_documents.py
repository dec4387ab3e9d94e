"""Editing documents: a change leaves all other characters of the text unchanged, in every format."""

import io
import json
import re
from typing import Any

import pytest
import tomlkit
from hypothesis import assume, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from agent_mux.sdk.documents import (
    DocumentError,
    Format,
    field_name,
    open_document,
    parse_field,
    with_field,
    without_field,
)
from agent_mux.sdk.documents.document import MISSING, value_at

JSON = """\
// head
{
  "a": 1, // one
  /* two */
  "b": {"x": [1, 2,], },
  'c': { // empty but for this
  },
  d: [
    "x", // ex
    "y"
  ], // last
  "deep": {
    "er": {"est": 0x1F}
  }
  // tail
}
"""
TOML = """\
# head
model = "x"   # keep

[mcp_servers.a]
command = "x"
args = ["1",
  "2"]

# before b
[mcp_servers.b]
url = "u"

[[list]]
name = "n"
"""
YAML_TEXT = """\
# head
model:
  provider: custom   # keep
  default: "x"
  nothing:
  text: |
    a
    b
list:
  - a
  - b # bee

# tail
objs:
- name: n # first
  v: 1
- name: m
skills: {a: 1, b: [1,2]}   # sk
"""
TEXTS: dict[Format, str] = {"json": JSON, "toml": TOML, "yaml": YAML_TEXT}


@pytest.mark.parametrize(
    ("form", "field", "value"),
    [
        ("json", "new", None),
        ("json", "b.y", {"z": [1, {"q": 2}]}),
        ("json", "d.2", "z"),
        ("json", "deep.er.more", True),
        ("json", "deep.down.here", 1.5),
        ("json", '"a b"."c.d"', "ü"),
        ("toml", "approval", "never"),
        ("toml", "mcp_servers.a.cwd", "/x"),
        ("toml", "mcp_servers.c", {"command": "y", "args": ["1"], "env": {"K": "v"}}),
        ("toml", "list.0.more", 3),
        ("toml", "q.r.s", [1, 2]),
        ("yaml", "model.more", "a: b"),
        ("yaml", "model.lines", "one\ntwo\n"),
        ("yaml", "list.2", {"k": ["v"]}),
        ("yaml", "objs.0.w", True),
        ("yaml", "objs.2", {"name": "o"}),
        ("yaml", "skills.b.2", 9),
        ("yaml", "mcp_servers.c", {"command": "y", "args": ["1"], "env": {"K": "v"}}),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_unset_restores_every_byte_after_set(form: Format, field: str, value: Any, newline: str) -> None:
    text, path = TEXTS[form].replace("\n", newline), parse_field(field)
    changed = with_field(text, form, path, value)
    assert value_at(open_document(changed, form).data(), path) == value
    assert without_field(changed, form, path) == text
    for comment in re.findall(r"(?://|#|/\*)[^\r\n]*", text):
        assert comment in changed


@pytest.mark.parametrize(
    ("form", "field", "value", "line"),
    [
        ("json", "a", {"n": 1}, "  }, // one"),
        ("json", "deep.er.est", "s", '    "er": {"est": "s"}'),
        ("toml", "model", "y", 'model = "y"   # keep'),
        ("yaml", "model.provider", "y", "  provider: y   # keep"),
        ("yaml", "model.nothing", 3, "  nothing: 3"),
        ("yaml", "model.text", "one", "  text: one"),
        ("yaml", "objs.0.name", "x", "- name: x # first"),
        ("yaml", "skills.a", {"q": None}, 'skills: {a: {"q": null}, b: [1,2]}   # sk'),
    ],
)
def test_new_value_keeps_the_comment_on_its_line(form: Format, field: str, value: Any, line: str) -> None:
    changed = with_field(TEXTS[form], form, parse_field(field), value)
    assert line in changed.splitlines()


@pytest.mark.parametrize(
    ("form", "field"),
    [("json", "a"), ("json", "d.0"), ("json", "b"), ("toml", "model"), ("toml", "mcp_servers.a"), ("yaml", "list.0"),
     ("yaml", "model.text"), ("yaml", "objs.0.name"), ("yaml", "objs.0"), ("yaml", "skills.b"), ("yaml", "model")],
)  # fmt: skip
def test_unset_removes_only_the_field(form: Format, field: str) -> None:
    path = parse_field(field)
    left = open_document(without_field(TEXTS[form], form, path), form).data()
    before = open_document(TEXTS[form], form).data()
    at = left if len(path) == 1 else value_at(left, path[:-1])
    assert len(at) == len(value_at(before, path[:-1]) if path[:-1] else before) - 1


@pytest.mark.parametrize("form", ["json", "toml", "yaml"])
def test_setting_the_current_value_changes_nothing(form: Format) -> None:
    data = open_document(TEXTS[form], form).data()
    for key, value in data.items():
        assert with_field(TEXTS[form], form, (key,), value) == TEXTS[form]
    assert without_field(TEXTS[form], form, ("no", "such")) == TEXTS[form]


@pytest.mark.parametrize("form", ["json", "toml", "yaml"])
@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n"])
def test_field_is_added_to_a_text_without_content(form: Format, text: str) -> None:
    text = text.replace("#", "//") if form == "json" else text
    changed = with_field(text, form, ("a", "b"), [1, "x"])
    assert open_document(changed, form).data() == {"a": {"b": [1, "x"]}}
    assert changed.startswith(text.strip())


@pytest.mark.parametrize(
    ("form", "text", "line", "column"),
    [
        ("json", '{\n  "a": 1\n  "b": 2\n}', 3, 3),
        ("json", '{"a": nope}', 1, 7),
        ("json", '{"a": "x}', 1, 7),
        ("json", '{"a": 1} x', 1, 10),
        ("json", "[1]", 1, 1),
        ("json", "{" * 5, 1, 2),
        ("json", '{"a":' + "[" * 100_000 + "]" * 100_000 + "}", 1, 105),
        ("toml", "a = \nb = 2", 1, 5),
        ("yaml", "a: 1\n b: 2\n", 2, 3),
        ("yaml", "- 1\n", 1, 1),
        ("yaml", "a: [1\n", 2, 1),
    ],
)
def test_syntax_error_has_line_and_column(form: Format, text: str, line: int, column: int) -> None:
    with pytest.raises(DocumentError) as caught:
        open_document(text, form)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"line {line}, column {column}: ")


@pytest.mark.parametrize(
    ("form", "field", "value"),
    [("json", "a.b", 1), ("json", "d.9", 1), ("json", "d.x", 1), ("toml", "model.x", 1), ("toml", "model", None),
     ("toml", "list.7.x", 1), ("yaml", "model.provider.x", 1), ("yaml", "list.9", 1)],
)  # fmt: skip
def test_setting_an_impossible_path_raises(form: Format, field: str, value: Any) -> None:
    with pytest.raises(DocumentError):
        with_field(TEXTS[form], form, parse_field(field), value)


def test_value_of_a_yaml_alias_cannot_be_set() -> None:
    text = "base: &b\n  x: 1\nuse: *b\n"
    with pytest.raises(DocumentError):
        with_field(text, "yaml", ("use", "x"), 2)


def test_json5_is_parsed() -> None:
    text = "{a: 'it\\'s', b: .5, c: -0x10, d: +Infinity, e: [1,2,], f: \"\\u00fc\\x41\", /* x */ 'g': null,}"
    data = open_document(text, "json").data()
    assert data == {
        "a": "it's", "b": 0.5, "c": -16, "d": float("inf"), "e": [1, 2], "f": "\u00fcA", "g": None,
    }  # fmt: skip


@pytest.mark.parametrize("field", ["", "a..b", "a b", ".a", "a.", "a\nb", "a = 1"])
def test_invalid_field_name_raises(field: str) -> None:
    with pytest.raises(DocumentError):
        parse_field(field)


KEYS = st.text("ab -.#:\"'é", min_size=1, max_size=4)
TEXT = st.text("ab \n:#'\"\\é{}[],-&*!|>%@`", max_size=8)
SCALARS = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), TEXT, st.sampled_from([0.5, -1e30]))


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, min_size=1, max_size=3) | st.dictionaries(KEYS, inner, min_size=1, max_size=3)


VALUES = st.recursive(SCALARS, _nested, max_leaves=6)
TABLES = st.dictionaries(KEYS, VALUES, max_size=4)


def _yaml(data: Any, flow: bool | None) -> str:
    yaml, written = YAML(typ="safe", pure=True), io.StringIO()
    yaml.default_flow_style = flow
    yaml.dump(data, written)
    return written.getvalue()


def _written(form: Format, data: dict[str, Any], style: int) -> str:
    match form:
        case "json":
            return json.dumps(data, indent=[None, 2, "\t"][style], ensure_ascii=style == 0) + "\n"
        case "toml":
            return tomlkit.dumps(data)
    return _yaml(data, [False, None, False][style]) if data else ""


def _reads_back(text: str, data: dict[str, Any]) -> bool:
    try:
        return (YAML(typ="safe", pure=True).load(text) or {}) == data
    except YAMLError:
        return False


@pytest.mark.slow
@given(
    form=st.sampled_from(["json", "toml", "yaml"]), data=TABLES, style=st.integers(0, 2),
    path=st.lists(KEYS, min_size=1, max_size=3).map(tuple), value=VALUES,
)  # fmt: skip
def test_set_and_unset_change_no_other_field(
    form: Format, data: dict[str, Any], style: int, path: tuple[str, ...], value: Any
) -> None:
    text = _written(form, data, style)
    if form == "yaml":  # the library cannot parse all flow-style text that it writes
        assume(_reads_back(text, data))
    assert open_document(text, form).data() == data
    parents = [value_at(data, path[:length]) for length in range(len(path))]
    if any(not isinstance(parent, dict) for parent in parents if parent is not MISSING):
        return  # an impossible path
    assert parse_field(field_name(path)) == path
    is_new = value_at(data, path) is MISSING
    changed = with_field(text, form, path, value)
    assert open_document(changed, form).data() != data or value_at(data, path) == value
    assert value_at(open_document(changed, form).data(), path) == value
    if is_new and (data or form != "json"):
        assert without_field(changed, form, path) == text
