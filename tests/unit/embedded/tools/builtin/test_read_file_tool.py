"""`read_file`."""

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.embedded.tools.builtin.file_calls import Files

from agent_loop.errors import InvalidArgumentsError, ToolError, WorkspaceError
from agent_loop.messages import Image
from agent_loop.tools.builtin.read import page_of, split_lines
from agent_loop.tools.effects import FileRead

pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\n\0rest"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


async def test_read_file_returns_a_page_and_how_to_read_the_rest(files: Files) -> None:
    files.put("a", "".join(f"line {n}\n" for n in range(1, 6)))
    assert await files.text("read_file", path="a", offset=2, limit=2) == (
        "2\tline 2\n3\tline 3\n\n[lines 2-3 of 5; re-read with offset=4 for more]"
    )
    assert await files.text("read_file", path="a", offset=4) == "4\tline 4\n5\tline 5"


async def test_read_file_shows_pages_of_2000_lines_or_50_kib(files: Files) -> None:
    files.put("many", "x\n" * 3000)
    assert (await files.text("read_file", path="many")).endswith(
        "[lines 1-2000 of 3000; re-read with offset=2001 for more]"
    )
    files.put("wide", ("y" * 1023 + "\n") * 300)
    assert (await files.text("read_file", path="wide")).endswith("[lines 1-50 of 300; re-read with offset=51 for more]")


async def test_read_file_limit_0_and_max_bytes_0_disable(files: Files) -> None:
    files.put("many", ("x" * 200 + "\n") * 3000)
    text = await files.text("read_file", path="many", limit=0, max_bytes=0)
    assert text.count("\n") == 2999
    assert "[" not in text


async def test_read_file_cuts_a_line_that_is_too_long_between_characters(files: Files) -> None:
    files.put("a", "ééé\nnext\n")
    assert await files.text("read_file", path="a", max_bytes=3) == (
        "1\té\n\n[line 1 is cut off; re-read it with max_bytes=0, or search it with grep]\n"
        "[lines 1-1 of 2; re-read with offset=2 for more]"
    )


@pytest.mark.parametrize("content", [b"text\0more", b"\xff\xfe" * 100, b"\x80abc" * 50])
async def test_read_file_binary_marker(files: Files, content: bytes) -> None:
    files.put("a", content)
    assert await files.text("read_file", path="a") == (
        f"[a is a binary file of {len(content)} bytes; its content is not shown]"
    )


async def test_read_file_shows_text_with_a_stray_byte_and_explains_the_replacement(files: Files) -> None:
    files.put("a", b"caf\xe9 au lait, and more of it\nplain\n")
    assert await files.text("read_file", path="a", limit=1) == (
        "1\tcaf\ufffd au lait, and more of it\n\n[lines 1-1 of 2; re-read with offset=2 for more]\n\n"
        "[\ufffd stands for bytes that are not UTF-8: edits of other text keep them, old_string cannot contain them]"
    )
    assert await files.text("read_file", path="a", offset=2) == "2\tplain"
    files.put("b", "a real \ufffd")
    assert await files.text("read_file", path="b") == "1\ta real \ufffd"


async def test_read_line_numbers_can_be_left_out(tmp_path: Path) -> None:
    files = Files(tmp_path, read_line_numbers=False)
    files.put("a", "one\r\ntwo")
    assert await files.text("read_file", path="a") == "one\ntwo"


@pytest.mark.parametrize(
    ("content", "mime_type"),
    [
        (PNG, "image/png"), (b"\xff\xd8\xff\xe0", "image/jpeg"), (b"GIF89a..", "image/gif"), (b"GIF87a..", "image/gif"),
        (b"RIFF1234WEBPVP8", "image/webp"),
    ],
)  # fmt: skip
async def test_read_file_gives_images_as_blocks(files: Files, content: bytes, mime_type: str) -> None:
    files.put("picture.txt", content)
    result = await files.call("read_file", path="picture.txt")
    assert result.content == (Image(base64.b64encode(content).decode(), mime_type),)


async def test_read_file_refuses_images_over_20_mb(files: Files) -> None:
    files.put("a.png", PNG)
    with (files.root / "a.png").open("ab") as file:
        file.truncate(20 * 1024 * 1024 + 1)
    with pytest.raises(ToolError, match=r"an image of 20,971,521 bytes"):
        await files.call("read_file", path="a.png")


async def test_dedup_reads_answers_an_identical_second_read_with_a_stub(files: Files) -> None:
    files.put("a", "one\n")
    assert await files.text("read_file", path="a") == "1\tone"
    assert "a is unchanged since you last read it" in await files.text("read_file", path="./a")
    assert await files.text("read_file", path="a", limit=1) == "1\tone"
    files.put("a", "two\n")
    assert await files.text("read_file", path="a", limit=1) == "1\ttwo"


async def test_dedup_reads_shows_the_file_again_after_an_edit(files: Files) -> None:
    files.put("a", "one\n")
    await files.call("read_file", path="a")
    await files.call("edit", path="a", old_string="one", new_string="two")
    assert await files.text("read_file", path="a") == "1\ttwo"
    await files.call("write_file", path="a", content="two\n")
    assert await files.text("read_file", path="a") == "1\ttwo"


async def test_dedup_reads_can_be_switched_off(tmp_path: Path) -> None:
    files = Files(tmp_path, dedup_reads=False)
    files.put("a", "one\n")
    assert await files.text("read_file", path="a") == await files.text("read_file", path="a") == "1\tone"


async def test_read_file_reports_the_effect_and_marks_the_read(files: Files) -> None:
    files.put("dir/a", "one\n")
    result = await files.call("read_file", path=str(files.root / "dir" / "a"))
    assert result.effects == (FileRead("dir/a"),)
    assert list(files.state.reads) == ["dir/a"]


async def test_read_file_errors_name_the_problem(files: Files) -> None:
    files.put("a", "one\n")
    files.put("empty", "")
    assert await files.text("read_file", path="empty") == "[the file is empty]"
    with pytest.raises(ToolError, match="offset=9 is behind the end of the file, which has 1 lines"):
        await files.call("read_file", path="a", offset=9)
    with pytest.raises(InvalidArgumentsError, match="offset"):
        await files.call("read_file", path="a", offset=0)
    with pytest.raises(WorkspaceError, match="leads out of the workspace"):
        await files.call("read_file", path="../a")


@pytest.mark.slow
@given(
    lines=st.lists(
        st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=12), max_size=12
    ),
    limit=st.integers(0, 4),
    max_bytes=st.integers(0, 40),
)
def test_following_the_footer_shows_every_line_once(lines: list[str], limit: int, max_bytes: int) -> None:
    text = "".join(f"{line}\n" for line in lines)
    seen: list[str] = []
    offset = 1
    while True:
        page = page_of(text, offset, limit, max_bytes)
        assert not max_bytes or len("\n".join(page.lines).encode()) <= max_bytes
        assert not limit or len(page.lines) <= limit
        seen += [lines[page.first - 1]] if page.is_cut else page.lines
        if page.last >= page.total:
            break
        offset = page.last + 1
    assert seen == lines == split_lines(text)
