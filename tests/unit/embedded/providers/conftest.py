"""The provider tests use plain HTTP on this machine only."""

import ssl

import pytest


@pytest.fixture(autouse=True)
def no_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip loading certificate authorities, which takes longer than the rest of a test."""
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
