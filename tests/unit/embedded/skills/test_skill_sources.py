"""Where skills come from: precedence, trust, skills without files, and settings that are refused."""

from pathlib import Path

import pytest
from tests.unit.embedded.skills.worlds import SkillWorld, write_skill

from agent_loop import Agent, ConfigurationError, ScriptedProvider, Skill, SkillSettings
from agent_loop.events import Noted
from agent_loop.providers.script import say
from agent_loop.skill_files import parse_allowed_tools
from agent_loop.skills.settings import find_skills


def sources_of(settings: SkillSettings) -> dict[str, str]:
    return {skill.name: skill.source for skill in find_skills(settings).skills}


def test_precedence_is_inline_project_user_builtin_and_the_first_directory_of_a_source_counts(tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("builtin", "user", "user2", "project", "named")}
    for number, place in enumerate(places.values()):
        for name in ("a", "b", "c", "d")[: 4 - max(0, number - 1)]:
            write_skill(place, name, place.name)
    settings = SkillSettings(
        inline=[Skill("a", "Inline.", body="x")],
        project=[places["project"]],
        user=[places["user2"], places["user"]],
        builtin=[places["builtin"]],
        trust_project=True,
    )
    assert sources_of(settings) == {"a": "inline", "b": "project", "c": "user", "d": "user"}
    found = {skill.name: skill.file_path for skill in find_skills(settings).skills}
    assert found["c"] == places["user2"] / "c" / "SKILL.md"
    assert found["a"] is None
    named = SkillSettings(inline=[places["named"]], user=[places["user"]])
    assert sources_of(named)["a"] == "inline"


@pytest.mark.anyio
async def test_skills_of_a_project_are_used_only_if_it_is_trusted(tmp_path: Path) -> None:
    write_skill(tmp_path / "project", "theirs")
    write_skill(tmp_path / "home", "mine")
    for trusted, names in ((False, {"mine": "user"}), (True, {"mine": "user", "theirs": "project"})):
        settings = SkillSettings(project=[tmp_path / "project"], user=[tmp_path / "home"], trust_project=trusted)
        assert sources_of(settings) == names
        world = SkillWorld(tmp_path, skills=settings)
        await world.results()
        assert ("theirs" in world.provider.requests[0].system) is trusted
    [note] = find_skills(SkillSettings(project=[tmp_path / "project"])).notes
    assert "the project is not trusted" in note


@pytest.mark.anyio
async def test_notes_about_skipped_files_are_reported_once(tmp_path: Path) -> None:
    write_skill(tmp_path, "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").write_text("no head")
    model = ScriptedProvider([say("One."), say("Two.")])
    one = Agent(model, skills=[tmp_path])
    noted: list[str] = []

    async def note(event: object) -> None:
        if isinstance(event, Noted):
            noted.append(event.text)

    await one.run("go", on_event=note)
    await one.run("go", on_event=note)
    assert len(noted) == 1
    assert "does not begin with a head" in noted[0]


@pytest.mark.parametrize(
    ("skill", "problem"),
    [
        (Skill("Bad Name", "x", body="b"), "lowercase letters"),
        (Skill("good", "", body="b"), "1 to 1024 characters"),
        (Skill("good", "x"), "neither a body nor a file"),
    ],
)
def test_invalid_inline_skills_are_refused(skill: Skill, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        SkillSettings(inline=[skill])


def test_max_active_must_be_positive() -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        SkillSettings(max_active=0)


@pytest.mark.parametrize(
    ("value", "entries"),
    [
        (None, None),
        ("", None),
        ("Read, Grep", ("Read", "Grep")),
        ("Read Bash(git:*)  Write", ("Read", "Bash(git:*)", "Write")),
        (["Read", "Bash(npm run test:*)"], ("Read", "Bash(npm run test:*)")),
        ([], ()),
    ],
)
def test_allowed_tools_are_text_or_a_list(value: object, entries: object) -> None:
    assert parse_allowed_tools(value) == entries


@pytest.mark.parametrize("value", [{"a": "b"}, [["a"]], "Bash(git", "x)"])
def test_a_restriction_that_cannot_be_read_skips_the_skill(value: object) -> None:
    with pytest.raises(ValueError, match="allowed-tools"):
        parse_allowed_tools(value)
