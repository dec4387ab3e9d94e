"""The README works outside of the repository, and the index of the docs is complete."""

import asyncio
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import agent_mux

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
INDEX = ROOT / "docs" / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
REPOSITORY = re.compile(r"https://(?:github\.com/agent-mux/agent-mux/(?:blob|tree)|raw\.githubusercontent\.com/agent-mux/agent-mux)/main/([^)\s#]+)")  # fmt: skip  # noqa: E501
LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$|(?:src|href)=\"([^\"]+)\"", re.MULTILINE)
BOUND = 60.0


def links(text: str) -> list[str]:
    return [next(filter(None, groups)) for groups in LINK.findall(text)]


def test_readme_has_only_absolute_links() -> None:
    assert len(links(README)) > 10
    assert [link for link in links(README) if not link.startswith("https://")] == []


def test_links_of_the_readme_into_the_repository_have_targets() -> None:
    targets = REPOSITORY.findall(README)
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).is_file()] == []


def test_reference_links_of_the_readme_are_defined_and_used() -> None:
    defined = set(re.findall(r"^\[([^\]]+)\]: ", README, re.MULTILINE))
    used = {re.sub(r"\s+", " ", name) for name in re.findall(r"\]\[([^\]]+)\]", README)}
    assert used == defined


def test_readme_shows_the_drawn_picture() -> None:
    assert re.search(r"!\[[^\]]+\]\(https://raw\.githubusercontent\.com/\S+/docs/images/terminal\.svg\)", README)


def test_index_of_the_docs_lists_every_page_once() -> None:
    listed = [(INDEX.parent / link).resolve() for link in links(INDEX.read_text("utf-8")) if "://" not in link]
    assert sorted(listed) == [page for page in PAGES if page != INDEX]


def test_titles_in_the_index_are_those_of_the_pages() -> None:
    for title, link in re.findall(r"\[([^\]]+)\]\(([^)]+)\)", INDEX.read_text("utf-8")):
        heading = (INDEX.parent / link).read_text("utf-8").splitlines()[0].removeprefix("# ")
        assert title.lower() in heading.lower(), f"{link} is titled {heading!r}"


@pytest.mark.slow
def test_example_of_the_readme_runs_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [example] = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    played = re.sub(r'agent="\w+", prompt="[^"]*", approval_mode="\w+"', 'agent="replay", prompt="demo"', example)
    assert played != example
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("AMUX_REPLAY_SPEED", "0")

    async def notebook_cell() -> None:
        assert asyncio.get_running_loop().is_running()
        exec(compile(played, "README.md", "exec"), {"__name__": "__main__"})  # noqa: S102  # our own README

    asyncio.run(asyncio.wait_for(notebook_cell(), BOUND))
    printed = capsys.readouterr().out
    assert "* Edit\n" in printed
    assert "two tests in test_greet.py" in printed
    assert "\ncompleted: CostRecord(" in printed


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_named_extras_and_make_targets_exist(page: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = page.read_text("utf-8")
    extras = {name for names in re.findall(r"agent-mux\[([\w,]+)\]", text) for name in names.split(",")}
    assert extras - set(project["optional-dependencies"]) == set()
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|\$ )make ([\w-]+)", text)) - targets == set()


def test_changelog_names_the_current_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changelog, re.MULTILINE)
    assert released[0] == agent_mux.__version__
    assert re.findall(r"^## \[([^\]]+)\]", changelog, re.MULTILINE) == re.findall(
        r"^\[([^\]]+)\]: https://", changelog, re.MULTILINE
    )


def test_changelog_names_modules_that_exist() -> None:
    rows = re.findall(r"^  \| .* \| (.*) \|$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    modules = {name for row in rows for name in re.findall(r"`(agent_mux[\w.]*)`", row)}
    assert len(modules) > 5
    for name in modules:
        importlib.import_module(name)
