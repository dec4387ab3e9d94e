"""The pictures in the documentation show what a terminal shows today."""

import re
import tempfile
from pathlib import Path

import pytest
from docs import pictures
from docs.terminal_drawing import MAX_ROWS, draw, shown_text

LINES = "$ amux\r\n\x1b[36m*\x1b[0m Bash \x1b[2mls & echo <x>\x1b[0m\r\n+ completed \x1b[2m1 turn, 5.6 s\x1b[0m\r\n"
FAST = "terminal"
NAMES = [scene.name for scene in pictures.SCENES]
ROOT = pictures.ROOT
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == FAST else [pytest.mark.slow]) for name in NAMES]
)
def test_picture_in_the_repository_is_up_to_date(name: str) -> None:
    assert pictures.main(["--check", name]) == 0, "run: make pictures"


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pictures, "IMAGES", tmp_path)
    return tmp_path


def test_stale_picture_is_reported_and_left_alone(
    images: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pictures, "record_session", lambda _, *, speed: LINES)  # noqa: ARG005  # the keyword's name
    assert pictures.main(["--check", FAST]) == 1
    assert "make pictures" in capsys.readouterr().err
    assert list(images.iterdir()) == []


@pytest.mark.slow
def test_picture_that_differs_in_durations_only_is_not_written_again(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    for lines in (LINES, LINES.replace("5.6 s", "320 ms"), LINES.replace("1 turn", "2 turns")):
        monkeypatch.setattr(pictures, "record_session", lambda _, *, speed, lines=lines: lines)  # noqa: ARG005
        assert pictures.main([FAST]) == 0
        drawn.append((images / f"{FAST}.svg").read_text("utf-8"))
    assert drawn[0] == drawn[1] != drawn[2]


def test_text_of_a_picture_is_that_of_the_terminal() -> None:
    assert shown_text(draw(LINES, 80, "a run")).splitlines() == [
        "$ amux",
        "* Bash ls & echo <x>",
        "+ completed 1 turn, DURATION",
    ]


def test_output_that_was_erased_is_not_in_the_picture() -> None:
    received = "working\r\x1b[Jdone\r\n\x1b[2mdim\x1b[0m\r\n"
    assert shown_text(draw(received, 80, "")).splitlines() == ["done", "dim"]


def test_output_that_is_too_long_for_a_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="more than"):
        draw("line\r\n" * MAX_ROWS, 80, "")


@pytest.mark.parametrize("name", NAMES)
def test_picture_names_no_path_of_this_machine_and_loads_nothing(name: str) -> None:
    drawn = pictures.path_of(name).read_text("utf-8")
    assert str(ROOT) not in drawn
    assert tempfile.gettempdir() not in drawn
    assert "url(http" not in drawn
    assert "@font-face" not in drawn


def test_every_picture_is_on_a_page_with_what_it_shows() -> None:
    shown = {
        name: text
        for page in PAGES
        for text, name in re.findall(r"!\[([^\]]+)\]\([^)]*/(\S+)\.svg\)", page.read_text())
    }
    assert set(shown) >= set(NAMES)
    assert {path.stem for path in pictures.IMAGES.glob("*.svg")} == set(NAMES)
