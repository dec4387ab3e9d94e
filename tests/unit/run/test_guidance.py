"""Guidance for one run: a document and skills in the system prompt."""

from pathlib import Path

import pytest

from agent_mux import RunOptions, ValidationError
from agent_mux.run import guidance
from agent_mux.run.guidance import add_guidance
from agent_mux.sdk.options import validate_options


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "dig"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: digging\ndescription: Digs\n  holes\n---\nDig.\n", "utf-8")
    return folder


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "GUIDE.md"
    path.write_text("Use tabs.\n", "utf-8")
    return path


def guided_options(**fields: object) -> RunOptions:
    return add_guidance(RunOptions(agent="a", prompt="p", **fields))  # type: ignore[arg-type]


def test_options_without_guidance_are_unchanged() -> None:
    options = RunOptions(agent="a", prompt="p", system_prompt="s")
    assert add_guidance(options) is options


def test_a_document_and_skills_follow_the_system_prompt(skill: Path, document: Path) -> None:
    options = guided_options(
        agents_doc=document, skills=[str(skill)], system_prompt="Be brief.", system_prompt_mode="replace"
    )
    assert options.system_prompt is not None
    first, heading, text, skills = options.system_prompt.split("\n\n")
    assert (first, heading, text) == ("Be brief.", "Instructions for this project:", "Use tabs.")
    assert skills.splitlines()[-1] == f"- digging: Digs holes (file: {skill / 'SKILL.md'})"
    assert options.system_prompt_mode == "replace"


def test_guidance_without_a_system_prompt_is_appended(document: Path) -> None:
    options = guided_options(agents_doc=str(document), system_prompt_mode="replace")
    assert options.system_prompt_mode == "append"


def test_a_skill_may_be_given_as_its_file(skill: Path) -> None:
    assert (
        guided_options(skills=[str(skill / "SKILL.md")]).system_prompt
        == guided_options(skills=[str(skill)]).system_prompt
    )


def test_invalid_documents_and_skills_are_refused(tmp_path: Path, skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError, match=r"skills\[1\]: got .*allowed: a folder with SKILL.md"):
        guided_options(skills=[str(skill), str(tmp_path)])
    (skill / "SKILL.md").write_text("---\nname: x\n---\n", "utf-8")
    with pytest.raises(ValidationError, match="a skill whose header has a description"):
        guided_options(skills=[str(skill)])
    with pytest.raises(ValidationError, match=r"agents_doc: got .*No such file"):
        guided_options(agents_doc=tmp_path / "nothing")
    monkeypatch.setattr(guidance, "MAX_DOCUMENT_SIZE", 3)
    (tmp_path / "long").write_text("four", "utf-8")
    with pytest.raises(ValidationError, match="at most 3 bytes"):
        guided_options(agents_doc=tmp_path / "long")


@pytest.mark.parametrize("skills", ["a", [3], [""], 3])
def test_skills_must_be_a_list_of_folders(skills: object) -> None:
    with pytest.raises(ValidationError, match=r"skills(\[0\])?: got"):
        validate_options(RunOptions(agent="a", prompt="p", skills=skills))  # type: ignore[arg-type]
