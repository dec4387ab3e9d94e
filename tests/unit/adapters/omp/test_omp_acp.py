"""omp over ACP: the meaning of its tool calls, and errors of the provider."""

from typing import Any

import pytest
from tests.unit.adapters.codec_conversation import PROJECT, codec_of, facts_of, receive
from tests.unit.adapters.pi_family import result
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Codec
from agent_mux_adapters._dialects.acp import AcpCall
from agent_mux_adapters.omp import ADAPTER
from agent_mux_adapters.omp.acp_reader import OmpAcpTools

ALL = Recordings(ADAPTER, "json")


def codec() -> Codec:
    return codec_of(ADAPTER, "acp")


def update(what: str, **fields: Any) -> dict[str, Any]:
    params = {"sessionId": "s", "update": {"sessionUpdate": what, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def called(
    kind: str, given: Any, came: dict[str, Any], status: str = "completed", title: str = "doing it"
) -> list[Any]:
    lines = [
        update("tool_call", toolCallId="c", title=title, kind=kind, status="pending", rawInput=given),
        update("tool_call_update", toolCallId="c", status=status, rawOutput=came),
    ]
    kinds = (facts.ToolReady, facts.ToolDone, facts.McpBegin, facts.McpDone, facts.SubagentBegin, facts.SubagentDone)
    return facts_of(receive(codec(), *lines), *kinds)


@pytest.mark.parametrize(
    ("kind", "given", "title", "name"),
    [
        ("execute", {"command": "ls"}, "$ ls", "bash"),
        ("execute", {"language": "py", "code": "1"}, "[py]", "eval"),
        ("execute", {"path": "xd://github", "content": "{}"}, "xd://github", "write"),
        ("edit", {"path": "a", "content": "b"}, "doing it", "write"),
        ("edit", {"input": "..."}, "doing it", "edit"),
        ("read", {"path": "a"}, "doing it", "read"),
        ("search", {"pattern": "x"}, "doing it", "grep"),
        ("search", {"pat": "x"}, "doing it", "ast_grep"),
        ("search", {"path": "*.md"}, "doing it", "glob"),
        ("fetch", {"query": "x"}, "doing it", "web_search"),
        ("think", {"op": "init"}, "doing it", "todo"),
        ("other", {"query": "x"}, "lsp: x", "lsp"),
        ("other", {}, "mcp__echo_echo", "mcp__echo_echo"),
        ("other", {"agent": "explore", "task": "look"}, "Looking around", "task"),
        ("other", {}, "Doing something", "tool"),
    ],
)
def test_tool_names_are_derived_from_kind_and_input(kind: str, given: Any, title: str, name: str) -> None:
    assert OmpAcpTools().name(AcpCall("c", title=title, first_title=title, kind=kind, raw_input=given)) == name


def test_command_facts_match_rpc_mode() -> None:
    ready, done = called("execute", {"command": "x"}, result("a\n\n\nWall time: 0.1 seconds", exitCode=3), "failed")
    assert ready.shell == facts.ShellInvocation("x")
    assert (done.stdout, done.exit_code) == ("a\n", 3)
    assert done.error == "a\n\n\nWall time: 0.1 seconds"


def test_file_facts_match_rpc_mode() -> None:
    came = result("ok", path=f"{PROJECT}/a.txt", oldText="a\n", newText="b\n", op="update")
    [_, done] = called("edit", {"input": "..."}, came)
    assert done.files == (facts.FilePatched(f"{PROJECT}/a.txt", "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-a\n+b\n"),)
    assert done.output == "ok"


def test_mcp_tools_and_sub_agents_are_recognized() -> None:
    begun, done = called("other", {"a": 1}, result("ok"), title="mcp__echo_echo")
    assert (begun, done) == (facts.McpBegin("c", "echo", "echo", {"a": 1}), facts.McpDone("c", "ok"))
    begun, done = called("other", {"agent": "explore", "task": "look"}, result("found it"))
    assert (begun, done) == (facts.SubagentBegin("c", "explore", "look"), facts.SubagentDone("c", "found it"))


ERROR = "401 bad key\nbad key (type=invalid_request_error param=invalid_api_key)"


def test_provider_error_text_fails_the_turn() -> None:
    chunk = update("agent_message_chunk", content={"type": "text", "text": ERROR})
    prompt = {"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}
    one = codec_of(ADAPTER, "acp", prompt="hello")
    list(one.start())
    receive(one, {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {}}})
    receive(one, {"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}})
    [failed] = facts_of(receive(one, chunk, prompt), facts.TurnDone, facts.TurnFailed)
    assert failed == facts.TurnFailed(facts.Failure("AUTH_ERROR", ERROR))


def test_message_that_begins_with_a_number_is_a_message() -> None:
    chunk = update("agent_message_chunk", content={"type": "text", "text": "401 files were changed"})
    assert facts_of(receive(codec(), chunk), facts.TextDelta) == [facts.TextDelta("401 files were changed")]
