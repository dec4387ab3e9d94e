"""Secrets in environments and MCP servers."""

import json
from pathlib import Path

import pytest

from agent_mux import McpServer
from agent_mux.redaction import secret_values, secrets_of_servers

HUSH = "h5nter2-h5nter2"


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({"API_KEY": HUSH, "EDITOR": "h5nter3-h5nter3"}, {HUSH}),
        ({"API_KEY": "short", "TOKEN": "true", "DB_PASSWORD": "postgres", "OTHER_SECRET": "12345678"}, set()),
        ({"DATABASE_URL": f"postgres://me:{HUSH}@db/x"}, {HUSH}),
        ({"DATABASE_URL": "postgres://me:p%40ss-w0rd@db/x"}, {"p%40ss-w0rd", "p@ss-w0rd"}),
        ({"SIGNING_KEY": f"-----BEGIN X-----\n{HUSH}\n-----END X-----"}, {HUSH}),
        ({"CREDENTIALS": json.dumps({"type": "service_account", "private_key": f"a\n{HUSH}"})}, {HUSH}),
        ({"BROKEN_TOKEN": "{not json 1"}, {"{not json 1"}),
        ({"ODD_URL": "http://[x@y"}, set()),
    ],
)
def test_secrets_are_found_in_an_environment(environ: dict[str, str], found: set[str]) -> None:
    assert secret_values(environ) == found


def test_path_of_an_existing_file_is_not_a_secret(tmp_path: Path) -> None:
    assert secret_values({"SERVICE_CREDENTIALS": str(tmp_path), "API_KEY": "/not/a/file/1"}) == {"/not/a/file/1"}


def test_secrets_are_found_in_mcp_servers() -> None:
    servers = [
        McpServer(
            "a",
            command="x",
            args=("--token=arg-s3cret", "--key", "arg-s3cret-2"),
            env={"DSN": "s0me-random-9", "MODE": "production", "ROOT": "/home/me2/project"},
        ),
        McpServer(
            "b", "sse", url=f"https://h/mcp/abcdefg12345?key={HUSH}", headers={"Authorization": "Bearer tok-s3cret"}
        ),
        McpServer("c", "sse", url="https://h/mcp?version=2026"),
    ]
    assert secrets_of_servers(servers) == {
        "arg-s3cret", "arg-s3cret-2", "s0me-random-9", HUSH, f"https://h/mcp/abcdefg12345?key={HUSH}",
        "abcdefg12345", "Bearer tok-s3cret", "tok-s3cret",
    }  # fmt: skip
