"""Drift: the shapes of messages, and the findings when they differ from the baseline."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux_testing import drift
from agent_mux_testing.drift import Baseline, Installation, Observation, _differences, _flags
from agent_mux_testing.live import kits
from agent_mux_testing.live.scenarios import scenarios_for
from agent_mux_testing.live.shapes import kind_of, shapes_of, without


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
def test_the_kind_of_a_message_is_joined_from_its_fields(native: dict[str, object], kind: str) -> None:
    expected = "init:system" if kind == "subtype:type" else kind
    assert sorted(kind_of(native).split(":")) == sorted(expected.split(":"))


def test_fields_are_paths_and_inputs_of_tools_are_nobodys_fields() -> None:
    line = {"type": "x", "list": [{"a": 1}, {"b": {"c": 2}}], "input": {"path": "/x"}, "/a/path": 1}
    assert shapes_of([json.dumps(line).encode(), b"text"]) == {
        "x": {"type", "list", "list[].a", "list[].b", "list[].b.c", "input"},
        "(text)": set(),
    }


def test_a_document_over_many_lines_is_one_message() -> None:
    document = json.dumps({"status": "ok", "usage": {"input": 5}}, indent=2).encode()
    assert shapes_of(document.splitlines()) == {"(message)": {"status", "usage", "usage.input"}}
    assert shapes_of([b"a warning", *document.splitlines()]) == {"(text)": set()}


def test_unstable_fields_are_omitted() -> None:
    shapes = {"start": {"message", "message.content[].text"}, "end": {"message.content[].text"}}
    steady = without(shapes, re.compile(r"start message\.content\[\].*"))
    assert steady == {"start": {"message"}, "end": {"message.content[].text"}}
    assert without(shapes, re.compile(r"end .*")) == {"start": shapes["start"]}


def baseline(*lines: dict[str, object], flags: tuple[str, ...] = ("--json",)) -> Baseline:
    made = Baseline(flags=set(flags))
    made.add("json", shapes_of(json.dumps(line).encode() for line in lines))
    return made


def test_nothing_new_is_no_drift() -> None:
    known = baseline({"type": "a", "x": 1})
    assert list(_differences(known, baseline({"type": "a", "x": "another value"}))) == []


def test_every_difference_is_a_finding() -> None:
    known = baseline({"type": "a", "x": 1}, {"type": "b"}, flags=("--json", "--old"))
    known.add("rpc", {"response": {"id"}})
    now = baseline({"type": "a", "y": 1}, {"type": "c"}, flags=("--json", "--new"))
    assert list(_differences(known, now)) == [
        "new flag --new",
        "the flag --old is gone",
        "rpc is no longer used",
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


def test_scenarios_without_a_new_protocol_are_left_out() -> None:
    both, one, two = (
        [scenario.name for scenario in scenarios_for(replace(kits()["codex"], ways=ways))]
        for ways in (("one_shot", "two_way"), ("one_shot",), ("two_way",))
    )
    assert set(both) - set(one) == {"text_two_way"}
    assert set(both) - set(two) == {"text", "tools"}


def test_flags_are_read_from_all_helps_on_both_streams(tmp_path: Path) -> None:
    kit = replace(kits()["codex"], help=(("one",), ("two",)))
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho '  --common  --of-'$1' <x-y>'; printf '\\377 not--this --aside\\n' >&2\n")
    program.chmod(0o755)
    found = _flags(kit, Installation(program=str(program), path="/usr/bin:/bin"))
    assert found == {"--common", "--of-one", "--of-two", "--aside"}


@pytest.mark.anyio
async def test_a_program_that_cannot_be_started_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift, "scenarios_for", lambda _: ())
    seen = await drift.observe(kits()["codex"], Installation(program=f"{sys.executable}/nothing", path="/usr/bin"))
    [problem] = seen.problems
    assert problem.startswith("its flags could not be read: ")


def test_every_kit_has_a_baseline_that_can_be_read() -> None:
    for kit in kits().values():
        assert kit.baseline is not None, kit.agent
        known = Baseline.read(kit.baseline)
        assert known.flags
        assert sum(map(len, known.shapes.values())) > 3


def test_baseline_of_the_embedded_agent_has_its_flags(tmp_path: Path) -> None:
    kit, program = kits()["native"], tmp_path / "amux-agent"
    assert kit.baseline is not None
    assert kit.pins[0].script is not None
    program.write_text(kit.pins[0].script)
    program.chmod(0o755)
    installation = Installation(program=str(program), path="/usr/bin:/bin")
    listed = Baseline.read(kit.baseline).flags
    assert listed == _flags(kit, installation), "run: python -m agent_mux_testing.drift native"


@pytest.mark.anyio
async def test_a_program_without_any_successful_scenario_has_no_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    async def observe(*_: object) -> Observation:
        return Observation(ran=["text"], problems=["text: the run ended as crashed, not completed"])

    monkeypatch.setattr(drift, "observe", observe)
    report = await drift.find_drift("codex", Installation(program="codex", path=""))
    assert report.findings == ("text: the run ended as crashed, not completed",)
