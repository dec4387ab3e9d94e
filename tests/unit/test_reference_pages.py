"""The reference pages that are made from the code are fresh, and what they show is true."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from agent_mux.events import ALL_EVENTS, decode_event

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate_docs"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_of_events_is_fresh(generate: ModuleType) -> None:
    assert generate.main(["events", "--check"]) == 0, "run: python docs/generate.py events"


def test_a_stale_page_is_told_and_can_be_written_again(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "events.md"
    monkeypatch.setitem(generate.PAGES, "events", (generate.events_page, page))
    assert generate.main(["events", "--check"]) == 1
    assert "python docs/generate.py events" in capsys.readouterr().err
    page.write_text("old")
    assert generate.main(["events", "--check"]) == 1
    assert generate.main(["events"]) == 0
    assert generate.main(["events", "--check"]) == 0
    assert page.read_text() == (DOCS / "reference" / "events.md").read_text()


def test_every_event_has_its_section_with_a_true_example() -> None:
    page = (DOCS / "reference" / "events.md").read_text()
    assert re.findall(r"^### `(\w+)`$", page, re.MULTILINE) == [
        name
        for event in ALL_EVENTS
        for name in ([event.type, "CostRecord"] if event.type == "token_usage" else [event.type])
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
