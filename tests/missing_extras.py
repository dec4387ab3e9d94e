"""Skip what needs an extra that is not installed, and name the command that installs it.

The hooks act on the import error, so that no test module has to check for its extras.
"""

from collections.abc import Generator
from typing import Any

import pytest

MODULES = {
    "acp": ("acp",),
    "mcp": ("mcp", "mcp_types"),
    "native": ("anthropic", "boto3", "botocore", "google", "openai", "pydantic_ai"),
    "openapi": ("jsonschema_rs", "openapi_spec_validator"),
    "otel": ("opentelemetry",),
    "postgres": ("psycopg",),
    "service": ("aiosqlite", "alembic", "fastapi", "httpx", "prometheus_client", "sqlalchemy", "starlette", "uvicorn",
                "websockets"),
    "terminal": ("pyte",),
    "testing": ("agent_mux_testing", "aiohttp"),
    "trio": ("trio",),
    "zstd": ("backports",),
}  # fmt: skip
"""The modules that each extra installs."""
PLACES = {"testing": "./testing"}
"""Extras that are a distribution of this repository."""
DEVELOPMENT = ("packaging", "pexpect", "schemathesis", "structlog")
"""Modules that only the development install has."""


def reason_for(error: BaseException | None) -> str | None:
    """Return why a test is skipped, if the error is that of a missing extra."""
    # Without its package, the name of a directory that pytest puts on the path is an empty package without a location.
    if not isinstance(error, ImportError) or error.name is None or error.path is not None:
        return None
    module = error.name.partition(".")[0]
    if module in DEVELOPMENT:
        return f"needs {module}; run: make dev"
    extras = [extra for extra, modules in MODULES.items() if module in modules]
    return f"needs {module}; run: pip install -e {PLACES.get(extras[0], _of_extra(extras[0]))}" if extras else None


def _of_extra(extra: str) -> str:
    return f"'.[{extra}]'"


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> pytest.CollectReport | None:
    """Report a module as skipped whose import lacks an extra."""
    if not isinstance(collector, pytest.Module):
        return None
    try:
        collector.obj  # noqa: B018  # imports the module; any other failure is reported by pytest's own hook
    except (pytest.Collector.CollectError, pytest.skip.Exception) as error:
        if reason := reason_for(error.__cause__):
            return pytest.CollectReport(collector.nodeid, "skipped", (str(collector.path), 1, f"Skipped: {reason}"), [])
    return None


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Generator[None, Any, Any]:
    """Skip a test whose fixture lacks an extra."""
    return (yield from _skipping())


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """Skip a test that lacks an extra."""
    return (yield from _skipping())


def _skipping() -> Generator[None, Any, Any]:
    try:
        return (yield)
    except ImportError as error:
        if reason := reason_for(error):
            pytest.skip(reason)
        raise
