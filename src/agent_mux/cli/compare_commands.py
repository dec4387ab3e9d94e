"""`amux compare`: agents side by side on one task."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from agent_mux.cli.command_output import ServiceEndpoint
from agent_mux.cli.compare_flags import CompareFlags, with_compare_flags
from agent_mux.cli.decorators import service_flags, with_common_flags, with_service_flags
from agent_mux.cli.options import ConfigDir

if TYPE_CHECKING:
    from agent_mux.client.remote.comparisons import RemoteComparisons
    from agent_mux.compare.store import Comparisons

START = "start"


class _CompareGroup(TyperGroup):
    """A group whose first word may be a prompt: then it is the command `start`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, [START, *args] if is_option else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, args if args[0] in self.commands else [START, *args])


compare = typer.Typer(
    cls=_CompareGroup,
    help="Compare agents on one task: `amux compare PROMPT --with AGENT --with AGENT --check COMMAND`.",
    no_args_is_help=True,
)


ComparisonId = Annotated[
    str | None,
    typer.Argument(
        metavar="[COMPARISON]",
        help="Comparison id, or its beginning (default: the latest).",
        show_default=False,
    ),
]
InComparison = Annotated[
    str | None,
    typer.Option(
        "--in",
        metavar="COMPARISON",
        help="Comparison id, or its beginning (default: the latest).",
        show_default=False,
    ),
]
Select = Annotated[
    str | None,
    typer.Option(
        "--select",
        metavar="STRATEGY",
        help="How to select a trial (default: as the comparison did).",
        show_default=False,
    ),
]
TrialName = Annotated[
    str, typer.Argument(metavar="TRIAL", help="Trial id, or a candidate for its first trial.", show_default=False)
]


@compare.command(START)
@with_common_flags
@service_flags("Run the comparison at this service (amux serve).")
@with_compare_flags
def start(
    context: typer.Context,
    prompt: Annotated[
        str | None, typer.Argument(metavar="[PROMPT]", help="The task for all candidates.", show_default=False)
    ] = None,
    *,
    flags: CompareFlags,
) -> int:
    """Run the candidates on one task, each in its own copy, and judge the results with checks.

    Exits with 0 if a candidate passes, 1 if none does, 2 if nothing could be measured.
    With `--server`, the service runs them; Ctrl-C stops watching only.
    """
    context.obj.has_gate = True
    service: ServiceEndpoint | None = context.obj.service
    if service is not None:
        from agent_mux.cli.compare_remote import start_at_service

        return start_at_service(prompt, flags, service, context.obj)
    from agent_mux.cli.compare_driver import run_comparison

    return run_comparison(prompt, flags, context.obj)


@compare.command("watch")
@with_common_flags
@service_flags("Service that carries the comparison out (required).")
def watch(context: typer.Context, comparison: ComparisonId = None) -> int:
    """Watch a comparison of a service and answer its agents. Exits as the comparison; Ctrl-C leaves it active."""
    from agent_mux.cli.compare_remote import require_service, watch_comparison

    context.obj.has_gate = True
    return watch_comparison(comparison, require_service(context.obj, "watch"), context.obj)


@compare.command("stop")
@with_common_flags
@service_flags("Service that carries the comparison out (required).")
def stop(
    context: typer.Context,
    comparison: Annotated[
        str, typer.Argument(metavar="COMPARISON", help="Comparison id, or its beginning.", show_default=False)
    ],
) -> int:
    """Stop a comparison of a service: abort its active trials and start no further one. It can be resumed."""
    from agent_mux.cli.compare_remote import require_service, stop_comparison

    return stop_comparison(comparison, require_service(context.obj, "stop"), context.obj)


@compare.command("resume")
@with_common_flags
@service_flags("Resume a comparison of this service (amux serve), and follow it.")
def resume(
    context: typer.Context,
    comparison: ComparisonId = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="[CANDIDATE:]NAME=VALUE",
            help="Variable for the agents (repeatable).",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="[CANDIDATE:]OPTION=VALUE",
            help="Option of the runs that the plan does not store, such as MCP servers with secrets (repeatable).",
            show_default=False,
        ),
    ] = None,
    config_dir: ConfigDir = None,
) -> int:
    """Run the trials that a comparison has left, after a kill, a stop or a pause.

    With `--server`, the service runs them; Ctrl-C stops watching only.
    """
    context.obj.has_gate = True
    service: ServiceEndpoint | None = context.obj.service
    if service is not None:
        from agent_mux.cli.compare_remote import resume_at_service

        return resume_at_service(comparison, env or [], settings or [], service, context.obj)
    from agent_mux.cli.compare_driver import resume_comparison

    return resume_comparison(comparison, env or [], settings or [], config_dir, context.obj)


@compare.command("list")
@with_common_flags
@with_service_flags
def list_comparisons(context: typer.Context, config_dir: ConfigDir = None) -> int:
    """List the stored comparisons, latest first."""
    from agent_mux.cli.command_output import print_rows
    from agent_mux.cli.compare_output import listing_rows

    columns = ("id", "created", "prompt", "candidates", "trials", "passed", "status")
    rows = listing_rows(_client(context, config_dir).list(), is_json=context.obj.json)
    print_rows(
        rows, columns, context.obj, empty="no comparison is stored; start one with amux compare PROMPT --with AGENT"
    )
    return 0


@compare.command("show")
@with_common_flags
@with_service_flags
def show(
    context: typer.Context,
    comparison: ComparisonId = None,
    select: Select = None,
    config_dir: ConfigDir = None,
) -> int:
    """Show the results of a comparison. Exits as the comparison did: 0, 1 or 2."""
    from agent_mux.cli.compare_output import print_report

    context.obj.has_gate = True
    return print_report(_client(context, config_dir), comparison, context.obj, strategy=select)


@compare.command("diff")
@with_common_flags
@with_service_flags
def diff(
    context: typer.Context,
    first: TrialName,
    second: Annotated[
        str | None,
        typer.Argument(metavar="[OTHER]", help="Trial to compare with (default: the start).", show_default=False),
    ] = None,
    comparison: InComparison = None,
    config_dir: ConfigDir = None,
) -> int:
    """Print the patch of a trial, or the difference between the results of two trials."""
    from agent_mux.cli.compare_output import print_patch

    return print_patch(_client(context, config_dir), first, second, comparison, context.obj)


@compare.command("apply")
@with_common_flags
@service_flags("Apply at this service (amux serve), in the repository on its machine.")
def apply_trial(
    context: typer.Context,
    trial: TrialName,
    comparison: InComparison = None,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Do not run the checks afterwards.", show_default=False)
    ] = False,
    config_dir: ConfigDir = None,
) -> int:
    """Make the changes of a trial in the repository, uncommitted, and run the checks again.

    If the repository has changed since, the changes are merged (three-way). If they conflict, nothing is changed.
    """
    from agent_mux.cli.compare_output import apply_and_check

    return apply_and_check(_client(context, config_dir), trial, comparison, context.obj, has_checks=not no_check)


@compare.command("export")
@with_common_flags
@with_service_flags
def export(
    context: typer.Context,
    comparison: ComparisonId = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File (.html or .md); default: Markdown to stdout, with --json the report.",
        ),
    ] = None,
    select: Select = None,
    config_dir: ConfigDir = None,
) -> int:
    """Export a comparison to one HTML file that needs no network, or to Markdown."""
    from agent_mux.cli.compare_output import export_report

    return export_report(_client(context, config_dir), comparison, output, context.obj, strategy=select)


@compare.command("delete")
@with_common_flags
@service_flags("Remove comparisons of this service (amux serve).")
def remove(
    context: typer.Context,
    comparisons: Annotated[
        list[str],
        typer.Argument(metavar="COMPARISON", help="Comparison ids.", show_default=False),
    ],
    config_dir: ConfigDir = None,
) -> int:
    """Remove comparisons with all their records."""
    from agent_mux.cli.command_output import print_result

    store = _client(context, config_dir)
    removed = [store.remove(one) for one in comparisons]
    return print_result(context.obj, f"removed {', '.join(removed)}", {"removed": removed})


def _client(context: typer.Context, config_dir: Path | None) -> "Comparisons | RemoteComparisons":
    from agent_mux._util.paths import config_dir as default_config_dir
    from agent_mux.compare.store import Comparisons

    service: ServiceEndpoint | None = context.obj.service
    return Comparisons(config_dir or default_config_dir()) if service is None else service.client().comparisons
