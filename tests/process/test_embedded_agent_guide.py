"""The examples of the embedded agent in the docs that need no key work as documented."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pexpect
import pyte
import pytest
from tests.process.installed_command import AMUX, PATIENCE, Installed

from agent_loop.providers.access import VARIABLES
from agent_loop.providers.default_models import DEFAULT_MODELS
from agent_mux import decode_event, validate

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to" / "use-the-embedded-agent.md").read_text("utf-8")
TUTORIAL = (DOCS / "tutorial" / "getting-started.md").read_text("utf-8")
SCRIPT = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
EXAMPLES = re.findall(r"```console\n\$ (amux\S* .*scripted:.*)\n((?:(?!\$).*\n)*?)```", PAGE)
PROGRAMS = {"amux": "agent_mux.cli.main", "amux-agent": "agent_loop.cli.main"}


def test_page_has_an_example_of_each_command() -> None:
    assert [command.split()[0] for command, _ in EXAMPLES] == ["amux", "amux-agent"]


@pytest.mark.slow
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


def test_page_lists_the_default_model_of_each_key() -> None:
    for provider, model in DEFAULT_MODELS.items():
        keys = " or ".join(f"`{name}`" for name in VARIABLES[provider].api_key)
        assert f"{keys} selects `{provider}:{model}`" in " ".join(PAGE.split())


@pytest.mark.slow
def test_tutorial_runs_the_embedded_agent_as_shown(tmp_path: Path) -> None:
    installed = Installed(tmp_path)
    [script] = re.findall(r"```toml\n(.*?)```", TUTORIAL, re.DOTALL)
    [shown] = re.findall(r"^\$ amux run native .*\n((?:(?!\$|```).*\n)+)", TUTORIAL, re.MULTILINE)
    commands = re.findall(r"^\$ amux (run native .*)$", TUTORIAL, re.MULTILINE)
    assert len(commands) == 2
    (installed.home / "greet.toml").write_text(script)
    shell = pexpect.spawn(
        str(AMUX), shlex.split(commands[0]), env=installed.environment("", {"NO_COLOR": "1"}), cwd=installed.home,
        dimensions=(40, 240), encoding="utf-8", timeout=PATIENCE,
    )  # fmt: skip
    try:
        shell.expect_exact("[a]lways? ")
        asked = shell.before + shell.after
        shell.sendline("y")
        shell.expect(pexpect.EOF)
    finally:
        shell.close(force=True)
    assert [without_values(line) for line in lines_on_screen(asked + shell.before)] == [
        without_values(line) for line in shown.splitlines()
    ]
    line, _ = commands[1].split(" > ")
    done = installed.run(*shlex.split(line))
    *events, result = done.stdout.splitlines()
    assert validate([decode_event(event) for event in events]) == []
    assert json.loads(result)["exitReason"] == "completed"


def lines_on_screen(received: str) -> list[str]:
    """Return what a terminal of 240 columns shows in the end, without what was erased."""
    screen = pyte.Screen(240, 200)
    pyte.Stream(screen).feed(received)
    return "\n".join(line.rstrip() for line in screen.display).rstrip().splitlines()


def without_values(line: str) -> str:
    """Return a line of a terminal without what differs between two runs: ids, durations and the home directory."""
    line = re.sub(r"\S+/(?:\.agent-mux|config)/runs/\w+\.journal", "JOURNAL", line)
    return re.sub(r"session \w+|\b[\d.]+ (?:ms|s)\b", "VALUE", line)
