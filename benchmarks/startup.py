"""`amux --version` against `python -c pass`."""

import subprocess
import sys
from pathlib import Path

from benchmarks.measure import interleaved, report, verdict

ROUNDS = 15


def main(_: Path) -> None:
    """Print both times and their ratio."""
    amux = Path(sys.executable).parent / "amux"
    seconds = interleaved(
        {
            "python": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
            "amux": lambda: subprocess.run([str(amux), "--version"], check=True, stdout=subprocess.DEVNULL),
        },
        ROUNDS,
    )
    ratio = seconds.ratio("amux", "python")
    report(
        "Start-up",
        [
            f"python -c pass {seconds.typical('python') * 1000:6.1f} ms",
            f"amux --version {seconds.typical('amux') * 1000:6.1f} ms",
            f"ratio {ratio:5.2f} {verdict(ratio, most=5)}",
        ],
    )
