"""The flags of `amux compare` as data."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_mux.cli.decorators import with_flags
from agent_mux.cli.options import ConfigDir, seconds

_WHAT, _HOW, _LIMITS, _JUDGING = "Task and candidates", "Start and isolation", "Limits", "Checks"


def _option(*names: str, panel: str, help: str, metavar: str | None = None, **more: Any) -> Any:  # noqa: A002  # typer's name
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, show_default=False, **more)


@dataclass(frozen=True, kw_only=True)
class CompareFlags:
    """The values of the flags. None, False and empty mean that a flag was not given."""

    candidates: Annotated[
        list[str] | None,
        _option(
            "--with",
            "-w",
            panel=_WHAT,
            metavar="AGENT[:MODEL][,...]",
            help="Candidate (repeatable), options as NAME=VALUE; also null, oracle:PATCH.",
        ),
    ] = None
    trials: Annotated[
        int | None, _option("--trials", "-n", panel=_WHAT, metavar="N", help="Trials of each candidate (default 1).")
    ] = None
    task: Annotated[
        Path | None,
        _option("--task", "-t", panel=_WHAT, metavar="FILE", help="Task file (compare.toml); flags override it."),
    ] = None
    settings: Annotated[
        list[str] | None,
        _option("--set", panel=_WHAT, metavar="OPTION=VALUE", help="Option of all runs (repeatable)."),
    ] = None
    env: Annotated[
        list[str] | None,
        _option(
            "--env",
            panel=_WHAT,
            metavar="[CANDIDATE:]NAME=VALUE",
            help="Variable for the agents; not stored (repeatable).",
        ),
    ] = None
    yolo: Annotated[bool, _option("--yolo", panel=_WHAT, help="Allow the agents everything.")] = False
    deny: Annotated[bool, _option("--deny", panel=_WHAT, help="Deny everything that needs permission.")] = False
    check: Annotated[
        list[str] | None,
        _option(
            "--check",
            "-c",
            panel=_JUDGING,
            metavar="COMMAND",
            help="Command that passes with exit code 0; shell quoting, no shell (repeatable).",
        ),
    ] = None
    hidden_checks: Annotated[
        Path | None,
        _option(
            "--hidden-checks",
            panel=_JUDGING,
            metavar="DIRECTORY",
            help="Files that are added for the checks only.",
        ),
    ] = None
    protect: Annotated[
        list[str] | None,
        _option(
            "--protect",
            panel=_JUDGING,
            metavar="GLOB",
            help="Files that checks take from the start (default: tests and their configuration).",
        ),
    ] = None
    no_protect: Annotated[
        bool, _option("--no-protect", panel=_JUDGING, help="Let agents change the tests that judge them.")
    ] = False
    cwd: Annotated[
        Path | None, _option("--cwd", panel=_HOW, help="Directory to work on (default: current directory).")
    ] = None
    setup: Annotated[
        str | None,
        _option("--setup", panel=_HOW, metavar="COMMAND", help="Prepare the start once; shell quoting, no shell."),
    ] = None
    no_carry_changes: Annotated[
        bool, _option("--no-carry-changes", panel=_HOW, help="Begin without the uncommitted changes.")
    ] = False
    confine: Annotated[
        str | None,
        _option(
            "--confine",
            panel=_HOW,
            metavar="auto|off|required",
            help="Hide the repository and other trials from agents.",
        ),
    ] = None
    seed: Annotated[int | None, _option("--seed", panel=_HOW, help="Seed of the order of the trials.")] = None
    keep: Annotated[bool, _option("--keep", panel=_HOW, help="Keep the workspaces.")] = False
    jobs: Annotated[
        int | None, _option("--jobs", "-j", panel=_LIMITS, metavar="N", help="Trials at the same time (default 2).")
    ] = None
    jobs_per_agent: Annotated[
        int | None, _option("--jobs-per-agent", panel=_LIMITS, metavar="N", help="Trials of one agent at a time.")
    ] = None
    jobs_per_credential: Annotated[
        int | None,
        _option("--jobs-per-credential", panel=_LIMITS, metavar="N", help="Trials with one credential at a time."),
    ] = None
    timeout: Annotated[
        float | None,
        _option("--timeout", panel=_LIMITS, metavar="SECONDS", parser=seconds, help="Limit of each run (default 30m)."),
    ] = None
    max_cost: Annotated[
        float | None, _option("--max-cost", panel=_LIMITS, metavar="USD", help="Limit of each run's reported cost.")
    ] = None
    max_model_calls: Annotated[
        int | None, _option("--max-model-calls", panel=_LIMITS, metavar="N", help="Limit of each run's model calls.")
    ] = None
    attempts: Annotated[
        int | None,
        _option("--attempts", panel=_LIMITS, metavar="N", help="Attempts of a trial that network or quota ended."),
    ] = None
    stop_early: Annotated[
        bool, _option("--stop-early", panel=_LIMITS, help="Skip trials of candidates that can no longer win.")
    ] = False
    select: Annotated[
        str | None,
        _option("--select", panel=_JUDGING, metavar="STRATEGY", help="How to select a trial (default checks-first)."),
    ] = None
    judge: Annotated[
        str | None,
        _option("--judge", panel=_JUDGING, metavar="AGENT[:MODEL]", help="Agent that compares trials that passed."),
    ] = None
    config_dir: ConfigDir = None


with_compare_flags: Callable[[Callable[..., int]], Callable[..., int]] = partial(with_flags, CompareFlags)
"""Adds every field of `CompareFlags` as a parameter to the command `function(..., flags: CompareFlags)`."""
