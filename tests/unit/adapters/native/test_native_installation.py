"""What the embedded agent keeps on a machine: skills of the user, and those of a project with the state of trust."""

import json
from pathlib import Path

import pytest

from agent_mux.agents.definitions import Definition, skills
from agent_mux.agents.installations import InstallationResolver


class Machine:
    """A home and a project of the embedded agent."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "work" / "project"
        self.write(self.home / "skills", "own")
        self.write(self.project / ".agents" / "skills", "shared")
        self.write(self.project / ".claude" / "skills", "claude")

    def write(self, folder: Path, name: str) -> None:
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Test.\n---\nText.\n", "utf-8")

    def trust(self, value: object) -> None:
        (self.home / "settings.json").write_text(json.dumps({"trustedProjects": value}), "utf-8")

    def list(self) -> list[Definition]:
        environ = {"HOME": str(self.home), "AMUX_AGENT_HOME": str(self.home)}
        return skills(InstallationResolver(project=self.project, environ=environ)).list("native")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_skills_of_the_project_are_listed_as_not_trusted(machine: Machine) -> None:
    reason = f"the project is not trusted; add it to trustedProjects in {machine.home}/settings.json, or pass "
    problem = f"{reason}--trust-project-skills"
    assert [(one.name, one.scope, one.problem) for one in machine.list()] == [
        ("own", "global", None), ("shared", "project", problem), ("claude", "project", problem),
    ]  # fmt: skip


def test_skills_of_a_trusted_project_have_no_problem(machine: Machine) -> None:
    for trusted in (machine.project, machine.project.parent):
        machine.trust([str(trusted)])
        assert [one.problem for one in machine.list()] == [None, None, None]


@pytest.mark.parametrize(
    "value", [[], ["/elsewhere"], [""], [5], ["~user-that-does-not-exist"], ["a\0b"], "work", None, {"work": True}]
)
def test_other_values_trust_no_project(machine: Machine, value: object) -> None:
    machine.trust(value)
    assert [one.problem is None for one in machine.list()] == [True, False, False]


def test_settings_that_are_not_json_trust_no_project(machine: Machine) -> None:
    (machine.home / "settings.json").write_text("{", "utf-8")
    assert [one.problem is None for one in machine.list()] == [True, False, False]
