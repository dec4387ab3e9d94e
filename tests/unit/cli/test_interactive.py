"""Conversations: slash commands, JSON commands, input lines and usage."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_mux.cli import streams
from agent_mux.cli.interactive.editor import Mailbox
from agent_mux.cli.interactive.slash_commands import (
    COMMANDS,
    PromptText,
    SlashCommand,
    find_problem,
    help_text,
    parse_line,
)
from agent_mux.cli.interactive.usage import ConversationUsage
from agent_mux.cli.streams import read_lines
from agent_mux.errors import AgentMuxError
from agent_mux.events import CostEvent, CostRecord, TokenUsageEvent, TurnStartEvent
from agent_mux.events.union import ALL_EVENTS
from agent_mux.run import commands as wire

BOUND = 60.0


# -- slash commands


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", None),
        ("  \n", None),
        ("hello /exit", PromptText("hello /exit")),
        ("  two\nlines ", PromptText("two\nlines")),
        ("//etc/hosts", PromptText("/etc/hosts")),
        ("///", PromptText("//")),
        ("/exit", SlashCommand("exit")),
        (" /STATUS ", SlashCommand("status")),
        ("/queue  fix it\nthen ", SlashCommand("queue", "fix it\nthen")),
        ("/", SlashCommand("")),
        ("/etc/hosts is wrong", SlashCommand("etc/hosts", "is wrong")),
    ],
)
def test_a_line_is_a_prompt_or_a_command(line: str, said: object) -> None:
    assert parse_line(line) == said


def test_an_unknown_command_is_explained() -> None:
    assert find_problem(SlashCommand("status")) is None
    assert find_problem(SlashCommand("steer", "left")) is None
    assert "unknown command /etc/hosts" in str(find_problem(SlashCommand("etc/hosts", "is wrong")))
    assert find_problem(SlashCommand("queue")) == "/queue requires a text"
    assert "takes no text" in str(find_problem(SlashCommand("abort", "now")))


@pytest.mark.parametrize("width", [80, 60, 40])
def test_help_names_every_command_and_fits_a_terminal(width: int) -> None:
    page = help_text(width)
    assert all(f"/{name} " in page for name in COMMANDS)
    assert max(map(len, page.splitlines())) <= width


# -- JSON commands


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("", None),
        (" \r", None),
        ("hello", wire.PromptCommand("hello")),
        ("/exit", wire.PromptCommand("/exit")),
        ('"text"', wire.PromptCommand('"text"')),
        ("[1]", wire.PromptCommand("[1]")),
        ('{"type":"prompt","text":"{x}","id":1}', wire.PromptCommand("{x}", id=1)),
        (' {"type":"steer","text":"x"}\r', wire.SteerCommand("x")),
        ('{"type":"queue","text":"x","id":null}', wire.QueueCommand("x")),
        ('{"type":"set_model","model":"m"}', wire.SetModelCommand("m")),
        ('{"type":"set_approval_mode","mode":"plan"}', wire.SetApprovalModeCommand("plan")),
        ('{"type":"interrupt"}', wire.InterruptCommand()),
        ('{"type":"pause"}', wire.PauseCommand()),
        ('{"type":"resume"}', wire.ResumeCommand()),
        ('{"type":"approve","interactionId":"i"}', wire.ApproveCommand("i")),
        ('{"type":"approve","interactionId":"i","always":true}', wire.ApproveCommand("i", always=True)),
        ('{"type":"deny","interactionId":"i","reason":"r"}', wire.DenyCommand("i", "r")),
        ('{"type":"answer","interactionId":"i","option":0}', wire.AnswerCommand("i", option=0)),
        ('{"type":"answer","interactionId":"i","text":""}', wire.AnswerCommand("i", text="")),
        ('{"type":"status"}', wire.StatusCommand()),
        ('{"type":"close"}', wire.CloseCommand()),
        ('{"type":"abort","id":"z"}', wire.AbortCommand(id="z")),
    ],
)
def test_a_line_is_a_prompt_or_a_json_command(line: str, command: object) -> None:
    assert wire.read_command(line.encode()) == command


@pytest.mark.parametrize(
    ("line", "why", "command", "id_"),
    [
        (b"{", "truncated", None, None),
        (b"{]", "malformed", None, None),
        (b'{"type":"dance","id":7}', "'dance'", "dance", 7),
        (b'{"type":7,"id":true}', "str", None, None),
        (b'{"id":"x"}', "type", None, "x"),
        (b'{"type":"prompt","id":"x"}', "`text`", "prompt", "x"),
        (b'{"type":"prompt","text":"","id":"x"}', "empty", "prompt", "x"),
        (b'{"type":"prompt","text":"x","txt":"y"}', "`txt`", "prompt", None),
        (b'{"type":"answer","interactionId":"i"}', "either text or option", "answer", None),
        (b'{"type":"answer","interactionId":"i","text":"x","option":1}', "either text or option", "answer", None),
        (b"\xff", "not UTF-8", None, None),
        (b'{"type":"prompt","text":"\xff"}', "UTF-8", None, None),
        (b'{"a":' * 100_000, "", None, None),
        (None, "longer than", None, None),
    ],
)
def test_an_invalid_line_is_explained(line: bytes | None, why: str, command: str | None, id_: object) -> None:
    with pytest.raises(wire.InvalidCommandError) as caught:
        wire.read_command(line)
    assert why in str(caught.value)
    assert (caught.value.command, caught.value.id) == (command, id_)
    assert len(str(caught.value)) < 1000


def test_acknowledgements_are_not_events() -> None:
    assert not set(wire.RESPONSE_TYPES) & {"run_result", *(event.type for event in ALL_EVENTS)}
    error = AgentMuxError("RUN_NOT_ACTIVE", "over")
    told = [
        json.loads(wire.ack(wire.QueueCommand("x", id=0), delivery="queued")),
        json.loads(wire.command_error(error, None, None)),
    ]
    assert told == [
        {"type": "ack", "command": "queue", "id": 0, "delivery": "queued"},
        {"type": "command_error", "error": {"code": "RUN_NOT_ACTIVE", "message": "over", "recoverable": False}},
    ]
    assert tuple(line["type"] for line in told) == wire.RESPONSE_TYPES


def test_every_command_has_a_schema() -> None:
    schema = wire.command_schema()
    assert len(schema["anyOf"]) == len(schema["discriminator"]["mapping"]) == 18


# -- lines


async def read_all(descriptor: int, longest: int = wire.LONGEST_LINE) -> list[bytes | None]:
    with anyio.fail_after(BOUND):
        return [line async for line in read_lines(descriptor, longest)]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"", []),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"a\r\nb\n", [b"a\r", b"b"]),
        (b"0123456789\n" + b"x" * 25 + b"\n01234567890\n" + b"end", [b"0123456789", None, None, b"end"]),
        (b"x" * 25, [None]),
    ],
)
async def test_lines_of_pipes_and_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: bytes, expected: list[bytes | None]
) -> None:
    monkeypatch.setattr(streams, "_READ_SIZE", 7)
    reader, writer = os.pipe()
    os.write(writer, written)
    os.close(writer)
    assert await read_all(reader, 10) == expected
    os.close(reader)
    path = tmp_path / "lines"
    path.write_bytes(written)
    with path.open("rb") as file:
        assert await read_all(file.fileno(), 10) == expected


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_mailbox_keeps_the_order_of_what_comes_from_threads() -> None:
    mailbox: Mailbox[int] = Mailbox()
    mailbox.put(0)  # before anybody listens
    heard: list[int] = []
    with anyio.fail_after(BOUND):
        with mailbox:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    anyio.to_thread.run_sync, lambda: [mailbox.put(number) for number in range(1, 100_000)]
                )
                heard.extend([await mailbox.receive() for _ in range(100_000)])
        mailbox.put(-1)  # nobody hears it
    assert heard == list(range(100_000))


# -- counting


def test_usage_counts_turns_cost_and_tokens() -> None:
    tally = ConversationUsage()
    assert tally.spent() == "cost unknown, no tokens counted yet"
    head: tuple[Any, ...] = ("R", "a", 0)
    for event in (
        TurnStartEvent(*head, turn_index=0),
        TokenUsageEvent(*head, input_tokens=1000, output_tokens=5),
        CostEvent(*head, cost=CostRecord(0.25, 1000, 5, source="native")),
        TurnStartEvent(*head, turn_index=1),
        TokenUsageEvent(*head, input_tokens=1, output_tokens=2, cached_tokens=7),
        CostEvent(*head, cost=CostRecord(0.5, 1001, 7, source="native")),
    ):
        tally.add(event)
    assert tally.spent() == "$0.5000, 1,001 tokens in, 7 out, 7 cached"
    told = tally.to_dict()
    assert (told["turnCount"], told["cost"]["totalUsd"]) == (2, 0.5)
    assert told["tokenUsage"] == {"inputTokens": 1001, "outputTokens": 7, "cachedTokens": 7}
