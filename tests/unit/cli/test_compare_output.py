"""What the commands of `amux compare` print about results, and where they write them."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.compare.test_report import comparison_of

from agent_mux.cli.command_output import Invocation, ServiceEndpoint
from agent_mux.cli.compare_output import apply_and_check, export_report, print_report
from agent_mux.compare.applying import AppliedTrial
from agent_mux.compare.report import report_of
from agent_mux.errors import AgentMuxError


@pytest.mark.parametrize(
    ("files", "tampered", "printed"),
    [
        (("a", "b"), (), "2 changed files of a-1 applied to /project\n"),
        ((), (), "a-1 changed nothing, so nothing was applied to /project\n"),
        (
            ("t\x1b[2J",),
            ("t\x1b[2J",),
            (
                "warning: a-1 changed files of the checks: t; in the comparison the checks ran with the original ones\n"
                "1 changed file of a-1 applied to /project\n"
            ),
        ),
    ],
)
def test_applied_trial_is_reported_with_what_its_checks_are_worth(
    capsys: pytest.CaptureFixture[str], files: tuple[str, ...], tampered: tuple[str, ...], printed: str
) -> None:
    applied = AppliedTrial(trial="a-1", source="/project", files=files, is_merged=False, tampered=tampered)
    store: Any = SimpleNamespace(apply=lambda *_, **__: applied)
    assert apply_and_check(store, "a-1", None, Invocation(), has_checks=True) == 0
    assert capsys.readouterr().err == printed


def test_next_steps_for_a_comparison_of_a_service_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    comparison = comparison_of({"a": ["infra"], "b": ["pending"]}, status="interrupted")
    store: Any = SimpleNamespace(get=lambda _: comparison, report=lambda *_, **__: report_of(comparison))
    service = ServiceEndpoint("http://127.0.0.1:1", None)
    assert print_report(store, None, Invocation(service=service)) == 2
    printed = capsys.readouterr()
    assert f"trials are left; continue: amux compare resume 01 --server {service.url}" in printed.err
    assert " ".join(printed.out.split()).count(f"amux compare resume 01 --server {service.url}") == 2


def test_export_with_json_prints_the_report_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    comparison = comparison_of({"a": ["infra"]})
    store: Any = SimpleNamespace(get=lambda _: comparison, report=lambda *_, **__: report_of(comparison))
    assert export_report(store, None, None, Invocation(json=True)) == 0
    exported = json.loads(capsys.readouterr().out)
    print_report(store, None, Invocation(json=True))
    assert exported == json.loads(capsys.readouterr().out)


def test_export_to_a_missing_directory_is_a_usage_error(tmp_path: Path) -> None:
    store: Any = SimpleNamespace(export=lambda *_, **__: "text")
    output = tmp_path / "missing" / "report.html"
    with pytest.raises(AgentMuxError, match=f"cannot write {output}: No such file") as caught:
        export_report(store, None, output, Invocation())
    assert caught.value.code == "VALIDATION_ERROR"
