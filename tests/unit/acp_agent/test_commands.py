"""The commands of a session in the editor."""

from pathlib import Path

import pytest

from agent_mux.acp_server.commands import MAX_COMMANDS, commands_of
from agent_mux.acp_server.prompts import EditorPrompt
from agent_mux.agents.definitions import Definition


def skill(name: str, *, problem: str | None = None, scope: str = "global", description: str | None = "d") -> Definition:
    path = Path("/s") / scope / name / "SKILL.md"
    return Definition(
        agent="a",
        name=name,
        scope=scope,
        path=path,
        description=description,
        problem=problem,  # type: ignore[arg-type]
    )


def test_usable_skills_are_commands_and_those_of_the_project_count() -> None:
    found = [skill("b", scope="project"), skill("b"), skill("a", description=None), skill("c", problem="broken")]
    commands = commands_of([*found, skill("two words")])
    assert [(one.name, one.description) for one in commands.available] == [("a", "skill a"), ("b", "d")]
    assert commands.paths["b"] == Path("/s/project/b/SKILL.md")
    assert commands_of([]).update() is None
    assert len(commands_of([skill(f"s{number}") for number in range(500)]).available) == MAX_COMMANDS


@pytest.mark.parametrize(("typed", "sent"), [
    ("/a", "Use the skill a (/s/global/a/SKILL.md)."),
    (" /a  fix\nit ", "Use the skill a (/s/global/a/SKILL.md).\n\nfix\nit"),
    ("/unknown x", "/unknown x"),
    ("/a/b is a path", "/a/b is a path"),
    ("look at /a", "look at /a"),
    ("", ""),
])  # fmt: skip
def test_prompt_that_calls_a_command_names_the_skill(typed: str, sent: str) -> None:
    assert commands_of([skill("a")]).expand(EditorPrompt(typed)).text == sent
