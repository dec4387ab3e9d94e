"""`amux record` of an agent that asks: the options of `amux run` decide, and the recording contains the answer."""

import inspect
import json
from pathlib import Path

import pytest
from tests.process.installed_command import Installed

from agent_mux.cli.recording_commands import record
from agent_mux.cli.run_commands import run
from agent_mux.cli.run_flags import SERVICE_FLAGS

ASKING = """
emit(session="S1")
read()
emit(ask="rm -r build")
emit(text=str(read()))
emit(done=True)
drain()
"""
POLICY = '[[rules]]\ndecision = "{decision}"\ncommands = ["rm"]\n'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "answer"),
    [
        (("--yolo",), "yes"),
        (("--deny",), "no"),
        (("--policy", "allow.toml"), "yes"),
        (("--policy", "deny.toml"), "no"),
        (("--non-interactive",), "no"),
    ],
)
def test_answer_is_in_the_recording(tmp_path: Path, flags: tuple[str, ...], answer: str) -> None:
    installed = Installed(tmp_path)
    for decision in ("allow", "deny"):
        (installed.home / f"{decision}.toml").write_text(POLICY.format(decision=decision))
    done = installed.run("record", "scripted", "hi", "--to", tmp_path / "asking", *flags, body=ASKING)
    assert done.returncode == 0, done.stderr
    sent = [json.loads(line) for line in (tmp_path / "asking/stdin.jsonl").read_text("utf-8").splitlines()]
    assert sent == [{"prompt": True}, {"answer": answer}]


def test_record_has_every_option_of_run_except_those_of_a_service() -> None:
    of_run, of_record = (set(inspect.signature(one).parameters) for one in (run, record))
    assert of_run - of_record == set(SERVICE_FLAGS)
