"""Skills: SKILL.md files with YAML front matter, listed in the system prompt for the model to read on demand.

The files are untrusted input: they are bounded, read without following links, and validated.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from anyio import to_thread
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from agent_loop.hooks.contexts import BeforeAgent, TransformSystem
from agent_loop.hooks.registry import Hooks

SKILL_FILE = "SKILL.md"
MAX_HEAD_BYTES = 64 * 1024
"""Bytes of a file within which its front matter must end."""
MAX_DEPTH = 5
"""Levels of directories that are searched below a configured one."""
MAX_DIRECTORIES = 5_000
"""Directories that are searched below a configured one: the configuration may name `/`."""
MAX_DESCRIPTION = 1024
"""Characters, as the Agent Skills specification requires."""
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_NAME = 64
HEAD = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<yaml>.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)

HOW_TO_USE = (
    "Skills are instructions for certain kinds of work. Where one fits what you are asked to do, read the file at its "
    "location with read_file before you begin, and follow it. Paths in it are relative to its directory."
)
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill, from the front matter of its file."""

    name: str
    description: str
    file_path: Path
    """Absolute path of the file."""
    source: str
    """"dir:0", "dir:1" and so on: index of the configured directory."""

    @property
    def base_dir(self) -> Path:
        """The directory of the skill's file."""
        return self.file_path.parent


@dataclass(frozen=True, slots=True)
class SkillSet:
    """Skills by name, and notes about skipped files."""

    skills: tuple[Skill, ...] = ()
    """The skills, sorted by name."""
    notes: tuple[str, ...] = ()
    """A sentence for each file or directory that was skipped."""

    def merge(self, other: "SkillSet") -> "SkillSet":
        """Return both sets; skills of `other` take precedence."""
        by_name = {skill.name: skill for skill in (*self.skills, *other.skills)}
        return SkillSet(tuple(by_name[name] for name in sorted(by_name)), (*self.notes, *other.notes))


def load_skills(directories: Sequence[Path]) -> SkillSet:
    """Return the skills of these directories; later directories take precedence. Blocking.

    Never raises: invalid files become notes.
    """
    skill_set = SkillSet()
    for number, directory in enumerate(directories):
        skill_set = skill_set.merge(load_directory(directory, f"dir:{number}"))
    return skill_set


def load_directory(directory: Path, source: str) -> SkillSet:
    """Return the skills in and below a directory; of equal names the first path counts. Blocking."""
    if not directory.is_dir():
        return SkillSet(notes=(f"{directory} is not a directory: no skills are loaded from it",))
    skills: dict[str, Skill] = {}
    notes: list[str] = []
    for path in _skill_files(directory.absolute(), notes):
        try:
            skill = read_skill(path, source)
        except ValueError as error:
            notes.append(f"{path} is skipped: {error}")
            continue
        if skills.setdefault(skill.name, skill) is not skill:
            notes.append(f"{path} is skipped: {skills[skill.name].file_path} has the name {skill.name!r} already")
    return SkillSet(tuple(skills[name] for name in sorted(skills)), tuple(notes))


def _skill_files(directory: Path, notes: list[str]) -> Iterator[Path]:
    """Yield the skill files in the order of their paths; links are not followed."""
    for number, (directory_path, subdirectories, files) in enumerate(os.walk(directory), 1):
        if number > MAX_DIRECTORIES:
            notes.append(
                f"{directory} has more than {MAX_DIRECTORIES} directories: skills in the others are not loaded"
            )
            return
        depth = len(Path(directory_path).relative_to(directory).parts)
        subdirectories[:] = (
            sorted(each for each in subdirectories if not each.startswith(".")) if depth < MAX_DEPTH else []
        )
        if SKILL_FILE in files:
            yield Path(directory_path, SKILL_FILE)


def read_skill(path: Path, source: str) -> Skill:
    """Return the skill in this file. Blocking. Raises `ValueError` with the reason."""
    head = _parse_head(_read_head(path))
    name, description = head["name"], " ".join(head["description"].split())
    if len(name) > MAX_NAME or not NAME.fullmatch(name):
        raise ValueError(f"a name has at most {MAX_NAME} lowercase letters, digits and single hyphens")
    if not 0 < len(description) <= MAX_DESCRIPTION:
        raise ValueError(f"a description has 1 to {MAX_DESCRIPTION} characters, and this one {len(description)}")
    return Skill(name, description, path, source)


def _read_head(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        raise ValueError("it is a link or no regular file")
    try:
        with path.open("rb") as file:
            text = file.read(MAX_HEAD_BYTES).decode(errors="replace")
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from error
    head = HEAD.match(text)
    if head is None:
        raise ValueError(f"it does not begin with a head between two lines of ---, of at most {MAX_HEAD_BYTES} bytes")
    return head["yaml"]


def _parse_head(text: str) -> dict[str, str]:
    try:
        # "base": all values are text; no objects are constructed from the file.
        head: Any = YAML(typ="base", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"its head is not valid YAML ({_first_line(error)})") from error
    fields = head if isinstance(head, dict) else {}
    missing = [key for key in ("name", "description") if not isinstance(fields.get(key), str)]
    if missing:
        raise ValueError(f"its head lacks {' and '.join(missing)}")
    return {key: fields[key] for key in ("name", "description")}


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


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
    return "\n".join(("<skill>", *(f"<{key}>{_escaped(value)}</{key}>" for key, value in fields.items()), "</skill>"))


def _escaped(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\ufffd", text))
