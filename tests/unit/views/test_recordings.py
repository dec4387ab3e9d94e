"""Cards of recordings of real CLIs agree with their events."""

from pathlib import Path

import pytest

from agent_mux.events import BaseEvent, decode_event
from agent_mux.views import ErrorCard, MessageCard, SubagentCard, ThinkingCard, Timeline, ToolCard

FIXTURES = Path(__file__).parents[3] / "fixtures"
AGENTS = sorted(folder.name for folder in FIXTURES.iterdir() if folder.is_dir())
SIZE_LIMIT = 300_000  # bytes; larger recordings repeat what smaller ones have


def recordings(agent: str) -> list[Path]:
    found = sorted(FIXTURES.joinpath(agent).glob("*/*/events.jsonl"))
    return [path for path in found if path.stat().st_size < SIZE_LIMIT]


def events_of(path: Path) -> list[BaseEvent]:
    return [decode_event(line) for line in path.read_bytes().splitlines() if line]


@pytest.mark.parametrize("agent", AGENTS)
def test_cards_have_what_the_events_have(agent: str) -> None:
    paths = recordings(agent)
    assert paths
    for path in paths:
        check(path.relative_to(FIXTURES), events_of(path))


def check(name: Path, events: list[BaseEvent]) -> None:
    timeline = Timeline()
    for event in events:
        for card in timeline.feed(event):
            assert timeline.get(card.id) is card, name
    texts = [event.text for event in events if event.type == "message_stop"]
    thoughts = [event.thinking for event in events if event.type == "thinking_stop"]
    assert [str(card.text) for card in timeline if isinstance(card, MessageCard)] == texts, name
    assert [str(card.text) for card in timeline if isinstance(card, ThinkingCard)] == thoughts, name
    calls = {card.tool_call_id: card for card in timeline if isinstance(card, ToolCard)}
    for event in events:
        match event.type:
            case "tool_result" | "mcp_tool_result":
                assert calls[event.tool_call_id].state == "succeeded", name
            case "tool_error" | "mcp_tool_error":
                assert calls[event.tool_call_id].error == event.error, name
                assert calls[event.tool_call_id].state in {"failed", "denied"}, name
            case "file_patch":
                assert any(file.diff == event.diff for card in calls.values() for file in card.files), name
    assert all(not card.is_open for card in timeline if isinstance(card, ToolCard | SubagentCard)), name
    check_denials(name, events, calls)
    check_commands(name, events, list(calls.values()))
    ended = {event.type for event in events} & {"crash", "auth_error", "timeout", "turn_limit", "aborted"}
    assert len([card for card in timeline if isinstance(card, ErrorCard)]) >= len(ended), name


def check_denials(name: Path, events: list[BaseEvent], calls: dict[str, ToolCard]) -> None:
    """A denied request marks the call that it names."""
    waiting = {event.interaction_id: event.tool_call_id for event in events if event.type == "approval_request"}
    for event in events:
        call = calls.get(waiting.get(event.interaction_id) or "") if event.type == "approval_denied" else None
        if call is not None:
            assert call.decision == "denied", name


def check_commands(name: Path, events: list[BaseEvent], calls: list[ToolCard]) -> None:
    """Each command is at a call, and the exit codes are those of the commands."""
    commands = sorted(event.command for event in events if event.type == "shell_start")
    assert sorted(card.command for card in calls if card.command is not None) == commands, name
    codes = sorted(event.exit_code for event in events if event.type == "shell_exit")
    assert sorted(card.exit_code for card in calls if card.exit_code is not None) == codes, name
