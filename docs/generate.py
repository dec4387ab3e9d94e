"""Generate the reference pages and the README's table of agents: `python docs/generate.py [PAGE...] [--check]`.

`--check` writes nothing and exits with 1 if a page is stale.
"""
# ruff: noqa: INP001  # a script, not a package

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

REFERENCE = Path(__file__).parent / "reference"
sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.pages.agent_hooks import agent_hooks_page  # noqa: E402  # needs the path above
from docs.pages.cli import catalog_page, cli_page, run_flags_page  # noqa: E402
from docs.pages.coding_tasks import coding_tasks_page  # noqa: E402
from docs.pages.events import events_page  # noqa: E402
from docs.pages.http_api import http_api_page, openapi_page  # noqa: E402
from docs.pages.python_api import python_api_page  # noqa: E402
from docs.pages.support_matrix import support_matrix_page  # noqa: E402
from docs.pages.supported_agents import README, readme_page  # noqa: E402

from agent_mux.cli.command_catalog import CATALOG_FILE, RUN_FLAGS_FILE  # noqa: E402  # with the others

PAGES: dict[str, Callable[[], str]] = {
    "cli": cli_page,
    "command-catalog": catalog_page,
    "run-flags": run_flags_page,
    "events": events_page,
    "support-matrix": support_matrix_page,
    "http-api": http_api_page,
    "openapi": openapi_page,
    "agent-hooks": agent_hooks_page,
    "coding-tasks": coding_tasks_page,
    "python-api": python_api_page,
    "readme": readme_page,
}
SUFFIXES = {"openapi": ".json"}
"""File suffixes of pages that are not Markdown."""
ELSEWHERE = {"readme": README, "command-catalog": CATALOG_FILE, "run-flags": RUN_FLAGS_FILE}
"""Files outside of the reference folder."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the selected pages, or check them with `--check`. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", choices=[*PAGES, []], metavar="PAGE", help=f"default: {', '.join(PAGES)}")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")
    options = parser.parse_args(arguments)
    stale = [name for name in options.pages or PAGES if not _write(name, only_check=options.check)]
    for name in stale:
        sys.stderr.write(f"{_path(name)} is stale; run: python docs/generate.py {name}\n")
    return 1 if stale else 0


def _path(name: str) -> Path:
    return ELSEWHERE.get(name) or REFERENCE / f"{name}{SUFFIXES.get(name, '.md')}"


def _write(name: str, *, only_check: bool) -> bool:
    """Write one page, or compare it with the stored one. Return False if the stored page is stale."""
    page, path = PAGES[name](), _path(name)
    if not only_check:
        path.write_text(page, encoding="utf-8")
        return True
    return path.is_file() and path.read_text(encoding="utf-8") == page


if __name__ == "__main__":
    sys.exit(main())
