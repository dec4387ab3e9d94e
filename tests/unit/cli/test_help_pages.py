"""Help pages: complete at every width, grouped, and in agreement with the commands."""

import subprocess
import sys

import pytest
from tests.unit.cli.conftest import Amux

from agent_mux.cli.app import command
from agent_mux.cli.command_catalog import (
    CATALOG_FILE,
    COMMAND_GROUPS,
    OTHER_COMMANDS,
    all_commands,
    catalog_text,
    load_catalog,
)
from agent_mux.cli.help_page import NARROWEST, render_help

CATALOG = load_catalog()


def test_stored_catalog_is_that_of_the_commands() -> None:
    assert CATALOG_FILE.read_text("utf-8") == catalog_text(command()), "run: python docs/generate.py command-catalog"


@pytest.mark.parametrize("width", [NARROWEST, 60, 80, 100])
def test_every_page_fits_its_width_with_whole_names(width: int) -> None:
    for words, entry in CATALOG.items():
        page = render_help(entry, words.split(), width)
        lines = page.splitlines()
        names = [name for option in entry["options"] for name in option["names"]]
        assert [name for name in names if name not in page] == [], words
        too_long = [line for line in lines if len(line) > width and line not in _unbreakable(entry, lines)]
        assert too_long == [], words
        assert "…" not in page


def _unbreakable(entry: dict[str, object], lines: list[str]) -> set[str]:
    """Return the lines that hold one name, word or example, which are never cut."""
    return {line for line in lines if line.strip() in str(entry["examples"]) or len(line.split()) <= 2 or "|" in line}


def test_commands_and_options_are_grouped_by_purpose() -> None:
    page = render_help(CATALOG[""], [], 80)
    positions = [page.index(f"\n{title}:\n") for title in COMMAND_GROUPS]
    assert positions == sorted(positions)
    assert f"{OTHER_COMMANDS}:" not in page
    run = render_help(CATALOG["run"], ["run"], 80)
    titles = [line for line in run.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles[:4] == ["Arguments:", "Task:", "Model:", "Session:"]
    assert titles[-2:] == ["Common options:", "Examples:"]


def test_usage_lines_have_no_braces() -> None:
    for words, entry in CATALOG.items():
        page = render_help(entry, words.split(), 80)
        assert "{" not in page.split("\n\n", 1)[0], words
    assert render_help(CATALOG["hooks add"], ["hooks", "add"], 80).startswith(
        "Usage: amux hooks add [OPTIONS] ID HANDLER TARGET...\n"
    )


def test_pages_are_styled_on_request_only(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" not in amux("run", "--help").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1mTask:\x1b[0m" in amux("run", "--help").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in amux("run", "--help").out


def test_help_that_is_parsed_has_the_same_styles(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    for words in (("help", "--help"), ("runs", "show", "--json", "--help")):
        assert "\x1b[1mCommon options:\x1b[0m" in amux(*words).out
    assert "\x1b" not in amux("runs", "show", "--no-color", "--help").out


def test_help_on_standard_error_is_styled_for_that_stream(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "\x1b" not in amux("hooks").err


@pytest.mark.parametrize("words", [(), ("run",), ("hooks", "add"), ("sessions",)])
def test_help_is_the_same_with_and_without_the_stored_catalog(amux: Amux, words: tuple[str, ...]) -> None:
    quick = amux(*words, "--help")
    complete = amux("--no-color", *words, "--help")
    assert (complete.code, complete.out) == (quick.code, quick.out)


def test_group_without_a_command_prints_its_help_as_a_usage_error(amux: Amux) -> None:
    done = amux("hooks")
    assert (done.code, done.out) == (2, "")
    assert done.err == amux("hooks", "--help").out


def test_unknown_command_is_reported_though_help_is_requested(amux: Amux) -> None:
    done = amux("nosuch", "--help")
    assert done.code == 2
    assert "nosuch" in done.err


def test_every_command_has_an_entry() -> None:
    assert set(CATALOG) == {" ".join(words) for words, _ in all_commands(command())}


def test_help_imports_neither_typer_nor_rich() -> None:
    program = (
        "import sys; from agent_mux.cli.main import main; main(['run', '--help']); "
        "sys.stderr.write(' '.join(sorted({'typer', 'rich', 'pydantic', 'msgspec', 'anyio'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
