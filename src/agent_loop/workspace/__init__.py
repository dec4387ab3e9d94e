"""The files an agent may touch, and nothing else."""

from agent_loop.workspace.workspace import Workspace

__all__ = ["Workspace"]
