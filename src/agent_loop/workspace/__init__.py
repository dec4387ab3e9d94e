"""The files an agent may touch, and nothing else."""

from agent_loop.workspace.entries import Entry, EntryKind, FileContent, Written
from agent_loop.workspace.globbing import Glob
from agent_loop.workspace.ignoring import IgnoreFiles
from agent_loop.workspace.walking import MAX_VISITED
from agent_loop.workspace.workspace import MAX_FILE_BYTES, Workspace

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_VISITED",
    "Entry",
    "EntryKind",
    "FileContent",
    "Glob",
    "IgnoreFiles",
    "Workspace",
    "Written",
]
