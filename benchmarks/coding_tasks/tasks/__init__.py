"""The 40 tasks. Each has a repository of its own, and something that a harness must cope with: its quirk."""

from benchmarks.coding_tasks.steps import Task
from benchmarks.coding_tasks.tasks import answers, commands, edits, files

__all__ = ["TASKS"]

TASKS: tuple[Task, ...] = (*edits.TASKS, *answers.TASKS, *commands.TASKS, *files.TASKS)
