"""Control lines: each line is a command, or an error with a sentence."""

import json
import os
import subprocess
import sys
from contextlib import suppress

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.cli.control import message_of
from agent_loop.cli.inputs import read_lines
from agent_loop.cli.protocol import AnswerCommand, InvalidCommandError, PromptCommand, StartCommand, parse_command
from agent_loop.messages import Image, Text


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (None, "was skipped"),
        (b"{", "is not valid JSON"),
        (b"\xff\xfe", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"[]", "is not a JSON object"),
        (b'{"id": "1"}', "has no type"),
        (b'{"type": 1}', "has no type"),
        (b'{"type": "prompt", "id": "1"}', "invalid 'prompt' command"),
        (b'{"type": "prompt", "id": 7, "text": "x"}', "invalid 'prompt' command"),
        (b'{"type": "start", "maxTurns": "many"}', "invalid 'start' command"),
    ],
)
def test_invalid_line_raises_an_error_with_a_sentence(line: bytes | None, sentence: str) -> None:
    with pytest.raises(InvalidCommandError, match=sentence) as raised:
        parse_command(line)
    assert not raised.value.is_unknown
    assert len(str(raised.value)) < 1000


def test_unknown_command_type_is_marked_as_unknown() -> None:
    with pytest.raises(InvalidCommandError) as raised:
        parse_command(b'{"type": "dance", "id": "7"}')
    assert (raised.value.is_unknown, raised.value.command_id) == (True, "7")


def test_unknown_fields_are_ignored() -> None:
    line = b'{"type": "prompt", "id": "1", "text": "hi", "tempo": 3}'
    assert parse_command(line) == PromptCommand(id="1", text="hi")


def test_field_names_are_those_of_the_protocol() -> None:
    start = parse_command(b'{"type":"start","protocol":1,"approvalMode":"deny","maxTokensTotal":5,"topP":0.5}')
    assert start == StartCommand(approval_mode="deny", max_tokens_total=5, top_p=0.5)
    assert parse_command(b'{"type":"answer","requestId":"r","text":"b"}') == AnswerCommand(request_id="r", text="b")


def test_prompt_contains_its_images() -> None:
    line = {"type": "prompt", "text": "look", "images": [{"mimeType": "image/png", "data": "AAAA"}]}
    command = parse_command(json.dumps(line).encode())
    assert isinstance(command, PromptCommand)
    assert message_of(command).content == (Image("AAAA", "image/png"), Text("look"))


@given(st.binary(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_line_is_a_command_or_raises_invalid_command_error(line: bytes) -> None:
    name = ""
    with suppress(InvalidCommandError):
        name = type(parse_command(line)).__name__
    assert name in {
        "",
        "StartCommand",
        "InterruptCommand",
        "CancelCommand",
        "CloseCommand",
    }  # the others need more than chance


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_lines_are_complete_and_too_long_ones_become_none(backend: str) -> None:
    async def read(chunks: list[bytes], longest: int) -> list[bytes | None]:
        reader, writer = os.pipe()
        lines: list[bytes | None] = []

        async def write() -> None:
            for chunk in chunks:
                os.write(writer, chunk)
                await anyio.lowlevel.checkpoint()
            os.close(writer)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write)
                lines += [line async for line in read_lines(reader, longest)]
        os.close(reader)
        return lines

    assert anyio.run(read, [b"one\nt", b"wo\n\n  \nthree"], 100, backend=backend) == [b"one", b"two", b"three"]
    assert anyio.run(read, [b"x" * 20, b"y\nshort\n", b"z" * 20], 10, backend=backend) == [None, b"short", None]


HEAVY = {
    "pydantic", "pydantic_ai", "mcp", "httpx", "openai", "anthropic", "jsonschema", "rich", "typer", "ruamel.yaml",
    "urllib.request", "email", "importlib.metadata", "ulid", "agent_loop.handoffs",
}  # fmt: skip
"""Modules that take long to import, or that few runs need, and that no run needs before its first call."""


@pytest.mark.slow
def test_the_program_starts_without_modules_that_take_long_to_import() -> None:
    code = f"import sys, agent_loop.cli.program; print(sorted({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_listing_sessions_does_not_import_the_agent() -> None:
    code = "import sys, agent_loop.cli.sessions_command; print('agent_loop.agent' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
