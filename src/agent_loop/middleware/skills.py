"""Skills as a catalog in the system prompt, whose files the model reads on demand.

This middleware needs nothing but file tools. `Agent(skills=...)` adds tools that activate skills and run their scripts.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path

from anyio import to_thread

from agent_loop.hooks.contexts import BeforeAgent, TransformSystem
from agent_loop.hooks.registry import Hooks
from agent_loop.skill_files import Skill, SkillSet, load_skills, xml_text

HOW_TO_USE = (
    "Skills are instructions for certain kinds of work. Where one fits what you are asked to do, read the file at its "
    "location with read_file before you begin, and follow it. Paths in it are relative to its directory."
)


class SkillsMiddleware:
    """Appends a catalog of the skills in and below `paths`. Each run searches them at its start.

    A program that shows the skills before its first run calls `load` itself, and that run does not search again.

    The model reads skills with its file tools: make directories outside of the workspace readable (`readable`).
    """

    name = "skills"

    def __init__(self, paths: Sequence[str | PathLike[str]]) -> None:
        self.paths = tuple(Path(path) for path in paths)
        self.skill_set = SkillSet()
        self._catalog = ""
        self._reported: tuple[str, ...] = ()
        self._is_loaded = False
        """Whether `load` was called for the next run."""

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills of the latest run, sorted by name."""
        return self.skill_set.skills

    @property
    def notes(self) -> tuple[str, ...]:
        """Skipped files with the reasons; a run reports only new notes."""
        return self.skill_set.notes

    def install(self, hooks: Hooks) -> None:
        """Register the handlers that load the skills and append the catalog."""
        hooks.on("agent:before", self._discover)
        hooks.on("system:transform", self._append_catalog)

    async def load(self) -> tuple[Skill, ...]:
        """Search the directories for the next run and return the skills, sorted by name."""
        self.skill_set = await to_thread.run_sync(partial(load_skills, self.paths))
        self._catalog = format_for_prompt(self.skill_set.skills)
        self._is_loaded = True
        return self.skills

    async def _discover(self, context: BeforeAgent) -> None:
        if not self._is_loaded:
            await self.load()
        self._is_loaded = False
        context.notes.extend(note for note in self.notes if note not in self._reported)
        self._reported = self.notes

    def _append_catalog(self, context: TransformSystem) -> None:
        context.system = "\n\n".join(part for part in (context.system, self._catalog) if part)


def format_for_prompt(skills: Iterable[Skill]) -> str:
    """Return the catalog, deterministic for equal skills; empty without skills."""
    entries = [_entry(skill) for skill in sorted(skills, key=lambda skill: skill.name)]
    if not entries:
        return ""
    return "\n".join(("<available_skills>", *entries, "</available_skills>", "", HOW_TO_USE))


def _entry(skill: Skill) -> str:
    fields = {"name": skill.name, "description": skill.description, "location": str(skill.file_path)}
    return "\n".join(("<skill>", *(f"<{key}>{xml_text(value)}</{key}>" for key, value in fields.items()), "</skill>"))
