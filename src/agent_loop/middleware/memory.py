"""Memory: the content of AGENTS.md files, appended to the system prompt."""

import re
from collections.abc import Sequence
from functools import partial
from os import PathLike
from pathlib import Path

from anyio import to_thread

from agent_loop.hooks.contexts import BeforeAgent, TransformSystem
from agent_loop.hooks.registry import Hooks

SEPARATOR = "\n\n---\n\n"
MAX_MEMORY_BYTES = 64 * 1024
"""Limit for all files together: about 16,000 tokens, which every model call pays for."""
GUIDELINES = """\
How to treat these notes:
- They were kept from earlier conversations, and they will be there in later ones.
- They are background. Where they disagree with what the user says now, the user is right.
- When you learn something that will matter later (a decision, a convention, how to build and test), write it into \
the AGENTS.md file with edit.
- Keep them short and in order, take out what is no longer true, and never write secrets into them."""
_TAG = re.compile(r"<(?=[\s/]*agent_memory)", re.IGNORECASE)


class MemoryMiddleware:
    """Appends the content of the files at `paths`. Each run reads them at its start; missing files are ignored."""

    name = "memory"

    def __init__(self, paths: Sequence[str | PathLike[str]], *, max_bytes: int = MAX_MEMORY_BYTES) -> None:
        self.paths = tuple(Path(path) for path in paths)
        self.max_bytes = max_bytes
        self.notes: tuple[str, ...] = ()
        """Files that were not read completely, with the reasons; a run reports only new notes."""
        self._block = ""

    def install(self, hooks: Hooks) -> None:
        """Register the handlers that load and append the notes."""
        hooks.on("agent:before", self._load)
        hooks.on("system:transform", self._append_notes)

    async def _load(self, context: BeforeAgent) -> None:
        reported = self.notes
        content, self.notes = await to_thread.run_sync(partial(load_memory, self.paths, self.max_bytes))
        self._block = memory_block(content)
        context.notes.extend(note for note in self.notes if note not in reported)

    def _append_notes(self, context: TransformSystem) -> None:
        context.system = "\n\n".join(part for part in (context.system, self._block) if part)


def load_memory(paths: Sequence[Path], max_bytes: int) -> tuple[str, tuple[str, ...]]:
    """Return the files as one text of at most `max_bytes`, and notes about omissions. Blocking."""
    parts: list[str] = []
    notes: list[str] = []
    remaining = max_bytes
    for path in paths:
        try:
            data = _read_prefix(path, remaining + 1)
        except FileNotFoundError:
            continue
        except (OSError, RuntimeError) as error:
            notes.append(f"{path} cannot be read ({error}): it is not in the memory")
            continue
        if len(data) > remaining:
            notes.append(f"{path} is truncated: the memory is limited to {max_bytes} bytes")
        text = data[:remaining].decode(errors="replace").strip()
        remaining -= min(len(data), remaining)
        parts += [text] if text else []
    return SEPARATOR.join(parts), tuple(notes)


def _read_prefix(path: Path, size: int) -> bytes:
    """Return the first bytes of a file. Raises `OSError` for links out of its directory.

    A link in an untrusted repository could otherwise send a file with secrets to the model.
    """
    target = path.resolve(strict=True)
    if not target.is_relative_to(path.parent.resolve()):
        raise OSError(f"it is a link to {target}, out of its directory; name that file instead")
    if not target.is_file():
        raise OSError("it is not a regular file")
    with target.open("rb") as file:
        return file.read(size)


def memory_block(content: str) -> str:
    """Return the content in a tag that it cannot close, with guidelines; empty without content."""
    if not content:
        return ""
    return f"<agent_memory>\n{_TAG.sub('&lt;', content)}\n</agent_memory>\n\n{GUIDELINES}"
