"""Print comparisons of this machine or of a service: results, listings, patches, exports."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_mux._util.sanitize import one_line, sanitize
from agent_mux.cli.command_output import Invocation, ServiceEndpoint, print_json, print_note, print_result
from agent_mux.cli.errors import usage_error
from agent_mux.cli.terminal import is_terminal, local_minute, palette_for, width_of

if TYPE_CHECKING:
    from agent_mux.api.comparisons import ComparisonReport
    from agent_mux.client.remote.comparisons import RemoteComparisons
    from agent_mux.compare.records import Comparison
    from agent_mux.compare.store import Comparisons

    AnyComparisons = Comparisons | RemoteComparisons

MAX_PROMPT = 40  # characters of a prompt in a listing
MAX_FILES = 300  # characters of a list of files
DEFAULT_WIDTH = 100  # columns where the output has no width


def print_comparison(comparison: "Comparison", config_dir: Path, invocation: Invocation) -> int:
    """Print the results of a comparison on standard output. Returns the exit code of its gate."""
    from agent_mux.compare.store import Comparisons

    return _print(comparison, Comparisons(config_dir).report(comparison.plan.id), invocation)


def print_report(
    store: "AnyComparisons", name: str | None, invocation: Invocation, *, strategy: str | None = None
) -> int:
    """Print the results of a stored comparison. Returns the exit code of its gate."""
    comparison = store.get(name)
    return _print(comparison, store.report(comparison.plan.id, strategy=strategy), invocation)


def _print(comparison: "Comparison", report: "ComparisonReport", invocation: Invocation) -> int:
    if invocation.json:
        import msgspec

        added = {"judgements": comparison.judgements}
        print_json(msgspec.to_builtins(report) | msgspec.to_builtins(added))
        return report.gate.exit_code
    from agent_mux.compare.export.text import text_of

    resume = f"amux compare resume {comparison.plan.id}"
    if invocation.service is not None:
        report, resume = _with_service(report, resume, invocation.service)
    palette = palette_for(sys.stdout, no_color=invocation.no_color)
    width = width_of(sys.stdout) or DEFAULT_WIDTH
    sys.stdout.write(text_of(report, width=width, color=palette.enabled))
    if comparison.status == "interrupted":
        print_note(f"trials are left; continue: {resume}")
    return report.gate.exit_code


def _with_service(report: "ComparisonReport", resume: str, service: ServiceEndpoint) -> "tuple[ComparisonReport, str]":
    """Return a report whose next steps name the service, and the command that resumes the comparison there."""
    from msgspec.structs import replace

    there = f"{resume} --server {service.url}"
    notes = [replace(note, next_step=note.next_step.replace(resume, there)) for note in report.notes]
    return replace(report, notes=notes), there


def listing_rows(comparisons: "Iterable[Comparison]", *, is_json: bool) -> list[dict[str, Any]]:
    """Return a row for each comparison."""
    return [_row(comparison, is_json=is_json) for comparison in comparisons]


def _row(comparison: "Comparison", *, is_json: bool) -> dict[str, Any]:
    plan = comparison.plan
    passed = sum(trial.outcome is not None and trial.outcome.verdict == "pass" for trial in comparison.trials)
    return {
        "id": plan.id,
        "created": plan.created_at if is_json else local_minute(plan.created_at),
        "prompt": plan.prompt if is_json else one_line(plan.prompt, MAX_PROMPT),
        "candidates": [candidate.name for candidate in plan.candidates],
        "trials": len(comparison.trials),
        "passed": passed,
        "status": comparison.status,
    }


def print_patch(
    store: "AnyComparisons", first: str, second: str | None, comparison: str | None, invocation: Invocation
) -> int:
    """Print the patch of a trial, or the difference of two results, for `git apply`."""
    patch = store.patch(first, comparison) if second is None else store.difference(first, second, comparison)
    if invocation.json:
        print_json({"first": first, "second": second, "patch": patch.decode("utf-8", "replace")})
    elif sys.stdout.isatty():
        sys.stdout.write(sanitize(patch.decode("utf-8", "replace")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(patch)  # byte for byte, for `git apply`
    return 0


def apply_and_check(
    store: "AnyComparisons", name: str, comparison: str | None, invocation: Invocation, *, has_checks: bool
) -> int:
    """Apply the changes of a trial, and print the results of the checks on them. Returns 1 if one does not pass."""
    applied = store.apply(name, comparison, has_checks=has_checks)
    count = f"{len(applied.files)} changed file{'' if len(applied.files) == 1 else 's'}"
    how = "merged into" if applied.is_merged else "applied to"
    failed = [check.name for check in applied.checks if check.status != "pass"]
    checks = f"; checks: {', '.join(f'{check.name} {check.status}' for check in applied.checks)}"
    sentence = f"{count} of {applied.trial} {how} {applied.source}{checks if applied.checks else ''}"
    if not applied.files:
        sentence = f"{applied.trial} changed nothing, so nothing was applied to {applied.source}"
    if applied.tampered and not invocation.json:
        why = "in the comparison the checks ran with the original ones"
        files = one_line(", ".join(applied.tampered), MAX_FILES)
        print_note(f"warning: {applied.trial} changed files of the checks: {files}; {why}")
    data = {
        "trial": applied.trial,
        "source": applied.source,
        "files": list(applied.files),
        "isMerged": applied.is_merged,
        "checks": {check.name: check.status for check in applied.checks},
        "tampered": list(applied.tampered),
    }
    print_result(invocation, sentence, data)
    return 1 if failed else 0


def export_report(
    store: "AnyComparisons",
    name: str | None,
    output: Path | None,
    invocation: Invocation,
    *,
    strategy: str | None = None,
) -> int:
    """Write the report of a comparison as one HTML file or as Markdown, by the name of the file.

    Without a file, print Markdown, or with `--json` what `compare show --json` prints.
    """
    if output is None and invocation.json:
        print_report(store, name, invocation, strategy=strategy)
        return 0
    suffix = ".md" if output is None else output.suffix.lower()
    if suffix in {".html", ".htm"}:
        text = store.export("html", name, strategy=strategy)
    elif suffix in {".md", ".markdown"}:
        text = store.export("markdown", name, strategy=strategy)
    else:
        raise usage_error(f"--output {output} has no known format; use a name that ends in .html or .md")
    if output is None:
        sys.stdout.write(sanitize(text) if is_terminal(sys.stdout) else text)
        return 0
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        raise usage_error(f"cannot write {output}: {error.strerror or error}; choose another file") from error
    return print_result(invocation, f"wrote {output}", {"path": str(output)})
