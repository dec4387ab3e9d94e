"""`amux runs prune`: delete recordings of this machine, or ended runs of a service."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mux.cli.errors import usage_error

if TYPE_CHECKING:
    from agent_mux.cli.command_output import Invocation


def prune_runs(
    invocation: "Invocation",
    limits: tuple[str | None, int | None, int | None],
    config_dir: Path | None,
    *,
    dry_run: bool,
) -> int:
    """Delete the runs beyond the limits and report them. Returns the exit code.

    Args:
        invocation: Its `service` selects the runs of a service.
        limits: The values of `--older-than`, `--keep` and `--max-size` (bytes).
        config_dir: The global directory.
        dry_run: Delete nothing.
    """
    import msgspec

    from agent_mux.cli.command_output import print_result
    from agent_mux.cli.inputs import parse_duration

    age, keep, max_bytes = limits
    if limits == (None, None, None):
        raise usage_error("nothing to delete: give --older-than, --keep or --max-size")
    older_than = None if age is None else parse_duration(age, "--older-than").total_seconds()
    if invocation.service is not None:
        if max_bytes is not None:
            raise usage_error("--max-size cannot be combined with --server; use `amux serve --keep-bytes` there")
        chosen: Sequence[Any] = invocation.service.client().runs.prune(
            older_than=older_than, keep=keep, dry_run=dry_run
        )
        what = f"{_count(chosen, 'run')} of {invocation.service.url}"
    else:
        from agent_mux.cli.run_selection import local_runs

        chosen = local_runs(config_dir).prune(older_than=older_than, keep=keep, max_bytes=max_bytes, dry_run=dry_run)
        what = f"{_count(chosen, 'recording')} ({sum(one.bytes for one in chosen) / 1_000_000:.1f} MB)"
    verb = "would delete" if dry_run else "deleted"
    return print_result(invocation, f"{verb} {what}", [msgspec.to_builtins(one) for one in chosen])


def _count(found: Sequence[Any], noun: str) -> str:
    return f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"
