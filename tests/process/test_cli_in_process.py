"""`amux run` in this process, for inspection and coverage."""

import io
import json
import os
import pty
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest
from tests.process.installed import PATIENCE, make_site
from tests.process.talking import TALKER

from agent_mux.cli import output
from agent_mux.cli.main import main
from agent_mux.cli.output import Chunk, OutputWriter, wait_until_reader_closes, write_all

HELLO = "hear(); say(session='S'); say(text='hello '); say(text='world'); say(done=True); rest()"
ASK = "hear(); say(session='S'); say(ask='rm -rf /'); say(text='it was ' + hear()['answer']); say(done=True); rest()"
QUESTION = "hear(); say(question='which?'); say(text='so ' + hear()['answer']); say(done=True); rest()"
Amux = Callable[..., tuple[int, str, str]]


@pytest.fixture
def amux(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Amux]:
    monkeypatch.syspath_prepend(make_site(tmp_path / "site"))
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))  # nobody

    def call(*arguments: object, body: str = HELLO) -> tuple[int, str, str]:
        sys.modules.pop("scripted_agent", None)
        monkeypatch.setenv("SCRIPTED", body)
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
        return code, *capfd.readouterr()

    yield call
    sys.modules.pop("scripted_agent", None)


def test_for_a_person(amux: Amux) -> None:
    code, out, err = amux("run", "scripted", "hi")
    assert (code, out) == (0, "hello world\n")
    assert err.startswith("scripted, session S\n+ completed 1 turn")


def test_for_a_program(amux: Amux) -> None:
    code, out, err = amux("run", "scripted", "hi", "--json", "--compact")
    assert (code, err) == (0, "")
    assert json.loads(out.splitlines()[-1])["text"] == "hello world"


def test_only_the_answer(amux: Amux) -> None:
    assert amux("run", "scripted", "hi", "--quiet") == (0, "hello world\n", "")


def test_nobody_to_ask(amux: Amux) -> None:
    code, out, err = amux("run", "scripted", "hi", body=ASK)
    assert (code, out) == (0, "it was no\n")
    assert err.count("warning: no terminal to ask on") == 1
    assert amux("run", "scripted", "hi", "--yolo", "-q", body=ASK)[1] == "it was yes\n"


def test_record(amux: Amux, tmp_path: Path) -> None:
    code, _, err = amux("record", "scripted", "hi", "--to", tmp_path / "fixture")
    assert code == 0
    assert err.endswith(f"recorded in {tmp_path}/fixture\n")
    again, _, complaint = amux("record", "scripted", "hi", "--to", tmp_path / "fixture")
    assert again == 2
    assert "--force" in complaint


def test_recorded_demo(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMUX_REPLAY_SPEED", "0")
    code, out, err = amux("demo", "--recorded")
    assert code == 0
    assert out
    assert "replay" in err


def test_a_signal(amux: Amux) -> None:
    body = "hear(); say(text='started'); os.kill(os.getppid(), signal.SIGTERM); rest(); time.sleep(600)"
    before = signal.getsignal(signal.SIGTERM)
    code, out, err = amux("run", "scripted", "hi", "--grace-period", "0.1", body=body)
    assert (code, out) == (13, "started\n")
    assert "SIGTERM: aborting the run" in err
    assert signal.getsignal(signal.SIGTERM) is before


def test_two_signals(amux: Amux) -> None:
    body = "hear(); say(text='x'); [os.kill(os.getppid(), n) or say(nothing=n) for n in (15, 2)]; time.sleep(600)"
    assert amux("run", "scripted", "hi", "--grace-period", "500", body=body)[0] == 13


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends: the person's, and ours."""
    master, slave = pty.openpty()
    yield master, slave
    os.close(slave)
    os.close(master)


@contextmanager
def seated(slave: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standard input and standard error are the terminal. Not in a fixture: pytest exchanges them between phases."""
    with (
        open(slave, closefd=False) as keys,
        open(slave, "w", closefd=False) as screen,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", keys)
        patch.setattr(sys, "stderr", screen)
        yield


def person(master: int, after: str, typed: str) -> threading.Thread:
    """Somebody who types when they are asked."""

    def answer() -> None:
        seen = ""
        with suppress(OSError):  # they left
            while after not in seen:
                seen += os.read(master, 4096).decode()
            os.write(master, typed.encode())

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("body", "after", "typed", "said"),
    [
        (ASK, "lways? ", "y\n", "it was yes\n"),
        (ASK, "lways? ", "perhaps\na\n", "it was yes\n"),
        (ASK, "lways? ", "n too risky\n", "it was no\n"),
        (ASK, "lways? ", "\x04", "it was no\n"),
        (QUESTION, "> ", "2\n", "so blue\n"),
        (QUESTION, "> ", "\nmauve\n", "so mauve\n"),
    ],
)
def test_a_person(
    amux: Amux,
    terminal: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
    body: str,
    after: str,
    typed: str,
    said: str,
) -> None:
    master, slave = terminal
    typist = person(master, after, typed)
    with seated(slave, monkeypatch):
        code, out, _ = amux("run", "scripted", "hi", "-q", body=body)
    typist.join(PATIENCE)
    assert (code, out) == (0, said)


def test_a_person_who_is_too_slow(amux: Amux, terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = terminal
    with seated(slave, monkeypatch):
        assert amux("run", "scripted", "hi", "-q", "--timeout", "0.3", "--grace-period", "0.1", body=ASK)[0] == 11
    assert "(no longer needed)" in os.read(master, 65536).decode()


# -- conversations


def typist(master: int, *moves: tuple[str, str]) -> threading.Thread:
    """Somebody who types each of these when they have seen what is before it, one after the other."""

    def live() -> None:
        shown = ""
        with suppress(OSError):  # they left
            for seen, typed in moves:
                while seen not in shown:
                    shown += os.read(master, 4096).decode()
                shown = shown.partition(seen)[2]
                os.write(master, typed.encode())
            while os.read(master, 4096):
                pass

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    return thread


def test_a_conversation(amux: Amux, terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    master, slave = terminal
    before = termios.tcgetattr(slave)
    typist(
        master,
        ("session S", "hello\r"),
        ("sent", "/status\r"),
        ("turns: ", "/steer now\r"),
        ("turn 2", "/queue later\r/cost\r/session\r/help\r/nope\r/pause\r"),
        ("paused", "/resume\r"),
        ("resumed", "ask rm\r"),
        ("lways?", "perhaps\r"),
        ("invalid answer", "/status\r"),
        ("1 request", "y\r"),
        ("allowed", "work\r"),
        ("turn 5", "\x03"),
        ("ABORTED", "bye\r"),
        ("turn 6", "\x04"),
    )
    with seated(slave, monkeypatch):
        code, out, _ = amux("run", "-i", "scripted", "--no-color", "--timeout", PATIENCE, body=TALKER)
    assert termios.tcgetattr(slave) == before
    assert code == 0
    assert [line for line in out.splitlines() if line] == [
        "you said hello", "you said now", "you said later", "it was yes", "working", "you said bye",
    ]  # fmt: skip


def test_a_conversation_of_a_program(amux: Amux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text(
        'hello\n{\n\n{"type":"steer","text":"never mind"}\n{"type":"queue","text":"later"}\n{"type":"status"}\n'
        '{"type":"pause"}\n{"type":"resume"}\n{"type":"deny","interactionId":"x"}\n'
        '{"type":"answer","interactionId":"x","option":1}\n{"type":"approve","interactionId":"x"}\n'
    )
    with lines.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        code, out, err = amux("run", "-i", "scripted", "--json", "--compact", body=TALKER)
    told = [json.loads(line) for line in out.splitlines()]
    assert (code, err, told[-1]["text"]) == (0, "", "you said later")
    assert [line.get("command") for line in told if line["type"] == "command_error"] == [
        None, "steer", "deny", "answer", "approve",
    ]  # fmt: skip
    assert [line["command"] for line in told if line["type"] == "ack"] == [
        "prompt", "queue", "status", "pause", "resume",
    ]  # fmt: skip


# -- writing


@pytest.mark.anyio
async def test_a_pipe_without_a_reader_is_noticed_without_writing(anyio_backend: str) -> None:
    reader, writer = os.pipe()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_until_reader_closes, writer)
            os.close(reader)
    os.close(writer)


@pytest.mark.anyio
async def test_a_file_never_loses_its_reader(anyio_backend: str, tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, anyio.move_on_after(0.05) as waited:
        await wait_until_reader_closes(file.fileno())
    assert waited.cancelled_caught


def test_everything_is_written_where_somebody_made_the_descriptor_non_blocking() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    sent = os.urandom(1 << 20)
    received = bytearray()

    def read() -> None:
        while chunk := os.read(reader, 65536):
            received.extend(chunk)

    thread = threading.Thread(target=read)
    thread.start()
    write_all(writer, sent)
    os.close(writer)
    thread.join(PATIENCE)
    os.close(reader)
    assert received == sent


@pytest.mark.anyio
async def test_output_keeps_order_makes_batches_and_says_when_there_is_room(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[int, bytes]] = []
    monkeypatch.setattr(output, "write_all", lambda descriptor, data: written.append((descriptor, data)))
    monkeypatch.setattr(output, "BUFFER_LIMIT", 10)
    writer = OutputWriter("utf-8")
    out, err = sys.stdout.fileno(), sys.stderr.fileno()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            writer.add([Chunk("out", "a" * 20), Chunk("out", "b"), Chunk("err", "c"), Chunk("out", "é")])
            tasks.start_soon(writer.run)
            await writer.wait_for_capacity()
            await writer.drain()
            tasks.cancel_scope.cancel()
    assert written == [(out, b"a" * 20 + b"b"), (err, b"c"), (out, "é".encode())]


@pytest.mark.anyio
async def test_when_standard_output_breaks_nobody_waits_and_the_rest_goes_nowhere(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(descriptor: int, data: bytes) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(output, "write_all", broken)
    writer = OutputWriter()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            writer.add([Chunk("err", "nobody reads errors, which is no reason to stop")])
            await writer.drain()
            assert not writer.broken.is_set()
            writer.add([Chunk("out", "x")])
            await writer.broken.wait()
            writer.add([Chunk("out", "y" * (output.BUFFER_LIMIT + 1))])
            await writer.wait_for_capacity()
            await writer.drain()
            tasks.cancel_scope.cancel()
    assert isinstance(writer.error, BrokenPipeError)
