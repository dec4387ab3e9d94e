"""The help of `amux-agent`."""

import pytest

from agent_loop.cli.main import main

LONGEST_NAMES = 52  # names of options are never cut


@pytest.mark.parametrize("width", [80, 60, 40])
def test_help_fits_the_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["--help"]) == 0
    page = capsys.readouterr().out
    assert "amux-agent sessions ID" in page
    too_long = [line for line in page.splitlines() if len(line) > width]
    assert [line for line in too_long if not line.startswith("  --") or len(line) > LONGEST_NAMES] == []


@pytest.mark.parametrize("arguments", [["sessions", "--help"], ["agents", "-h"]])
def test_command_without_a_page_of_its_own_prints_the_help(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    assert "usage: amux-agent [OPTIONS]" in capsys.readouterr().out
