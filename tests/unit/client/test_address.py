"""The address of a service, and the clients that do not need one."""

import subprocess
import sys

import pytest

from agent_mux import ValidationError
from agent_mux.client.remote.address import Address


@pytest.mark.parametrize(
    ("url", "is_local"),
    [
        ("http://localhost:8642/", True),
        ("http://127.0.0.1", True),
        ("http://[::1]:8642", True),
        ("https://amux.example/base/", False),
        ("http://10.0.0.1:8642", False),
        ("http://localhost.example", False),
    ],
)
def test_proxies_are_used_for_other_machines_only(url: str, is_local: bool) -> None:
    address = Address.of(url, "token")
    assert address.is_local == is_local
    assert address.url == url.rstrip("/")
    with address.client() as http:
        assert http.trust_env != is_local
        assert http.headers["authorization"] == "Bearer token"


def test_the_environment_has_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MUX_SERVER", "http://there")
    monkeypatch.setenv("AGENT_MUX_SERVER_TOKEN", "secret")
    assert Address.of(None, None) == Address("http://there", "secret")
    assert Address.of("http://here", "mine") == Address("http://here", "mine")
    assert "mine" not in repr(Address.of("http://here", "mine"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "from agent_mux import RemoteMux, RemoteRun, BlockingRemoteMux; RemoteMux()",
        "from agent_mux import BlockingRemoteMux; BlockingRemoteMux('http://x')",
        "from agent_mux.cli.main import main; sys.exit(main(['--server', 'http://x', 'run', 'replay', 'demo']))",
    ],
)
def test_without_the_extra_the_error_is_one_line(code: str) -> None:
    without = f"import sys; sys.modules['httpx'] = None; {code}"
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "the remote client requires the extra: pip install 'agent-mux[remote]'" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_the_local_client_does_not_import_httpx() -> None:
    code = "import sys; from agent_mux import AgentMux, BlockingAgentMux, RunHandle; sys.exit('httpx' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@host", "me:hunter2@host:80", "//me:hunter2@host", "http://host?token=hunter2",
        "http://host/#hunter2", "http://me:hunter2@host:x", "ftp://me:hunter2@host",
    ],
)  # fmt: skip
def test_an_invalid_url_with_a_secret_is_not_shown(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Address.of(url, None)
    assert "hunter2" not in str(caught.value)
    assert "AGENT_MUX_SERVER_TOKEN" in str(caught.value) or "http://HOST:PORT" in str(caught.value)


@pytest.mark.parametrize("url", ["host:80", "localhost", "http://", "http://host:99999", "http://host:x"])
def test_an_invalid_url_is_shown_with_the_form_that_is_allowed(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Address.of(url, None)
    assert url in str(caught.value)
    assert "http://HOST:PORT" in str(caught.value)
