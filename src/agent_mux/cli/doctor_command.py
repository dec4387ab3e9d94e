"""`amux doctor`: what this machine has, what stands in the way, and whether installed CLIs still are what we know."""

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.options import Invocation, with_common_flags
from agent_mux.errors import AgentMuxError

if TYPE_CHECKING:
    from agent_mux.testing.live.drift import DriftReport

EXIT_DRIFT = 1


@with_common_flags
def doctor(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT|CASE", help="Only these agents; default: all that are installed. With --torture: cases."
        ),
    ] = None,
    drift: Annotated[
        bool,
        typer.Option(
            "--drift",
            help="Drive the installed CLIs through scripted scenarios, offline, and say what is new or missing "
            "against their recordings; exit code 1 when something is.",
        ),
    ] = False,
    torture: Annotated[
        bool,
        typer.Option(
            "--torture",
            help="Let a scripted agent misbehave in every way we know, on this machine, and say what that did; exit "
            "code 1 when anything is not as it must be.",
        ),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="With --torture: cases that take long are played smaller.")
    ] = False,
    backend: Annotated[
        str, typer.Option(metavar="asyncio|trio", help="With --torture: the event loop that is used.")
    ] = "asyncio",
) -> int:
    """Check this machine and the agents on it."""
    if torture:
        from agent_mux.cli.torture_table import torture_cases

        return torture_cases(names, context.obj, quick=quick, backend=backend)
    return _drift(names or [], context.obj) if drift else _health(names or [], context.obj)


def _health(agents: list[str], invocation: Invocation) -> int:
    import anyio

    from agent_mux.detection import Detector
    from agent_mux.registry import AdapterRegistry
    from agent_mux.version import __version__

    registry = AdapterRegistry()
    wanted = {registry.get(agent).agent for agent in agents}
    found = [one for one in anyio.run(Detector(registry).detect_all) if one.agent in wanted or not wanted]
    rows: list[dict[str, Any]] = [
        {"check": "agent-mux", "ok": True, "said": __version__},
        {"check": "python", "ok": sys.version_info >= (3, 11), "said": platform.python_version()},
        _finds_leftovers(),
        _keeps_recordings(),
    ]
    for one in found:
        said = one.problem or f"{one.version} at {one.path}"
        rows.append({"check": one.agent, "ok": one.installed and one.problem is None, "said": said})
    _print(rows, invocation)
    return 0


def _finds_leftovers() -> dict[str, Any]:
    has_proc = Path("/proc/self/environ").exists()
    said = "processes that leave their group are found" if has_proc else "no /proc: only the process group is ended"
    return {"check": "clean-up", "ok": has_proc, "said": said}


def _keeps_recordings() -> dict[str, Any]:
    from agent_mux.paths import config_dir

    place = config_dir()
    existing = next(path for path in (place, *place.parents) if path.exists())
    ok = os.access(existing, os.W_OK)
    return {"check": "recordings", "ok": ok, "said": f"{place / 'runs'}{'' if ok else ' cannot be written'}"}


def _drift(agents: list[str], invocation: Invocation) -> int:
    import anyio

    from agent_mux.testing.live.drift import find_drift
    from agent_mux.testing.offline import enter_offline

    installations = _installations(agents)
    try:
        enter_offline()
    except OSError as error:
        why = f"drift is looked for offline, and the network cannot be cut off here ({error}); run it as root on Linux"
        raise AgentMuxError("SPAWN_ERROR", why) from error
    rows: list[dict[str, Any]] = []
    for agent, installation in installations.items():
        found = _rows_of(anyio.run(find_drift, agent, installation))
        rows += found
        if not invocation.json:  # all together take minutes
            _write(found)
    if invocation.json:
        _print(rows, invocation)
    return 0 if all(row["ok"] for row in rows) else EXIT_DRIFT


def _rows_of(report: "DriftReport") -> list[dict[str, Any]]:
    ran = f"no drift in {len(report.scenarios)} scenarios"
    found = [{"check": report.agent, "ok": False, "said": finding} for finding in report.findings]
    return found or [{"check": report.agent, "ok": True, "said": ran}]


def _installations(agents: list[str]) -> dict[str, Any]:
    """The programs to look at: as installed, and found before the network is cut off."""
    from agent_mux.registry import AdapterRegistry
    from agent_mux.run.plan import find_executable
    from agent_mux.testing.live.drift import Installation
    from agent_mux.testing.live.kits import kit_of, kits

    registry = AdapterRegistry()
    found = {}
    for agent in [registry.get(name).agent for name in agents] or list(kits()):
        if kit_of(agent).baseline is None:
            continue
        try:
            program = find_executable(registry.get(agent), os.environ)
        except AgentMuxError:
            if agents:
                raise
            continue
        found[agent] = Installation(program=program, path=os.environ.get("PATH", os.defpath))
    if not found:
        raise AgentMuxError("AGENT_NOT_INSTALLED", "none of the agents that drift is known of is installed here")
    return found


def _print(rows: list[dict[str, Any]], invocation: Invocation) -> None:
    from agent_mux.redaction import redact_text

    rows = [row | {"said": redact_text(str(row["said"]))} for row in rows]
    if invocation.json:
        from agent_mux.cli.json_output import envelope

        sys.stdout.write(envelope(rows) + "\n")
    else:
        _write(rows)


def _write(rows: list[dict[str, Any]]) -> None:
    from agent_mux.cli.terminal import sanitize

    for row in rows:
        mark = "ok  " if row["ok"] else "  ! "
        sys.stdout.write(f"{mark}{row['check']:<12}{sanitize(str(row['said']))}\n")
    sys.stdout.flush()
