"""Running the listing command of an agent: its output, and all errors."""

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.unit.models.known import agent, parse_listing, program

from agent_mux.errors import AgentMuxError, AuthError, CapabilityError
from agent_mux.models.ask_agent import ask_for_models
from agent_mux.sdk.models import ModelCapabilities, ModelListing

SOON = 20.0  # seconds: more than a busy machine takes to start a shell


def names(directory: Path, script: str, listing: ModelListing | None = None, timeout: float = SOON) -> list[str]:
    adapter = agent() if listing is None else agent(model_listing=listing)
    return [model.model_id for model in ask_for_models(adapter, program(directory, script), timeout=timeout)]


def code_of(directory: Path, script: str, timeout: float = SOON) -> tuple[str, str]:
    with pytest.raises(AgentMuxError) as raised:
        names(directory, script, timeout=timeout)
    return raised.value.code, raised.value.message


def test_listing_command_is_run(tmp_path: Path) -> None:
    assert names(tmp_path, 'echo "$@"; echo noise >&2') == ["models"]


def test_listing_can_be_on_stderr(tmp_path: Path) -> None:
    both = ModelListing(argv=(), parse=parse_listing, reads=("stdout", "stderr"), env={"TOY": "from-env"})
    assert names(tmp_path, "echo a; echo b >&2; echo $TOY >&2", both) == ["a", "b", "from-env"]


def test_standard_input_is_empty(tmp_path: Path) -> None:
    assert names(tmp_path, "cat; echo over") == ["over"]


@contextmanager
def held_open(pipe: Path) -> Iterator[str]:
    """Return shell code that opens a pipe, which stays open as long as a process of the command is alive."""
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield f"exec 9> {pipe}; echo opened >&9"
        assert select.select([reading], [], [], SOON)[0]
        assert os.read(reading, 100) == b"opened\n"
        assert select.select([reading], [], [], SOON)[0], "somebody still has it open"
        assert os.read(reading, 100) == b""
    finally:
        os.close(reading)


def test_remaining_processes_are_ended(tmp_path: Path) -> None:
    with held_open(tmp_path / "pipe") as opened:
        assert names(tmp_path, f"{opened}; sleep 300 & echo a") == ["a"]


@pytest.mark.slow
def test_timeout(tmp_path: Path) -> None:
    with held_open(tmp_path / "pipe") as opened:
        code, message = code_of(tmp_path, f"{opened}; sleep 300", timeout=1.5)
    assert (code, message) == ("TIMEOUT", "`toy models` did not end within 1.5 s; it was stopped")


def test_failed_command_raises_agent_crash(tmp_path: Path) -> None:
    assert code_of(tmp_path, "echo first; echo no account >&2; echo >&2; exit 3") == (
        "AGENT_CRASH", "`toy models` ended with exit code 3: no account",
    )  # fmt: skip
    assert code_of(tmp_path, "exit 3")[1].endswith("code 3: it printed no error message")


def test_error_output_is_redacted(tmp_path: Path) -> None:
    _, message = code_of(tmp_path, "echo refused sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789 >&2; exit 1")
    assert message.startswith("`toy models` ended with exit code 1: refused")
    assert "abcdefghijkl" not in message


def test_unparsable_output_raises_parse_error(tmp_path: Path) -> None:
    code, message = code_of(tmp_path, "echo nonsense")
    assert code == "PARSE_ERROR"
    assert message.startswith("cannot parse the output of `toy models`: it is nonsense; ")


def test_output_with_surrogates_raises_parse_error(tmp_path: Path) -> None:
    broken = ModelListing(argv=(), parse=lambda _: (ModelCapabilities(model_id="\ud800", provider="p"),))
    with pytest.raises(AgentMuxError, match="cannot parse the output") as raised:
        names(tmp_path, "true", broken)
    assert raised.value.code == "PARSE_ERROR"


def test_empty_listing_raises_auth_error(tmp_path: Path) -> None:
    with pytest.raises(AuthError, match="`toy models` lists no models"):
        names(tmp_path, "true")


def test_invalid_utf8_output_is_read(tmp_path: Path) -> None:
    assert names(tmp_path, r"printf 'a\377b\n'") == ["a\ufffdb"]


def test_missing_agent_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match="toy is not installed"):
        ask_for_models(agent(), {"PATH": str(tmp_path)}, timeout=SOON)


def test_file_that_is_not_a_program_raises_spawn_error(tmp_path: Path) -> None:
    environ = program(tmp_path, "")
    Path(environ["AMUX_TOY_EXECUTABLE"]).write_text("#!/no/such/interpreter\n")
    with pytest.raises(AgentMuxError) as raised:
        ask_for_models(agent(), environ, timeout=SOON)
    assert raised.value.code == "SPAWN_ERROR"
    assert "toy could not be started: its first line names the interpreter" in raised.value.message


def test_agent_without_listing_raises_capability_error(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="toy does not support listing its models"):
        ask_for_models(agent(model_listing=None), {}, timeout=SOON)
