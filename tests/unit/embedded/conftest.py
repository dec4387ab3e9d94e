"""Fixtures of the embedded agent's tests: asynchronous tests run on asyncio and Trio."""

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)
