"""Tool calls: the table of an agent's tools, calls from start to result, and sub-agents."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_mux.sdk import facts, unified_diff
from agent_mux.sdk.facts import Fact, Risk, ShellInvocation
from agent_mux_adapters._dialects.tolerant import mapping, need_text, rows, text


class OpenCall(msgspec.Struct, frozen=True):
    """A tool call without a result."""

    name: str
    input: Mapping[str, Any]


class ToolResultBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed `tool_result` block, with the structured result beside it."""

    call_id: str
    content: Any
    """What the model was shown: a string or a list of blocks."""
    failed: bool
    extra: Any
    """The `tool_use_result`, the agent's own structured result; None when it prints none."""

    @property
    def shown(self) -> str:
        """The text that the model was shown, without the agent's mark of an error."""
        return _without_wrapper(self.native_text) if isinstance(self.content, str) else self.native_text

    @property
    def native_text(self) -> str:
        """The text that the model was shown, as the agent printed it."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(text(block.get("text")) for block in rows(self.content) if block.get("type") == "text")

    @property
    def output(self) -> Any:
        """The output for the event: text if there is only text, otherwise the blocks without image data."""
        blocks = rows(self.content)
        if all(block.get("type") == "text" for block in blocks):
            return self.shown
        return [_without_bytes(block) for block in blocks]

    @property
    def error(self) -> str:
        """The error message for the event."""
        return self.shown or text(self.extra) or "the tool failed without a message"


def read_result(block: Mapping[str, Any], extra: Any) -> ToolResultBlock:
    """Parse a `tool_result` block; `extra` is the structured result beside it."""
    return ToolResultBlock(
        call_id=text(block.get("tool_use_id")),
        content=block.get("content"),
        failed=block.get("is_error") is True,
        extra=extra,
    )


def mcp_facts(result: ToolResultBlock) -> tuple[facts.Fact, ...]:
    """Return the facts that end a call of an MCP tool."""
    if result.failed:
        return (facts.McpDone(result.call_id, error=result.error),)
    return (facts.McpDone(result.call_id, output=result.output), *result_images(result))


def result_images(result: ToolResultBlock) -> tuple[facts.Fact, ...]:
    """Return the images in a result."""
    sources = [mapping(block.get("source")) for block in rows(result.content) if block.get("type") == "image"]
    return tuple(
        facts.ImageProduced(text(source.get("media_type")) or "image/png", base64=text(source.get("data")))
        for source in sources
        if text(source.get("data"))
    )


def _without_wrapper(shown: str) -> str:
    return shown.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")


def _without_bytes(block: Mapping[str, Any]) -> Mapping[str, Any]:
    source = block.get("source")
    if not isinstance(source, dict) or "data" not in source:
        return block
    return {**block, "source": {key: value for key, value in source.items() if key != "data"}}


MCP_PREFIX = "mcp__"


def split_mcp_name(name: str) -> tuple[str, str] | None:
    """Split `mcp__server__tool` into server and tool; None for any other name."""
    if not name.startswith(MCP_PREFIX):
        return None
    server, separator, tool = name[len(MCP_PREFIX) :].partition("__")
    return (server, tool) if separator and server and tool else None


def _by_question(_: int, question: Mapping[str, Any]) -> str:
    return text(question.get("question"))


class ToolTable(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of one agent. In the functions, `name` and `arguments` are those of a call."""

    delegating: frozenset[str]
    """Tools that start a sub-agent."""
    question: str
    """The tool that asks the user; its permission request carries the questions."""
    shell_of: Callable[[str, Mapping[str, Any]], ShellInvocation | None]
    """Returns the command of a foreground shell call; None for other calls."""
    done: Callable[[OpenCall | None, ToolResultBlock], tuple[Fact, ...]]
    """Returns the facts that end a native call. The call is None when its start was not seen."""
    action_of: Callable[[str], str]
    """Returns the action that a person is asked to approve."""
    detail_of: Callable[[str, Mapping[str, Any]], str]
    """Returns the detail that a person needs to see before approving."""
    risk_of: Callable[[str, Mapping[str, Any]], Risk]
    """Returns the risk of the call."""
    command_of: Callable[[str, Mapping[str, Any]], str | None]
    """Returns the command line of the call, also for a background command."""
    edits_of: Callable[[str, Mapping[str, Any]], tuple[facts.FileEdit, ...]] = lambda _, __: ()
    """Returns the edits of files that the call makes, for the diff of its approval."""
    path_fields: tuple[str, ...]
    """The input fields that hold the path of a file or directory."""
    server_and_tool: Callable[[str], tuple[str, str] | None] = split_mcp_name
    """Returns the MCP server and its tool; None for a native tool."""
    answer_key: Callable[[int, Mapping[str, Any]], str] = _by_question
    """Returns the key under which the agent expects the answer to a question, given its number from 0 and the
    question."""

    def paths_of(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the paths of the files and directories in a call's input."""
        return tuple(path for name in self.path_fields if (path := text(arguments.get(name))))

    def is_emitted_when_complete(self, name: str) -> bool:
        """Return whether a call is emitted when its input is complete, without streaming: MCP tools and sub-agents."""
        return name in self.delegating or self.server_and_tool(name) is not None


# -- sub-agents: delegated by a tool call, ended by its result

DEFAULT_AGENT = "general-purpose"


class StreamJsonSubagents:
    """The sub-agents that have not reported yet; subclassed where the report is not the result of the call."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()

    def begin(self, call_id: str, arguments: Mapping[str, Any]) -> facts.Fact:
        """Return the fact of a delegated task."""
        self._waiting.add(call_id)
        name = text(arguments.get("subagent_type")) or DEFAULT_AGENT
        return facts.SubagentBegin(call_id, name, text(arguments.get("prompt")))

    def result(self, result: ToolResultBlock) -> tuple[facts.Fact, ...]:
        """Return the fact of a finished sub-agent from the result of its call."""
        if result.call_id not in self._waiting:
            return ()
        self._waiting.discard(result.call_id)
        if result.failed:
            return (facts.SubagentDone(result.call_id, error=result.error),)
        return (facts.SubagentDone(result.call_id, result.shown),)


# -- tool calls of the main agent and of sub-agents

ABANDONED = "abandoned: the model's stream broke off, and the call was never made"


class StreamJsonCalls:
    """The calls without a result."""

    def __init__(self, tools: ToolTable, subagents: StreamJsonSubagents) -> None:
        self.cwd = ""
        """The agent's working directory; paths in diffs are relative to it."""
        self.permitted = False
        """Whether every call runs without approval, so that a command starts when its input is complete."""
        self._tools = tools
        self._subagents = subagents
        self._open: dict[str, OpenCall] = {}
        self._begun: dict[str, str] = {}
        """Calls whose input is streaming: id to name."""

    def find(self, name: str, arguments: Any) -> str | None:
        """Return the id of the first call without a result that has this name and input."""
        wanted = OpenCall(name, mapping(arguments))
        return next((call_id for call_id, call in self._open.items() if call == wanted), None)

    def begin(self, call_id: str, name: str) -> tuple[facts.Fact, ...]:
        """Begin a call whose input streams; return no facts for one that is emitted when complete."""
        if self._tools.is_emitted_when_complete(name):
            return ()
        self._begun[call_id] = name
        return (facts.ToolBegin(call_id, name),)

    def ready(self, block: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """Emit a call with its complete input, from a `tool_use` block."""
        call_id, name = need_text(block, "id"), need_text(block, "name")
        if call_id in self._open:
            return ()
        self._begun.pop(call_id, None)
        arguments = mapping(block.get("input"))
        self._open[call_id] = OpenCall(name, arguments)
        if name in self._tools.delegating:
            return (self._subagents.begin(call_id, arguments),)
        server_and_tool = self._tools.server_and_tool(name)
        if server_and_tool is not None:
            return (facts.McpBegin(call_id, *server_and_tool, block.get("input")),)
        shell = self._tools.shell_of(name, arguments)
        return (facts.ToolReady(call_id, name, block.get("input"), shell, self.permitted),)

    def results(self, content: Any, extra: Any) -> tuple[facts.Fact, ...]:
        """Read the `tool_result` blocks of a `user` line.

        `extra` is the structured result; it belongs to the block when there is only one.
        """
        blocks = [block for block in rows(content) if block.get("type") == "tool_result"]
        extra = extra if len(blocks) == 1 else None
        return tuple(fact for block in blocks for fact in self._result(block, extra))

    def server_result(self, block: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """Read the result of a tool that the model's provider ran, which is part of the `assistant` message."""
        call_id = need_text(block, "tool_use_id")
        call = self._open.pop(call_id, None)
        failure = mapping(block.get("content")).get("error_code")
        error = str(failure) if failure is not None else None
        name = call.name if call else None
        return (facts.ToolDone(call_id, output=block.get("content"), error=error, name=name),)

    def abandon(self, call_ids: Iterable[str]) -> tuple[facts.Fact, ...]:
        """End the calls whose input never became complete because the stream broke off."""
        names = {call_id: self._begun.pop(call_id) for call_id in call_ids if call_id in self._begun}
        return tuple(facts.ToolDone(call_id, error=ABANDONED, name=name) for call_id, name in names.items())

    def _result(self, block: Mapping[str, Any], extra: Any) -> tuple[facts.Fact, ...]:
        result = read_result(block, extra)
        call = self._open.pop(result.call_id, None)
        if call is not None and call.name in self._tools.delegating:
            return self._subagents.result(result)
        if call is not None and self._tools.server_and_tool(call.name) is not None:
            return mcp_facts(result)
        return tuple(self._with_relative_diffs(fact) for fact in self._tools.done(call, result))

    def _with_relative_diffs(self, fact: facts.Fact) -> facts.Fact:
        if not isinstance(fact, facts.ToolDone) or not fact.files:
            return fact
        return replace(fact, files=tuple(unified_diff.relative_to(self.cwd, effect) for effect in fact.files))
