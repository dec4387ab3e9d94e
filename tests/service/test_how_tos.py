"""The programs in the how-to pages, with a real server."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.service.receiver import receiving
from tests.service.serving import serving
from tests.service.test_websocket import TALKER, agents, started

HOW_TOS = Path(__file__).parents[2] / "docs" / "how-to"


def program(page: str, **names: Any) -> dict[str, Any]:
    """Execute the first program of a page and return its namespace."""
    found = re.search(r"^```python\n(.*?)^```", (HOW_TOS / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    text = found[1]
    for old, new in names.items():
        text = text.replace(old, new)
    namespace: dict[str, Any] = {"__name__": "__example__"}
    exec(compile(text, page, "exec"), namespace)  # noqa: S102  # our own docs
    return namespace


def test_websocket_example_approves_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = TALKER.replace("while (heard := read()) is not None:", 'read(); heard = {"send": "ask"}\nfor _ in "1":')
    with serving(tmp_path, agents(body)) as served:
        run_id = started(served, interactive=False)
        text = {"ws://localhost:8642": served.url.replace("http", "ws", 1)}
        approve = program("watch-runs-over-http.md", **text)["approve_everything"]
        anyio.run(approve, run_id)
        assert capsys.readouterr().out == "completed\n"
        (event,) = (
            served.http.get(f"/v1/runs/{run_id}/events?types=approval_granted", headers={"accept": "application/jsonl"})
            .text.strip()
            .splitlines()[:-1]
        )
        assert "approval_granted" in event


@pytest.mark.slow
def test_webhook_example_accepts_only_signed_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    receive = program("receive-webhooks.md")["receive"]
    with (
        receiving() as receiver,
        serving(tmp_path, agents("read(); emit(done=True)"), allow_private_webhooks=True) as served,
    ):
        data = {"url": receiver.url, "events": ["run.ended"]}
        secret = served.http.post("/v1/webhooks", json=data).json()["secret"]
        run_id = started(served, interactive=False)
        (message,) = receiver.wait_for(1)
        assert receive(message.headers, message.body, secret) == 204
        assert capsys.readouterr().out == f"{run_id} completed\n"
        assert receive(message.headers, message.body + b" ", secret) == 401
