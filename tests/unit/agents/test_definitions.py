"""Skills and sub-agents: copied atomically, and only inside their folder."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.sample_agent import AGENT, INSTALLATION, sample_resolver

from agent_mux import AgentMuxError, CapabilityError, ValidationError
from agent_mux.agents import definitions
from agent_mux.agents.definitions import Definitions, skills, subagents
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import AgentInstallation, DefinitionFolder, DefinitionFolders

HEADER = "---\nname: dig\ndescription: Digs holes\n---\nDig.\n"


@pytest.fixture
def known(tmp_path: Path) -> Definitions:
    return skills(sample_resolver(tmp_path))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(HEADER, "utf-8")
    (folder / "scripts" / "dig.sh").write_text("#!/bin/sh\n", "utf-8")
    (folder / "scripts" / "dig.sh").chmod(0o755)
    return folder


def everything(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_add_list_and_remove_a_skill(known: Definitions, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "home" / ".wombat" / "skills" / "dig"
    done = known.add("wom", source)
    assert (done.target, done.files, done.replaces) == (target, (Path("SKILL.md"), Path("scripts/dig.sh")), False)
    assert os.access(target / "scripts" / "dig.sh", os.X_OK)
    [found] = known.list(AGENT)
    assert (found.name, found.scope, found.description, found.path) == (
        "dig",
        "global",
        "Digs holes",
        target / "SKILL.md",
    )
    known.remove(AGENT, "dig")
    assert known.list(AGENT) == []
    assert everything(tmp_path / "home") == [".wombat", ".wombat/skills"]


def test_name_and_scope_can_be_chosen(known: Definitions, source: Path, tmp_path: Path) -> None:
    known.add(AGENT, source / "SKILL.md", name="other", scope="project")
    assert (tmp_path / "project" / ".wombat" / "skills" / "other" / "scripts" / "dig.sh").is_file()
    assert known.list(AGENT, scope="global") == []
    known.remove(AGENT, "other")  # by the name of its folder, too


def test_force_replaces_the_whole_definition(known: Definitions, source: Path, tmp_path: Path) -> None:
    target = known.add(AGENT, source).target
    (target / "mine.txt").write_text("x", "utf-8")
    with pytest.raises(ValidationError, match="--force replaces it"):
        known.add(AGENT, source)
    assert (target / "mine.txt").exists()
    assert known.add(AGENT, source, force=True).replaces
    assert not (target / "mine.txt").exists()
    assert sorted(path.name for path in target.parent.iterdir()) == ["dig"]


def test_dry_run_changes_nothing(known: Definitions, source: Path, tmp_path: Path) -> None:
    before = everything(tmp_path)
    assert known.add(AGENT, source, dry_run=True).target.name == "dig"
    assert everything(tmp_path) == before
    known.add(AGENT, source)
    before = everything(tmp_path)
    known.remove(AGENT, "dig", dry_run=True)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["../x", "..", ".", "", "a/b", "/etc/x", "-x", ".hidden", "x\0", "a..b", "x" * 65])
def test_name_outside_the_folder_is_rejected(known: Definitions, source: Path, tmp_path: Path, name: str) -> None:
    (source / "SKILL.md").write_text(HEADER.replace("name: dig", f"name: {name!r}"), "utf-8")
    before = everything(tmp_path)
    with pytest.raises((ValidationError, AgentMuxError)):
        known.add(AGENT, source)
    if name:
        with pytest.raises(ValidationError):
            known.add(AGENT, source, name=name)
    assert everything(tmp_path) == before


def test_links_to_the_outside_are_rejected(known: Definitions, source: Path, tmp_path: Path) -> None:
    (source / "inside").symlink_to("SKILL.md")
    known.add(AGENT, source)
    (source / "outside").symlink_to("/etc")
    with pytest.raises(ValidationError, match="without links to the outside"):
        known.add(AGENT, source, force=True)
    assert not (tmp_path / "home" / ".wombat" / "skills" / "dig" / "outside").exists()


def test_link_to_itself_is_rejected(known: Definitions, source: Path) -> None:
    (source / "circle").symlink_to("circle")
    with pytest.raises(ValidationError, match="a folder of regular files"):
        known.add(AGENT, source)


def test_symlink_as_target_is_not_followed(known: Definitions, source: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "SKILL.md").write_text(HEADER, "utf-8")
    folder = tmp_path / "home" / ".wombat" / "skills"
    folder.mkdir(parents=True)
    (folder / "dig").symlink_to(elsewhere)
    for call in (lambda: known.add(AGENT, source, force=True), lambda: known.remove(AGENT, "dig")):
        with pytest.raises(ValidationError, match="not a symbolic link"):
            call()
    assert (elsewhere / "SKILL.md").exists()


def test_too_many_files_are_rejected(known: Definitions, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "MOST_FILES", 1)
    with pytest.raises(ValidationError, match="at most 1 files"):
        known.add(AGENT, source)


def test_source_that_is_not_a_skill_is_rejected(known: Definitions, source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"a folder with SKILL\.md"):
        known.add(AGENT, tmp_path / "nowhere")
    with pytest.raises(ValidationError, match=r"a folder with SKILL\.md"):
        known.add(AGENT, source / "scripts" / "dig.sh")
    (source / "SKILL.md").write_text("no header\n", "utf-8")
    with pytest.raises(AgentMuxError, match="has no header; it begins with a line ---"):
        known.add(AGENT, source)
    (source / "SKILL.md").write_text("---\nname: dig\n---\n", "utf-8")
    with pytest.raises(ValidationError, match="a header with description"):
        known.add(AGENT, source)
    (source / "SKILL.md").write_text("---\nname: [\n---\n", "utf-8")
    with pytest.raises(AgentMuxError, match=r"the header of .* cannot be read: line"):
        known.add(AGENT, source)


def test_unloadable_definition_is_listed_with_its_problem(known: Definitions, tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".agents" / "skills"
    for name, text in (("a", "none"), ("b", "---\nname: b\n---\n"), ("c", HEADER)):
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(text, "utf-8")
    (folder / "stray.txt").write_text("x", "utf-8")
    a, b, c = known.list(AGENT)
    assert [one.name for one in (a, b, c)] == ["a", "b", "dig"]
    assert a.problem is not None
    assert "has no header" in a.problem
    assert (b.problem, c.problem) == ("its header lacks description", None)
    assert c.is_shared
    with pytest.raises(ValidationError, match="did you mean 'dig'"):
        known.remove(AGENT, "digg")
    with pytest.raises(ValidationError):  # shared definitions are not removed
        known.remove(AGENT, "dig")


def test_objection_of_the_folder_is_the_problem(tmp_path: Path) -> None:
    def objection(place: AgentPaths, main: Path, name: str) -> str | None:
        return None if (main.parent / "agreed").read_text("utf-8") == f"{name} in {place.project}" else "ask first"

    folder = DefinitionFolder(scope="global", path=lambda place: place.home / "skills", objection=objection)
    kept = DefinitionFolders(folders=(folder,), layout="folder", file="SKILL.md")
    known = skills(sample_resolver(tmp_path, AgentInstallation(skills=kept)))
    place = tmp_path / "home" / "skills" / "dig"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(HEADER, "utf-8")
    [unread] = known.list(AGENT)
    assert unread.problem == f"cannot read {place / 'SKILL.md'}: No such file or directory"
    (place / "agreed").write_text("no", "utf-8")
    assert [one.problem for one in known.list(AGENT)] == ["ask first"]
    (place / "agreed").write_text(f"dig in {tmp_path / 'project'}", "utf-8")
    assert [one.problem for one in known.list(AGENT)] == [None]
    (place / "SKILL.md").write_text("---\nname: dig\n---\n", "utf-8")
    assert [one.problem for one in known.list(AGENT)] == ["its header lacks description"]


def test_subagents_are_single_files(tmp_path: Path) -> None:
    known = subagents(sample_resolver(tmp_path))
    file = tmp_path / "digger.toml"
    file.write_text('name = "digger"\ndescription = "Digs"\n', "utf-8")
    with pytest.raises(CapabilityError, match="sub-agents for the scope 'global'"):
        known.add(AGENT, file)
    done = known.add(AGENT, file, scope="project")
    assert done.target == tmp_path / "project" / ".wombat" / "agents" / "digger.toml"
    assert [one.name for one in known.list(AGENT)] == ["digger"]
    with pytest.raises(ValidationError, match="a file, for example"):
        known.add(AGENT, tmp_path, scope="project")
    known.remove(AGENT, "digger")
    assert known.list(AGENT) == []


def test_agent_without_skills_raises_capability_error(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="skills through agent-mux"):
        skills(sample_resolver(tmp_path, AgentInstallation())).list(AGENT)


def test_nested_folders_are_searched_up_to_the_depth(tmp_path: Path, source: Path) -> None:
    assert INSTALLATION.skills is not None
    deeper = replace(INSTALLATION, skills=replace(INSTALLATION.skills, depth=3))
    root = tmp_path / "home" / ".wombat" / "skills"
    for place in ("a", "group/b", "group/more/c", "group/more/much/d", ".hidden/e", "a/inside/f"):
        shutil.copytree(source, root / place)
    (root / "group" / "round").symlink_to(root)
    found = skills(sample_resolver(tmp_path, deeper)).list(AGENT)
    assert [one.path.parent.relative_to(root) for one in found] == [Path("a"), Path("group/b"), Path("group/more/c")]
    assert [one.path.parent.name for one in skills(sample_resolver(tmp_path)).list(AGENT)] == ["a"]
