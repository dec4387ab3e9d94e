"""Journals on disks that fail, vanish or fill up: the run continues, and readers are warned about losses."""

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.scripted import MakeClient, ScriptedCodec

from agent_mux import AgentEvent, AgentMuxError, encode_event, validate
from agent_mux.journal.file import JournalReader
from agent_mux.run.derivation import JournalEvents, derive_events
from agent_mux.run.handle import RunHandle
from agent_mux_testing.torture.census import Footprint

pytestmark = pytest.mark.anyio
LONG_OUTPUT = """
read(); emit(session='S1')
for number in range(400): emit(text=f'{number} ' + 'x' * 1000)
read(); emit(text='the end'); emit(done=True); drain()"""
"""400 kB of text, then a prompt from the test, then the agent's last text."""
LAST = "399"
LIMIT = 100_000  # bytes of a file


async def wait_for_text(run: RunHandle, word: str) -> None:
    async for event in run:
        if event.type == "text_delta" and event.delta.startswith(word):
            return
    raise AssertionError(f"no text started with {word}")


def encoded(events: list[AgentEvent]) -> list[bytes]:
    return [encode_event(event) for event in events]


def is_warning(event: Any, words: str) -> bool:
    return event.type == "debug" and event.level == "warn" and words in event.message


@contextmanager
def small_files() -> Iterator[None]:
    """Limit the size of the files that this process writes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert signal.getsignal(signal.SIGXFSZ) is signal.SIG_IGN  # Python's default
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def check_run_on_a_full_disk(make_client: MakeClient, words: str, **fields: Any) -> None:
    before = Footprint.now()
    async with make_client(LONG_OUTPUT) as mux:
        run = mux.run(prompt="hi", event_buffer_size=5000, **fields)
        live: list[AgentEvent] = []
        async for event in run:
            live.append(event)
            if event.type == "text_delta" and event.delta.startswith(LAST):
                await run.send("continue")
        result = await run
    assert before.leaks() == []
    assert validate(live) == []
    assert (result.exit_reason, result.journal) == ("completed", None)
    assert [event.delta.split()[0] for event in live if event.type == "text_delta"] == [
        *map(str, range(400)), "the",
    ]  # fmt: skip
    warnings = [number for number, event in enumerate(live) if is_warning(event, words)]
    assert len(warnings) == 1
    path = Path(run._runner.core.recorder.journal_path or "")
    assert f"the journal {path} ends here" in live[warnings[0]].message  # type: ignore[union-attr]
    kept = [event for event in derive_events(path, ScriptedCodec) if event.type == "text_delta"]
    live_texts = [event for event in live if event.type == "text_delta"]
    before_it = sum(event.type == "text_delta" for event in live[: warnings[0]])
    assert encoded(kept[:before_it]) == encoded(live_texts[:before_it])
    # The last line may be complete in the journal without its newline, which came later, in the record that failed.
    assert [event.delta for event in kept[before_it:]] in ([], [live_texts[before_it].delta])


async def test_disk_full_during_the_run_ends_the_journal_not_the_run(make_client: MakeClient) -> None:
    with anyio.fail_after(30), small_files():
        await check_run_on_a_full_disk(make_client, "File too large")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk")
async def test_full_tmpfs_ends_the_journal_not_the_run(make_client: MakeClient, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "amux-test", str(disk)], check=False)  # noqa: ASYNC221
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        with anyio.fail_after(30):
            await check_run_on_a_full_disk(make_client, "No space left on device", journal=disk / "a.journal")
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)  # noqa: ASYNC221


async def test_slow_readers_are_warned_about_lost_events(make_client: MakeClient) -> None:
    with anyio.fail_after(30), small_files():
        async with make_client(LONG_OUTPUT) as mux:
            run = mux.run(prompt="hi", event_buffer_size=50)
            await wait_for_text(run, LAST)
            await run.send("continue")
            result = await run
            late = [event async for event in run]
    texts = [event.delta.split()[0] for event in late if event.type == "text_delta"]
    losses = [event for event in late if is_warning(event, "events were lost: this reader was too slow")]
    assert len(losses) == 1
    lost = int(losses[0].message.split()[0])
    assert texts[: len(texts) - 50][0] == "0"  # from the journal, up to its end
    assert texts[-1] == "the"
    kept = [int(text) for text in texts[:-1]]
    assert sorted(set(kept)) == kept
    assert 0 < 400 - len(kept) <= lost
    assert result.text.startswith("0 xxx")
    assert result.text.endswith("the end")
    assert len(result.text) == sum(len(f"{number} ") + 1000 for number in range(400)) + len("the end")


async def test_removed_journal_affects_only_readers_that_need_it(make_client: MakeClient) -> None:
    with anyio.fail_after(30):
        async with make_client(LONG_OUTPUT) as mux:
            run = mux.run(prompt="hi", event_buffer_size=50)
            await wait_for_text(run, LAST)
            assert run.journal is not None
            slow = aiter(run)
            first = await anext(slow)  # it has opened the journal
            shutil.rmtree(Path(run.journal).parent)
            await run.send("continue")
            result = await run
            rest = [event async for event in slow]
            late = [event async for event in run]
    assert first.type == "session_start"
    assert (result.exit_reason, result.journal) == ("completed", None)
    assert len(result.text) > 400_000
    assert [event.delta.split()[0] for event in rest if event.type == "text_delta"] == [*map(str, range(400)), "the"]
    assert is_warning(late[0], "events were lost")
    assert late[-1].type == rest[-1].type == "session_end"


async def test_replaced_journal_file_is_not_read(make_client: MakeClient) -> None:
    with anyio.fail_after(30):
        async with make_client(LONG_OUTPUT) as mux:
            other = await mux.run(prompt="other", timeout=0.2, grace_period=0.1)
            run = mux.run(prompt="hi", event_buffer_size=50)
            await wait_for_text(run, LAST)
            assert run.journal is not None
            assert other.journal is not None
            shutil.move(other.journal, run.journal)
            await run.send("continue")
            result = await run
            late = [event async for event in run]
    assert result.text.endswith("the end")
    assert is_warning(late[0], "events were lost")


@pytest.mark.parametrize("how", ["a file", "closed", "missing disk"])
async def test_unusable_journal_directory_is_reported_and_the_run_completes(
    make_client: MakeClient, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    if how == "a file":
        place.touch()
    elif how == "closed":
        real = os.open

        def refuse(path: Any, *arguments: Any, **named: Any) -> int:
            if str(path).endswith(".journal"):
                raise PermissionError(13, "Permission denied")
            return real(path, *arguments, **named)

        monkeypatch.setattr(os, "open", refuse)
    else:
        place = Path("/proc/no/such/disk")
    before = Footprint.now()
    with anyio.fail_after(30):
        async with make_client("read(); emit(text='x'); emit(done=True); drain()") as mux:
            run = mux.run(prompt="hi", journal=place / "a.journal")
            events = [event async for event in run]
            result = await run
    assert before.leaks() == []
    assert (result.exit_reason, result.text, result.journal, run.journal) == ("completed", "x", None, None)
    assert [event for event in events if is_warning(event, "this run has no journal")]
    assert validate(events) == []


async def test_disk_full_at_the_start_leaves_no_file(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "writev", refuse)
    before = Footprint.now()
    with anyio.fail_after(30):
        async with make_client("read(); emit(text='x'); emit(done=True); drain()") as mux:
            result = await mux.run(prompt="hi", journal=tmp_path / "a.journal")
    assert before.leaks() == []
    assert (result.exit_reason, result.journal) == ("completed", None)
    assert not (tmp_path / "a.journal").exists()


async def test_two_clients_of_one_project_write_separate_journals(make_client: MakeClient) -> None:
    async def watch(run: RunHandle) -> None:
        live = [event async for event in run]
        assert run.journal is not None
        assert encoded(live) == encoded(list(derive_events(Path(run.journal), ScriptedCodec)))
        journals.append(run.journal)

    journals: list[str] = []
    body = "read(); [emit(text=str(number)) for number in range(50)]; emit(done=True); drain()"
    with anyio.fail_after(60):
        async with make_client(body) as one, make_client(body) as two, anyio.create_task_group() as tasks:
            for mux in (one, two) * 5:
                tasks.start_soon(watch, mux.run(prompt="hi"))
    assert len(set(journals)) == 10


async def test_second_run_with_the_same_journal_path_has_no_journal(make_client: MakeClient, tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    with anyio.fail_after(30):
        async with make_client("read(); emit(text=str(os.getpid())); emit(done=True); drain()") as mux:
            runs = [mux.run(prompt="hi", journal=path) for _ in range(2)]
            seen = [[event async for event in run] for run in runs]
            results = [await run for run in runs]
    assert [result.exit_reason for result in results] == ["completed"] * 2
    has = [result.journal for result in results].index(str(path))
    assert results[1 - has].journal is None
    assert encoded(list(derive_events(path, ScriptedCodec))) == encoded(seen[has])
    assert [event for event in seen[1 - has] if is_warning(event, f"{path}: File exists")]


@pytest.mark.slow
async def test_truncated_journal_is_readable_to_its_last_complete_record(
    make_client: MakeClient, tmp_path: Path
) -> None:
    with anyio.fail_after(30):
        async with make_client("read(); emit(text='a'); emit(shell='ls'); emit(ask='ls'); sys.exit(3)") as mux:
            result = await mux.run(prompt="hi", collect_events=True)
    assert result.journal is not None
    _read_every_prefix(Path(result.journal), encoded(list(result.events or ())), tmp_path / "torn.journal")


def _read_every_prefix(path: Path, whole: list[bytes], torn: Path) -> None:
    content, reader = path.read_bytes(), JournalReader(path)
    ends = [reader.position, *(reader.position for _ in reader.read())]
    for cut in range(len(content)):
        torn.write_bytes(content[:cut])
        if cut < ends[0]:
            with pytest.raises(AgentMuxError, match="not a journal"):
                JournalReader(torn)
            continue
        journal, events = JournalEvents(torn, ScriptedCodec), []
        while (batch := journal.next_batch()) is not None:
            events += batch
        assert journal._reader.position == max(end for end in ends if end <= cut)
        assert encoded(events) == whole[: len(events)]
        assert validate([*events, *journal.cut_off()]) == []
