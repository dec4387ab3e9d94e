"""Tool calls from their start, with the complete input, to their result and its effects on files.

A result is an object with one key that names how the call ended (`success`, `failure`, `rejected`...).
"""

import re
from collections.abc import Callable, Container, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_mux.sdk import facts, unified_diff
from agent_mux.sdk.facts import FileEffect, FilePatched, FileWritten
from agent_mux_adapters._dialects.tolerant import mapping, need_mapping, need_text, optional_whole, rows, text, whole
from agent_mux_adapters.cursor import tools

SUCCESS = "success"
REJECTED = "rejected"
TIMED_OUT = "timeout"
NOT_ALLOWED = "permissionDenied"
"""A command or an MCP tool was denied by the user's rules; a file by the operating system."""
NOT_EXITED = -1
"""The exit code of a command that continues in the background, or that a signal ended."""
REASONS = ("reason", "error", "errorMessage", "message", "modelVisibleError")


class CursorCall(msgspec.Struct, frozen=True):
    """A tool call without a result."""

    name: str
    input: Mapping[str, Any]


class CursorResult(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed result of a completed call."""

    call_id: str
    status: str
    """The key of the result: `success` or the kind of failure."""
    body: Any
    in_background: bool = False
    duration_ms: int | None = None

    @property
    def failed(self) -> bool:
        """Whether the call did not succeed."""
        return self.status != SUCCESS

    def was_denied(self, name: str) -> bool:
        """Return whether a person or a rule denied the call."""
        by_rule = self.status == NOT_ALLOWED and name in {tools.SHELL, tools.MCP}
        return by_rule or (self.status == REJECTED and name not in tools.ASKING)

    @property
    def error(self) -> str:
        """The error message for the event."""
        body = mapping(self.body)
        message = next((message for message in (text(body.get(field)) for field in REASONS) if message), "")
        return message or _status_words(self.status)


def read_result(call_id: str, reported: Any, duration_ms: int | None) -> CursorResult:
    """Parse the `result` of a completed call; accept any value."""
    result = mapping(reported)
    status = next((key for key, value in result.items() if isinstance(value, dict)), "")
    return CursorResult(
        call_id=call_id,
        status=status or SUCCESS,
        body=result[status] if status else reported,
        in_background=result.get("isBackground") is True,
        duration_ms=duration_ms,
    )


def tool_facts(call: CursorCall, result: CursorResult) -> tuple[facts.Fact, ...]:
    """Return the facts that end a native tool call."""
    if call.name == tools.SHELL:
        return (_shell_done(result),)
    done = facts.ToolDone(result.call_id, duration_ms=result.duration_ms, name=call.name)
    if result.failed:
        return (msgspec.structs.replace(done, error=result.error),)
    body = mapping(result.body)
    effect = _EFFECTS.get(call.name)
    files = effect(call, body) if effect is not None else ()
    return (msgspec.structs.replace(done, output=_output(call.name, body, result.body), files=files),)


def mcp_facts(result: CursorResult) -> tuple[facts.Fact, ...]:
    """Return the facts that end a call of an MCP tool."""
    body = mapping(result.body)
    blocks = rows(body.get("content"))
    texts = [text(mapping(block.get("text")).get("text")) for block in blocks if "text" in block]
    shown = "\n".join(texts)
    if result.failed or body.get("isError") is True:
        return (facts.McpDone(result.call_id, error=shown or result.error),)
    output: Any = shown if len(texts) == len(blocks) else [_without_bytes(block) for block in blocks]
    return (facts.McpDone(result.call_id, output=output), *_images(blocks))


def subagent_fact(result: CursorResult) -> facts.Fact:
    """Return the fact that ends a sub-agent."""
    if result.failed:
        return facts.SubagentDone(result.call_id, error=result.error)
    body = mapping(result.body)
    steps = [text(mapping(step.get("assistantMessage")).get("text")) for step in rows(body.get("conversationSteps"))]
    return facts.SubagentDone(result.call_id, "\n".join(filter(None, steps)) or text(body.get("content")))


# -- commands


def _shell_done(result: CursorResult) -> facts.ToolDone:
    body = mapping(result.body)
    stdout, stderr = text(body.get("stdout")), text(body.get("stderr"))
    output = text(body.get("interleavedOutput")) or "\n".join(part for part in (stdout, stderr) if part)
    done = facts.ToolDone(
        result.call_id,
        duration_ms=optional_whole(body.get("executionTime")) if "executionTime" in body else result.duration_ms,
        stdout=stdout,
        stderr=stderr,
        name=tools.SHELL,
    )
    if result.in_background or body.get("isBackground") is True:
        return msgspec.structs.replace(done, output=output, exit_code=NOT_EXITED)
    code, signal = _exit_code(body), text(body.get("signal"))
    if signal:
        return msgspec.structs.replace(done, error=output or f"ended by {signal}", exit_code=NOT_EXITED)
    if code or (result.failed and code is not None):
        return msgspec.structs.replace(done, error=output or f"exit code {code}", exit_code=code)
    if result.failed:
        return msgspec.structs.replace(done, error=output or result.error)
    return msgspec.structs.replace(done, output=output, exit_code=0)


def _exit_code(body: Mapping[str, Any]) -> int | None:
    code = body.get("exitCode")
    return code if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 2**31 else None


# -- files


def _read(call: CursorCall, body: Mapping[str, Any]) -> tuple[facts.FileEffect, ...]:
    path = _path(call, body)
    return (facts.FileRead(path),) if path else ()


def _written(call: CursorCall, body: Mapping[str, Any]) -> tuple[facts.FileEffect, ...]:
    path, content = _path(call, body), call.input.get("fileText")
    size = len(content.encode("utf-8", "replace")) if isinstance(content, str) else whole(body.get("fileSize"))
    return (facts.FileWritten(path, size, created=False),) if path else ()  # may be new


def _edited(call: CursorCall, body: Mapping[str, Any]) -> tuple[facts.FileEffect, ...]:
    path = _path(call, body)
    return edit_effects(path, body) if path else ()


def _deleted(call: CursorCall, body: Mapping[str, Any]) -> tuple[facts.FileEffect, ...]:
    path = _path(call, body)
    return (facts.FileDeleted(path),) if path else ()


def _path(call: CursorCall, body: Mapping[str, Any]) -> str:
    return text(body.get("path")) or text(call.input.get("path"))


_EFFECTS: Mapping[str, Callable[[CursorCall, Mapping[str, Any]], tuple[facts.FileEffect, ...]]] = {
    tools.READ: _read,
    tools.WRITE: _written,
    tools.EDIT: _edited,
    tools.DELETE: _deleted,
}


# -- text

_OUTPUT_FIELDS: Mapping[str, str] = {
    tools.READ: "content",
    tools.EDIT: "message",
    tools.DELETE: "message",
    "webFetch": "markdown",
    "semSearch": "results",
}
"""The field of the result that is the output; for other tools it is the whole object."""


def _output(name: str, body: Mapping[str, Any], whole_body: Any) -> Any:
    message = body.get(_OUTPUT_FIELDS.get(name, ""))
    return message if isinstance(message, str) and message else whole_body


def _status_words(status: str) -> str:
    """Return a key such as `fileNotFound` as words."""
    if status == TIMED_OUT:
        return "the command ran out of time"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", status).lower()


def _images(blocks: list[Mapping[str, Any]]) -> tuple[facts.Fact, ...]:
    images = [mapping(block.get("image")) for block in blocks]
    return tuple(
        facts.ImageProduced(text(image.get("mimeType")) or "image/png", base64=text(image.get("data")))
        for image in images
        if text(image.get("data"))
    )


def _without_bytes(block: Mapping[str, Any]) -> Mapping[str, Any]:
    image = block.get("image")
    if not isinstance(image, dict):
        return block
    return {**block, "image": {key: value for key, value in image.items() if key != "data"}}


# -- edits: from both whole texts if the CLI reports them, otherwise from its diff

NO_FILE = "--- /dev/null"


def edit_effects(path: str, body: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    """Return the created or patched file; nothing when the CLI does not report the change."""
    before, after, diff = (
        body.get("beforeFullFileContent"),
        body.get("afterFullFileContent"),
        text(body.get("diffString")),
    )
    if isinstance(after, str) and (not isinstance(before, str) or diff.startswith(NO_FILE)):
        return (FileWritten(path, len(after.encode("utf-8", "replace")), created=True),)
    if isinstance(before, str) and isinstance(after, str):
        patch = unified_diff.from_texts(path, before, after)
    else:
        patch = unified_diff.with_header(path, _hunks(diff))
    return (FilePatched(path, patch),) if patch else ()


def _hunks(diff: str) -> list[str]:
    """Return the hunks of the CLI's diff.

    Old versions print only the changed lines, which become one hunk.
    """
    lines = diff.removesuffix("\n").split("\n") if diff else []
    first = next((index for index, line in enumerate(lines) if line.startswith("@@ ")), None)
    if first is not None:
        return lines[first:]
    changed = [line for line in lines if line[:1] in {"+", "-", " "} and not line.startswith(("--- ", "+++ "))]
    old, new = (sum(line[0] in marks for line in changed) for marks in ("- ", "+ "))
    return [f"@@ -{min(old, 1)},{old} +{min(new, 1)},{new} @@", *changed] if changed else []


# -- calls

Facts = tuple[facts.Fact, ...]
LONGEST_NUMBER = 16  # digits of a time in milliseconds


class CursorToolCalls:
    """The calls without a result."""

    def __init__(self, denied: Container[str], *, permitted: bool) -> None:
        self.cwd = ""
        """The agent's working directory; paths in diffs are relative to it."""
        self._denied = denied
        """Calls whose denial was emitted with a query of the CLI."""
        self._permitted = permitted
        """Whether every call runs without approval, so that a command starts when its input is complete."""
        self._open: dict[str, CursorCall] = {}

    def started(self, line: Mapping[str, Any]) -> Facts:
        """Emit the call of a `tool_call/started` line. Raises `WrongShapeError`."""
        tool_call = need_mapping(line, "tool_call")
        call_id, (name, reported) = _call_id_of(line, tool_call), tools.split(tool_call)
        call = self._open[call_id] = CursorCall(name, mapping(reported.get("args")))
        if name == tools.TASK:
            prompt = text(call.input.get("prompt")) or text(call.input.get("description"))
            return (facts.SubagentBegin(call_id, _agent_name(call.input), prompt),)
        if name == tools.MCP:
            return (facts.McpBegin(call_id, *tools.server_and_tool(call.input), call.input.get("args")),)
        return (
            facts.ToolReady(call_id, name, reported.get("args"), tools.shell_of(name, call.input), self._permitted),
        )

    def completed(self, line: Mapping[str, Any]) -> Facts:
        """Read `tool_call/completed`, which may omit the input. Raises `WrongShapeError`."""
        tool_call = need_mapping(line, "tool_call")
        call_id, (name, reported) = _call_id_of(line, tool_call), tools.split(tool_call)
        begun = () if call_id in self._open else self.started(line)  # the start of the stream is missing
        call = self._open.pop(call_id)
        result = read_result(call_id, reported.get("result"), _duration(tool_call))
        is_new_denial = result.was_denied(name) and call_id not in self._denied
        denied = _denial(call, result) if is_new_denial else ()
        if call.name == tools.TASK:
            return (*begun, *denied, subagent_fact(result))
        if call.name == tools.MCP:
            return (*begun, *denied, *mcp_facts(result))
        return (*begun, *denied, *map(self._with_relative_diffs, tool_facts(call, result)))

    def _with_relative_diffs(self, fact: facts.Fact) -> facts.Fact:
        if not isinstance(fact, facts.ToolDone) or not fact.files:
            return fact
        return replace(fact, files=tuple(unified_diff.relative_to(self.cwd, effect) for effect in fact.files))


def _call_id_of(line: Mapping[str, Any], tool_call: Mapping[str, Any]) -> str:
    """Return the id of the call, which may contain a newline."""
    return text(line.get("call_id")) or need_text(tool_call, "toolCallId")


def _denial(call: CursorCall, result: CursorResult) -> Facts:
    """Return an approval that was denied at once, because a rule or the mode refused the call."""
    asked = facts.ApprovalRequested(
        f"denied:{result.call_id}",
        tools.action_of(call.name, call.input),
        tools.detail_of(call.name, call.input),
        tools.risk_of(call.name, call.input),
        call.name,
        result.call_id,
    )
    return (asked, facts.RequestResolved(asked.request_id, granted=False, reason=result.error))


def _agent_name(arguments: Mapping[str, Any]) -> str:
    """Return the sub-agent's name.

    `subagentType` is a name or an object with one key: `{"custom": {"name": ...}}`, `{"unspecified": {}}`.
    """
    kind = arguments.get("subagentType")
    if isinstance(kind, dict):
        return text(mapping(kind.get("custom")).get("name")) or next(iter(kind), "")
    return text(kind) or "unspecified"


def _duration(tool_call: Mapping[str, Any]) -> int | None:
    """Return the duration in milliseconds, from two times that are strings; None when one is missing."""
    begun, ended = (text(tool_call.get(field)) for field in ("startedAtMs", "completedAtMs"))
    are_numbers = all(time.isascii() and time.isdigit() and len(time) < LONGEST_NUMBER for time in (begun, ended))
    return max(int(ended) - int(begun), 0) if are_numbers else None
