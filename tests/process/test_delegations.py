"""The delegation tools in this process, with adapters of specific capabilities."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from tests.process.mcp_client import HELLO, Delegator, Refusal
from tests.process.scripted import scripted_adapter

from agent_mux import AgentMux
from agent_mux.mcp_server.delegated_runs import DelegatedRuns
from agent_mux.mcp_server.limits import DelegationLimits
from agent_mux.mcp_server.server import create_server
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.settings.allowed_directories import AllowedDirectories

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


@asynccontextmanager
async def tools(directory: Path, body: str, capable: dict[str, Any], **limits: Any) -> AsyncIterator[Delegator]:
    """Yield a client of the tools for a scripted agent with these capabilities."""
    adapter = scripted_adapter(body)
    registry = AdapterRegistry()
    registry.register(replace(adapter, capabilities=replace(adapter.capabilities, **capable)))
    (directory / "work").mkdir()
    own = DelegationLimits(roots=AllowedDirectories([directory / "work"]), agents=("scripted",), **limits)
    async with AgentMux(adapters=registry, config_dir=directory / "config") as mux, anyio.create_task_group() as tasks:
        async with Client(create_server(DelegatedRuns(mux, own, tasks))) as client:
            yield Delegator(client)
        tasks.cancel_scope.cancel()


@pytest.mark.slow
async def test_continued_session_runs_in_its_directory(tmp_path: Path) -> None:
    async with tools(tmp_path, HELLO, {"can_resume": True}) as tool:
        (tmp_path / "work" / "inner").mkdir()
        first = await tool.start(cwd="inner")
        await tool.watch_to_end(first)
        again = await tool("start_run", agent="scripted", prompt="more", continueRun=first)
        assert again["cwd"] == str(tmp_path / "work" / "inner")
        assert (await tool.watch_to_end(again["runId"]))["result"]["sessionId"] == "s"
        with pytest.raises(Refusal, match="unknown run 'unknown'"):
            await tool.start(continueRun="unknown")


async def test_unfinished_run_is_not_continued(tmp_path: Path) -> None:
    async with tools(tmp_path, "read(); emit(session='s'); time.sleep(1000)", {"can_resume": True}) as tool:
        first = await tool.start()
        with pytest.raises(Refusal, match="is still active: use send_prompt"):
            await tool.start(continueRun=first)
        await tool("stop_run", runId=first)


async def test_agent_without_an_allowed_mode_reports_the_problem(tmp_path: Path) -> None:
    async with tools(tmp_path, HELLO, {"approval_modes": ("yolo",)}) as tool:
        [agent] = (await tool("list_agents"))["agents"]
        assert "approvalModes" not in agent
        assert agent["problem"] == "supports no approval mode that this server allows (deny)"
        with pytest.raises(Refusal, match=r"approval mode 'deny' .*\[CAPABILITY_ERROR\]|\[CAPABILITY_ERROR\]"):
            await tool.start()
        assert (await tool("list_runs"))["runs"] == []


async def test_truncated_approval_text_is_marked_as_cut(tmp_path: Path) -> None:
    body = "read(); emit(ask='rm ' + 'x' * 9000); read(); emit(over=1); emit(done=1); drain()"
    async with tools(tmp_path, body, {}, approvals="prompt") as tool:
        run = await tool.start()
        [pending] = (await tool("watch_run", runId=run))["pending"]
        assert pending["cut"]
        assert len(pending["text"]) < 4100
        await tool("answer", runId=run, decision="deny", text="too long")
        await tool.watch_to_end(run)


async def test_internal_error_fails_only_its_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("with a secret in it")

    async with tools(tmp_path, HELLO, {}) as tool:
        with monkeypatch.context() as patched:
            patched.setattr(DelegatedRuns, "limits_info", broken)
            with pytest.raises(Refusal, match=r"list_runs failed: .* \(RuntimeError\) \[INTERNAL\]") as caught:
                await tool("list_runs")
        assert "secret" not in str(caught.value)
        assert (await tool("list_runs"))["runs"] == []


@pytest.mark.slow
async def test_lost_journal_does_not_block_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.mcp_server.views.READ_TIMEOUT", 0.1)
    body = "read()\nfor n in range(2500): emit(text=f'{n} '); emit(over=1)\nemit(done=1); drain()"
    async with tools(tmp_path, body, {}) as tool:
        run = await tool.start()
        await tool.watch_to_end(run)
        for journal in (tmp_path / "config" / "runs").iterdir():
            journal.unlink()
        seen = await tool("watch_run", runId=run, after=0, until="now", maxChars=60_000)
        assert any("events were lost" in one["text"] for one in seen["entries"])
