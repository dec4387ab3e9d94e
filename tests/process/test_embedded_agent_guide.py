"""The examples of docs/how-to/use-the-embedded-agent.md that need no key work as documented."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agent_loop.providers.access import VARIABLES

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "use-the-embedded-agent.md").read_text("utf-8")
SCRIPT = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
EXAMPLES = re.findall(r"```console\n\$ (amux\S* .*scripted:.*)\n((?:(?!\$).*\n)*?)```", PAGE)
PROGRAMS = {"amux": "agent_mux.cli.main", "amux-agent": "agent_loop.cli.main"}


def test_page_has_an_example_of_each_command() -> None:
    assert [command.split()[0] for command, _ in EXAMPLES] == ["amux", "amux-agent"]


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=lambda value: value.split()[0])
def test_example_prints_the_output_on_the_page(command: str, shown: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "greet.toml").write_text(SCRIPT)
    program, *arguments = shlex.split(command)
    start = f"import sys; from {PROGRAMS[program]} import main; sys.exit(main())"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AMUX", "AGENT_MUX"))}
    done = subprocess.run(
        [sys.executable, "-c", start, *arguments], cwd=work, capture_output=True, text=True, check=True, timeout=60,
        stdin=subprocess.DEVNULL,
        env={**environment, "AMUX_AGENT_HOME": str(tmp_path / "agent"), "AGENT_MUX_CONFIG_DIR": str(tmp_path / "mux")},
    )  # fmt: skip
    assert done.stdout == shown
    assert (work / "hello.txt").read_text() == "Hello.\n"


def test_page_lists_every_provider_with_its_variables() -> None:
    rows = dict(re.findall(r"^\| `([\w-]+):\w+` \|(.*)$", PAGE, re.MULTILINE))
    assert set(rows) == set(VARIABLES)
    for vendor, names in VARIABLES.items():
        for needed in names.needs:
            (variable, *_) = getattr(names, needed)
            assert f"`{variable}`" in rows[vendor] or vendor == "openai-chat"
