"""Serve one connection. Standard output carries only messages of the protocol."""

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import replace
from typing import Any, cast

import anyio
from acp import Agent, run_agent

from agent_mux.acp_server.agent import AcpAgent
from agent_mux.acp_server.transport import AnsweringTransport, PipeTransport
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.adapter import Adapter, check_capabilities
from agent_mux.sdk.options import validate_options

STDIN, STDOUT, STDERR = 0, 1, 2


async def serve(mux: AgentMux, agent: str, fields: Mapping[str, Any], transport: Any) -> None:
    """Serve an editor until it disconnects; return when all its runs have ended.

    Args:
        mux: A client that is not entered yet.
        agent: The name of the agent.
        fields: Options of all runs, as for `AgentMux.run`.
        transport: The message stream: `PipeTransport`, or another transport of the library's kind.

    Raises the errors of `check`.
    """
    adapter = check(mux, agent, fields)
    with ExitStack() as at_end:
        async with mux, anyio.create_task_group() as tasks:
            own = AcpAgent(mux, adapter, fields, tasks)
            at_end.callback(own.close)
            await run_agent(cast("Agent", own), AnsweringTransport(transport, own.answered), use_unstable_protocol=True)
            tasks.cancel_scope.cancel()


def check(mux: AgentMux, agent: str, fields: Mapping[str, Any]) -> Adapter:
    """Check the options before the first session.

    Raises AGENT_NOT_FOUND, `ValidationError` and `CapabilityError` for unusable options, and errors of configuration
    files.
    """
    adapter = mux.adapters.get(agent)
    can = adapter.capabilities
    options = mux.resolve_options(**{**fields, "agent": adapter.agent, "interactive": True}).options
    validate_options(options)
    check_capabilities(replace(options, interactive=can.interactive_mode), can)
    return adapter


async def serve_standard_streams(mux: AgentMux, agent: str, fields: Mapping[str, Any]) -> None:
    """Serve the editor that started this process. Raise the errors of `serve`, and VALIDATION_ERROR without pipes."""
    check(mux, agent, fields)
    if not (_is_pipe(STDIN) and _is_pipe(STDOUT)):
        what = "`amux acp` requires pipes as standard input and output, from an editor; use `amux run -i` at a terminal"
        raise AgentMuxError("VALIDATION_ERROR", what)
    with _reserved_streams() as (read_from, write_to):
        await serve(mux, agent, fields, await PipeTransport.over(read_from, write_to))


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # the parent process closed it
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def _reserved_streams() -> Iterator[tuple[int, int]]:
    """Reserve both standard streams for the protocol. Meanwhile, everything printed goes to standard error."""
    read_from, write_to = os.dup(STDIN), os.dup(STDOUT)
    kept = os.dup(STDOUT)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, STDIN)
    os.dup2(STDERR, STDOUT)
    os.close(null)
    try:
        with redirect_stdout(sys.stderr):
            yield read_from, write_to
    finally:
        os.dup2(kept, STDOUT)
        os.close(kept)
