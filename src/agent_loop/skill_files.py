"""Skills on disk: folders with a SKILL.md, whose YAML front matter describes the instructions below it.

The files are untrusted input: they are bounded, read without following links, and validated.
"""

import html
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
MAX_COMPATIBILITY = 500
HEAD = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<yaml>.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)

_ALLOWED_TOOL = re.compile(r"[^\s,()]+(?:\([^()]*\))?")
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill, from the front matter of its file, or with its instructions in `body`."""

    name: str
    description: str
    file_path: Path | None = None
    """Absolute path of the file; None for a skill without files."""
    source: str = "inline"
    """Where it is from: "inline", "project", "user" or "builtin"; "dir:0", "dir:1" and so on: index of the directory
    given to `load_skills`.
    """
    allowed_tools: tuple[str, ...] | None = None
    """The only tools that may be called while it is active, such as "read_file" or "Bash(git:*)"; None: all."""
    compatibility: str = ""
    """What it needs, for the model."""
    body: str | None = None
    """The instructions of a skill without files; None: those of the file."""

    @property
    def base_dir(self) -> Path | None:
        """The directory of the skill's file, None for a skill without files."""
        return None if self.file_path is None else self.file_path.parent


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
    skill = Skill(
        head["name"],
        " ".join(head["description"].split()),
        path,
        source,
        parse_allowed_tools(head.get("allowed-tools")),
        _compatibility_in(head),
    )
    check_skill(skill)
    return skill


def check_skill(skill: Skill) -> None:
    """Raise `ValueError` for a name or a description that the Agent Skills specification does not allow."""
    if len(skill.name) > MAX_NAME or not NAME.fullmatch(skill.name):
        raise ValueError(f"a name has at most {MAX_NAME} lowercase letters, digits and single hyphens")
    length = len(skill.description)
    if not 0 < length <= MAX_DESCRIPTION:
        raise ValueError(f"a description has 1 to {MAX_DESCRIPTION} characters, and this one {length}")


def parse_allowed_tools(value: Any) -> tuple[str, ...] | None:
    """Return the entries of `allowed-tools`: a list, or text with spaces or commas between them; None: not declared.

    Raises `ValueError` for anything else: a restriction that cannot be read must not be ignored.
    """
    if value is None or value == "":
        return None
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = " ".join(value)
    if not isinstance(value, str) or _ALLOWED_TOOL.sub("", value).strip(" \t\r\n,"):
        raise ValueError("its allowed-tools are not a list of tools such as: Read Bash(git:*)")
    return tuple(_ALLOWED_TOOL.findall(value))


def body_in(text: str) -> str:
    """Return the instructions in the text of a skill file: what follows its front matter."""
    head = HEAD.match(text)
    return (text if head is None else text[head.end() :]).strip()


def xml_text(text: str) -> str:
    """Return text for an XML element: escaped, and without characters that XML does not allow."""
    return html.escape(_NOT_IN_XML.sub("\ufffd", text), quote=False)


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


def _parse_head(text: str) -> dict[str, Any]:
    from ruamel.yaml import YAML  # noqa: PLC0415  # slow to import, and most runs have no skills
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        # "base": all values are text; no objects are constructed from the file.
        head: Any = YAML(typ="base", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"its head is not valid YAML ({_first_line(error)})") from error
    fields = head if isinstance(head, dict) else {}
    missing = [key for key in ("name", "description") if not isinstance(fields.get(key), str)]
    if missing:
        raise ValueError(f"its head lacks {' and '.join(missing)}")
    return fields


def _compatibility_in(head: dict[str, Any]) -> str:
    value = head.get("compatibility")
    return " ".join(value.split())[:MAX_COMPATIBILITY] if isinstance(value, str) else ""


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
