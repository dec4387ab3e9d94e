"""`amux doctor`: check this machine, the installed agents, and agent-mux itself."""

import sys
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.command_output import Invocation
from agent_mux.cli.decorators import with_common_flags
from agent_mux.errors import FieldError, MissingExtraError, ValidationError

if TYPE_CHECKING:
    from agent_mux.cli.testing_tools import DriftReport, TortureRow


EXIT_DRIFT = 1
EXIT_PROBLEM = 1
_MARKS = {"ok": "ok  ", "warning": "  ? ", "problem": "  ! ", "absent": "  - "}


@with_common_flags
def doctor(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="AGENT|CASE", help="Agents to check (default: installed ones); with --torture: cases."),
    ] = None,
    drift: Annotated[
        bool,
        typer.Option(
            "--drift",
            help="Drive the installed CLIs through scripted scenarios offline; exit 1 if they "
            "differ from their recordings.",
        ),
    ] = False,
    torture: Annotated[
        bool,
        typer.Option(
            "--torture",
            help="Run a scripted agent that misbehaves in every known way; exit 1 if a case fails.",
        ),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="With --torture: run smaller versions of long cases.")] = False,
    backend: Annotated[str, typer.Option(metavar="asyncio|trio", help="With --torture: event loop.")] = "asyncio",
) -> int:
    """Check this machine and its agents, and show how to fix what is missing.

    The checks cover versions, credentials and configuration. The exit code is 0 if an agent can run; 1 if none can, if
    this machine has a problem, or if a named agent is not ready. --drift and --torture require the extra `testing`.
    """
    if torture:
        return _run_torture(names, context.obj, quick=quick, backend=backend)
    return _check_drift(names or [], context.obj) if drift else _check_health(names or [], context.obj)


def _check_health(agents: list[str], invocation: Invocation) -> int:
    import anyio

    from agent_mux.agents.doctor import agents_that_run, are_all_well, examine
    from agent_mux.agents.installations import InstallationResolver
    from agent_mux.cli.terminal import progress

    installations = InstallationResolver()
    with progress("checking"):
        found = anyio.run(examine, installations, agents)
    rows = [
        {"check": one.check, "ok": one.status == "ok", "status": one.status, "message": one.message, "fix": one.fix}
        for one in found
    ]
    _print_checks(rows, invocation)
    if not (agents or invocation.json):
        ready = ", ".join(agents_that_run(found, installations.adapters))
        sys.stdout.write(f"can run: {ready or 'no agent; install one with `amux install AGENT`'}\n")
    return 0 if are_all_well(found, installations.adapters, named=bool(agents)) else EXIT_PROBLEM


def _check_drift(agents: list[str], invocation: Invocation) -> int:
    from agent_mux.cli.testing_tools import load_drift_check

    rows: list[dict[str, Any]] = []
    for report in load_drift_check("`amux doctor --drift`")(agents):
        found = _drift_rows(report)
        rows += found
        if not invocation.json:  # all agents together take minutes
            _write_checks(found)
    if invocation.json:
        _print_checks(rows, invocation)
    return 0 if all(row["ok"] for row in rows) else EXIT_DRIFT


def _drift_rows(report: "DriftReport") -> list[dict[str, Any]]:
    ran = f"no drift in {len(report.scenarios)} scenarios"
    found = [{"check": report.agent, "ok": False, "message": finding} for finding in report.findings]
    return found or [{"check": report.agent, "ok": True, "message": ran}]


def _print_checks(rows: list[dict[str, Any]], invocation: Invocation) -> None:
    from agent_mux.redaction import redact_text

    rows = [row | {"message": redact_text(str(row["message"]))} for row in rows]
    if invocation.json:
        from agent_mux.cli.command_output import json_envelope

        sys.stdout.write(json_envelope(rows) + "\n")
    else:
        _write_checks(rows)


def _write_checks(rows: list[dict[str, Any]]) -> None:
    from agent_mux.cli.terminal import sanitize, shorten_home

    width = max([12, *(len(row["check"]) + 2 for row in rows)])
    for row in rows:
        mark = _MARKS[row.get("status") or ("ok" if row["ok"] else "problem")]
        fix = f"; fix: {row['fix']}" if row.get("fix") else ""
        sys.stdout.write(f"{mark}{row['check']:<{width}}{sanitize(shorten_home(row['message'] + fix))}\n")
    sys.stdout.flush()


EXIT_TORTURE_FAILED = 1
_BACKENDS = ("asyncio", "trio")


def _run_torture(names: list[str] | None, invocation: Invocation, *, quick: bool, backend: str) -> int:
    """Run the named torture cases, or all of them. Return the exit code."""
    import anyio

    from agent_mux.cli.command_output import json_envelope
    from agent_mux.cli.testing_tools import load_torture

    _check_backend(backend)
    play = partial(load_torture("`amux doctor --torture`"), names, full=not quick)
    rows = anyio.run(partial(play, on_row=None if invocation.json else _TortureTable().write), backend=backend)
    wrong = [row.case for row in rows if not row.ok]
    if invocation.json:
        sys.stdout.write(json_envelope([row.to_dict() for row in rows]) + "\n")
    elif wrong:
        sys.stdout.write(f"{len(wrong)} of {len(rows)} cases failed: {', '.join(wrong)}\n")
    else:
        sys.stdout.write(f"all {len(rows)} cases passed on {backend}\n")
    return EXIT_TORTURE_FAILED if wrong else 0


def _check_backend(backend: str) -> None:
    if backend not in _BACKENDS:
        raise ValidationError([FieldError("backend", backend, " or ".join(_BACKENDS))])
    if find_spec(backend) is None:
        raise MissingExtraError(f"--backend {backend}", backend)


class _TortureTable:
    """A table that is printed row by row; its header comes with the first row, after all arguments are checked."""

    def __init__(self) -> None:
        self._has_header = False

    def write(self, row: "TortureRow") -> None:
        """Print the row of a case; the header before the first one."""
        from agent_mux.cli.terminal import sanitize

        if not self._has_header:
            sys.stdout.write(f"    {'case':<28}{'verdict':<12}{'seconds':>8}{'settle':>8}{'MiB':>7}\n")
            self._has_header = True
        mark = "ok  " if row.ok else "  ! "
        settle_time = "" if row.settle is None else f"{row.settle:.2f}"
        peak = "" if row.peak_mib is None else f"{row.peak_mib:.0f}"
        sys.stdout.write(f"{mark}{row.case:<28}{row.verdict:<12}{row.seconds:>8.2f}{settle_time:>8}{peak:>7}\n")
        for finding in row.findings:
            sys.stdout.write(f"      {sanitize(finding)}\n")
        sys.stdout.flush()
