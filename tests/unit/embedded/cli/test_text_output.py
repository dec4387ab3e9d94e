"""The text of `amux-agent`: the answer on standard output, warnings on standard error."""

from collections.abc import Iterable
from typing import Any, cast

import pytest

from agent_loop.cli.stream import EmittedEvent
from agent_loop.cli.terminal import TextOutput
from agent_mux.cli.output import Chunk, OutputWriter, Screen
from agent_mux.events import DebugEvent, MessageStopEvent


class Written:
    def __init__(self) -> None:
        self.chunks: list[Chunk] = []

    def add(self, chunks: Iterable[Chunk]) -> None:
        self.chunks += chunks

    def text(self, stream: str) -> str:
        return "".join(chunk.text for chunk in self.chunks if chunk.stream == stream)


@pytest.mark.parametrize("shows_work", [False, True])
def test_warnings_reach_standard_error_that_is_no_terminal(*, shows_work: bool) -> None:
    written = Written()
    output = TextOutput(cast("OutputWriter", written), Screen(), shows_work=shows_work)
    base: dict[str, Any] = {"run_id": "r", "agent": "native", "timestamp": 0}
    warning = DebugEvent(**base, level="warn", message="commands are not sandboxed:\x1b[2J no Landlock")
    note = DebugEvent(**base, level="info", message="using a model")
    output.show([EmittedEvent(event, {}) for event in (warning, note, MessageStopEvent(**base, text="Done."))])
    assert written.text("err").count("commands are not sandboxed") == 1
    assert "\x1b[2J" not in written.text("err")
    if not shows_work:
        assert written.text("err") == "amux-agent: warning: commands are not sandboxed: no Landlock\n"
