"""Extra instructions for one run: a document like AGENTS.md, and skills from folders.

They are not written into any configuration, but appended to the system prompt, which every agent accepts. For a skill
the prompt contains only its name, its description and the path of its file: the agent reads the file when it needs the
skill. See docs/spec/run-api.md, section 2 (skills, agents_doc).
"""

import os
from dataclasses import replace
from pathlib import Path

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.sdk.documents.formats import read_header
from agent_mux.sdk.options import RunOptions

SKILL_FILE = "SKILL.md"
MAX_DOCUMENT_SIZE = 1 << 20  # bytes of a document
_DOCUMENT = "Instructions for this project:"
_SKILLS = (
    "Skills for this task. Each is a file with instructions: read it before you do what it is good for. "
    "Paths in it are relative to its folder."
)


def add_guidance(options: RunOptions) -> RunOptions:
    """Return the options with document and skills added to the system prompt. Raises `ValidationError`."""
    parts = [_read_document(options.agents_doc)] if options.agents_doc is not None else []
    parts += [_list_skills(options)] if options.skills else []
    if not parts:
        return options
    given = options.system_prompt
    mode = options.system_prompt_mode if given else "append"  # keep the agent's own system prompt
    return replace(options, system_prompt="\n\n".join([*([given] if given else []), *parts]), system_prompt_mode=mode)


def _read_document(path: str | os.PathLike[str]) -> str:
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_DOCUMENT_SIZE + 1)
    except OSError as error:
        raise ValidationError([FieldError("agents_doc", str(path), f"a file ({error.strerror or error})")]) from error
    if len(text) > MAX_DOCUMENT_SIZE:
        raise ValidationError([FieldError("agents_doc", str(path), f"a file of at most {MAX_DOCUMENT_SIZE} bytes")])
    return f"{_DOCUMENT}\n\n{text.decode('utf-8', 'replace').strip()}"


def _list_skills(options: RunOptions) -> str:
    lines = [_format_skill(f"skills[{index}]", Path(path)) for index, path in enumerate(options.skills)]
    return "\n".join([_SKILLS, *lines])


def _format_skill(field: str, path: Path) -> str:
    main = (path if path.name == SKILL_FILE else path / SKILL_FILE).absolute()
    try:
        header = read_header(main, "yaml")
    except AgentMuxError as error:
        raise ValidationError([FieldError(field, str(path), f"a folder with {SKILL_FILE}: {error.message}")]) from error
    description = header.get("description")
    if not isinstance(description, str) or not description.strip():
        raise ValidationError([FieldError(field, str(path), "a skill whose header has a description")])
    name = header.get("name")
    label = name if isinstance(name, str) and name.strip() else main.parent.name
    return f"- {' '.join(label.split())}: {' '.join(description.split())} (file: {main})"
