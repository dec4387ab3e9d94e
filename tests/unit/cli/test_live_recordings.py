"""The live view shows every recording of a real CLI: within the columns, without control characters, whole."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mux.cli.layout import cell_width
from agent_mux.cli.live.markdown import BlockSplitter, render_markdown
from agent_mux.cli.live.view import LiveView
from agent_mux.cli.output import Screen
from agent_mux.cli.terminal import Palette
from agent_mux.events import BaseEvent, decode_event

FIXTURES = Path(__file__).parents[3] / "fixtures"
AGENTS = sorted(folder.name for folder in FIXTURES.iterdir() if folder.is_dir())
SIZE_LIMIT = 100_000  # bytes
EVERY = 4  # recordings; the others differ in little that is shown
_STYLE = re.compile(r"\x1b\[[\d;]*m")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def recordings(agent: str) -> list[Path]:
    found = sorted(FIXTURES.joinpath(agent).glob("*/*/events.jsonl"))
    return [path for path in found if path.stat().st_size < SIZE_LIMIT][::EVERY]


@pytest.mark.parametrize("agent", AGENTS)
def test_recordings_fit_into_sixty_columns(agent: str) -> None:
    for path in recordings(agent):
        events = [decode_event(line) for line in path.read_bytes().splitlines() if line]
        name = str(path.relative_to(FIXTURES))
        rows = shown(events)
        for row in rows:
            assert _CONTROLS.search(_STYLE.sub("", row)) is None, (name, row)
            assert cell_width(row) <= 60 or len(max(row.split(), key=len)) > 40, (name, row)  # one long word
        text = re.sub(r"\s+", "", _STYLE.sub("", "".join(rows)))
        for event in events:
            if event.type == "message_stop" and event.subagent_id is None and event.text.isalnum():
                assert event.text in text, name


def shown(events: list[BaseEvent]) -> list[str]:
    """Return the rows of the scrollback, and check those of the footer."""
    view = LiveView(Screen(Palette(enabled=True), 60, out_is_terminal=True, shared=True), root="/home/dev/project")
    written = []
    for event in events:
        written += view.show(event)
        if event.type.endswith(("_start", "_ready", "_request")):
            for row in view.footer("agent", "model"):
                assert cell_width(row) < 60, row
    written += view.finish(())
    return "".join(chunk.text for chunk in written).split("\n")


TEXT = st.text(st.sampled_from("ab `*_#|[]()<>-+.1\n\t~\\&é日"), max_size=80)


@given(text=TEXT, size=st.integers(1, 20))
def test_splitting_and_rendering_never_fail_and_keep_the_words(text: str, size: int) -> None:
    splitter = BlockSplitter()
    blocks = [block for start in range(0, len(text), size) for block in splitter.feed(text[start : start + size])]
    blocks += splitter.finish()
    assert re.sub(r"\s+", "", "".join(blocks)) == re.sub(r"\s+", "", text)
    for block in blocks:
        for row in render_markdown(block, 40, styled=False):
            assert "\n" not in row
            assert "\x1b" not in row
