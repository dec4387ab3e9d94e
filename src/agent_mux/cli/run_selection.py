"""Find the run that a command of `amux runs` names, here or at a service, and send commands to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.command_output import ServiceEndpoint

if TYPE_CHECKING:
    from agent_mux.client.local_runs import LocalRuns, RunRecord

ID_LENGTH = 26
SEARCHED = 1000  # latest runs of a service among which a prefix is looked up
RunId = Annotated[str, typer.Argument(metavar="RUN", help="Run id or a unique prefix of it.", show_default=False)]
OptionalRunId = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="Run id or a unique prefix (default: the latest run).", show_default=False),
]


def local_runs(config_dir: Path | None) -> "LocalRuns":
    """Return the runs of this machine."""
    from agent_mux.client import AgentMux

    return AgentMux(config_dir=config_dir).runs


def find_local(run: str | None, config_dir: Path | None, *, outcome: bool = True) -> "tuple[LocalRuns, RunRecord]":
    """Return the runs of this machine and the selected one, with its outcome unless that is not needed."""
    runs = local_runs(config_dir)
    return runs, runs.find(run, outcome=outcome)


def run_with_result(run: str | None, service: ServiceEndpoint | None, config_dir: Path | None) -> dict[str, Any]:
    """Return the JSON form of the selected run, here or at a service, with its `result` once it is over."""
    from agent_mux.cli.run_records import plain_record

    if service is not None:
        return plain_record(service.client().runs.get(remote_id(service, run)))
    known, record = find_local(run, config_dir)
    result = known.result(record) if record.exit_reason is not None else None
    return plain_record(record) | ({} if result is None else {"result": result.to_dict()})


def remote_id(service: ServiceEndpoint, run: str | None) -> str:
    """Return the id of the selected run of a service. Raises RUN_NOT_FOUND, VALIDATION_ERROR for an unclear prefix."""
    from agent_mux.cli.errors import usage_error
    from agent_mux.errors import AgentMuxError

    wanted = (run or "").strip().upper()
    if len(wanted) == ID_LENGTH:
        return wanted
    found = service.client().runs.list(limit=1 if run is None else SEARCHED)
    matching = [one.run_id for one in found if run is None or (wanted and one.run_id.startswith(wanted))]
    if not matching and run is None:
        raise AgentMuxError("RUN_NOT_FOUND", f"the service at {service.url} has no runs; start one with `amux run`")
    if not matching:
        where = f"the latest {SEARCHED} runs" if len(found) >= SEARCHED else "the runs"
        raise AgentMuxError(
            "RUN_NOT_FOUND",
            f"none of {where} of the service at {service.url} has an id that begins with {run!r}; "
            f"`amux runs list --server {service.url}` shows them",
        )
    if len(matching) > 1:
        raise usage_error(f"{len(matching)} runs of the service begin with {run!r}; use a longer prefix")
    return matching[0]


def send(
    run: str | None, command: Mapping[str, Any], service: ServiceEndpoint | None, config_dir: Path | None
) -> dict[str, Any]:
    """Send a command to a run, here or at a service. Returns the run's id and how the command was delivered."""
    waits = command["type"] == "abort"
    if service is None:
        runs, record = find_local(run, config_dir)
        answer = runs.send(record, command, timeout=None if waits else 30.0)
        return {"runId": record.run_id, "agent": record.agent, "delivery": answer.get("delivery", "applied")}
    import anyio

    run_id = remote_id(service, run)

    async def execute() -> dict[str, Any]:
        import msgspec

        from agent_mux.run.commands import AnyCommand, execute_command

        decoded: AnyCommand = msgspec.convert(dict(command), AnyCommand)
        async with service.client() as mux:
            handle = await mux.attach(run_id)
            data = await execute_command(handle, decoded)
            return {"runId": run_id, "agent": handle.agent, "delivery": data.get("delivery", "applied")}

    return anyio.run(execute)
