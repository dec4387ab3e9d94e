"""`amux doctor --torture`: the torture suite, as a table or as JSON."""

import sys
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from agent_mux.cli.json_output import Invocation
from agent_mux.errors import AgentMuxError, FieldError, ValidationError

if TYPE_CHECKING:
    from agent_mux.testing.torture import Row

EXIT_FAILED = 1
_BACKENDS = ("asyncio", "trio")


def torture_cases(names: list[str] | None, invocation: Invocation, *, quick: bool, backend: str) -> int:
    """Play these cases, or all."""
    import anyio

    from agent_mux.cli.json_output import envelope
    from agent_mux.testing.torture import run_torture, wanted_cases

    _check(backend)
    cases = wanted_cases(names)
    if not invocation.json:
        sys.stdout.write(f"    {'case':<28}{'verdict':<12}{'seconds':>8}{'settle':>8}{'MiB':>7}\n")
    on_row = None if invocation.json else _write
    rows = anyio.run(partial(run_torture, cases, full=not quick, on_row=on_row), backend=backend)
    wrong = [row.case for row in rows if not row.ok]
    if invocation.json:
        sys.stdout.write(envelope([row.to_dict() for row in rows]) + "\n")
    elif wrong:
        sys.stdout.write(f"{len(wrong)} of {len(rows)} cases are not as they must be: {', '.join(wrong)}\n")
    else:
        sys.stdout.write(f"all {len(rows)} cases are as they must be, on {backend}\n")
    return EXIT_FAILED if wrong else 0


def _check(backend: str) -> None:
    if backend not in _BACKENDS:
        raise ValidationError([FieldError("backend", backend, " or ".join(_BACKENDS))])
    if find_spec(backend) is None:
        raise AgentMuxError("VALIDATION_ERROR", f"{backend} is not installed; try: pip install 'agent-mux[{backend}]'")


def _write(row: "Row") -> None:
    from agent_mux.cli.terminal import sanitize

    mark = "ok  " if row.ok else "  ! "
    settle = "" if row.settle is None else f"{row.settle:.2f}"
    peak = "" if row.peak_mib is None else f"{row.peak_mib:.0f}"
    sys.stdout.write(f"{mark}{row.case:<28}{row.verdict:<12}{row.seconds:>8.2f}{settle:>8}{peak:>7}\n")
    for finding in row.findings:
        sys.stdout.write(f"      {sanitize(finding)}\n")
    sys.stdout.flush()
