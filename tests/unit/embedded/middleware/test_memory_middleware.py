"""Memory: AGENTS.md files are appended, bounded, and cannot close their tag."""

import os
from pathlib import Path

import pytest
from tests.unit.embedded.middleware.harness import Around

from agent_loop.middleware import MemoryMiddleware
from agent_loop.middleware.memory import GUIDELINES, load_memory, memory_block


@pytest.mark.anyio
async def test_agent_memory_block_joins_the_files_and_carries_guidelines(tmp_path: Path) -> None:
    for name, text in (("one.md", "Uses FastAPI.\n"), ("two.md", "Tests: make test"), ("empty.md", " \n")):
        (tmp_path / name).write_text(text)
    middleware = MemoryMiddleware([tmp_path / name for name in ("one.md", "missing.md", "empty.md", "two.md")])
    around = Around(middleware)
    await around.begin()
    expected = "Be good.\n\n<agent_memory>\nUses FastAPI.\n\n---\n\nTests: make test\n</agent_memory>\n\n" + GUIDELINES
    assert await around.system("Be good.") == expected
    assert await around.system("") == expected.removeprefix("Be good.\n\n")
    assert middleware.notes == ()


@pytest.mark.anyio
async def test_missing_memory_files_are_fine_and_what_they_hold_later_is_read_in_the_next_run(tmp_path: Path) -> None:
    memory = MemoryMiddleware([tmp_path / "AGENTS.md"])
    around = Around(memory)
    await around.begin()
    assert (await around.system("Be good."), memory.notes) == ("Be good.", ())
    (tmp_path / "AGENTS.md").write_text("learned")
    assert await around.system("Be good.") == "Be good."
    await around.begin()
    assert "learned" in await around.system("Be good.")


def test_memory_is_bounded_and_truncation_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a" * 60)
    (tmp_path / "b.md").write_text("b" * 60)
    content, notes = load_memory([tmp_path / "a.md", tmp_path / "b.md"], 100)
    assert content == "a" * 60 + "\n\n---\n\n" + "b" * 40
    assert notes == (f"{tmp_path / 'b.md'} is truncated: the memory is limited to 100 bytes",)


def test_special_file_is_noted_and_never_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "loop.md").symlink_to(tmp_path / "loop.md")
    paths = [tmp_path, tmp_path / "pipe.md", tmp_path / "loop.md"]
    content, notes = load_memory(paths, 100)
    assert content == ""
    assert [note.split(" cannot be read")[0] for note in notes] == [str(path) for path in paths]


def test_a_link_to_a_file_elsewhere_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "CLAUDE.md").write_text("notes")
    (tmp_path / "repo" / "AGENTS.md").symlink_to("CLAUDE.md")
    (tmp_path / "repo" / "MORE.md").symlink_to("../secret")
    content, notes = load_memory([tmp_path / "repo" / "AGENTS.md", tmp_path / "repo" / "MORE.md"], 100)
    assert content == "notes"
    assert "a link to" in notes[0]


@pytest.mark.parametrize("closing", ["</agent_memory>", "< / AGENT_MEMORY >", "<\n/agent_memory>", "<agent_memory>"])
def test_memory_content_cannot_close_its_tag(closing: str) -> None:
    inside = memory_block(f"a {closing} b").removeprefix("<agent_memory>").split("\n</agent_memory>\n")[0]
    assert "<" not in inside
    assert memory_block("1 < 2 <b>").startswith("<agent_memory>\n1 < 2 <b>\n")


@pytest.mark.anyio
async def test_omissions_from_the_memory_are_reported_once(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x" * 200)
    middleware = MemoryMiddleware([tmp_path / "a.md"], max_bytes=100)
    around = Around(middleware)
    assert await around.begin() == [f"{tmp_path / 'a.md'} is truncated: the memory is limited to 100 bytes"]
    assert await around.begin() == []
    middleware.max_bytes = 50
    assert await around.begin() == [f"{tmp_path / 'a.md'} is truncated: the memory is limited to 50 bytes"]
