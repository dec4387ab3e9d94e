"""Secrets and callbacks that a plan keeps out of the journal."""

import json
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_mux import McpServer, RunOptions
from agent_mux.run import plan
from agent_mux.run.plan import redact_options, without_secrets
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.registry import AdapterRegistry

KEY = "sk-ant-api03-" + "aB3_" * 12
SERVERS = (
    McpServer("tools", command="run", env={"TOKEN": 'a "secret"', "EMPTY": ""}),
    McpServer("web", "streamable-http", url="https://host/mcp?key=hush", headers={"Authorization": "Bearer ö"}),
    McpServer("open", "sse", url="https://host/mcp"),
)


def test_secrets_of_mcp_servers_are_not_in_what_is_journaled() -> None:
    context = without_secrets(CodecContext(agent="a", protocol="p", mcp_servers=SERVERS))
    assert [server.name for server in context.mcp_servers] == ["tools", "web", "open"]
    assert context.mcp_servers[0].env == {"TOKEN": "[hidden]", "EMPTY": "[hidden]"}
    assert context.mcp_servers[2].url == "https://host/mcp"
    written = msgspec.json.encode(context).decode()
    assert not [secret for secret in ("secret", "hush", "Bearer") if secret in written]


@pytest.mark.parametrize("is_ascii", [True, False])
def test_sent_data_is_journaled_without_secrets(is_ascii: bool) -> None:
    run = RunOptions(agent="a", mcp_servers=SERVERS)
    redactor = plan.make_redactor(run, {})
    sent = json.dumps(
        [{**server.env, **server.headers, "url": server.url} for server in SERVERS], ensure_ascii=is_ascii
    )
    written = redactor.mask_sent(sent.encode())
    assert len(written) == len(sent.encode())
    tools, web, other = json.loads(written)
    assert set(tools["TOKEN"]) | set(web["Authorization"]) | set(web["url"]) <= set("*0123456789")
    assert (tools["EMPTY"], other) == ("", {"url": "https://host/mcp"})


def test_a_codec_context_has_placeholders_that_are_restored_when_sent() -> None:
    context = CodecContext(agent="a", protocol="p", prompt=f"use {KEY}", mcp_servers=SERVERS)
    redactor = plan.make_redactor(RunOptions(agent="a", mcp_servers=SERVERS), {})
    known = plan.mask_secrets(context, redactor)
    assert known.prompt is not None
    assert (KEY in known.prompt, len(known.prompt)) == (False, len(f"use {KEY}"))
    sent = msgspec.json.encode({"prompt": known.prompt, "servers": known.mcp_servers})
    assert redactor.restore(sent) == msgspec.json.encode({"prompt": context.prompt, "servers": SERVERS})


def test_callbacks_are_omitted_from_redacted_options() -> None:
    class Holder:
        def __init__(self) -> None:
            self.lock = threading.Lock()  # cannot be copied

        def answer(self, _: object) -> None: ...

    holder = Holder()
    options = RunOptions(
        agent="claude", prompt="hi", on_approval_request=holder.answer, on_input_required=holder.answer, tags=("t",)
    )
    assert set(redact_options(options)) >= {"agent", "prompt", "tags"}
    assert not any(name.startswith("on_") for name in redact_options(options))


@pytest.mark.parametrize(
    ("agent", "fail_on", "is_noted"),
    [
        ("gemini", ("length", "filtered"), True),
        ("gemini", ("denied", "no_change"), False),
        ("codex", ("length", "filtered"), False),
    ],
)
def test_condition_that_the_protocol_cannot_show_is_noted(
    tmp_path: Path, agent: str, fail_on: tuple[Any, ...], *, is_noted: bool
) -> None:
    program = tmp_path / agent
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    options = RunOptions(
        agent=agent, prompt="hi", cwd=tmp_path, env={"PATH": str(tmp_path)}, inherit_env=False, fail_on=fail_on
    )
    notes = plan.plan_run(options, AdapterRegistry().get, None).spawn.notes
    expected = (
        "gemini does not report that an answer with text was cut or blocked; fail_on length, filtered may miss it"
    )
    assert [note for note in notes if "fail_on" in note] == ([expected] if is_noted else [])
