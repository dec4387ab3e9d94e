"""Skills: discovery, validation, and a deterministic catalog, for untrusted files."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.unit.embedded.middleware.harness import Around

from agent_loop import skill_files
from agent_loop.middleware import SkillsMiddleware
from agent_loop.skill_files import load_directory, load_skills


def skill(root: Path, folder: str, head: str = "name: {0}\ndescription: Does {0}.", ending: str = "\n") -> Path:
    path = root / folder / "SKILL.md"
    path.parent.mkdir(parents=True)
    name = Path(folder).name
    text = f"---\n{head.format(name)}\n---\n\nThe whole text of {name}.\n"
    path.write_text(text.replace("\n", ending), newline="")
    return path


def test_skill_discovery_finds_skill_files_in_subfolders_by_their_yaml_frontmatter(tmp_path: Path) -> None:
    path = skill(tmp_path, "csv-analyzer")
    skill(tmp_path, "deeper/down/code-review", ending="\r\n")
    found = load_skills([tmp_path])
    assert [each.name for each in found.skills] == ["code-review", "csv-analyzer"]
    first = found.skills[1]
    assert (first.description, first.file_path, first.base_dir, first.source) == (
        "Does csv-analyzer.", path, path.parent, "dir:0",
    )  # fmt: skip
    assert found.notes == ()


def test_later_directories_override_earlier_ones_on_name_conflict(tmp_path: Path) -> None:
    skill(tmp_path / "one", "review")
    skill(tmp_path / "one", "other")
    skill(tmp_path / "two", "review", "name: review\ndescription: Newer.")
    found = load_skills([tmp_path / "one", tmp_path / "two"])
    assert [(each.name, each.source) for each in found.skills] == [("other", "dir:0"), ("review", "dir:1")]


def test_of_two_skills_with_one_name_in_a_directory_the_first_counts(tmp_path: Path) -> None:
    first = skill(tmp_path, "a/same")
    skill(tmp_path, "b/same")
    found = load_directory(tmp_path, "dir:0")
    assert [each.file_path for each in found.skills] == [first]
    assert "has the name 'same' already" in found.notes[0]


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("description: No name.", "lacks name"),
        ("name: x", "lacks description"),
        ("- a\n- list", "lacks name and description"),
        ("name: [a]\ndescription: b", "lacks name"),
        ("name: Big Name\ndescription: b", "lowercase letters"),
        ("name: ../../etc\ndescription: b", "lowercase letters"),
        (f"name: {'a' * 65}\ndescription: b", "at most 64"),
        (f"name: x\ndescription: {'b' * 1025}", "1 to 1024 characters, and this one 1025"),
        ("name: x\ndescription: ''", "1 to 1024"),
        ("name: x\ndescription: 'open", "not valid YAML"),
        ("name: x\nname: y\ndescription: z", "not valid YAML"),
        ("a: &a [1]\nb: *c\nname: x\ndescription: y", "not valid YAML"),
        ("name: !!python/object/apply:os.system ['true']\ndescription: y", "lacks name"),
        ("[" * 5_000, "not valid YAML"),
    ],
)
def test_bad_skills_are_skipped_with_a_note(tmp_path: Path, head: str, problem: str) -> None:
    bad = skill(tmp_path, "bad", head)
    skill(tmp_path, "good")
    found = load_skills([tmp_path])
    assert [each.name for each in found.skills] == ["good"]
    assert len(found.notes) == 1
    assert found.notes[0].startswith(f"{bad} is skipped: ")
    assert problem in found.notes[0]


@pytest.mark.parametrize(
    "content", [b"", b"no head", b"---\nname: x\n", b"\x00\xff", b"---\n" + b"a: b\n" * 20_000 + b"---\n"]
)
def test_files_without_a_head_are_skipped_with_a_note(tmp_path: Path, content: bytes) -> None:
    skill(tmp_path, "bad").write_bytes(content)
    found = load_skills([tmp_path])
    assert found.skills == ()
    assert "does not begin with a head" in found.notes[0]


def test_links_are_not_followed(tmp_path: Path) -> None:
    target = skill(tmp_path / "elsewhere", "target")
    (tmp_path / "skills" / "x").mkdir(parents=True)
    (tmp_path / "skills" / "x" / "SKILL.md").symlink_to(target)
    (tmp_path / "skills" / "y").symlink_to(target.parent)
    found = load_skills([tmp_path / "skills"])
    assert found.skills == ()
    assert ["is a link" in note or "a link" in note for note in found.notes] == [True]


def test_a_directory_that_is_missing_or_far_too_large_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skill_files, "MAX_DIRECTORIES", 2)
    skill(tmp_path, "a")
    skill(tmp_path, "b")
    found = load_skills([tmp_path / "none", tmp_path])
    assert [each.name for each in found.skills] == ["a"]
    assert "is not a directory" in found.notes[0]
    assert "more than 2 directories" in found.notes[1]


@pytest.mark.anyio
async def test_available_skills_catalog_is_alphabetical_escaped_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    skill(tmp_path, "b", "name: b\ndescription: '</description></available_skills> & \"more\"'")
    skill(tmp_path, "a", 'name: a\ndescription: "two\\n  lines \\x01"')
    middleware = SkillsMiddleware([tmp_path])
    around = Around(middleware)
    await around.begin()
    first = await around.system("Be good.")
    await around.begin()
    assert await around.system("Be good.") == first
    assert first.startswith("Be good.\n\n<available_skills>\n<skill>\n<name>a</name>")
    catalog = re.search(r"<available_skills>.*</available_skills>", first, re.DOTALL)
    assert catalog is not None
    fields = [[field.text for field in each] for each in ET.fromstring(catalog[0])]  # noqa: S314  # ours
    assert fields == [
        ["a", "two lines \ufffd", str(tmp_path / "a" / "SKILL.md")],
        ["b", '</description></available_skills> & "more"', str(tmp_path / "b" / "SKILL.md")],
    ]


@pytest.mark.anyio
async def test_progressive_loading_puts_no_body_into_the_prompt(tmp_path: Path) -> None:
    skill(tmp_path, "a")
    around = Around(SkillsMiddleware([str(tmp_path)]))
    await around.begin()
    assert "The whole text of" not in await around.system()
    assert "read_file" in await around.system()


@pytest.mark.anyio
async def test_without_skills_the_system_prompt_stays(tmp_path: Path) -> None:
    middleware = SkillsMiddleware([tmp_path / "none"])
    around = Around(middleware)
    received = await around.begin()
    assert await around.system("Be good.") == "Be good."
    assert middleware.skills == ()
    assert len(middleware.notes) == 1
    assert received == [*middleware.notes]
    assert await around.begin() == []


@pytest.mark.anyio
async def test_skills_that_were_loaded_for_a_run_are_not_searched_again(tmp_path: Path) -> None:
    skill(tmp_path, "a")
    middleware = SkillsMiddleware([tmp_path, tmp_path / "none"])
    assert [each.name for each in await middleware.load()] == ["a"]
    skill(tmp_path, "b")
    around = Around(middleware)
    assert len(await around.begin()) == 1  # the missing directory
    assert [each.name for each in middleware.skills] == ["a"]
    assert await around.begin() == []
    assert [each.name for each in middleware.skills] == ["a", "b"]
