"""The files that an agent may read and write, confined to its workspace."""

from agent_loop.workspace.entries import DirectoryEntry, EntryKind, FileContent, WriteResult
from agent_loop.workspace.gitignore import IgnoreFiles
from agent_loop.workspace.globs import Glob, glob_below
from agent_loop.workspace.workspace import MAX_FILE_BYTES, MAX_VISITED, Workspace

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_VISITED",
    "DirectoryEntry",
    "EntryKind",
    "FileContent",
    "Glob",
    "IgnoreFiles",
    "Workspace",
    "WriteResult",
    "glob_below",
]
