"""`amux quota`: what is known about the quotas of the agents' accounts."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.command_output import print_json, print_rows
from agent_mux.cli.decorators import with_common_flags, with_service_flags
from agent_mux.cli.options import ConfigDir
from agent_mux.cli.terminal import local_minute

if TYPE_CHECKING:
    from agent_mux.events import QuotaWindow
    from agent_mux.sessions.quota import AgentQuota

_COLUMNS = ("agent", "window", "used", "resets", "reported", "source")


@with_common_flags
@with_service_flags
def quota(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(metavar="AGENT", help="Agent (default: all).", show_default=False),
    ] = None,
    config_dir: ConfigDir = None,
) -> int:
    """Show the last reported quota of each agent's account, and when it was reported.

    Reads recordings of runs and stored sessions; no provider is asked and no agent is started.
    """
    import msgspec

    found = _find(agent, config_dir, context.obj)
    if context.obj.json:
        print_json([msgspec.to_builtins(one) for one in found])
        return 0
    whose = f"the quota of {agent}" if agent is not None else "any quota"
    nothing = f"nothing is known about {whose}: no recent run or session has a report of it"
    now = datetime.now(UTC)
    print_rows(
        [_row(one, window, now) for one in found for window in one.windows], _COLUMNS, context.obj, empty=nothing
    )
    return 0


def _find(agent: str | None, config_dir: Any, invocation: Any) -> "list[AgentQuota]":
    if invocation.service is not None:
        quotas = invocation.service.client().quota
    else:
        from agent_mux._util.paths import config_dir as default_config_dir
        from agent_mux.sdk.registry import AdapterRegistry
        from agent_mux.sessions.quota import Quotas

        quotas = Quotas(AdapterRegistry(), (config_dir or default_config_dir()) / "runs")
    if agent is None:
        found: list[AgentQuota] = quotas.list()
        return found
    known = quotas.get(agent)
    return [] if known is None else [known]


def _row(known: "AgentQuota", window: "QuotaWindow", now: datetime) -> dict[str, Any]:
    used, resets_at = window.used_fraction, window.resets_at
    has_reset = resets_at is not None and _time(resets_at) <= now
    return {
        "agent": known.agent,
        "window": window.window,
        "used": None if used is None else f"{100 * used:.0f} %",
        "resets": None if resets_at is None else "since then" if has_reset else local_minute(resets_at),
        "reported": local_minute(known.observed_at),
        "source": f"run {known.run_id}" if known.run_id is not None else known.session_id,
    }


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
