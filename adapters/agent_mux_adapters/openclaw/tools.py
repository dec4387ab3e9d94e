"""OpenClaw's tool calls in ACP: the title begins with the tool's name, and results have `details` of the tool's own."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from agent_mux.facts import FileEffect, FilePatched, FileRead, FileWritten, Shell
from agent_mux_adapters._dialects import unified_diff
from agent_mux_adapters._dialects.acp import AcpCall, ToolReader
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

SHELL_TOOL = "exec"
CATALOG_TOOL = "tool_call"
"""Calls a tool that is not in the model's list, but in a catalog. That call is told by itself, right after."""
_FROM_CATALOG = "tool_search_code:"
DELEGATING = "sessions_spawn"
"""Starts a sub-agent and returns at once. What becomes of it is not told in ACP, so it is a tool like any other."""
NOT_EXITED = -1
"""For a command that goes on in the background: it exits after the call."""
_CUT = "persistedDetailsTruncated"
"""Instead of details of more than 8 kB, where they are stored."""
_NAME = re.compile(r"[\w.-]{1,100}")
_EXIT_REMARK = re.compile(r"\s*\(Command exited with code \d{1,10}\)\s*\Z")


class OpenClawTools(ToolReader):
    """Its tools are `exec`, `read`, `write`, `edit`, `apply_patch` and many more; MCP tools are `<server>__<tool>`."""

    def name(self, call: AcpCall) -> str:
        """The tool, as the model calls it."""
        found = _NAME.match(call.first_title)
        return text(call.meta.get("toolName")) or (found[0] if found is not None else super().name(call))

    def is_complete(self, call: AcpCall) -> bool:
        """A call is told when it begins, with all its input. Of a call of the catalog we wait for what comes of it."""
        return self.name(call) != CATALOG_TOOL

    def shell(self, call: AcpCall) -> Shell | None:
        """The command of `exec`, unless it is to run in the background."""
        fields = mapping(call.raw_input)
        command = text(fields.get("command"))
        if self.name(call) != SHELL_TOOL or not command or fields.get("background") is True:
            return None
        return Shell(command, text(fields.get("workdir")) or None)

    def mcp(self, call: AcpCall, servers: Collection[str]) -> tuple[str, str] | None:  # noqa: ARG002  # the name tells
        """The server and its tool."""
        server, found, tool = self.name(call).partition("__")
        return (server, tool) if found and server and tool else None

    # -- results

    def exit_code(self, call: AcpCall) -> int | None:
        """How the command exited."""
        if _details(call).get("status") == "running" and call.has_ended:
            return NOT_EXITED
        return super().exit_code(call)

    def error(self, call: AcpCall) -> str | None:
        """Why the call failed; a command that goes on has not."""
        return None if self.exit_code(call) == NOT_EXITED and call.status != "failed" else super().error(call)

    def output_so_far(self, call: AcpCall) -> str:
        """Both streams of a command that still runs."""
        return "".join(call.texts)

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """All that a command printed, without OpenClaw's remark; nothing where it never ran."""
        details = _details(call)
        if call.status == "failed" and details.get("exitCode") is None:
            return None, None
        whole = details.get("aggregated")
        printed = whole if isinstance(whole, str) else "\n".join(call.texts)
        return _EXIT_REMARK.sub("", printed) or None, None

    def files(self, call: AcpCall, cwd: str) -> tuple[FileEffect, ...]:
        """What the file tools did."""
        fields, details, name = mapping(call.raw_input), _details(call), self.name(call)
        path, patch = text(fields.get("path")), text(details.get("patch"))
        if name == "read" and path:
            return (FileRead(path),)
        if name == "write" and path:
            content = text(fields.get("content"))
            return (FileWritten(path, len(content.encode("utf-8", "replace")), details.get("created") is True),)
        if name == "edit" and path:
            hunks = patch.split("\n")[2:]  # without its header, which has no a/ and b/
            diff = unified_diff.with_header(path, [line for line in hunks if line])
            if not diff and details.get(_CUT) is True:
                diff = unified_diff.from_replacements(path, _replacements(fields))
            return (unified_diff.relative_to(cwd, FilePatched(path, diff)),) if diff else ()
        return ()


def _replacements(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(text(edit.get("oldText")), text(edit.get("newText"))) for edit in rows(fields.get("edits"))]


def caller_of(call_id: str) -> str | None:
    """The id of the call of the catalog that made this call; None when none did."""
    return call_id.removeprefix(_FROM_CATALOG).partition(":")[0] if call_id.startswith(_FROM_CATALOG) else None


def _details(call: AcpCall) -> Any:
    return mapping(mapping(call.raw_output).get("details"))
