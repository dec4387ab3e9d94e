"""What came of a tool call: an object with one key that says how it ended (`success`, `failure`, `rejected`...)."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux import facts
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, rows, text, whole
from agent_mux_adapters.cursor import edits, tools

SUCCESS = "success"
REJECTED = "rejected"
TIMED_OUT = "timeout"
NOT_ALLOWED = "permissionDenied"
"""For a command or an MCP tool: the user's own rules; for a file: the operating system."""
NOT_EXITED = -1
"""For a command that runs on in the background, and for one that a signal ended."""
REASONS = ("reason", "error", "errorMessage", "message", "modelVisibleError")


class Call(msgspec.Struct, frozen=True):
    """A tool call that waits for its result."""

    name: str
    input: Mapping[str, Any]


class Result(msgspec.Struct, frozen=True, kw_only=True):
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


def read_result(call_id: str, told: Any, duration_ms: int | None) -> Result:
    """The `result` of a completed call, whatever it looks like."""
    result = mapping(told)
    how = next((key for key, value in result.items() if isinstance(value, dict)), "")
    return Result(
        call_id=call_id,
        how=how or SUCCESS,
        body=result[how] if how else told,
        in_background=result.get("isBackground") is True,
        duration_ms=duration_ms,
    )


def tool_facts(call: Call, result: Result) -> tuple[facts.Fact, ...]:
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


def mcp_facts(result: Result) -> tuple[facts.Fact, ...]:
    """The end of a call of an MCP server's tool."""
    body = mapping(result.body)
    blocks = rows(body.get("content"))
    texts = [text(mapping(block.get("text")).get("text")) for block in blocks if "text" in block]
    shown = "\n".join(texts)
    if result.failed or body.get("isError") is True:
        return (facts.McpDone(result.call_id, error=shown or result.error),)
    output: Any = shown if len(texts) == len(blocks) else [_without_bytes(block) for block in blocks]
    return (facts.McpDone(result.call_id, output=output), *_images(blocks))


def subagent_fact(result: Result) -> facts.Fact:
    """The end of a delegated task."""
    if result.failed:
        return facts.SubagentDone(result.call_id, error=result.error)
    body = mapping(result.body)
    steps = [text(mapping(step.get("assistantMessage")).get("text")) for step in rows(body.get("conversationSteps"))]
    return facts.SubagentDone(result.call_id, "\n".join(filter(None, steps)) or text(body.get("content")))


# -- commands


def _shell_done(result: Result) -> facts.ToolDone:
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


def _read(call: Call, body: Mapping[str, Any]) -> tuple[facts.FileEffect, ...]:
    path = _path(call, body)
    return (facts.FileRead(path),) if path else ()


def _written(call: Call, body: Mapping[str, Any]) -> tuple[facts.FileEffect, ...]:
    path, content = _path(call, body), call.input.get("fileText")
    size = len(content.encode("utf-8", "replace")) if isinstance(content, str) else whole(body.get("fileSize"))
    return (facts.FileWritten(path, size, created=False),) if path else ()  # whether it was there before is not told


def _edited(call: Call, body: Mapping[str, Any]) -> tuple[facts.FileEffect, ...]:
    path = _path(call, body)
    return edits.effects(path, body) if path else ()


def _deleted(call: Call, body: Mapping[str, Any]) -> tuple[facts.FileEffect, ...]:
    path = _path(call, body)
    return (facts.FileDeleted(path),) if path else ()


def _path(call: Call, body: Mapping[str, Any]) -> str:
    return text(body.get("path")) or text(call.input.get("path"))


_EFFECTS: Mapping[str, Callable[[Call, Mapping[str, Any]], tuple[facts.FileEffect, ...]]] = {
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
