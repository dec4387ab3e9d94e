"""Run a comparison from the command line: build the request, show progress, end it on signals."""

import json
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from agent_mux._util.paths import config_dir as default_config_dir
from agent_mux.cli.command_output import print_note
from agent_mux.cli.compare_flags import CompareFlags
from agent_mux.cli.compare_output import print_comparison
from agent_mux.cli.compare_progress import ProgressLines
from agent_mux.cli.errors import usage_error
from agent_mux.cli.request import screen_for
from agent_mux.cli.run_driver import ending_signals
from agent_mux.cli.terminal import has_cursor, is_terminal
from agent_mux.client import AgentMux
from agent_mux.sdk.interactions import Deny, PendingInteraction

if TYPE_CHECKING:
    from agent_mux.cli.command_output import Invocation
    from agent_mux.compare.engine import ComparisonRun
    from agent_mux.compare.records import Comparison, ComparisonPlan

TASK_FILE = "compare.toml"
NO_ANSWER = "nobody answers requests of candidates; --yolo allows everything in their copies"


def run_comparison(prompt: str | None, flags: CompareFlags, invocation: "Invocation") -> int:
    """Run a comparison and print its results. Returns the exit code of its gate."""
    task, candidates, rules = request_fields(prompt, flags, asks=has_lanes(invocation))

    async def work() -> "Comparison":
        async with AgentMux(config_dir=flags.config_dir) as mux:
            return await _watch(await mux.compare(task, candidates=candidates, **rules), invocation)

    return print_comparison(anyio.run(work), flags.config_dir or default_config_dir(), invocation)


def resume_comparison(
    name: str | None, env: list[str], settings: list[str], config_dir: Path | None, invocation: "Invocation"
) -> int:
    """Run the trials that a comparison has left, and print its results. Returns the exit code of its gate."""
    variables, given = pairs_of(env, "--env"), _settings(settings)

    async def work() -> "Comparison":
        async with AgentMux(config_dir=config_dir) as mux:
            plan = mux.comparisons.get(name).plan
            options = {**_handlers(plan, asks=has_lanes(invocation)), **given}
            return await _watch(await mux.resume_comparison(plan.id, env=variables, options=options), invocation)

    return print_comparison(anyio.run(work), config_dir or default_config_dir(), invocation)


def _handlers(plan: "ComparisonPlan", *, asks: bool) -> dict[str, Any]:
    """Return what answers requests of the agents of a resumed comparison. `asks`: whether a person does."""
    from agent_mux.compare.stored_options import HANDLERS

    if not asks and plan.options["options"].get("approval_mode", "prompt") == "prompt":
        return dict.fromkeys(HANDLERS, _refuse)
    not_stored = {*plan.options.get("notStored", ()), *(name for one in plan.candidates for name in one.not_stored)}
    return dict.fromkeys(HANDLERS & not_stored)


async def _watch(run: "ComparisonRun", invocation: "Invocation") -> "Comparison":
    """Show the comparison on standard error until it is over: lanes at a terminal, else lines."""
    if not run.comparison.plan.checks:
        print_note(WITHOUT_CHECK)  # no agent has started: the tasks of the comparison begin with the next await
    if has_lanes(invocation):
        from agent_mux.cli.compare_terminal import LanesView

        return await LanesView(run, screen_for(no_color=invocation.no_color, verbose=False)).show()
    progress = ProgressLines(sys.stderr, run, is_quiet=invocation.json)
    with anyio.open_signal_receiver(*ending_signals()) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, signals, run)
            await progress.show()
            tasks.cancel_scope.cancel()
    return await run


def has_lanes(invocation: "Invocation") -> bool:
    """Return whether a person can watch and answer: standard input and error are a terminal with cursor movement."""
    return is_terminal(sys.stdin) and has_cursor(sys.stderr) and not invocation.json


async def _stop_on_signal(signals: AsyncIterator[signal.Signals], run: "ComparisonRun") -> None:
    async for number in signals:
        sys.stderr.write(f"{number.name}: stopping; continue later: amux compare resume {run.id}\n")
        run.stop()


WITHOUT_CHECK = (
    "note: there is no check, so no result can pass or fail, and the exit code is 2; "
    "Ctrl-C, then add --check COMMAND to judge the results"
)
"""Shown before a comparison starts that spends money and judges nothing."""


def request_fields(
    given_prompt: str | None, flags: CompareFlags, *, asks: bool
) -> tuple[str, list[Any], dict[str, Any]]:
    """Return prompt, candidates and rules from the task file and the flags, which override it.

    `asks`: whether a person answers requests of the agents; otherwise they are denied.
    """
    from agent_mux.compare.task_file import read_task_file

    implied = Path(TASK_FILE)
    path = flags.task or (implied if flags.candidates is None and implied.is_file() else None)
    rules = read_task_file(path) if path is not None else {}
    prompt = given_prompt or rules.pop("prompt", "")
    rules.pop("prompt", None)
    candidates = flags.candidates or rules.pop("candidates", [])
    rules.pop("candidates", None)
    if not prompt:
        raise usage_error('no task is given; pass it: amux compare "fix the failing test" --with claude')
    if not candidates:
        raise usage_error("no candidate is given; add --with AGENT for each, or --task FILE")
    given = {
        "trials": flags.trials,
        "checks": flags.check,
        "hidden_checks": flags.hidden_checks,
        "protect": flags.protect,
        "has_protection": False if flags.no_protect else None,
        "cwd": flags.cwd,
        "setup_command": None if flags.setup is None else _command(flags.setup),
        "carry_changes": False if flags.no_carry_changes else None,
        "confine": flags.confine,
        "seed": flags.seed,
        "keep_workspaces": flags.keep or None,
        "jobs": flags.jobs,
        "jobs_per_agent": flags.jobs_per_agent,
        "jobs_per_credential": flags.jobs_per_credential,
        "attempts": flags.attempts,
        "stop_early": flags.stop_early or None,
        "select": flags.select,
        "judge": flags.judge,
    }
    rules |= {name: value for name, value in given.items() if value is not None}
    rules["options"] = _options(flags, rules.get("options", {}), asks=asks)
    return prompt, candidates, rules


def _options(flags: CompareFlags, of_file: dict[str, Any], *, asks: bool) -> dict[str, Any]:
    from agent_mux.compare.request import DEFAULT_TIMEOUT

    if flags.no_protect and flags.protect:
        raise usage_error("--protect cannot be combined with --no-protect")
    if flags.yolo and flags.deny:
        raise usage_error("--yolo cannot be combined with --deny")
    limits = {"timeout": flags.timeout, "max_cost_usd": flags.max_cost, "max_model_calls": flags.max_model_calls}
    options: dict[str, Any] = {
        "timeout": DEFAULT_TIMEOUT,
        **of_file,
        **_settings(flags.settings or []),
        **{name: value for name, value in limits.items() if value is not None},
    }
    if flags.yolo or flags.deny:
        options["approval_mode"] = "yolo" if flags.yolo else "deny"
    if flags.env:
        options["env"] = {**options.get("env", {}), **pairs_of(flags.env, "--env")}
    if options.get("approval_mode", "prompt") == "prompt" and not asks:
        options |= {"on_approval_request": _refuse, "on_input_required": _refuse}
    return options


def _refuse(_: PendingInteraction) -> Deny:
    return Deny(NO_ANSWER)


def _command(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise usage_error(f"--setup {text!r} is not quoted correctly: {error}; quote it as for a shell") from error
    if not words:
        raise usage_error("--setup needs a command")
    return words


def pairs_of(texts: list[str], flag: str) -> dict[str, str]:
    """Return the values of a repeatable flag `NAME=VALUE` by name. Raises VALIDATION_ERROR."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise usage_error(f"{flag} expects NAME=VALUE; got {text!r}")
        pairs[name] = value
    return pairs


def _settings(texts: list[str]) -> dict[str, Any]:
    """Return `OPTION=VALUE` or `CANDIDATE:OPTION=VALUE` by name; the name of a candidate can have dashes."""
    pairs = ((name.rpartition(":"), text) for name, text in pairs_of(texts, "--set").items())
    return {f"{owner}{colon}{option.replace('-', '_')}": _value(text) for (owner, colon, option), text in pairs}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
