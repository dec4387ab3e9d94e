"""OpenAPI services of the real program `amux-agent`, with a scripted model and a service on the loopback interface."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.process.embedded_agent import Sandbox
from tests.unit.embedded.openapi.service import Reply, Service, document, operation, parameter

SECRET = "s3cret-of-the-service"  # noqa: S105  # of no service


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


@pytest.mark.slow
def test_operation_is_called_with_credentials_that_no_event_contains(tmp_path: Path, service: Service) -> None:
    service.reply = lambda request: Reply(body=json.dumps(request.headers).encode())
    sandbox = Sandbox(tmp_path)
    content = document(
        {"/pets/{id}": {"get": operation("pet", parameters=[parameter("id", "path")])}},
        servers=[{"url": service.url}],
    )
    (sandbox.work / "api.json").write_text(json.dumps(content))
    settings = {
        "document": "api.json",
        "namePrefix": "pets",
        "allowPrivate": True,
        "auth": {"type": "apiKey", "name": "X-Access", "variable": "PETS_ACCESS"},
    }
    model = sandbox.script(call("pets__pet", id="rex"), call("shell", command="echo [$PETS_ACCESS]"), {"text": "Done."})
    done = sandbox.run(
        "--model", model, "--mode", "yolo", "--json", "--openapi", json.dumps(settings), "go", PETS_ACCESS=SECRET
    )
    assert done.returncode == 0, done.stderr
    assert (service.last.path, service.last.headers["x-access"]) == ("/pets/rex", SECRET)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    results = [line["output"] for line in lines if line["type"] == "tool_result"]
    assert "/pets/rex -> 200" in results[0]
    assert "[]" in results[1]
    stored = "".join(path.read_text() for path in sandbox.home.rglob("*") if path.is_file())
    assert "pets__pet" in stored
    assert [text for text in (done.stdout, done.stderr, stored) if SECRET in text] == []


@pytest.mark.slow
def test_missing_credentials_and_documents_are_usage_errors(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    model = sandbox.script({"text": "Done."})
    missing = {"document": "api.json", "auth": {"type": "bearer", "variable": "PETS_ACCESS"}}
    done = sandbox.run("--model", model, "--openapi", json.dumps(missing), "go")
    assert done.returncode == 2
    assert "PETS_ACCESS is not set; it has the credentials for api.json" in done.stderr
    done = sandbox.run("--model", model, "--openapi", "api.json", "go")
    assert done.returncode == 2
    assert "api.json cannot be read: No such file" in done.stderr
