"""The development install: its lock files and the pinned tools agree with pyproject.toml."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TESTING = tomllib.loads((ROOT / "testing/pyproject.toml").read_text("utf-8"))
OWN = {"agent-mux", "agent-mux-testing"}


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements() -> list[Requirement]:
    """Return what the development install needs: both distributions, the extras that the group names, the group."""
    group = [Requirement(one) for one in PROJECT["dependency-groups"]["dev"]]
    extras = {extra for one in group if one.name == "agent-mux" for extra in one.extras}
    named = PROJECT["project"]["dependencies"] + TESTING["project"]["dependencies"]
    named += [one for extra in sorted(extras) for one in PROJECT["project"]["optional-dependencies"][extra]]
    return [one for one in [*map(Requirement, named), *group] if normalized(one.name) not in OWN]


def locked_for_pip() -> dict[str, Version]:
    text = (ROOT / "requirements-dev.txt").read_text("utf-8")
    return {
        normalized(name): Version(version)
        for name, version in re.findall(r"^([\w.-]+)==([^ ;\\]+)", text, re.MULTILINE)
    }


def locked_for_uv() -> dict[str, Version]:
    packages: list[dict[str, Any]] = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))["package"]
    return {normalized(one["name"]): Version(one["version"]) for one in packages if "version" in one}


@pytest.mark.parametrize("locked", [locked_for_pip, locked_for_uv])
def test_lock_contains_an_allowed_version_of_each_requirement(locked: Any) -> None:
    versions = locked()
    refused = [
        f"{one}: {versions.get(normalized(one.name), 'missing')}"
        for one in requirements()
        if (found := versions.get(normalized(one.name))) is None or found not in one.specifier
    ]
    assert refused == [], "run make lock"


def test_both_lock_files_have_the_same_versions() -> None:
    of_uv = locked_for_uv()
    assert {name: version for name, version in locked_for_pip().items() if of_uv.get(name) != version} == {}


def test_pre_commit_uses_the_pinned_ruff() -> None:
    (pinned,) = [one for one in PROJECT["dependency-groups"]["dev"] if one.startswith("ruff")]
    hooks = YAML(typ="safe").load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
    used = {hook["id"]: hook["additional_dependencies"] for hook in hooks if hook["id"].startswith("ruff")}
    assert used == {"ruff-check": [pinned], "ruff-format": [pinned]}


@pytest.mark.parametrize("job", ["check", "test", "test-slow", "e2e"])
def test_the_workflow_runs_commands_of_the_makefile(job: str) -> None:
    jobs = YAML(typ="safe").load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    commands = [step["run"] for step in jobs[job]["steps"] if "run" in step]
    own = (ROOT / ".ci/run").read_text("utf-8").splitlines()
    assert commands
    assert [command for command in commands if command.removesuffix(" PYTHON=python") not in own] == []
