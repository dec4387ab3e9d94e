"""What differs between the candidates of a comparison: files, changes of lines, and sequences of tools.

All trials begin with the same files, so a change is identified by its place in the start and its lines. Trials that
ended for a reason outside of the agent (`infra`) and trials without changes take no part.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from agent_mux.api.comparisons import ChangedPath, DifferencesView, SharedChange, ToolComparison, ToolSequence
from agent_mux.compare.records import Comparison, StartRecord, Trial
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.unified_diff import NO_FILE, split_files
from agent_mux.worktrees.git import PATCH_OPTIONS, git_error, run_git

MAX_READ = 4 << 20
"""Bytes of a patch up to which its lines are compared."""
MAX_LISTED = 100
"""Identical changes, and overlapping changes, that are listed."""
MAX_LINES = 20
"""Lines of a change that are listed."""
OBJECTS = "objects"
"""The private git directory in the folder of a comparison."""
_POSITION = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+")
_ESCAPE = re.compile(r'\\([0-7]{3}|["\\abfnrtv])')
_ESCAPED: Mapping[str, bytes] = {
    "a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v", '"': b'"', "\\": b"\\",
}  # fmt: skip


class LineChange(NamedTuple):
    """Consecutive lines of the start that a trial replaced."""

    path: str
    line: int
    """The first replaced line in the start; where lines are only added, the line before which they are."""
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def end(self) -> int:
        """The line after the last replaced one; one more where lines are only added."""
        return self.line + max(len(self.removed), 1)


def differences_of(comparison: Comparison, folder: Path) -> DifferencesView:
    """Return what differs between the candidates. Read the patches in the folder of the comparison."""
    compared = [trial for trial in comparison.trials if _takes_part(trial)]
    changed = [trial for trial in compared if trial.patch is not None and trial.patch.files]
    changes: dict[str, list[LineChange]] = {}
    unread: list[str] = []
    for trial in changed:
        text = read_patch(folder, trial, MAX_READ)
        if text is None:
            unread.append(trial.id)
        else:
            changes[trial.id] = list(line_changes(text))
    by_all, by_some, by_one = _changed_paths(changed)
    return DifferencesView(
        by_all=by_all,
        by_some=by_some,
        by_one=by_one,
        identical=_identical(changes),
        overlapping=_overlapping(changes),
        tools=compare_tools([trial for trial in compared if trial.last is not None and trial.last.tools]),
        unread=unread,
    )


def stored_file(folder: Path, relative: str) -> Path | None:
    """Return a file of a comparison; None if the path leads out of its folder or there is no such file."""
    pure = PurePosixPath(relative)
    if pure.is_absolute() or ".." in pure.parts:
        return None
    path = folder / pure
    return path if path.is_file() else None


def read_patch(folder: Path, trial: Trial, limit: int) -> str | None:
    """Return the patch of a trial; None if there is none, if it is missing, or if it is longer than `limit` bytes."""
    path = None if trial.patch is None else stored_file(folder, trial.patch.path)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError:
        return None
    return None if len(data) > limit else data.decode("utf-8", "replace")


def line_changes(patch: str) -> Iterator[LineChange]:
    """Yield the changes of a patch in its order. Changes of binary files and of modes are not included."""
    for file in split_files(patch):
        path = file_name(file.old_name if file.old_name != NO_FILE else file.new_name)
        line = 0
        removed: list[str] = []
        added: list[str] = []
        for text in file.lines:
            mark = text[:1]
            if mark in {" ", "@"} and (removed or added):
                yield LineChange(path, line - len(removed), tuple(removed), tuple(added))
                removed, added = [], []
            if mark == "@":
                found = _POSITION.match(text)
                line = int(found[1]) if found else line
            elif mark == "-":
                removed.append(text[1:])
                line += 1
            elif mark == "+":
                added.append(text[1:])
            elif mark == " ":
                line += 1
        if removed or added:
            yield LineChange(path, line - len(removed), tuple(removed), tuple(added))


def file_name(name: str) -> str:
    """Return the path that a side of a patch names: without its prefix, and without the quotes of git."""
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        name = b"".join(_unescaped(name[1:-1])).decode("utf-8", "replace")
    else:
        name = name.removesuffix("\t")  # git writes one after a name with spaces
    return name[2:] if name[:2] in {"a/", "b/"} else name


def compare_tools(trials: Sequence[Trial]) -> ToolComparison:
    """Return the first calls that all trials share, and what each calls next."""
    sequences = {trial.id: trial.last.tools if trial.last is not None else () for trial in trials}
    common = _common_prefix(list(sequences.values()))
    return ToolComparison(
        common=list(common),
        trials=[
            ToolSequence(
                trial=trial,
                calls=len(tools),
                counts=dict(Counter(tools).most_common()),
                first_different=tools[len(common)] if len(tools) > len(common) else None,
            )
            for trial, tools in sequences.items()
        ],
    )


def diff_trials(  # noqa: PLR0913  # what one call of git needs
    folder: Path,
    start: StartRecord,
    first: Trial,
    second: Trial,
    *,
    git: str,
    environ: Mapping[str, str],
    timeout: float,
) -> str:
    """Return the difference between the results of two trials as a unified diff; empty if they are equal.

    Bytes that are no UTF-8 are surrogates. A trial without a patch changed nothing: its result is the start.

    Raises:
        AgentMuxError: SPAWN_ERROR if git fails, for example because the objects were deleted; TIMEOUT.
    """
    trees = [(trial.patch.end if trial.patch is not None else "") or start.tree for trial in (first, second)]
    answer = run_git(
        git,
        str(folder),
        ("diff-tree", "-r", "-p", *PATCH_OPTIONS, *trees),
        environ=environ,
        timeout=timeout,
        errors="surrogateescape",
        added={"GIT_DIR": str(folder / OBJECTS)},
    )
    if answer.exit_code != 0:
        raise AgentMuxError(
            "SPAWN_ERROR", f"the results of {first.id} and {second.id} cannot be compared: {git_error(answer)}"
        )
    return answer.stdout


def _takes_part(trial: Trial) -> bool:
    return trial.outcome is not None and trial.outcome.verdict != "infra"


def _changed_paths(trials: Sequence[Trial]) -> tuple[list[ChangedPath], list[ChangedPath], list[ChangedPath]]:
    """Return the files that all candidates with changes changed, some of them, and only one."""
    who: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        for file in trial.patch.files if trial.patch is not None else ():
            who[file.path].append(trial)
    total = len({trial.candidate for trial in trials})
    groups: tuple[list[ChangedPath], list[ChangedPath], list[ChangedPath]] = ([], [], [])
    for path in sorted(who):
        candidates = list(dict.fromkeys(trial.candidate for trial in who[path]))
        group = 2 if len(candidates) == 1 else 0 if len(candidates) == total else 1
        groups[group].append(ChangedPath(path=path, candidates=candidates, trials=[each.id for each in who[path]]))
    return groups


def _identical(changes: Mapping[str, Sequence[LineChange]]) -> list[SharedChange]:
    who: dict[LineChange, list[str]] = defaultdict(list)
    for trial, made in changes.items():
        for change in dict.fromkeys(made):
            who[change].append(trial)
    shared = [change for change in sorted(who) if len(who[change]) > 1]
    return [_shared(change, who[change], change.added) for change in shared[:MAX_LISTED]]


def _overlapping(changes: Mapping[str, Sequence[LineChange]]) -> list[SharedChange]:
    """Return the places that several trials changed, and not all of them in the same way."""
    by_path: dict[str, list[tuple[LineChange, str]]] = defaultdict(list)
    for trial, made in changes.items():
        for change in made:
            by_path[change.path].append((change, trial))
    found: list[SharedChange] = []
    for path in sorted(by_path):
        for place in _places(by_path[path]):
            if len({change for change, _ in place}) > 1 and len({trial for _, trial in place}) > 1:
                widest = max((change for change, _ in place), key=lambda change: len(change.removed))
                first = min(change.line for change, _ in place)
                trials = list(dict.fromkeys(trial for _, trial in place))
                found.append(_shared(widest._replace(line=first), trials, ()))
    return found[:MAX_LISTED]


def _places(changes: Iterable[tuple[LineChange, str]]) -> Iterator[list[tuple[LineChange, str]]]:
    """Yield the changes of a file in groups whose lines in the start overlap."""
    group: list[tuple[LineChange, str]] = []
    end = -1
    for change, trial in sorted(changes):
        if group and change.line >= end:
            yield group
            group = []
        end = max(end, change.end) if group else change.end
        group.append((change, trial))
    if group:
        yield group


def _shared(change: LineChange, trials: list[str], added: Sequence[str]) -> SharedChange:
    return SharedChange(
        path=change.path,
        line=change.line,
        trials=trials,
        removed=list(change.removed[:MAX_LINES]),
        added=list(added[:MAX_LINES]),
    )


def _common_prefix(sequences: Sequence[Sequence[str]]) -> Sequence[str]:
    if not sequences:
        return ()
    shortest = min(sequences, key=len)
    for position, tool in enumerate(shortest):
        if any(sequence[position] != tool for sequence in sequences):
            return shortest[:position]
    return shortest


def _unescaped(text: str) -> Iterator[bytes]:
    end = 0
    for found in _ESCAPE.finditer(text):
        yield text[end : found.start()].encode("utf-8", "replace")
        yield _ESCAPED[found[1]] if found[1] in _ESCAPED else bytes([int(found[1], 8) & 0xFF])
        end = found.end()
    yield text[end:].encode("utf-8", "replace")
