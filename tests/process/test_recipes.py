"""The recipes in the docs work as they are written, with the agent replaced."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import uvicorn
from tests.process.installed_command import PATIENCE
from tests.process.scripted import ScriptedMux

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "recipes.md").read_text("utf-8")
STREAM, CANCEL, INTERRUPT, FIXTURE = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
ANSWER = "read(); emit(text='Hello'); emit(over=True); emit(done=True)"
ENDLESS = "read(); emit(text='Hello'); time.sleep(1000)"


def program(recipe: str) -> dict[str, Any]:
    """Run a recipe and return its names."""
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(recipe.replace('agent="claude", ', ""), "recipe", "exec"), names)  # noqa: S102  # our own docs
    return names


@contextmanager
def served(tmp_path: Path, body: str) -> Iterator[tuple[str, list[Any]]]:
    """Serve the recipe with a scripted agent; yield its URL and the handles of its runs."""
    runs: list[Any] = []

    def client(**arguments: Any) -> Any:
        mux = ScriptedMux(tmp_path).client(body, **arguments)
        mux.on_run(lambda run: (runs.append(run), lambda: None)[1])
        return mux

    names = program(STREAM)
    names["AgentMux"] = client
    server = uvicorn.Server(uvicorn.Config(names["app"], port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started)
        (port,) = {socket.getsockname()[1] for one in server.servers for socket in one.sockets}
        yield f"http://127.0.0.1:{port}/runs", runs
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def wait_until(condition: Callable[[], Any]) -> None:
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_events_of_a_run_are_streamed_to_the_browser(tmp_path: Path) -> None:
    with served(tmp_path, ANSWER) as (url, runs):
        response = httpx.post(url, json={"prompt": "hi"}, timeout=PATIENCE)
    assert response.headers["content-type"].startswith("text/event-stream")
    *messages, empty = response.text.split("\n\n")
    assert empty == ""
    fields = [dict(line.split(": ", 1) for line in message.split("\n")) for message in messages]
    assert [one["id"] for one in fields[:-1]] == [str(number) for number in range(len(fields) - 1)]
    assert [json.loads(one["data"])["type"] for one in fields[:-1]] == [one["event"] for one in fields[:-1]]
    assert (fields[0]["event"], fields[-2]["event"], fields[-1]["event"]) == ("session_start", "session_end", "result")
    assert json.loads(fields[-1]["data"])["exitReason"] == "completed"
    assert [run.state for run in runs] == ["completed"]


@pytest.mark.slow
def test_run_of_a_browser_that_left_is_aborted(tmp_path: Path) -> None:
    with served(tmp_path, ENDLESS) as (url, runs):
        with httpx.stream("POST", url, json={"prompt": "hi"}, timeout=PATIENCE) as response:
            assert next(response.iter_lines()).startswith("id: 0")
        wait_until(lambda: runs and runs[0].state == "aborted")


@pytest.mark.slow
@pytest.mark.parametrize(("body", "reason"), [(ANSWER, "completed"), (ENDLESS, "aborted")])
def test_run_that_takes_too_long_is_aborted_with_its_result(tmp_path: Path, body: str, reason: str) -> None:
    answer_within = program(CANCEL)["answer_within"]

    async def main() -> Any:
        with anyio.fail_after(PATIENCE):
            async with ScriptedMux(tmp_path).client(body) as mux:
                return await answer_within(mux, "hi", 5 if reason == "completed" else 2)

    result = asyncio.run(main())
    assert (result.exit_reason, result.text) == (reason, "Hello")


@pytest.mark.slow
def test_interrupted_program_leaves_no_agent(tmp_path: Path) -> None:
    recipe = INTERRUPT.replace('agent="claude", ', "").replace(
        "AgentMux() as mux", f"ScriptedMux(Path({str(tmp_path)!r})).client(BODY) as mux"
    )
    body = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); {ENDLESS}"
    head = f"from pathlib import Path\nfrom tests.process.scripted import ScriptedMux\nBODY = {body!r}\n"
    process = subprocess.Popen(
        [sys.executable, "-c", head + recipe], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509  # one thread
    )  # fmt: skip
    try:
        assert process.stdout is not None
        while "text_delta" not in (line := process.stdout.readline()):
            assert line
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert rest.endswith("stopped\n")
    assert process.returncode == 0
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


@pytest.mark.slow
def test_fixture_for_tests_of_ones_own_code(tmp_path: Path) -> None:
    (tmp_path / "test_greet.py").write_text(FIXTURE)
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "test_greet.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE * 2, check=False,
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout
    assert "2 passed" in tested.stdout
