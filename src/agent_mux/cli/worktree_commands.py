"""`amux worktrees`: the worktrees that runs left behind."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.options import ConfigDir
from agent_mux.cli.terminal import local_minute

if TYPE_CHECKING:
    from agent_mux.worktrees.kept import KeptWorktree, KeptWorktrees

worktree = typer.Typer(help="Worktrees that runs with `--isolation worktree` left behind.", no_args_is_help=True)
_COLUMNS = ("runId", "repository", "created", "changes", "state", "path")


RunId = Annotated[
    str,
    typer.Argument(metavar="RUN", help="Run id, or its beginning.", show_default=False),
]


@worktree.command("list")
@with_common_flags
def list_worktrees(context: typer.Context, config_dir: ConfigDir = None) -> int:
    """List the worktrees, oldest first, and how many files were changed in each."""
    from agent_mux.cli.command_output import print_rows

    rows = [_row(one, is_json=context.obj.json) for one in _client(config_dir).list()]
    print_rows(rows, _COLUMNS, context.obj, empty="no run left a worktree behind")
    return 0


@worktree.command("diff")
@with_common_flags
def diff_worktree(
    context: typer.Context,
    run: RunId,
    stat: Annotated[
        bool, typer.Option("--stat", help="List the changed files instead of the patch.", show_default=False)
    ] = False,
    config_dir: ConfigDir = None,
) -> int:
    """Print what changed in a worktree since its start, as a patch for `git apply`."""
    from agent_mux.cli.command_output import print_json, print_rows

    kept = _client(config_dir)
    if stat or context.obj.json:
        found = _readable(kept.get(run))
        files = _files(found)
        if context.obj.json:
            patch = kept.patch(run).decode("utf-8", "replace")
            print_json({**_row(found, is_json=True), "files": files, "patch": patch})
            return 0
        print_rows(files, ("path", "change", "added", "removed"), context.obj, empty="no file was changed")
        return 0
    patch_bytes = kept.patch(run)
    if sys.stdout.isatty():
        from agent_mux._util.sanitize import sanitize

        sys.stdout.write(sanitize(patch_bytes.decode("utf-8", "replace")))
        return 0
    sys.stdout.flush()
    sys.stdout.buffer.write(patch_bytes)  # byte for byte, for `git apply`
    return 0


@worktree.command("apply")
@with_common_flags
def apply_worktree(context: typer.Context, run: RunId, config_dir: ConfigDir = None) -> int:
    """Make the changes of a worktree in its repository, uncommitted. The worktree stays.

    If the repository has changed since, the changes are merged (three-way). If they conflict, nothing is changed.
    The changes of a copy (no repository) are made in the directory that was copied.
    """
    from agent_mux.cli.command_output import print_result

    applied = _client(config_dir).apply(run)
    count = f"{len(applied.files)} changed file{'' if len(applied.files) == 1 else 's'}"
    how = "merged into" if applied.is_merged else "applied to"
    sentence = f"{count} {how} {applied.repository}; remove the worktree: amux worktrees delete {applied.run_id}"
    data = {
        "runId": applied.run_id,
        "repository": applied.repository,
        "files": list(applied.files),
        "isMerged": applied.is_merged,
    }
    return print_result(context.obj, sentence, data)


@worktree.command("delete")
@with_common_flags
def clean_worktrees(
    context: typer.Context,
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="Run ids.", show_default=False),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All worktrees whose run is over.", show_default=False)] = False,
    no_patch: Annotated[
        bool, typer.Option("--no-patch", help="Discard the changes instead of keeping them as a patch.")
    ] = False,
    config_dir: ConfigDir = None,
) -> int:
    """Remove worktrees. Their changes are kept as patches in the directory `worktree-patches`."""
    from agent_mux.cli.command_output import print_json, print_note
    from agent_mux.cli.errors import usage_error

    if bool(runs) == every:
        raise usage_error("name the worktrees to remove (amux worktrees list), or use --all for those of ended runs")
    kept = _client(config_dir)
    names = runs or [one.run_id for one in kept.list() if not one.is_in_use]
    removed = [kept.clean(name, keep_patch=not no_patch) for name in names]
    if context.obj.json:
        print_json([{"runId": one.run_id, "patch": one.patch} for one in removed])
        return 0
    for one in removed:
        rest = "" if one.patch is None else f"; its changes are in {one.patch}"
        print_note(f"removed the worktree of run {one.run_id}{rest}")
    if not removed:
        print_note("nothing to remove")
    return 0


def _client(config_dir: Path | None) -> "KeptWorktrees":
    from agent_mux._util.paths import config_dir as default_config_dir
    from agent_mux.worktrees.kept import KeptWorktrees

    return KeptWorktrees(config_dir or default_config_dir())


def _readable(found: "KeptWorktree") -> "KeptWorktree":
    if found.problem is not None:
        from agent_mux.errors import AgentMuxError

        raise AgentMuxError(
            "CONFIG_ERROR",
            f"no changes of {found.run_id} are known: {found.problem}; see `amux worktrees list`",
        )
    return found


def _files(found: "KeptWorktree") -> list[dict[str, Any]]:
    return [
        {"path": one.path, "change": one.change, "added": one.added, "removed": one.removed} for one in found.changes
    ]


def _row(found: "KeptWorktree", *, is_json: bool) -> dict[str, Any]:
    created = found.created_at if is_json else local_minute(found.created_at)
    state = "in use" if found.is_in_use else "kept" if found.problem is None else found.problem
    changes = len(found.changes) if found.problem is None else None
    return {
        "runId": found.run_id,
        "repository": found.repository,
        "created": created,
        "changes": changes,
        "state": state,
        "path": found.path,
        **({"baseCommit": found.base_commit} if is_json else {}),
    }
