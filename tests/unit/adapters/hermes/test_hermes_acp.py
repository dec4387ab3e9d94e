"""Hermes over ACP: where it differs from the protocol."""

import json
from typing import Any

import pytest
from hermes_transcript import new_codec

from agent_mux.sdk.codec import ApproveAction, CodecOutput, DenyAction, Source, WriteStdin
from agent_mux.sdk.facts import (
    ApprovalRequested,
    Failure,
    Ignored,
    McpBegin,
    McpDone,
    RequestResolved,
    ShellInvocation,
    StepBegin,
    TextDelta,
    ToolDone,
    ToolReady,
    TurnFailed,
    TurnStopped,
)

OWN = "session-1"
ONCE = [{"optionId": "allow_once", "kind": "allow_once", "name": "Allow"}]
ONCE_OR_NOT = [*ONCE, {"optionId": "deny", "kind": "reject_once", "name": "Deny"}]


def content(text: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": text}}]


class Acp:
    """A live codec whose first prompt is being answered, and an agent whose messages the test chooses."""

    def __init__(self, **context: Any) -> None:
        self.codec = new_codec("acp", **{"prompt": "hello", **context})
        self.sent: list[Any] = []
        self.do(self.codec.start())
        self.prints({"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {}}})
        self.prints({"id": 2, "result": {"sessionId": OWN}})

    def do(self, steps: Any) -> list[CodecOutput]:
        others = []
        for step in steps:
            if isinstance(step, WriteStdin):
                self.sent.append(json.loads(step.data))
            elif not isinstance(step, Ignored):
                others.append(step)
        return others

    def prints(self, message: dict[str, Any]) -> list[CodecOutput]:
        return self.do(self.codec.receive(json.dumps({"jsonrpc": "2.0", **message}).encode(), Source.STDOUT))

    def updates(self, update_kind: str, /, **fields: Any) -> list[CodecOutput]:
        update = {"sessionUpdate": update_kind, **fields}
        return self.prints({"method": "session/update", "params": {"sessionId": OWN, "update": update}})

    def speaks(self, text: str) -> list[CodecOutput]:
        return self.updates("agent_message_chunk", content={"type": "text", "text": text})

    def calls(self, title: str, kind: str = "execute", **fields: Any) -> list[CodecOutput]:
        return self.updates("tool_call", toolCallId="tc-1", title=title, kind=kind, **fields)

    def ends(self, shown: str, status: str = "completed") -> list[CodecOutput]:
        return self.updates("tool_call_update", toolCallId="tc-1", status=status, content=content(shown))

    def asks(self, number: int, **call: Any) -> list[CodecOutput]:
        params = {"sessionId": OWN, "toolCall": {"toolCallId": "perm-1", **call}, "options": ONCE_OR_NOT}
        return self.prints({"id": number, "method": "session/request_permission", "params": params})

    def stops(self, reason: str = "end_turn") -> list[CodecOutput]:
        return self.prints({"id": 3, "result": {"stopReason": reason}})


def ready(steps: list[CodecOutput]) -> ToolReady:
    (found,) = [step for step in steps if isinstance(step, ToolReady)]
    return found


def done(steps: list[CodecOutput]) -> ToolDone:
    (found,) = [step for step in steps if isinstance(step, ToolDone)]
    return found


# -- calls


@pytest.mark.parametrize(
    ("title", "kind", "name", "given"),
    [
        ("read: a.txt", "read", "read_file", {"path": "a.txt"}),
        ("write: a.txt", "edit", "write_file", {"path": "a.txt"}),
        ("patch (replace): a.txt", "edit", "patch", {"path": "a.txt"}),
    ],
)
def test_a_tool_is_known_by_its_title(title: str, kind: str, name: str, given: dict[str, str]) -> None:
    call = ready(Acp().calls(title, kind, locations=[{"path": "a.txt"}]))
    assert (call.name, call.input, call.shell) == (name, given, None)


def test_a_long_command_is_whole_in_the_content() -> None:
    call = ready(Acp().calls("terminal: echo on...", content=content("$ echo one two")))
    assert (call.name, call.input, call.shell) == (
        "terminal",
        {"command": "echo one two"},
        ShellInvocation("echo one two"),
    )


def test_a_command_without_content_is_its_title() -> None:
    assert ready(Acp().calls("terminal: ls\npwd")).shell == ShellInvocation("ls\npwd")


def test_scripts_and_delegations_are_no_commands() -> None:
    assert ready(Acp().calls("python: print(1)", content=content("print(1)"))).shell is None
    delegation = ready(Acp().calls("delegate: count the files"))
    assert (delegation.name, delegation.input) == ("delegate_task", {"goal": "count the files"})
    assert delegation.shell is None


def test_the_frame_around_an_output_is_no_output() -> None:
    talk = Acp()
    talk.calls("terminal: ls")
    end = done(talk.ends("terminal result\n- **output:** one\n- **exit_code:** 9\n- **exit_code:** 0"))
    assert (end.stdout, end.exit_code, end.error) == ("one\n- **exit_code:** 9", 0, None)


def test_a_command_may_print_nothing() -> None:
    talk = Acp()
    talk.calls("terminal: exit 4")
    end = done(talk.ends("terminal result\n- **exit_code:** 4", "failed"))
    assert (end.stdout or "", end.exit_code) == ("", 4)
    assert end.error is not None


def test_an_error_excludes_the_name_of_the_tool() -> None:
    talk = Acp()
    talk.calls("read: a.txt", "read")
    assert done(talk.ends("Read failed: File not found: a.txt", "failed")).error == "File not found: a.txt"


def test_output_with_the_word_failed_is_no_failure() -> None:
    talk = Acp()
    talk.calls("search: x", "search")
    end = done(talk.ends("Build failed: see the log"))
    assert (end.error, end.output) == (None, "Build failed: see the log")


def test_the_failure_of_a_tool_of_a_server_is_called_completed() -> None:
    talk = Acp()
    assert talk.calls("mcp__echo__boom", "other", rawInput={"a": 1})[-1] == McpBegin("tc-1", "echo", "boom", {"a": 1})
    assert talk.ends("mcp__echo__boom failed: boom failed") == [McpDone("tc-1", None, "boom failed")]


def test_the_result_of_a_tool_of_a_server() -> None:
    talk = Acp()
    talk.calls("mcp__echo__echo", "other", rawInput={})
    assert talk.ends("mcp__echo__echo result\n- **result:** hello")[-1] == McpDone("tc-1", "hello")


def test_tools_that_work_on_files_end_when_something_else_comes() -> None:
    talk = Acp()
    talk.calls("read: a.txt", "read", locations=[{"path": "a.txt"}])
    steps = talk.speaks("\n\nI read it.")
    assert [done(steps).call_id, done(steps).error] == ["tc-1", None]
    assert steps[-2:] == [StepBegin(), TextDelta("I read it.")]


def test_line_breaks_within_a_message_stay() -> None:
    talk = Acp()
    assert talk.speaks("One.")[-1] == TextDelta("One.")
    assert talk.speaks("\n\nTwo.")[-1] == TextDelta("\n\nTwo.")


# -- permission


def test_permission_to_change_a_file_is_for_the_call_that_waits() -> None:
    talk = Acp(approval_mode="prompt")
    talk.calls("write: a.txt", "edit", locations=[{"path": "a.txt"}])
    diff = {"type": "diff", "path": "a.txt", "newText": "x\n"}
    arguments = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "x\n"}}
    (asked,) = [
        s for s in talk.asks(9, kind="edit", content=[diff], rawInput=arguments) if isinstance(s, ApprovalRequested)
    ]
    assert asked.call_id == "tc-1"
    talk.do(talk.codec.request(ApproveAction(asked.request_id)))
    assert talk.sent[-1] == {
        "jsonrpc": "2.0",
        "id": 9,
        "result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}},
    }


def test_permission_to_run_a_command_is_for_the_last_call_with_that_command() -> None:
    talk = Acp(approval_mode="prompt")
    talk.calls("terminal: rm -rf x")
    asked = list(talk.asks(9, kind="execute", rawInput={"command": "rm -rf x"}))
    (approval,) = [step for step in asked if isinstance(step, ApprovalRequested)]
    assert approval.call_id == "tc-1"
    assert RequestResolved(approval.request_id, granted=False, reason="no") in talk.do(
        talk.codec.request(DenyAction(approval.request_id, "no"))
    )


def test_a_command_denied_by_rule_emits_no_shell_output() -> None:
    talk = Acp(approval_mode="deny")
    talk.calls("terminal: touch one")
    rule = "terminal failed: BLOCKED: this command matches the user-defined deny rule '*' (approvals.deny)."
    asked, settled, end = talk.ends(rule, "failed")
    assert isinstance(asked, ApprovalRequested)
    assert (asked.action, asked.detail, asked.call_id) == ("Run a command", "touch one", "tc-1")
    assert settled == RequestResolved(asked.request_id, granted=False, reason="denied: this run has approval mode deny")
    assert isinstance(end, ToolDone)
    assert (end.stdout, end.exit_code, (end.error or "")[:8]) == (None, None, "BLOCKED:")


# -- the end


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("API call failed after 3 retries: HTTP 429: Rate limit reached", "RATE_LIMITED"),
        ("HTTP 401: Incorrect API key provided.", "AUTH_ERROR"),
        ("Context length exceeded (17 tokens). Cannot compress further.", "CONTEXT_EXCEEDED"),
        ("Queued for the next turn. (1 queued)", "AGENT_CRASH"),
    ],
)
def test_some_messages_are_failures(text: str, code: str) -> None:
    talk = Acp()
    steps = [*talk.speaks(text), *talk.stops()]
    (failed,) = [step for step in steps if isinstance(step, TurnFailed)]
    assert isinstance(failed.failure, Failure)
    assert failed.failure.code == code
    assert not [step for step in steps if isinstance(step, TextDelta)]


def test_text_about_an_error_is_text() -> None:
    steps = Acp().speaks("The server said HTTP 401: no.")
    assert steps[-1] == TextDelta("The server said HTTP 401: no.")


def test_a_turn_may_be_cancelled() -> None:
    talk = Acp()
    talk.speaks("One")
    assert any(isinstance(step, TurnStopped) for step in talk.stops("cancelled"))
