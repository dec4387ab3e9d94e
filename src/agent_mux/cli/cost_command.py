"""`amux cost`: the cost of stored sessions."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from agent_mux.cli.command_output import Invocation
from agent_mux.cli.decorators import with_common_flags, with_service_flags
from agent_mux.cli.options import ConfigDir, ProjectDir
from agent_mux.cli.session_options import (
    Agent,
    Cwd,
    Directory,
    Model,
    Since,
    Tags,
    Until,
    open_sessions,
    session_filter,
)

if TYPE_CHECKING:
    from agent_mux.sessions.queries import CostReport


cost = typer.Typer(help="Cost of the agents' sessions.", no_args_is_help=True)
BAR = 30  # characters of the longest bar


class CostGroup(StrEnum):
    """What costs are grouped by."""

    agent = "agent"
    model = "model"
    day = "day"
    tag = "tag"


@cost.command("report")
@with_common_flags
@with_service_flags
def report_cost(
    context: typer.Context,
    by: Annotated[CostGroup, typer.Option("--by", help="Group by.")] = CostGroup.agent,
    agent: Agent = None,
    model: Model = None,
    since: Since = None,
    until: Until = None,
    tag: Tags = None,
    cwd: Cwd = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.", show_default=False)] = False,
    directory: Directory = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Sum the cost of stored sessions. A model call counts once, even if a fork repeats it.

    Reported costs (native) and costs from price lists (computed) are separate columns; calls without a known price are
    counted as unpriced. By tag, a session with two tags is part of both sums, and of the total once.
    """
    from agent_mux.cli.errors import usage_error

    if csv and context.obj.json:
        raise usage_error("--csv cannot be combined with --json")
    which = session_filter(agent=agent, directory=directory, model=model, since=since, until=until, tags=tag, cwd=cwd)
    with open_sessions(config_dir, project_dir, context.obj.service) as library:
        sums = library.total_cost(which, group_by=by.value)
    if csv:
        _print_csv(by.value, sums)
    elif context.obj.json:
        _print_json(by.value, sums)
    else:
        _print_table(by.value, sums, context.obj)
    return 0


def _print_csv(by: str, sums: "CostReport") -> None:
    from csv import writer

    from agent_mux.api.costs import COST_FIELDS

    out = writer(sys.stdout, lineterminator="\n")
    out.writerow((by, *COST_FIELDS))
    out.writerows((name, *(getattr(total, field) for field in COST_FIELDS)) for name, total in sums.items())


def _print_json(by: str, sums: "CostReport") -> None:
    from agent_mux.api.costs import cost_json
    from agent_mux.cli.command_output import json_envelope

    sys.stdout.write(json_envelope(cost_json(by, sums)) + "\n")


def _print_table(by: str, sums: "CostReport", invocation: Invocation) -> None:
    from agent_mux.cli.command_output import Dollars, print_rows

    most = max((total.usd for total in sums.values()), default=0.0)
    shares = [(name, total, _format_bar(total.usd, most)) for name, total in sums.items()]
    if len(sums) > 1:
        shares.append(("total", sums.total, ""))
    rows = [
        {
            by: name,
            "native": Dollars.of(total.native_usd or None),
            "computed": Dollars.of(total.computed_usd or None),
            "calls": total.calls,
            "unpriced": total.unknown_calls or None,
            "tokens in": total.input_tokens + total.cached_tokens + total.cache_creation_tokens,
            "tokens out": total.output_tokens,
            "share": share or None,
        }
        for name, total, share in shares
    ]
    columns = (by, "native", "computed", "calls", "unpriced", "tokens in", "tokens out", "share")
    print_rows(rows, columns, invocation, empty="no model calls are stored")


def _format_bar(usd: float, most: float) -> str:
    return "█" * round(BAR * usd / most) if most else ""
