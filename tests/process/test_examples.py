"""The programs in `examples/` run without a key, print what they show, and are listed for readers."""

import re
import runpy
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PRINTED = {
    "stream_text": r"I look at the folder, .*\* write_file\n\+ hello\.txt\n.*completed after 1 turn\n",
    "approvals": r"the agent asks: change files .*\+Hello\.\n.*completed \['hello\.txt'\] 0 denied\n",
    "several_agents": r"(\[\w+\] write_file\n){3}\[english\] completed: .*\[french\] comp.*\[finnish\] comp",
    "cost": r"so far: \$0\.0042\n.*total: \$0\.0085 \(native\)\ntokens: 2500 in, 65 out\ncompleted\n",
    "resume": r"session \w+: 2 turns\nthe same session: True\na session of its own: True\n",
    "limits": r"timeout: the run exceeded its time limit of .* \(the run option timeout\)\naborted: .*\n",
    "late_readers": r"\d+ events, \d+ of them with text\nthe last two: \['turn_end', 'session_end'\]\nagain at",
    "blocking": r"allowed: change files .*\ncompleted: .*The task was: write a greeting\n",
}


MAX_SECONDS = 120
"""Limit of one program, far above what a busy machine needs."""


@pytest.fixture
def limited() -> Iterator[None]:
    """Raise `TimeoutError` in a test that takes longer than `MAX_SECONDS`."""

    def give_up(number: int, frame: object) -> None:
        raise TimeoutError(f"the example did not end within {MAX_SECONDS} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(MAX_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("name", PRINTED)
def test_example_runs_and_prints_what_it_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_MUX_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("AMUX_AGENT_HOME", str(tmp_path / "agent"))
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr()
    assert re.fullmatch(f"(?s)\\s*{PRINTED[name]}.*", printed.out), printed.out
    assert not printed.err


def test_every_example_is_tested_and_listed() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == set(PRINTED)
    for page in (EXAMPLES / "README.md", ROOT / "docs" / "how-to" / "use-from-python.md"):
        assert names == set(re.findall(r"\((?:\.\./\.\./examples/)?(\w+)\.py\)", page.read_text("utf-8"))), page
