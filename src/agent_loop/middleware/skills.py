"""Skills: a catalog in the system prompt; the model reads those that it needs. Source: hooks seed, section 6.2."""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from xml.sax.saxutils import escape

from anyio import to_thread

from agent_loop.hooks.contexts import BeforeAgent, TransformSystem
from agent_loop.hooks.registry import Hooks
from agent_loop.middleware.skill_files import Skill, SkillSet, load_skills

HOW_TO_USE = (
    "Skills are instructions for certain kinds of work. Where one fits what you are asked to do, read the file at its "
    "location with read_file before you begin, and follow it. Paths in it are relative to its directory."
)
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class SkillsMiddleware:
    """Appends the catalog of the skills in `paths`, and of those below them. They are looked for when a run begins.

    The model reads skills with its file tools: give the workspace the directories outside of it (`readable`).
    """

    name = "skills"

    def __init__(self, paths: Sequence[str | PathLike[str]]) -> None:
        self.paths = tuple(Path(path) for path in paths)
        self.found = SkillSet()
        self._catalog = ""

    @property
    def skills(self) -> tuple[Skill, ...]:
        """Those of the last run, by name."""
        return self.found.skills

    @property
    def notes(self) -> tuple[str, ...]:
        """What was passed over, and why: a run tells what those before it did not."""
        return self.found.notes

    def install(self, hooks: Hooks) -> None:
        """Register what it consists of."""
        hooks.on("agent:before", self._discover)
        hooks.on("system:transform", self._tell)

    async def _discover(self, context: BeforeAgent) -> None:
        known = self.notes
        self.found = await to_thread.run_sync(partial(load_skills, self.paths))
        self._catalog = format_for_prompt(self.found.skills)
        context.notes.extend(note for note in self.notes if note not in known)

    def _tell(self, context: TransformSystem) -> None:
        context.system = "\n\n".join(part for part in (context.system, self._catalog) if part)


def format_for_prompt(skills: Iterable[Skill]) -> str:
    """The catalog, the same bytes for the same skills; empty where there are none. Source: phi-core."""
    entries = [_entry(skill) for skill in sorted(skills, key=lambda skill: skill.name)]
    if not entries:
        return ""
    return "\n".join(("<available_skills>", *entries, "</available_skills>", "", HOW_TO_USE))


def _entry(skill: Skill) -> str:
    fields = {"name": skill.name, "description": skill.description, "location": str(skill.file_path)}
    return "\n".join(("<skill>", *(f"<{key}>{_escaped(value)}</{key}>" for key, value in fields.items()), "</skill>"))


def _escaped(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\ufffd", text))
