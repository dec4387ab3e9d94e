"""Where the skills of an agent come from, which of them take precedence, and what they may do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from agent_loop.checked import check_fields
from agent_loop.errors import ConfigurationError
from agent_loop.skill_files import Skill, SkillSet, check_skill, load_directory

SkillDirectories = Sequence[str | PathLike[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSettings:
    """The skills of an agent. Raises `ConfigurationError` for invalid values.

    Of equal names, `inline` takes precedence over `project`, that over `user`, and that over `builtin`; within one of
    these, the first counts.
    """

    inline: Sequence[Skill | str | PathLike[str]] = ()
    """Skills, and directories, that the caller names for this agent."""
    project: SkillDirectories = ()
    """Directories of the project on which the agent works. They are used only with `trust_project`."""
    user: SkillDirectories = ()
    """Directories of the user."""
    builtin: SkillDirectories = ()
    """Directories that are part of the application."""
    trust_project: bool = False
    """Whether skills of the project are used: instructions and scripts by whoever wrote the project."""
    max_active: int | None = None
    """Number of skills that may be active at the same time; None: any number."""
    shell_interpolation: bool = False
    """Whether the commands in ``!`command` `` of instructions run when the skill is activated. Their output replaces
    them. The tool `skills_use` then is one that runs commands, for gates and approvals.
    """
    scripts: bool = True
    """Whether the model gets the tool `skills_run_script`."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.max_active is not None and self.max_active < 1:
            raise ConfigurationError("max_active must be at least 1; None allows any number of active skills")
        for skill in self.inline:
            if isinstance(skill, Skill):
                _check_inline(skill)
            elif not isinstance(skill, str | PathLike):
                raise ConfigurationError(f"{skill!r} is neither a directory of skills nor a Skill(...)")


def _check_inline(skill: Skill) -> None:
    try:
        check_skill(skill)
    except ValueError as error:
        raise ConfigurationError(f"the skill {skill.name[:80]!r} is invalid: {error}") from None
    if skill.body is None and skill.file_path is None:
        raise ConfigurationError(f"the skill {skill.name!r} has neither a body nor a file; pass one of them")


def as_settings(skills: SkillSettings | SkillDirectories) -> SkillSettings:
    """Return the settings, or those of a list of directories."""
    return skills if isinstance(skills, SkillSettings) else SkillSettings(inline=tuple(skills))


def find_skills(settings: SkillSettings) -> SkillSet:
    """Return the skills that count. Blocking. Never raises: invalid files become notes."""
    found = SkillSet()
    for skill_set in reversed(list(_sets(settings))):
        found = found.merge(skill_set)
    return found


def _sets(settings: SkillSettings) -> Iterator[SkillSet]:
    """Yield the skills of each entry, in the order of precedence."""
    for entry in settings.inline:
        if isinstance(entry, Skill):
            yield SkillSet((replace(entry, source="inline"),))
        else:
            yield load_directory(Path(entry), "inline")
    if settings.trust_project:
        yield from (load_directory(Path(each), "project") for each in settings.project)
    elif ignored := [str(each) for each in settings.project if Path(each).is_dir()]:
        yield SkillSet(notes=(f"skills in {', '.join(ignored)} are not used: the project is not trusted",))
    yield from (load_directory(Path(each), "user") for each in settings.user)
    yield from (load_directory(Path(each), "builtin") for each in settings.builtin)
