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


@pytest.mark.parametrize(("command", "option"), [("sessions", "--help"), ("agents", "-h"), ("mcp", "--help")])
def test_each_command_has_help(command: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, option]) == 0
    assert f"usage: amux-agent {command}" in capsys.readouterr().out
