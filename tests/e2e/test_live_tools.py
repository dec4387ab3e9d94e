"""Tools of the agent: they really run, they are told as they are, and their results reach the model."""

import pytest
from tests.e2e.dialects import Edit, Mcp, Read, Say, Shell, Write
from tests.e2e.harness import Live

pytestmark = pytest.mark.anyio
ON_BOTH_LOOPS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
BOTH_WAYS = pytest.mark.parametrize(
    "way", [{"approval_mode": "yolo"}, {"approval_mode": "yolo", "on_approval_request": lambda _: None}],
    ids=["one_shot", "two_way"],
)  # fmt: skip
CONTENT = "one\ntwo\nthrée\n"


@ON_BOTH_LOOPS
async def test_file_edits(live: Live) -> None:
    live.script(
        live.answer(Say("Writing."), Write("a.txt", CONTENT)),
        live.answer(Edit("a.txt", "two", "TWO")),
        live.answer(Say("All done.")),
    )
    done = await live.run(**PROMPTED)
    assert done.result.exit_reason == "completed"
    assert live.file("a.txt").read_text("utf-8") == "one\nTWO\nthrée\n"
    assert done.types("file_read", "file_write", "file_create", "file_patch", "file_delete") == [
        "file_create", "file_patch",
    ]  # fmt: skip
    created, patched = done.one("file_create"), done.one("file_patch")
    assert created.path.endswith("a.txt")
    assert created.byte_count == len(CONTENT.encode())
    assert {"--- a/a.txt", "+++ b/a.txt", "-two", "+TWO"} <= set(patched.diff.splitlines())
    assert patched.diff.splitlines()[2].startswith("@@ -")
    assert len(done.all("tool_result")) == 2
    live.used(done, calls=3)
