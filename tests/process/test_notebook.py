"""Runs in a notebook: cells with top-level await share one event loop, and no `async with` block."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.process.scripted import scripted_adapter

from agent_mux import AgentMux, AgentMuxError, BlockingAgentMux, RunResult
from agent_mux.sdk.registry import AdapterRegistry

HOSTILE = "<script>alert(1)</script> \" onload='x' &amp;\x1b[2J"
MAX_SECONDS = 60


def registry(body: str) -> AdapterRegistry:
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter(body))
    return adapters


class Notebook:
    """Executes cells as a kernel does: each in a task of its own, in one namespace and one event loop."""

    def __init__(self, **names: Any) -> None:
        shell = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed: make dev")
        self.shell = shell.InteractiveShell()
        self.shell.user_ns.update(names)

    async def run(self, cell: str) -> Any:
        executed = await asyncio.wait_for(
            asyncio.create_task(self.shell.run_cell_async(cell, transformed_cell=self.shell.transform_cell(cell))),
            MAX_SECONDS,
        )
        executed.raise_error()
        return executed.result

    def html(self, value: Any) -> str:
        (data, _) = self.shell.display_formatter.format(value)
        return str(data["text/html"])


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_await_and_async_for_work_in_cells(tmp_path: Path) -> None:
    async def cells() -> None:
        notebook = Notebook(
            adapters=registry("read(); emit(session='S'); emit(text='hello'); emit(done=True)"), place=tmp_path
        )
        await notebook.run(
            "from agent_mux import AgentMux\nmux = await AgentMux(adapters=adapters, config_dir=place).open()"
        )
        await notebook.run("run = mux.run(agent='scripted', prompt='hi', cwd=str(place))")
        await notebook.run("kinds = []\nasync for event in run:\n    kinds.append(event.type)")
        result = await notebook.run("await run")
        assert isinstance(result, RunResult)
        assert (result.exit_reason, result.text) == ("completed", "hello")
        assert await notebook.run("kinds[-1]") == "session_end"
        assert "hello" in notebook.html(result)
        assert "scripted: completed" in notebook.html(await notebook.run("run"))
        block = "async with AgentMux(adapters=adapters, config_dir=place) as other:\n"
        await notebook.run(f"{block}    second = await other.run(agent='scripted', prompt='hi', cwd=str(place))")
        assert (await notebook.run("second.text")) == "hello"
        await notebook.run("await mux.close()")

    asyncio.run(cells())


def test_closing_aborts_active_runs_and_the_client_can_be_opened_again(tmp_path: Path) -> None:
    async def cells() -> None:
        mux = await AgentMux(adapters=registry("read(); time.sleep(1000)"), config_dir=tmp_path).open()
        run = mux.run(agent="scripted", prompt="hi", cwd=tmp_path, grace_period=0.1)
        with pytest.raises(AgentMuxError, match="the client is open"):
            await mux.open()
        await asyncio.create_task(mux.close())
        assert (await run).exit_reason == "aborted"
        with pytest.raises(AgentMuxError, match="start runs inside of"):
            mux.run(agent="scripted", prompt="hi", cwd=tmp_path)
        await mux.close()
        async with asyncio.timeout(MAX_SECONDS):
            await (await mux.open()).close()

    asyncio.run(cells())


def test_run_without_an_event_loop_names_the_next_step(tmp_path: Path) -> None:
    with asyncio.Runner() as loop:  # IPython at a terminal: a cell without `await` is executed outside of the loop
        mux = AgentMux(adapters=registry("read()"), config_dir=tmp_path)
        with pytest.raises(AgentMuxError, match=r"in a notebook, use `mux = await AgentMux\(\)\.open\(\)`"):
            mux.run(agent="scripted", prompt="hi", cwd=tmp_path)
        loop.run(mux.open())
        with pytest.raises(AgentMuxError, match=r"no event loop runs here; start the run with `await mux\.start"):
            mux.run(agent="scripted", prompt="hi", cwd=tmp_path)
        loop.run(mux.close())


def test_html_of_runs_and_results_contains_no_markup_of_the_agent(tmp_path: Path) -> None:
    body = f"read(); emit(session={HOSTILE!r}); emit(text={HOSTILE!r}); emit(done=True)"
    with BlockingAgentMux(adapters=registry(body), config_dir=tmp_path) as mux:
        run = mux.run(agent="scripted", prompt="hi", cwd=tmp_path, model=HOSTILE)
        result = run.result()
        assert "<script>" in result.text
        for shown in (run._repr_html_(), result._repr_html_()):
            assert "<script" not in shown
            assert "' &amp;" not in shown
            assert "\x1b" not in shown
            assert "&lt;script&gt;alert(1)&lt;/script&gt; &quot; onload=&#x27;x&#x27; &amp;amp;" in shown
    assert "scripted: completed" in run._repr_html_()  # the client is closed


def test_long_text_is_cut_in_html() -> None:
    from agent_mux._util.html import MAX_TEXT, notebook_box

    shown = notebook_box("t", {"empty": None, "n": 0}, "x" * (MAX_TEXT + 5))
    assert shown.endswith("... (5 more characters)</pre></div>")
    assert "empty" not in shown
    assert "<td style='text-align:left'>0</td>" in shown
