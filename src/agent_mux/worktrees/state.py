"""What became of the worktree of a run, as the result of the run has it."""

from collections.abc import Mapping
from typing import Any

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux._util.pydantic_support import PydanticCompatible


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree(PydanticCompatible):
    """The git worktree, or the copy of a directory, in which the run worked (`isolation`)."""

    path: str
    """Absolute path of the worktree or copy."""
    base_commit: str | None
    """Commit from which the worktree was created; None for a copy of a directory without a repository."""
    is_changed: bool
    """Whether the worktree was changed, or its changes could not be determined: then it is kept, otherwise removed."""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Worktree":
        """Return the worktree for the result of `to_dict`."""
        return cls(path=plain["path"], base_commit=plain["baseCommit"], is_changed=plain["isChanged"])

    def to_dict(self) -> dict[str, Any]:
        """Return the wire format, in camelCase."""
        return {"path": self.path, "baseCommit": self.base_commit, "isChanged": self.is_changed}
