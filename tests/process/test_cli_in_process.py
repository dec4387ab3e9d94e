"""`amux run` inside the test process, for inspection and coverage."""

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
import pexpect
import pexpect.fdpexpect
import pytest
from tests.process.conversations import CHAT_AGENT
from tests.process.installed_command import PATIENCE, make_site

from agent_mux.cli import output
from agent_mux.cli.main import main
from agent_mux.cli.output import Chunk, OutputWriter, wait_until_reader_closes, write_all

HELLO = "read(); emit(session='S'); emit(text='hello '); emit(text='world'); emit(done=True); drain()"
ASK = (
    "read(); emit(session='S'); emit(ask='rm -rf /'); emit(text='it was ' + read()['answer']); emit(done=True); drain()"
)
QUESTION = "read(); emit(question='which?'); emit(text='so ' + read()['answer']); emit(done=True); drain()"
Amux = Callable[..., tuple[int, str, str]]


@pytest.fixture
def amux(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Amux]:
    monkeypatch.syspath_prepend(make_site(tmp_path / "site"))
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))  # not a terminal

    def call(*arguments: object, body: str = HELLO) -> tuple[int, str, str]:
        sys.modules.pop("scripted_agent", None)
        monkeypatch.setenv("SCRIPTED", body)
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
        return code, *capfd.readouterr()

    yield call
    sys.modules.pop("scripted_agent", None)


def test_answer_is_on_stdout_and_status_on_stderr(amux: Amux) -> None:
    code, out, err = amux("run", "scripted", "hi")
    assert (code, out) == (0, "hello world\n")
    assert err.startswith("scripted, session S\n+ completed 1 turn")


def test_json_output_ends_with_the_result(amux: Amux) -> None:
    code, out, err = amux("run", "scripted", "hi", "--json", "--compact")
    assert (code, err) == (0, "")
    assert json.loads(out.splitlines()[-1])["text"] == "hello world"


def test_quiet_prints_only_the_answer(amux: Amux) -> None:
    assert amux("run", "scripted", "hi", "--quiet") == (0, "hello world\n", "")


def test_requests_are_denied_without_a_terminal(amux: Amux) -> None:
    code, out, err = amux("run", "scripted", "hi", body=ASK)
    assert (code, out) == (0, "it was no\n")
    assert err.count("warning: no terminal to ask on") == 1
    assert amux("run", "scripted", "hi", "--yolo", "-q", body=ASK)[1] == "it was yes\n"


def test_record_writes_a_fixture_and_does_not_overwrite_it(amux: Amux, tmp_path: Path) -> None:
    code, _, err = amux("record", "scripted", "hi", "--to", tmp_path / "fixture")
    assert code == 0
    assert err.endswith(f"recorded in {tmp_path}/fixture\n")
    again, _, complaint = amux("record", "scripted", "hi", "--to", tmp_path / "fixture")
    assert again == 2
    assert "--force" in complaint


def test_recorded_demo_succeeds(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMUX_REPLAY_SPEED", "0")
    code, out, err = amux("demo", "--recorded")
    assert code == 0
    assert out
    assert "replay" in err


def test_sigterm_aborts_the_run_and_restores_the_handler(amux: Amux) -> None:
    body = "read(); emit(text='started'); os.kill(os.getppid(), signal.SIGTERM); drain(); time.sleep(600)"
    before = signal.getsignal(signal.SIGTERM)
    code, out, err = amux("run", "scripted", "hi", "--grace-period", "0.1", body=body)
    assert (code, out) == (13, "started\n")
    assert "SIGTERM: aborting the run" in err
    assert signal.getsignal(signal.SIGTERM) is before


def test_second_signal_kills_the_run(amux: Amux) -> None:
    body = "read(); emit(text='x'); [os.kill(os.getppid(), n) or emit(nothing=n) for n in (15, 2)]; time.sleep(600)"
    assert amux("run", "scripted", "hi", "--grace-period", "500", body=body)[0] == 13


class Typist:
    """A terminal for commands in this process, and a thread that types at it, because the command occupies this one."""

    def __init__(self) -> None:
        self._master, self.slave = pty.openpty()
        self._user = pexpect.fdpexpect.fdspawn(
            self._master, timeout=PATIENCE, encoding="utf-8", codec_errors="replace", use_poll=True
        )
        self._user.delaybeforesend = None
        self._thread: threading.Thread | None = None

    def type_in_order(self, *moves: tuple[str, str]) -> None:
        """Type each text once the text before it is displayed, and read until the terminal is closed."""

        def type_all() -> None:
            with suppress(pexpect.EOF):  # the command has exited
                for seen, typed in moves:
                    self._user.expect_exact(seen)
                    self._user.send(typed)
                self._user.expect(pexpect.EOF)

        self._thread = threading.Thread(target=type_all, daemon=True)
        self._thread.start()

    def wait_for(self, text: str) -> None:
        """Read the output up to this text."""
        self._user.expect_exact(text)

    @contextmanager
    def streams(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Make the terminal stdin and stderr. Not a fixture: pytest replaces these streams between phases."""
        with (
            open(self.slave, closefd=False) as keys,
            open(self.slave, "w", closefd=False) as screen,
            monkeypatch.context() as patch,
        ):
            patch.setattr(sys, "stdin", keys)
            patch.setattr(sys, "stderr", screen)
            yield

    def close(self) -> None:
        os.close(self.slave)
        if self._thread is not None:
            self._thread.join(PATIENCE)
            assert not self._thread.is_alive(), "some text did not appear"
        os.close(self._master)


@pytest.fixture
def terminal() -> Iterator[Typist]:
    typist = Typist()
    yield typist
    typist.close()


@pytest.mark.parametrize(
    ("body", "after", "typed", "expected"),
    [
        (ASK, "lways? ", "y\n", "it was yes\n"),
        (ASK, "lways? ", "perhaps\na\n", "it was yes\n"),
        (ASK, "lways? ", "n too risky\n", "it was no\n"),
        (ASK, "lways? ", "\x04", "it was no\n"),
        (QUESTION, "> ", "2\n", "so blue\n"),
        (QUESTION, "> ", "\nmauve\n", "so mauve\n"),
        (QUESTION.replace("which?", "choice"), "> ", "mauve\nred\n", "so red\n"),  # the agent refuses mauve
    ],
)
def test_terminal_input_answers_requests(
    amux: Amux,
    terminal: Typist,
    monkeypatch: pytest.MonkeyPatch,
    body: str,
    after: str,
    typed: str,
    expected: str,
) -> None:
    terminal.type_in_order((after, typed))
    with terminal.streams(monkeypatch):
        code, out, _ = amux("run", "scripted", "hi", "-q", body=body)
    assert (code, out) == (0, expected)


@pytest.mark.slow
def test_unanswered_request_is_withdrawn_at_the_timeout(
    amux: Amux, terminal: Typist, monkeypatch: pytest.MonkeyPatch
) -> None:
    with terminal.streams(monkeypatch):
        # Long enough for the agent to start and to ask on a busy machine.
        assert amux("run", "scripted", "hi", "-q", "--timeout", "5", "--grace-period", "0.1", body=ASK)[0] == 11
    terminal.wait_for("(no longer needed)")


# -- conversations


@pytest.mark.slow
def test_interactive_commands_at_a_terminal(amux: Amux, terminal: Typist, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    before = termios.tcgetattr(terminal.slave)
    terminal.type_in_order(
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
    with terminal.streams(monkeypatch):
        code, out, _ = amux("run", "-i", "scripted", "--no-color", "--timeout", PATIENCE, body=CHAT_AGENT)
    assert termios.tcgetattr(terminal.slave) == before
    assert code == 0
    assert [line for line in out.splitlines() if line] == [
        "echo hello", "echo now", "echo later", "it was yes", "working", "echo bye",
    ]  # fmt: skip


def test_interactive_commands_as_json_lines(amux: Amux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text(
        'hello\n{\n\n{"type":"steer","text":"never mind"}\n{"type":"queue","text":"later"}\n{"type":"status"}\n'
        '{"type":"pause"}\n{"type":"resume"}\n{"type":"deny","interactionId":"x"}\n'
        '{"type":"answer","interactionId":"x","option":1}\n{"type":"approve","interactionId":"x"}\n'
    )
    with lines.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        code, out, err = amux("run", "-i", "scripted", "--json", "--compact", body=CHAT_AGENT)
    printed = [json.loads(line) for line in out.splitlines()]
    assert (code, err, printed[-1]["text"]) == (0, "", "echo later")
    assert [line.get("command") for line in printed if line["type"] == "command_error"] == [
        None, "steer", "deny", "answer", "approve",
    ]  # fmt: skip
    assert [line["command"] for line in printed if line["type"] == "ack"] == [
        "prompt", "queue", "status", "pause", "resume",
    ]  # fmt: skip


# -- writing


@pytest.mark.anyio
async def test_closed_pipe_reader_is_detected_without_writing(anyio_backend: str) -> None:
    reader, writer = os.pipe()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_until_reader_closes, writer)
            os.close(reader)
    os.close(writer)


@pytest.mark.anyio
async def test_file_never_reports_a_closed_reader(anyio_backend: str, tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, anyio.move_on_after(0.05) as waited:
        await wait_until_reader_closes(file.fileno())
    assert waited.cancelled_caught


def test_write_all_handles_non_blocking_descriptors() -> None:
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
async def test_output_keeps_order_merges_chunks_and_waits_for_capacity(
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
async def test_broken_stdout_discards_output_and_blocks_no_writer(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(descriptor: int, data: bytes) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(output, "write_all", broken)
    writer = OutputWriter()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            writer.add([Chunk("err", "a broken stderr does not stop the writer")])
            await writer.drain()
            assert not writer.broken.is_set()
            writer.add([Chunk("out", "x")])
            await writer.broken.wait()
            writer.add([Chunk("out", "y" * (output.BUFFER_LIMIT + 1))])
            await writer.wait_for_capacity()
            await writer.drain()
            tasks.cancel_scope.cancel()
    assert isinstance(writer.error, BrokenPipeError)
