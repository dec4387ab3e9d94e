"""Every command of `amux` is known in all the places that the recipe "Add a command" names."""

import re

from tests.unit.cli.test_bad_input import CASES, WITHOUT_INPUT
from tests.unit.cli.test_examples import WITHOUT, commands
from tests.unit.contributing.recipes import Place, check_places, paths_on_page, text_of

from agent_mux.cli.app import command
from agent_mux.cli.command_catalog import load_catalog
from agent_mux.cli.examples import EXAMPLES

COMMANDS = sorted(commands(command()))
"""The commands as they are typed: `run`, `sessions list`."""
IN_NO_GUIDE = {"completion", "version", "help"}
"""Commands that their own help explains completely."""
GUIDES = "\n".join((*(text_of(f"docs/{name}", "*.md") for name in ("how-to", "tutorial")), text_of("README.md")))


def in_guide(name: str) -> bool:
    first = name.split(maxsplit=1)[0]
    return name in IN_NO_GUIDE or re.search(rf"\bamux (?:--?\S+ )*{re.escape(first)}\b", GUIDES) is not None


def bad_inputs(name: str) -> int:
    words = name.split()
    return sum([str(word) for word in arguments[: len(words)]] == words for arguments, _, _ in CASES)


def runs_live(name: str) -> bool:
    """Return whether a test of the real CLIs names the command, in whole or in parts (`word`, verb)."""
    words = name.split()
    return all(f'"{word}"' in text_of("tests/e2e") for word in words)


PLACES = (
    Place("src/agent_mux/cli/app.py", "the registration of the command or of its group", lambda name: name in COMMANDS),
    Place(
        "src/agent_mux/cli/examples.py",
        "an example, or WITHOUT in tests/unit/cli/test_examples.py",
        lambda name: name in EXAMPLES or name in WITHOUT or bool(set(EXAMPLES) & {name.removeprefix("config ")}),
    ),
    Place(
        "tests/unit/cli/test_bad_input.py",
        "three bad inputs, or WITHOUT_INPUT",
        lambda name: bad_inputs(name) >= 3 or tuple(name.split()) in WITHOUT_INPUT,
    ),
    Place(
        "tests/unit/cli/snapshots/help.txt",
        "its help (`AMUX_UPDATE_GOLDENS=1 pytest tests/unit/cli/test_snapshots.py`)",
        lambda name: re.search(rf"amux {re.escape(name)}\b", text_of("tests/unit/cli/snapshots/help.txt")) is not None,
    ),
    Place(
        "tests/e2e/test_live_commands.py",
        "a call in the home of a real CLI, or TESTED_ELSEWHERE",
        runs_live,
    ),
    Place(
        "docs/reference/cli.md",
        "its section in the generated page (`make docs`)",
        lambda name: (
            re.search(rf"^#+ `?amux {re.escape(name)}\b", text_of("docs/reference/cli.md"), re.MULTILINE) is not None
        ),
    ),
    Place(
        "src/agent_mux/cli/generated/",
        "its entry in the generated data of help pages (`make docs`)",
        lambda name: name in load_catalog(),
    ),
    Place("docs/how-to/", "a guide that shows it or its group, or IN_NO_GUIDE in test_command_recipe.py", in_guide),
)


def test_every_command_is_known_in_every_place() -> None:
    check_places("command", COMMANDS, PLACES)


def test_recipe_names_the_places() -> None:
    assert paths_on_page("command") == [place.path for place in PLACES]
