"""The examples of docs/how-to/build-an-agent.md print the output that the page shows."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "build-an-agent.md").read_text("utf-8")
SHOWN = re.findall(r"```python\n((?:(?!```).*\n)*)```\n\nIt prints `([^`]+)`", PAGE)


def test_guide_shows_the_output_of_some_examples() -> None:
    assert len(SHOWN) == 10


@pytest.mark.parametrize(("text", "printed"), SHOWN, ids=lambda value: value[:20] if len(value) < 80 else "example")
def test_example_prints_the_output_of_the_guide(text: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(text, "build-an-agent.md", "exec"), {"__name__": "__example__"})  # noqa: S102  # our own docs
    assert capsys.readouterr().out.strip() == printed
