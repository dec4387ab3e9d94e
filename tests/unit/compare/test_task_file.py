"""Values of a task file with the wrong type, each reported with the right form."""

from pathlib import Path

import pytest

from agent_mux.compare.task_file import read_task_file
from agent_mux.errors import AgentMuxError


@pytest.mark.parametrize(
    ("text", "form"),
    [("prompt = 1", 'prompt must be given as prompt = "text"'), ("candidates = 1", r"given as \[\[candidates\]\]")],
)
def test_value_of_the_wrong_type_is_reported_with_its_form(tmp_path: Path, text: str, form: str) -> None:
    path = tmp_path / "compare.toml"
    path.write_text(text)
    with pytest.raises(AgentMuxError, match=form) as caught:
        read_task_file(path)
    assert caught.value.code == "CONFIG_ERROR"
