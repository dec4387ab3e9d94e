"""Tool calls of OpenClaw over ACP: titles begin with the tool's name, and results have `details` of the tool's own."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from agent_mux.sdk import unified_diff
from agent_mux.sdk.facts import FileEffect, FilePatched, FileRead, FileWritten, ShellInvocation
from agent_mux_adapters._dialects.acp import AcpCall, ToolReader
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

SHELL_TOOL = "exec"
CATALOG_TOOL = "tool_call"
"""Calls a tool that is in a catalog and not in the model's list. The bridge reports that call right after this one."""
_CATALOG_PREFIX = "tool_search_code:"
DELEGATION_TOOL = "sessions_spawn"
"""Starts a sub-agent and returns at once. ACP reports nothing of the sub-agent, so this is an ordinary tool call."""
NOT_EXITED = -1
"""Exit code for a command that continues in the background and exits after the call."""
_TRUNCATED = "persistedDetailsTruncated"
"""Replaces details of more than 8 kB in stored sessions."""
_NAME = re.compile(r"[\w.-]{1,100}")
_EXIT_REMARK = re.compile(r"\s*\(Command exited with code \d{1,10}\)\s*\Z")


class OpenClawTools(ToolReader):
    """Reads calls of `exec`, `read`, `write`, `edit`, `apply_patch` and others; MCP tools are `<server>__<tool>`."""

    def name(self, call: AcpCall) -> str:
        """Return the model's name for the tool."""
        found = _NAME.match(call.first_title)
        return text(call.meta.get("toolName")) or (found[0] if found is not None else super().name(call))

    def is_complete(self, call: AcpCall) -> bool:
        """Return whether the call can be reported at its beginning; one through the catalog cannot."""
        return self.name(call) != CATALOG_TOOL

    def shell(self, call: AcpCall) -> ShellInvocation | None:
        """Return the command of `exec`; None when it runs in the background."""
        fields = mapping(call.raw_input)
        command = text(fields.get("command"))
        if self.name(call) != SHELL_TOOL or not command or fields.get("background") is True:
            return None
        return ShellInvocation(command, text(fields.get("workdir")) or None)

    def mcp(self, call: AcpCall, servers: Collection[str]) -> tuple[str, str] | None:  # noqa: ARG002  # the name suffices
        """Return the MCP server and its tool; None for other tools."""
        server, found, tool = self.name(call).partition("__")
        return (server, tool) if found and server and tool else None

    # -- results

    def exit_code(self, call: AcpCall) -> int | None:
        """Return the exit code of the command, `NOT_EXITED` while it continues in the background."""
        if _details(call).get("status") == "running" and call.has_ended:
            return NOT_EXITED
        return super().exit_code(call)

    def error(self, call: AcpCall) -> str | None:
        """Return why the call failed; None for a command that continues in the background."""
        return None if self.exit_code(call) == NOT_EXITED and call.status != "failed" else super().error(call)

    def output_so_far(self, call: AcpCall) -> str:
        """Return the output of a running command, stdout and stderr merged."""
        return "".join(call.texts)

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """Return all output of a command as stdout, without OpenClaw's remark; None when the command never ran."""
        details = _details(call)
        if call.status == "failed" and details.get("exitCode") is None:
            return None, None
        aggregated = details.get("aggregated")
        printed = aggregated if isinstance(aggregated, str) else "\n".join(call.texts)
        return _EXIT_REMARK.sub("", printed) or None, None

    def files(self, call: AcpCall, cwd: str) -> tuple[FileEffect, ...]:
        """Return the effects of the file tools `read`, `write` and `edit`."""
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
            if not diff and details.get(_TRUNCATED) is True:
                diff = unified_diff.from_replacements(path, _replacements(fields))
            return (unified_diff.relative_to(cwd, FilePatched(path, diff)),) if diff else ()
        return ()


def _replacements(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(text(edit.get("oldText")), text(edit.get("newText"))) for edit in rows(fields.get("edits"))]


def caller_of(call_id: str) -> str | None:
    """Return the id of the call through the catalog that made this call; None for a direct call."""
    return call_id.removeprefix(_CATALOG_PREFIX).partition(":")[0] if call_id.startswith(_CATALOG_PREFIX) else None


def _details(call: AcpCall) -> Any:
    return mapping(mapping(call.raw_output).get("details"))
