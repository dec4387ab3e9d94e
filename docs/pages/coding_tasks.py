"""The page about the coding tasks: the outcomes of the last run, with every failure."""

from collections.abc import Iterator
from statistics import median

from benchmarks.coding_tasks.harnesses import HARNESSES, Harness
from benchmarks.coding_tasks.results import Outcome, Results, read_results
from benchmarks.coding_tasks.tasks import TASKS

__all__ = ["coding_tasks_page"]

INTRODUCTION = """# Coding tasks

<!-- Written by docs/generate.py from benchmarks/coding_tasks. Do not edit. -->

Where does the harness of a coding agent fail, and not its model? {count} small repositories have failing hidden tests.
A scripted model solves each of them in every harness: the real program, with an empty home directory, without network,
and started so that it asks for no approval. The model does the same in all of them: the same searches, edits, commands,
and the mistakes that real models make. Each task has one such quirk.

- **Steps.** A task is a list of abstract steps, which are compiled to the tools of each harness. Without a harness,
  applied directly, the steps of every task make its hidden tests pass (`tests/unit/testing/test_coding_tasks.py`).
- **Reactions.** The model reads results. After an edit that failed, it reads the file and tries again with the exact
  text, at most twice. It follows the notes on further pages of a file up to the text that it needs. It repeats a
  malformed call without the mistake, and an answer that was cut or lost when it is called again. Where a command shows
  that an edit did damage, it writes the file whole. If nothing of this helps, it gives up.
- **Failures.** A task fails if its hidden tests fail after the run, or if the program does not end within ten minutes
  with exit code 0.

To repeat it: `python -m agent_mux_testing.offline -- python -m benchmarks.coding_tasks`, then `make docs`.
"""
CAUSES = {
    "command_then_edit": "the calls of one answer run at the same time, and the edit was faster than the command",
    "empty_answer": "the run ends as a success",
    "latin_1": "the edit is reported as successful, but bytes that are not UTF-8 were replaced in the whole file",
    "typographic_characters": "no attempt matches, because the model cannot write the characters of the file",
}
"""What is behind the failures of a task, as we found in its recordings."""
LIMITS = """## What this does not show

- We wrote the tasks and chose the quirks, and amux-agent is ours. The quirks are those that we know from recordings and
  from issues of agents; others may give another order.
- The model is scripted. It does not use what only one harness offers, such as a patch tool or sub-agents, and does not
  profit from better descriptions of tools or a better system prompt.
- amux-agent failed one task, `empty_answer`, in the first run, and was changed after it. Reactions of the model were
  added where a harness failed at first and a real model would have continued; OpenCode used them in four tasks.
- Each task ran once, in several parts: the harnesses partly at different times, up to three tasks of OpenCode at once,
  on two cores that other programs kept busy. The ratio of wall times is coarse; CPU time suffers less.
"""


def coding_tasks_page() -> str:
    """Return the page for the stored outcomes."""
    results = read_results()
    parts = [INTRODUCTION.format(count=len(TASKS)), "## Results\n", *_summary(results), "", "## Failures\n"]
    parts += [*_failures(results), "", "## Tasks\n", *_tasks(results), "", LIMITS.rstrip("\n")]
    return "\n".join(parts) + "\n"


def _summary(results: Results) -> Iterator[str]:
    yield "| harness | failed tasks | model calls | CPU time of a task | wall time, relative to amux-agent |"
    yield "|---|---|---|---|---|"
    ours = _outcomes(results, HARNESSES[0])
    for harness in HARNESSES:
        outcomes = _outcomes(results, harness)
        failed = sum(bool(outcome.reason) for outcome in outcomes.values())
        calls = sum(outcome.model_calls for outcome in outcomes.values())
        cpu = median(outcome.cpu_seconds for outcome in outcomes.values())
        wall = median(outcome.seconds / ours[name].seconds for name, outcome in outcomes.items())
        versions = " and ".join(sorted({outcome.version for outcome in outcomes.values()}))
        yield f"| {harness.title} {versions} | {failed} of {len(outcomes)} | {calls} | {cpu:.1f} s | {wall:.2f} |"
    yield "\nCPU time and relative wall time are medians over the tasks."


def _outcomes(results: Results, harness: Harness) -> dict[str, Outcome]:
    """Return the outcomes of a harness by task, in the order of the tasks."""
    return {task.name: results[task.name][harness.agent] for task in TASKS}


def _failures(results: Results) -> Iterator[str]:
    failures = [(task, harness) for task in TASKS for harness in HARNESSES if results[task.name][harness.agent].reason]
    for task, harness in failures:
        cause = f"{CAUSES[task.name]}: " if task.name in CAUSES else ""
        yield f"- `{task.name}`, {harness.title}: {cause}{_code(results[task.name][harness.agent].reason)}"
    if not failures:
        yield "None."


def _tasks(results: Results) -> Iterator[str]:
    yield "The table has the number of model calls of each task that passed.\n"
    yield f"| task | quirk | {' | '.join(harness.title for harness in HARNESSES)} |"
    yield f"|---|---|{'---|' * len(HARNESSES)}"
    for task in TASKS:
        cells = " | ".join(_cell(results[task.name][harness.agent]) for harness in HARNESSES)
        yield f"| `{task.name}` | {task.quirk} | {cells} |"


def _cell(outcome: Outcome) -> str:
    return "**failed**" if outcome.reason else str(outcome.model_calls)


def _code(reason: str) -> str:
    """Return a reason as a code span on one line."""
    line = " ".join(reason.split()).replace("`` ", "` ")
    return f"`` {line} ``"
