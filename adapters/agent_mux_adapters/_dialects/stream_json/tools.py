"""A `tool_result` block, and the structured result that may stand beside it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_mux import facts
from agent_mux.facts import Fact, Risk, Shell
from agent_mux_adapters._dialects import unified_diff
from agent_mux_adapters._dialects.tolerant import mapping, need_text, rows, text


class OpenCall(msgspec.Struct, frozen=True):
    """A tool call that waits for its result."""

    name: str
    input: Mapping[str, Any]


class ToolResultBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's result, taken apart."""

    call_id: str
    content: Any
    """What the model was shown: a string, or blocks."""
    failed: bool
    extra: Any
    """`tool_use_result`: the agent's own structured result, where it prints one."""

    @property
    def shown(self) -> str:
        """The text the model was shown."""
        if isinstance(self.content, str):
            return _without_wrapper(self.content)
        return "\n".join(text(block.get("text")) for block in rows(self.content) if block.get("type") == "text")

    @property
    def output(self) -> Any:
        """What is told as the output: text where it is only text, else the blocks, without the bytes of images."""
        blocks = rows(self.content)
        if all(block.get("type") == "text" for block in blocks):
            return self.shown
        return [_without_bytes(block) for block in blocks]

    @property
    def error(self) -> str:
        """What is told as the error."""
        return self.shown or text(self.extra) or "the tool failed and said nothing"


def read_result(block: Mapping[str, Any], extra: Any) -> ToolResultBlock:
    """A `tool_result` block."""
    return ToolResultBlock(
        call_id=text(block.get("tool_use_id")),
        content=block.get("content"),
        failed=block.get("is_error") is True,
        extra=extra,
    )


def mcp_facts(result: ToolResultBlock) -> tuple[facts.Fact, ...]:
    """The end of a call of an MCP server's tool."""
    if result.failed:
        return (facts.McpDone(result.call_id, error=result.error),)
    return (facts.McpDone(result.call_id, output=result.output), *result_images(result))


def result_images(result: ToolResultBlock) -> tuple[facts.Fact, ...]:
    """The images in a result."""
    sources = [mapping(block.get("source")) for block in rows(result.content) if block.get("type") == "image"]
    return tuple(
        facts.ImageProduced(text(source.get("media_type")) or "image/png", base64=text(source.get("data")))
        for source in sources
        if text(source.get("data"))
    )


def _without_wrapper(said: str) -> str:
    return said.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")


def _without_bytes(block: Mapping[str, Any]) -> Mapping[str, Any]:
    source = block.get("source")
    if not isinstance(source, dict) or "data" not in source:
        return block
    return {**block, "source": {key: value for key, value in source.items() if key != "data"}}


# TODO What the tools of one agent are to us: a table that the rest of the dialect looks them up in.

MCP_PREFIX = "mcp__"


def split_mcp_name(name: str) -> tuple[str, str] | None:
    """`mcp__server__tool` as (server, tool); None when it is no tool of an MCP server."""
    if not name.startswith(MCP_PREFIX):
        return None
    server, separator, tool = name[len(MCP_PREFIX) :].partition("__")
    return (server, tool) if separator and server and tool else None


def _by_question(_: int, question: Mapping[str, Any]) -> str:
    return text(question.get("question"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTable:
    """One agent's tools. `name` and `arguments` are those of a call."""

    delegating: frozenset[str]
    """Tools that start a sub-agent."""
    question: str
    """The tool that asks the user, as a request for permission."""
    shell_of: Callable[[str, Mapping[str, Any]], Shell | None]
    """The command, where the call runs one in the foreground."""
    done: Callable[[OpenCall | None, ToolResultBlock], tuple[Fact, ...]]
    """The end of a native call (None: its beginning was not seen), and what it brought to light."""
    action_of: Callable[[str], str]
    """What a person is asked to approve."""
    detail_of: Callable[[str, Mapping[str, Any]], str]
    """The one thing to look at before approving."""
    risk_of: Callable[[str, Mapping[str, Any]], Risk]
    """How risky the call is."""
    command_of: Callable[[str, Mapping[str, Any]], str | None]
    """The command line that it runs, in the background too."""
    path_fields: tuple[str, ...]
    """The fields of an input that name a file or a folder."""
    server_and_tool: Callable[[str], tuple[str, str] | None] = split_mcp_name
    """The MCP server and its tool; None for a native one."""
    answer_key: Callable[[int, Mapping[str, Any]], str] = _by_question
    """Under what the answer to a question is expected: its number from 0, and the question itself."""

    def paths_of(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """The files and folders that a call is about."""
        return tuple(path for name in self.path_fields if (path := text(arguments.get(name))))

    def is_told_whole(self, name: str) -> bool:
        """The call is told when its input is complete, not while it streams: MCP tools and sub-agents."""
        return name in self.delegating or self.server_and_tool(name) is not None


# TODO Sub-agents: delegated by a call of a tool, and back with its result.

DEFAULT_AGENT = "general-purpose"


class StreamJsonSubagents:
    """The sub-agents that have not reported yet. To be subclassed where a report comes otherwise than as the result."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()

    def begin(self, call_id: str, arguments: Mapping[str, Any]) -> facts.Fact:
        """A task is delegated."""
        self._waiting.add(call_id)
        name = text(arguments.get("subagent_type")) or DEFAULT_AGENT
        return facts.SubagentBegin(call_id, name, text(arguments.get("prompt")))

    def result(self, result: ToolResultBlock) -> tuple[facts.Fact, ...]:
        """The result of the call."""
        if result.call_id not in self._waiting:
            return ()
        self._waiting.discard(result.call_id)
        if result.failed:
            return (facts.SubagentDone(result.call_id, error=result.error),)
        return (facts.SubagentDone(result.call_id, result.shown),)


# TODO The tool calls of a run, of the main agent and inside sub-agents: from their first fragment to their result.

ABANDONED = "abandoned: the model's stream broke off, and the call was never made"


class StreamJsonCalls:
    """The calls that wait for their result."""

    def __init__(self, tools: ToolTable, delegation: StreamJsonSubagents) -> None:
        self.cwd = ""
        """Where the agent works; its diffs are relative to it."""
        self.permitted = False
        """Nobody is asked and nobody can deny: a command runs as soon as it is complete."""
        self._tools = tools
        self._delegation = delegation
        self._open: dict[str, OpenCall] = {}
        self._begun: dict[str, str] = {}
        """Calls whose input still streams: id -> name."""

    def begin(self, call_id: str, name: str) -> tuple[facts.Fact, ...]:
        """The input begins to stream. Says nothing for what is told whole."""
        if self._tools.is_told_whole(name):
            return ()
        self._begun[call_id] = name
        return (facts.ToolBegin(call_id, name),)

    def ready(self, block: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """The input is complete: a `tool_use` block."""
        call_id, name = need_text(block, "id"), need_text(block, "name")
        if call_id in self._open:
            return ()
        self._begun.pop(call_id, None)
        arguments = mapping(block.get("input"))
        self._open[call_id] = OpenCall(name, arguments)
        if name in self._tools.delegating:
            return (self._delegation.begin(call_id, arguments),)
        server_and_tool = self._tools.server_and_tool(name)
        if server_and_tool is not None:
            return (facts.McpBegin(call_id, *server_and_tool, block.get("input")),)
        shell = self._tools.shell_of(name, arguments)
        return (facts.ToolReady(call_id, name, block.get("input"), shell, self.permitted),)

    def results(self, content: Any, extra: Any) -> tuple[facts.Fact, ...]:
        """The `tool_result` blocks of a `user` line; `extra` belongs to them when there is only one."""
        blocks = [block for block in rows(content) if block.get("type") == "tool_result"]
        extra = extra if len(blocks) == 1 else None
        return tuple(fact for block in blocks for fact in self._result(block, extra))

    def server_result(self, block: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """The result of a tool that the model's own server ran; it stands in the `assistant` message."""
        call_id = need_text(block, "tool_use_id")
        call = self._open.pop(call_id, None)
        failure = mapping(block.get("content")).get("error_code")
        error = str(failure) if failure is not None else None
        name = call.name if call else None
        return (facts.ToolDone(call_id, output=block.get("content"), error=error, name=name),)

    def abandon(self, call_ids: Iterable[str]) -> tuple[facts.Fact, ...]:
        """The stream broke off: calls whose input never became complete are over."""
        names = {call_id: self._begun.pop(call_id) for call_id in call_ids if call_id in self._begun}
        return tuple(facts.ToolDone(call_id, error=ABANDONED, name=name) for call_id, name in names.items())

    def _result(self, block: Mapping[str, Any], extra: Any) -> tuple[facts.Fact, ...]:
        result = read_result(block, extra)
        call = self._open.pop(result.call_id, None)
        if call is not None and call.name in self._tools.delegating:
            return self._delegation.result(result)
        if call is not None and self._tools.server_and_tool(call.name) is not None:
            return mcp_facts(result)
        return tuple(self._with_relative_diffs(fact) for fact in self._tools.done(call, result))

    def _with_relative_diffs(self, fact: facts.Fact) -> facts.Fact:
        if not isinstance(fact, facts.ToolDone) or not fact.files:
            return fact
        return replace(fact, files=tuple(unified_diff.relative_to(self.cwd, effect) for effect in fact.files))
