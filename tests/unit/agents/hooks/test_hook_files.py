"""Whether a run has to look for hooks at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent_mux.agents.hooks.files import FILE_NAME, has_hooks_file


@pytest.mark.parametrize("place", ["own", "project/.agent-mux"])
def test_a_file_of_the_user_or_of_the_project_is_found(tmp_path: Path, place: str) -> None:
    directory = tmp_path / "project" / "src"
    directory.mkdir(parents=True)
    assert not has_hooks_file(directory, tmp_path / "own")
    file = tmp_path / place / FILE_NAME
    file.parent.mkdir(exist_ok=True)
    file.write_text("{}")
    assert has_hooks_file(directory, tmp_path / "own")


def test_the_file_of_a_named_project_is_found(tmp_path: Path) -> None:
    (tmp_path / "named" / ".agent-mux").mkdir(parents=True)
    assert not has_hooks_file(tmp_path, tmp_path / "own", tmp_path / "named")
    (tmp_path / "named" / ".agent-mux" / FILE_NAME).symlink_to("missing")
    assert has_hooks_file(tmp_path, tmp_path / "own", tmp_path / "named"), "a broken link is an error, not an absence"


@pytest.mark.slow
def test_looking_for_files_imports_no_hooks() -> None:
    program = (
        "import sys, agent_mux.client.local, agent_mux.agents.hooks.files\n"
        "print(sorted({'agent_mux.sdk.hooks', 'agent_mux.run.hooks', 'agent_mux.agents.hooks.registrations',"
        " 'agent_mux.sdk.installation', 'agent_mux.agents.detection', 'agent_mux.sdk.policy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "[]\n"
