"""The generated reference pages are up to date, and their contents match the code and the last live run."""

import inspect
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from docs import generate
from docs.generate import PAGES, main
from docs.pages import client_parts
from docs.pages.support_matrix import RESULTS

import agent_mux
from agent_mux import AgentMux, McpServer, RunHandle, RunOptions, RunResult
from agent_mux.errors import ERROR_CODES, SERVICE_CODES
from agent_mux.events import ALL_EVENTS, decode_event
from agent_mux_testing.live import kits

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", PAGES)
def test_generated_page_is_up_to_date(page: str) -> None:
    assert main([page, "--check"]) == 0, f"run: python docs/generate.py {page}"


def test_stale_page_is_reported_and_regenerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "events.md"
    monkeypatch.setattr(generate, "REFERENCE", tmp_path)
    assert main(["events", "--check"]) == 1
    assert "python docs/generate.py events" in capsys.readouterr().err
    page.write_text("old")
    assert main(["events", "--check"]) == 1
    assert main(["events"]) == 0
    assert main(["events", "--check"]) == 0
    assert page.read_text() == (DOCS / "reference" / "events.md").read_text()


def test_last_live_run_covers_pinned_versions_and_known_gaps() -> None:
    results = json.loads(RESULTS.read_text())
    for kit in kits().values():
        for pin in kit.pins:
            name = kit.agent if pin is kit.pins[0] else f"{kit.agent}@{pin.version}"
            outcomes = results.get(name, {})
            assert outcomes, f"{name} has no live results; run: make e2e-results"
            assert {scenario: kind for scenario, kind in outcomes.items() if kind != "ok"} == {
                scenario: gap.kind for scenario, gap in kit.gaps_of(pin.version).items() if scenario in outcomes
            }, name


def test_every_event_has_a_section_with_a_valid_example() -> None:
    page = (DOCS / "reference" / "events.md").read_text()
    assert re.findall(r"^### `(\w+)`$", page, re.MULTILINE) == [
        name
        for event in ALL_EVENTS
        for name in ([event.type, "CostRecord", "QuotaWindow"] if event.type == "token_usage" else [event.type])
    ]
    examples = re.findall(r"```json\n(.*)\n```", page)
    assert [json.loads(example)["type"] for example in examples] == [event.type for event in ALL_EVENTS]
    for example in examples:
        assert decode_event(example).type == json.loads(example)["type"]


def test_every_field_has_a_meaning() -> None:
    page = (DOCS / "reference" / "events.md").read_text()
    rows = re.findall(r"^\| `\w+` \|.*$", page, re.MULTILINE)
    assert len(rows) > 100
    assert all(
        re.fullmatch(r"\| `\w+` \| [^|]+(?:\\\|[^|]+)* \| (?:required|optional) \| [^|]+ \|", row) for row in rows
    )


def test_python_api_names_every_option_field_method_event_and_error() -> None:
    page = (DOCS / "reference" / "python-api.md").read_text("utf-8")
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert {spec.name for kind in (RunOptions, RunResult, McpServer) for spec in fields(kind)} - {"texts"} <= rows
    assert {event.__name__ for event in ALL_EVENTS} | {*ERROR_CODES, *SERVICE_CODES} <= rows
    headings = set(re.findall(r"^#{3,4} `([\w.]+)`$", page, re.MULTILINE))
    for kind in (AgentMux, RunHandle):
        public = {name for name in dir(kind) if not name.startswith("_")}
        methods = {name for name in public if inspect.isfunction(getattr(kind, name))}
        assert {f"{kind.__name__}.{name}" for name in methods} <= headings
        assert public - methods <= rows
    assert set(agent_mux.__all__) - {"RunOptions", "__version__"} <= headings | rows


PYTHON_API = (DOCS / "reference" / "python-api.md").read_text("utf-8")
SECTION = re.compile(r"^#{3,4} `([A-Z]\w+)`\n\n(?:`(from [\w.]+ import \w+)`\n)?", re.MULTILINE)
OTHER_NAME = re.compile(r"^\| `(\w+)` \| `(agent_\w+(?:\.\w+)*)` \| .+ \|$", re.MULTILINE)


def names_of_the_python_api() -> dict[str, str]:
    """Return each name that the page states, and the statement that imports it."""
    sections = {name: stated or f"from agent_mux import {name}" for name, stated in SECTION.findall(PYTHON_API)}
    others = {name: f"from {module} import {name}" for name, module in OTHER_NAME.findall(PYTHON_API)}
    words = re.findall(r"^\| `([A-Z][a-z]\w+)` \| `'", PYTHON_API, re.MULTILINE)
    return {**others, **sections, **{name: f"from agent_mux import {name}" for name in words}}


def test_each_name_of_the_python_api_is_imported_as_stated() -> None:
    names = names_of_the_python_api()
    assert len(names) > 100
    for name, statement in names.items():
        found: dict[str, object] = {}
        exec(statement, found)  # noqa: S102  # an import of the page
        assert found[name] is not None


def test_each_type_in_a_signature_is_explained() -> None:
    calls = "".join(re.findall(r"^```text\n(.*?)^```", PYTHON_API, re.DOTALL | re.MULTILINE))
    words = {word for word in re.findall(r"\b[A-Z]\w*", calls) if not client_parts.is_standard(word)}
    assert len(words) > 50
    assert words - set(names_of_the_python_api()) - {"RunOptions"} - {event.__name__ for event in ALL_EVENTS} == set()


def test_each_method_of_the_python_api_exists() -> None:
    owners = {f"mux.{name}": kind for name, kind in client_parts.client_parts().items()}
    methods = re.findall(r"^#### `([\w.]+)\.(\w+)`$", PYTHON_API, re.MULTILINE)
    assert {owner for owner, _ in methods} >= set(owners) - {"mux.subagents"}  # has the methods of `mux.skills`
    for owner, method in methods:
        assert callable(getattr(owners.get(owner) or getattr(agent_mux, owner), method)), f"{owner}.{method}"


def test_no_row_and_no_section_of_the_python_api_is_empty() -> None:
    rows = re.findall(r"^\|.*\|$", PYTHON_API, re.MULTILINE)
    assert len(rows) > 500
    assert [row for row in rows if re.search(r"\|\s*\|", row)] == []
    assert re.findall(r"^#{3,4} .*\n\n?(?=#|\Z)", PYTHON_API, re.MULTILINE) == []
    assert re.findall(r"^```text\n[^`]*```\n\n(?=#|\Z)", PYTHON_API, re.MULTILINE) == []
