"""Conversations that are stored as trees: whoever goes back to an earlier prompt leaves a branch behind."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_mux.sessions.lines import objects_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """How the rows of a file hang together."""

    id: str
    """The field with the id of a row."""
    parent: str
    """The field with the id of the row that it follows."""
    starts: Callable[[Mapping[str, Any]], bool]
    """This row is a prompt: what follows belongs to it."""

    def left_behind(self, path: Path) -> Collection[str]:
        """The ids of all rows that belong to a prompt that is on no way from the last row to the first.

        Whole prompts and no single rows: the results of tools that ran side by side branch off, too, and are no
        branches that anybody left.
        """
        parents: dict[str, str] = {}
        prompt_of: dict[str, str] = {}
        last = ""
        for row in objects_of(path):
            name, parent = row.get(self.id), row.get(self.parent)
            if isinstance(name, str):
                last = name
                parents[name] = parent if isinstance(parent, str) else ""
                prompt_of[name] = name if self.starts(row) else prompt_of.get(parents[name], "")
        kept = {""}
        while last in parents:
            kept.add(prompt_of[last])
            last = parents.pop(last)
        return {name for name, prompt in prompt_of.items() if prompt not in kept}
