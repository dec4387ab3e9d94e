"""The picture in the README shows what a terminal shows today."""

import tempfile
from pathlib import Path

import pytest
from docs import picture

LINES = "$ amux\r\n\x1b[36m*\x1b[0m Bash \x1b[2mls & echo <x>\x1b[0m\r\n+ completed \x1b[2m1 turn, 5.6 s\x1b[0m\r\n"


def test_picture_in_the_repository_is_up_to_date() -> None:
    assert picture.main(["--check"]) == 0, "run: make picture"


def test_stale_picture_is_reported_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(picture, "PICTURE", tmp_path / "terminal.svg")
    monkeypatch.setattr(picture, "record_session", lambda *, speed: LINES)  # noqa: ARG005  # the keyword's name
    assert picture.main(["--check"]) == 1
    assert "make picture" in capsys.readouterr().err
    assert not (tmp_path / "terminal.svg").exists()


def test_picture_that_differs_in_durations_only_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture, "PICTURE", tmp_path / "terminal.svg")
    drawn = []
    for lines in (LINES, LINES.replace("5.6 s", "320 ms"), LINES.replace("1 turn", "2 turns")):
        monkeypatch.setattr(picture, "record_session", lambda *, speed, lines=lines: lines)  # noqa: ARG005
        assert picture.main([]) == 0
        drawn.append((tmp_path / "terminal.svg").read_text())
    assert drawn[0] == drawn[1] != drawn[2]


def test_text_of_a_picture_is_that_of_the_terminal() -> None:
    assert picture.shown_text(picture.draw(LINES)).splitlines() == [
        "$ amux",
        "* Bash ls & echo <x>",
        "+ completed 1 turn, DURATION",
    ]


def test_output_that_was_erased_is_not_in_the_picture() -> None:
    assert picture.shown_text(picture.draw("working\r\x1b[Jdone\r\n\x1b[2mdim\x1b[0m\r\n")).splitlines() == [
        "done",
        "dim",
    ]


def test_picture_names_no_path_of_this_machine_and_loads_nothing() -> None:
    drawn = picture.PICTURE.read_text("utf-8")
    assert str(picture.ROOT) not in drawn
    assert tempfile.gettempdir() not in drawn
    assert "url(http" not in drawn
    assert "@font-face" not in drawn
