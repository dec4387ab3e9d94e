"""What came of a tool call: an object with one key that says how it ended (`success`, `failure`, `rejected`...)."""

import re
from collections.abc import Callable, Container, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_mux import facts
from agent_mux.facts import FileEffect, FilePatched, FileWritten
from agent_mux_adapters._dialects import unified_diff
from agent_mux_adapters._dialects.tolerant import mapping, need_mapping, need_text, optional_whole, rows, text, whole
from agent_mux_adapters.cursor import tools

SUCCESS = "success"
REJECTED = "rejected"
TIMED_OUT = "timeout"
NOT_ALLOWED = "permissionDenied"
"""For a command or an MCP tool: the user's own rules; for a file: the operating system."""
NOT_EXITED = -1
"""For a command that runs on in the background, and for one that a signal ended."""
REASONS = ("reason", "error", "errorMessage", "message", "modelVisibleError")


class CursorCall(msgspec.Struct, frozen=True):
    """A tool call that waits for its result."""

    name: str
    input: Mapping[str, Any]


class CursorResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result, taken apart."""

    call_id: str
    how: str
    """The key: `success`, or the kind of failure."""
    body: Any
    in_background: bool = False
    duration_ms: int | None = None

    @property
    def failed(self) -> bool:
        """It ended otherwise than well."""
        return self.how != SUCCESS

    def was_denied(self, name: str) -> bool:
        """Somebody, or a rule, did not let it run."""
        by_rule = self.how == NOT_ALLOWED and name in {tools.SHELL, tools.MCP}
        return by_rule or (self.how == REJECTED and name not in tools.ASKING)

    @property
    def error(self) -> str:
        """What is told as the error."""
        body = mapping(self.body)
        said = next((said for said in (text(body.get(field)) for field in REASONS) if said), "")
        return said or _words(self.how)


def read_result(call_id: str, told: Any, duration_ms: int | None) -> CursorResult:
    """The `result` of a completed call, whatever it looks like."""
    result = mapping(told)
    how = next((key for key, value in result.items() if isinstance(value, dict)), "")
    return CursorResult(
        call_id=call_id,
        how=how or SUCCESS,
        body=result[how] if how else told,
        in_background=result.get("isBackground") is True,
        duration_ms=duration_ms,
    )


def tool_facts(call: CursorCall, result: CursorResult) -> tuple[facts.Fact, ...]:
    """The end of a native tool call."""
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
    """The end of a call of an MCP server's tool."""
    body = mapping(result.body)
    blocks = rows(body.get("content"))
    texts = [text(mapping(block.get("text")).get("text")) for block in blocks if "text" in block]
    shown = "\n".join(texts)
    if result.failed or body.get("isError") is True:
        return (facts.McpDone(result.call_id, error=shown or result.error),)
    output: Any = shown if len(texts) == len(blocks) else [_without_bytes(block) for block in blocks]
    return (facts.McpDone(result.call_id, output=output), *_images(blocks))


def subagent_fact(result: CursorResult) -> facts.Fact:
    """The end of a delegated task."""
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
    return (facts.FileWritten(path, size, created=False),) if path else ()  # whether it was there before is not told


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
"""The field that is the output; of other tools it is the whole object."""


def _output(name: str, body: Mapping[str, Any], whole_body: Any) -> Any:
    said = body.get(_OUTPUT_FIELDS.get(name, ""))
    return said if isinstance(said, str) and said else whole_body


def _words(how: str) -> str:
    """`fileNotFound` in words."""
    if how == TIMED_OUT:
        return "the command ran out of time"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", how).lower()


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


# TODO What an edit did to its file: from both whole texts where they are told, else from the CLI's own diff.

NO_FILE = "--- /dev/null"


def edit_effects(path: str, body: Mapping[str, Any]) -> tuple[FileEffect, ...]:
    """The file that was made or patched. Nothing where the CLI does not say what changed."""
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
    """The hunks of the CLI's diff. Old versions print the changed lines alone: they become a hunk of their own."""
    lines = diff.removesuffix("\n").split("\n") if diff else []
    first = next((index for index, line in enumerate(lines) if line.startswith("@@ ")), None)
    if first is not None:
        return lines[first:]
    changed = [line for line in lines if line[:1] in {"+", "-", " "} and not line.startswith(("--- ", "+++ "))]
    old, new = (sum(line[0] in marks for line in changed) for marks in ("- ", "+ "))
    return [f"@@ -{min(old, 1)},{old} +{min(new, 1)},{new} @@", *changed] if changed else []


# TODO The tool calls of a run: started with their complete input, completed with their result. Nothing streams.

Facts = tuple[facts.Fact, ...]
LONGEST_NUMBER = 16  # digits of a time in milliseconds


class CursorToolCalls:
    """The calls that wait for their result."""

    def __init__(self, told_denied: Container[str], *, permitted: bool) -> None:
        self.cwd = ""
        """Where the agent works; its diffs are relative to it."""
        self._told_denied = told_denied
        """Calls whose denial was told with the CLI's own query."""
        self._permitted = permitted
        """Nobody is asked: a command runs as soon as it is complete."""
        self._open: dict[str, CursorCall] = {}

    def started(self, line: Mapping[str, Any]) -> Facts:
        """`tool_call/started`. Raises `WrongShapeError`."""
        tool_call = need_mapping(line, "tool_call")
        call_id, (name, told) = _call_id_of(line, tool_call), tools.split(tool_call)
        call = self._open[call_id] = CursorCall(name, mapping(told.get("args")))
        if name == tools.TASK:
            prompt = text(call.input.get("prompt")) or text(call.input.get("description"))
            return (facts.SubagentBegin(call_id, _agent_name(call.input), prompt),)
        if name == tools.MCP:
            return (facts.McpBegin(call_id, *tools.server_and_tool(call.input), call.input.get("args")),)
        return (facts.ToolReady(call_id, name, told.get("args"), tools.shell_of(name, call.input), self._permitted),)

    def completed(self, line: Mapping[str, Any]) -> Facts:
        """`tool_call/completed`, which may leave the input out. Raises `WrongShapeError`."""
        tool_call = need_mapping(line, "tool_call")
        call_id, (name, told) = _call_id_of(line, tool_call), tools.split(tool_call)
        begun = () if call_id in self._open else self.started(line)  # seen from the middle on
        call = self._open.pop(call_id)
        result = read_result(call_id, told.get("result"), _duration(tool_call))
        is_news = result.was_denied(name) and call_id not in self._told_denied
        denied = _denial(call, result) if is_news else ()
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
    """The id of the call; it may contain a newline."""
    return text(line.get("call_id")) or need_text(tool_call, "toolCallId")


def _denial(call: CursorCall, result: CursorResult) -> Facts:
    """A rule or the mode refused, and nobody was asked: shown as an approval that was denied at once."""
    asked = facts.ApprovalAsked(
        f"denied:{result.call_id}",
        tools.action_of(call.name, call.input),
        tools.detail_of(call.name, call.input),
        tools.risk_of(call.name, call.input),
        call.name,
        result.call_id,
    )
    return (asked, facts.RequestSettled(asked.request_id, granted=False, reason=result.error))


def _agent_name(arguments: Mapping[str, Any]) -> str:
    """`subagentType` is a name, or an object with one key: `{"custom": {"name": ...}}`, `{"unspecified": {}}`."""
    kind = arguments.get("subagentType")
    if isinstance(kind, dict):
        return text(mapping(kind.get("custom")).get("name")) or next(iter(kind), "")
    return text(kind) or "unspecified"


def _duration(tool_call: Mapping[str, Any]) -> int | None:
    """Milliseconds, from times that are told as texts."""
    begun, ended = (text(tool_call.get(field)) for field in ("startedAtMs", "completedAtMs"))
    told = all(time.isascii() and time.isdigit() and len(time) < LONGEST_NUMBER for time in (begun, ended))
    return max(int(ended) - int(begun), 0) if told else None
