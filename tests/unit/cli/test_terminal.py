import io

import pytest

from agent_mux.cli.terminal import Palette, sanitize, wants_color, width_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "no_color", "wanted"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, False, True),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_colours_are_used_on_terminals_unless_disabled(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], no_color: bool, wanted: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_color(Terminal(), no_color=no_color) is wanted
    assert wants_color(io.StringIO(), no_color=no_color) is False


def test_a_closed_stream_is_not_a_terminal() -> None:
    closed = io.StringIO()
    closed.close()
    assert width_of(closed) == 160


def test_a_palette_without_colours_changes_nothing() -> None:
    off, on = Palette(enabled=False), Palette(enabled=True)
    for paint in ("dim", "bold", "good", "warning", "bad", "accent"):
        assert getattr(off, paint)("text") == "text"
        assert sanitize(getattr(on, paint)("text")) == "text"
        assert getattr(on, paint)("") == ""


@pytest.mark.parametrize(
    ("variables", "no_color", "wanted"),
    [
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": ""}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_force_color_enables_colors_in_a_pipe(
    variables: dict[str, str], no_color: bool, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert wants_color(io.StringIO(), no_color=no_color) is wanted
