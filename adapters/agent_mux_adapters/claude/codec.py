"""The codec of Claude Code: every line type to facts; session rules for approvals that should be remembered.

Control lines and the fragments of the hot path are read by the dialect's codec.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux.sdk.codec import CodecContext
from agent_mux_adapters._dialects.stream_json.approvals import PendingPermission, StreamJsonApprovals
from agent_mux_adapters._dialects.stream_json.codec import StreamJsonCodec, is_live
from agent_mux_adapters._dialects.stream_json.messages import (
    MessageReader,
    MessageReaders,
    in_subagent,
    parent_of,
    plain_text,
    without_ignored,
)
from agent_mux_adapters._dialects.stream_json.tools import StreamJsonCalls
from agent_mux_adapters._dialects.tolerant import kind_of, mapping, need_mapping, text, version_fact
from agent_mux_adapters.claude.notices import compacted, loaded, read_system
from agent_mux_adapters.claude.outcome import api_error_of, is_notice, repeated_error
from agent_mux_adapters.claude.quota import read_quota
from agent_mux_adapters.claude.subagents import ClaudeSubagents
from agent_mux_adapters.claude.tools import TOOLS
from agent_mux_adapters.claude.turns import ClaudeInput, ClaudeTurns
from agent_mux_adapters.claude.usage import ClaudeUsage, subagent_usage

Facts = tuple[facts.Fact, ...]
INTERRUPTED = "[Request interrupted by user"
IGNORED_LINES: Mapping[str, str] = {
    "command_lifecycle": "prompts are acknowledged by being printed again",
    "tool_progress": "a heartbeat of a running tool",
    "tool_use_summary": "a summary of emitted events",
    "prompt_suggestion": "a guess at the next prompt",
    "keep_alive": "a heartbeat",
    "auth_status": "a login in progress",
    "attachment": "a file that the agent read by itself",
}


class ClaudeReader:
    """Reads the lines of one run."""

    def __init__(self, context: CodecContext, agent_input: ClaudeInput) -> None:
        self._context = context
        self._input = agent_input
        usage = ClaudeUsage(continues_session=bool(context.session_id or context.fork_session_id))
        self._subagents = ClaudeSubagents()
        self.calls = calls = StreamJsonCalls(TOOLS, self._subagents)
        """The tool calls of all agents."""
        self.main = MessageReader(calls, usage.model_call, is_main=True)
        """The message reader of the main agent."""
        self._messages = MessageReaders(self.main, lambda: MessageReader(calls, subagent_usage, is_main=False))
        self._turns = ClaudeTurns(usage, max_turns=context.max_turns or 0)
        self._session_id = ""
        self._initialized = False
        self._compaction: Mapping[str, Any] | None = None
        """A compaction whose summary is in the next line."""
        self._notice: Mapping[str, Any] | None = None
        """A text of the CLI itself, which the next line may show to be an error."""
        self._readers: Mapping[str, Callable[[Mapping[str, Any]], Facts | None]] = {
            "assistant": self._assistant,
            "user": self._user,
            "stream_event": self._stream_event,
            "system": self._system,
            "result": self._result,
            "rate_limit_event": read_quota,
            "conversation_reset": self._reset,
        }

    def read(self, line: Mapping[str, Any]) -> Facts | None:
        """Return at least one fact; None when the type of the line is unknown. Raises `WrongShapeError`."""
        kind = text(line.get("type"))
        reader = self._readers.get(kind)
        if reader is None:
            reason = IGNORED_LINES.get(kind)
            return (facts.Ignored(kind, reason),) if reason else None
        before = (*self._pending_notice(line), *self._pending_compaction(line))
        line_facts = reader(line)
        if line_facts is None:
            return None
        # Bookkeeping before `system/init` has the session's id, too, but `init` also has the version of the CLI.
        is_bookkeeping = all(isinstance(fact, facts.Ignored) for fact in line_facts)
        session = () if is_bookkeeping else self._session(line)
        return without_ignored((*before, *session, *line_facts))

    def finish(self) -> Facts:
        """Return the facts that are due when the process has exited."""
        return (*self._pending_notice({}), *self._pending_compaction({}), *self._turns.finish())

    # -- the session

    def _session(self, line: Mapping[str, Any]) -> Facts:
        session_id = text(line.get("session_id"))
        # An error names the session that could not be resumed; it is not the session of this run.
        if self._session_id or not session_id or text(line.get("subtype")) in {"init", "error_during_execution"}:
            return ()
        return self._session_known(session_id, None)

    def _session_known(self, session_id: str, model: str | None) -> Facts:
        self._session_id = session_id
        resumed = self._context.session_id is not None
        return (facts.SessionKnown(session_id, resumed, self._context.fork_session_id, model=model),)

    def _init(self, line: Mapping[str, Any]) -> Facts:
        self._input.turn_began()
        self.calls.cwd = text(line.get("cwd"))
        self.calls.permitted = line.get("permissionMode") == "bypassPermissions"
        known = self._session_known(text(line.get("session_id")), text(line.get("model")) or None)
        line_facts: Facts = (*version_fact(line.get("claude_code_version")), *known)
        if not self._initialized:
            self._initialized = True
            line_facts = (*line_facts, *loaded(line))
        return (*line_facts, *self._turns.begin(handed_back=self.main.handed_back))

    def _reset(self, line: Mapping[str, Any]) -> Facts:
        return (facts.Note(f"the conversation was cleared and continues as {text(line.get('new_conversation_id'))}"),)

    # -- messages

    def _stream_event(self, line: Mapping[str, Any]) -> Facts:
        if not parent_of(line):
            self._turns.note_output()
        return self._messages.stream_event(line)

    def _assistant(self, line: Mapping[str, Any]) -> Facts:
        api_error = api_error_of(line)
        if api_error is not None:
            if not parent_of(line):
                self._turns.api_error = api_error
            return (
                facts.Ignored("assistant/error", "the closing message or the end of the sub-agent reports the error"),
            )
        if is_notice(line) and not parent_of(line):
            self._notice = line
            return (facts.Ignored("assistant/notice", "the next line shows whether it is an error"),)
        return self._message(line)

    def _message(self, line: Mapping[str, Any]) -> Facts:
        line_facts = self._messages.assistant(line)
        if not parent_of(line):
            self._turns.note_output()
        return line_facts

    def _pending_notice(self, line: Mapping[str, Any]) -> Facts:
        """Emit a held text of the CLI. Releases that do not mark an error repeat it in a result that failed."""
        notice, self._notice = self._notice, None
        if notice is None:
            return ()
        error = repeated_error(notice, line)
        if error is None:
            return self._message(notice)
        self._turns.api_error = error
        return ()

    def _user(self, line: Mapping[str, Any]) -> Facts:
        content = need_mapping(line, "message").get("content")
        parent = parent_of(line)
        line_facts = self.calls.results(content, line.get("tool_use_result"))
        if line_facts:
            return in_subagent(parent, line_facts)
        if line.get("isReplay") is True:
            self._input.printed_again(content)
            return (facts.Ignored("user/replay", "a prompt that was taken up, or the output of a local command"),)
        if not parent and self.main.broken_off and line.get("isSynthetic") is True:
            # The CLI keeps the received part of the answer and lets the model continue from there.
            return (facts.Retrying(self.main.broken_off, 0, "the stream broke off"),)
        if not parent and plain_text(content).startswith(INTERRUPTED):
            self._turns.interrupted = True
        return (facts.Ignored("user", "a prompt, or text that the agent injected"),)

    # -- all other lines

    def _system(self, line: Mapping[str, Any]) -> Facts | None:
        subtype = text(line.get("subtype"))
        match subtype:
            case "init":
                return self._init(line)
            case "compact_boundary":
                self._compaction = line
                return (facts.Ignored("system/compact_boundary", "emitted with the summary that follows"),)
            case "status" if line.get("status") == "requesting":
                return (facts.TurnBegin(),)
            case "session_state_changed":
                self._input.state_changed(text(line.get("state")))
            case "background_tasks_changed":
                self._input.background_changed(line.get("tasks"))
            case "task_started":
                self._subagents.started(line)
            case "task_notification":
                self._input.background_ended(line)
                line_facts = self._subagents.notified(line)
                return line_facts or (facts.Ignored("system/task_notification", "its tool call reports its end"),)
            case _:
                return read_system(subtype, line)
        return (facts.Ignored(kind_of(line), "bookkeeping of turns and background tasks"),)

    def _pending_compaction(self, line: Mapping[str, Any]) -> Facts:
        boundary, self._compaction = self._compaction, None
        if boundary is None:
            return ()
        content = mapping(line.get("message")).get("content") if line.get("isSynthetic") is True else ""
        return (compacted(boundary, plain_text(content)),)

    def _result(self, line: Mapping[str, Any]) -> Facts:
        self._input.turn_ended(line)
        return self._turns.end(line)


def session_rules(ask: PendingPermission) -> list[dict[str, Any]]:
    """Return the rules that make Claude Code remember an approval for this session.

    The narrowest suggestions of the CLI, or a rule for exactly this call. The user's own settings are not changed.
    """
    rules = [row for row in ask.suggestions if row.get("type") == "addRules"] or ask.suggestions
    return [{**row, "destination": "session"} for row in rules] or [_exact_rule(ask)]


def _exact_rule(ask: PendingPermission) -> dict[str, Any]:
    command = text(mapping(ask.input).get("command"))
    rule = {"toolName": ask.tool, **({"ruleContent": command} if command else {})}
    return {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"}


class ClaudeCodec(StreamJsonCodec):
    """The codec of one run. See `agent_mux.sdk.codec.Codec`."""

    def __init__(self, context: CodecContext) -> None:
        agent_input = ClaudeInput(keep_open=context.interactive)
        reader = ClaudeReader(context, agent_input)
        requests = StreamJsonApprovals(
            TOOLS, live=is_live(context), remember=session_rules, find_call=reader.calls.find
        )
        super().__init__(context, reader, requests, agent_input)
