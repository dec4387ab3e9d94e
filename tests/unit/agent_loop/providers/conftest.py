"""Nothing here leaves this machine, or is encrypted."""

import ssl

import pytest


@pytest.fixture(autouse=True)
def no_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading all certificate authorities, which every client does, takes longer than all the rest of a test."""
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
