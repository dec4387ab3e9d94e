"""What an agent can do, and whether that is enough for what a run is asked. Source: run API, section 5."""

from dataclasses import dataclass
from typing import Literal

from agent_mux.errors import CapabilityError
from agent_mux.options import ApprovalMode, RunOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCapabilities:
    """What the agent can do, as proven by recordings and live tests. Source: run API, section 5."""

    agent: str
    can_resume: bool = False
    can_fork: bool = False
    supports_multi_turn: bool = False
    session_persistence: Literal["none", "file", "sqlite", "in-memory"] = "none"
    text_streaming: bool = False
    tool_call_streaming: bool = False
    thinking_streaming: bool = False
    native_tools: bool = True
    mcp: bool = False
    parallel_tool_calls: bool = False
    requires_tool_approval: bool = False
    approval_modes: tuple[ApprovalMode, ...] = ("yolo",)
    thinking: bool = False
    thinking_effort_levels: tuple[str, ...] = ()
    thinking_budget_tokens: bool = False
    json_mode: bool = False
    structured_output: bool = False
    skills: bool = False
    agents_md: bool = False
    subagent_dispatch: bool = False
    parallel_execution: bool = False
    max_parallel: int | None = None
    interactive_mode: bool = False
    stdin_injection: bool = False
    image_input: bool = False
    image_output: bool = False
    file_attachments: bool = False
    plugins: bool = False
    platforms: tuple[str, ...] = ("linux", "darwin", "win32")
    requires_git_repo: bool = False
    requires_pty: bool = False
    auth_methods: tuple[str, ...] = ()
    auth_files: tuple[str, ...] = ()
    emits: frozenset[str] = frozenset()
    """Event types that recordings of this agent produce: tested both ways."""


def check_capabilities(options: RunOptions, capabilities: AgentCapabilities) -> None:
    """Check what this agent must be able to do. Raises `CapabilityError` for the first thing it cannot."""
    needs: tuple[tuple[bool, bool, str], ...] = (
        (options.stream is True, capabilities.text_streaming, "text streaming (stream=True)"),
        (options.session_id is not None, capabilities.can_resume, "resuming a session"),
        (options.fork_session_id is not None, capabilities.can_fork, "forking a session"),
        (bool(options.mcp_servers), capabilities.mcp, "MCP servers"),
        (options.interactive, capabilities.interactive_mode, "interactive runs"),
        (options.output_schema is not None, capabilities.structured_output, "an output schema"),
        (bool(options.attachments), capabilities.image_input or capabilities.file_attachments, "attachments"),
        (
            options.thinking_effort is not None or options.thinking_budget_tokens is not None,
            capabilities.thinking,
            "setting the thinking effort",
        ),
        (options.policy is not None, "prompt" in capabilities.approval_modes, "asking first, which a policy needs"),
        (
            options.approval_mode not in capabilities.approval_modes,
            False,
            f"approval mode {options.approval_mode!r}",
        ),
    )
    for wanted, able, what in needs:
        if wanted and not able:
            raise CapabilityError(capabilities.agent, what, options.model)
