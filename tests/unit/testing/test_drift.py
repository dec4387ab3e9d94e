"""Drift: the shapes of messages, and what is said when they are no longer those of the baseline."""

import json
from pathlib import Path

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.testing.live import kits
from agent_mux.testing.live.drift import Baseline, _differences
from agent_mux.testing.live.shapes import kind_of, shapes_of


@pytest.mark.parametrize(
    ("native", "kind"),
    [
        ({"type": "system", "subtype": "init"}, "subtype:type"),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, "answer"),
        ({"method": "session/update", "params": {"update": {"sessionUpdate": "plan"}}}, "session/update:plan"),
        ({"method": "event", "params": {"type": "tool.start"}}, "event:tool.start"),
        ({"type": 5, "odd": True}, "(message)"),
        ({"type": "a text with blanks"}, "(message)"),
    ],
)
def test_what_tells_messages_apart(native: dict[str, object], kind: str) -> None:
    expected = "init:system" if kind == "subtype:type" else kind
    assert sorted(kind_of(native).split(":")) == sorted(expected.split(":"))


def test_fields_are_paths_and_inputs_of_tools_are_nobodys_fields() -> None:
    line = {"type": "x", "list": [{"a": 1}, {"b": {"c": 2}}], "input": {"path": "/x"}, "/a/path": 1}
    assert shapes_of([json.dumps(line).encode(), b"text"]) == {
        "x": {"type", "list", "list[].a", "list[].b", "list[].b.c", "input"},
        "(text)": set(),
    }


def baseline(*lines: dict[str, object], flags: tuple[str, ...] = ("--json",)) -> Baseline:
    made = Baseline(flags=set(flags))
    made.add("json", shapes_of(json.dumps(line).encode() for line in lines))
    return made


def test_nothing_new_is_no_drift() -> None:
    known = baseline({"type": "a", "x": 1})
    assert list(_differences(known, baseline({"type": "a", "x": "another value"}))) == []


def test_everything_that_differs_is_told() -> None:
    known = baseline({"type": "a", "x": 1}, {"type": "b"}, flags=("--json", "--old"))
    now = baseline({"type": "a", "y": 1}, {"type": "c"}, flags=("--json", "--new"))
    assert list(_differences(known, now)) == [
        "new flag --new",
        "the flag --old is gone",
        "json: 'a' has a new field y",
        "json: new kind of message 'c'",
        "json: no message of the kind 'b' any more",
        "json: 'a' has no field x any more",
    ]


def test_a_baseline_survives_writing(tmp_path: Path) -> None:
    made = baseline({"type": "a", "x": [1]})
    made.write(tmp_path / "baseline.json")
    assert Baseline.read(tmp_path / "baseline.json") == made
    with pytest.raises(AgentMuxError, match="no baseline to compare with"):
        Baseline.read(tmp_path / "missing.json")


def test_every_kit_has_a_baseline_that_can_be_read() -> None:
    for kit in kits().values():
        assert kit.baseline is not None, kit.agent
        known = Baseline.read(kit.baseline)
        assert known.flags
        assert sum(map(len, known.shapes.values())) > 3
