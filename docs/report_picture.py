"""Draw the picture of an exported comparison: `python docs/report_picture.py`. It needs Chromium.

The comparison is that of the tests: its records are written by hand, its patches and recordings are real.
"""
# ruff: noqa: INP001  # a script, not a package

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.unit.compare.demo import demo_comparison  # noqa: E402  # needs the path above

from agent_mux.compare.differences import differences_of  # noqa: E402
from agent_mux.compare.export.html import html_of  # noqa: E402
from agent_mux.compare.report import report_of  # noqa: E402
from agent_mux.run.derivation import codec_factory, derive_events  # noqa: E402
from agent_mux.sdk.registry import AdapterRegistry  # noqa: E402

PICTURE = ROOT / "docs" / "images" / "compare-report.png"
SIZE = "1200,1440"  # pixels: the table, the charts, the timeline and the selection
TIMEOUT = 120.0  # seconds
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def main() -> int:
    """Write the picture. Return the exit code."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        sys.stderr.write("chromium is not on PATH; install it to draw the picture of a report\n")
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "report.html"
        page.write_text(_page(Path(scratch) / "comparison"), "utf-8")
        words = (program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE}")
        places = (f"--user-data-dir={scratch}/profile", f"--screenshot={PICTURE}", page.as_uri())
        subprocess.run((*words, *places), check=True, capture_output=True, timeout=TIMEOUT)
    return 0


def _page(folder: Path) -> str:
    comparison, adapters = demo_comparison(folder), AdapterRegistry()
    report = report_of(comparison, differences=differences_of(comparison, folder))
    return html_of(report, comparison, folder, lambda journal: derive_events(journal, codec_factory(adapters)))


if __name__ == "__main__":
    sys.exit(main())
