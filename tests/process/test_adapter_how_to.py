"""The walk-through of docs/how-to/write-an-adapter: its agent, adapter and commands work as written."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from tests.process.installed_command import AMUX

from agent_mux import AgentMux, validate
from agent_mux.events import MessageStopEvent
from agent_mux.run.transcripts import parse_transcript, read_transcript
from agent_mux_testing.conformance import Recorded
from agent_mux_testing.conformance.checks import check_conforms, check_golden, check_is_understood
from agent_mux_testing.fixtures import load_fixture
from agent_mux_testing.recorder import save_run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/write-an-adapter/README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python(?: \w+)?\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
AGENT = next(block for block in BLOCKS if block.startswith("#!"))
ADAPTER = "\n\n".join(
    next(block for block in BLOCKS if marker in block)
    for marker in ("class YourCodec:", "class YourTwoWayCodec(", "ADAPTER = Adapter(")
)
SUITE = next(block for block in BLOCKS if "AdapterConformance" in block)
LIMIT = 60  # seconds for a command on a busy machine


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the program and the installed package of the page."""
    program = tmp_path / "bin" / "youragent"
    program.parent.mkdir()
    program.write_text(AGENT.replace("/usr/bin/env python3", sys.executable))
    program.chmod(0o755)
    package = tmp_path / "site" / "your_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(ADAPTER)
    installed = tmp_path / "site" / "your_package-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: your-package\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[agent_mux.adapters]\nyouragent = your_package:ADAPTER\n")
    return tmp_path


@pytest.fixture
def mux(project: Path, monkeypatch: pytest.MonkeyPatch) -> AgentMux:
    """Return a client that knows the agent of the page."""
    names = SimpleNamespace(scope={"__name__": "your_package"})
    exec(compile(ADAPTER, "write-an-adapter/README.md", "exec"), names.scope)  # noqa: S102  # our own docs
    monkeypatch.setenv("AMUX_YOURAGENT_EXECUTABLE", str(project / "bin" / "youragent"))
    mux = AgentMux(config_dir=project / "config")
    mux.adapters.register(names.scope["ADAPTER"])
    return mux


def run_command(project: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        **os.environ,
        "HOME": str(project),
        "AGENT_MUX_CONFIG_DIR": str(project / "config"),
        "PATH": f"{project / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(project / "site"),
    }
    return subprocess.run(
        command, cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
        check=False,
    )  # fmt: skip


def commands_of_page(program: str) -> list[list[str]]:
    """Return the commands of the page that start with this program and name the scripted agent."""
    lines = re.findall(rf"^\$ ({program} [^#\n]*\byouragent\b[^#\n]*)", PAGE, re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_the_page_runs_and_records_the_scripted_agent() -> None:
    assert {tuple(command[:2]) for command in commands_of_page("amux")} == {("amux", "run"), ("amux", "record")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [words for words in commands_of_page("amux") if "--interactive" not in words], ids=" ".join
)
def test_each_command_of_the_page_delivers_its_prompt(project: Path, words: list[str]) -> None:
    done = run_command(project, str(AMUX), *words[1:])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "You wrote: hello\n"


@pytest.mark.slow
def test_recording_of_the_page_passes_the_suite_of_the_page(project: Path) -> None:
    (record,) = (words for words in commands_of_page("amux") if words[1] == "record")
    assert run_command(project, str(AMUX), *record[1:]).returncode == 0
    folder = project / record[record.index("--to") + 1]
    recorded = load_fixture(folder)
    assert (recorded.agent, recorded.version, recorded.protocol) == ("youragent", "1.2.3", "one-shot")
    (project / "tests").mkdir()
    (project / "tests" / "test_yours.py").write_text(SUITE.replace("amux_qwen", "your_package"))
    done = run_command(project, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert done.returncode == 0, done.stdout


@pytest.mark.anyio
async def test_first_prompt_of_a_two_way_protocol_reaches_the_agent(mux: AgentMux, tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    with anyio.fail_after(LIMIT):
        async with mux:
            run = mux.run(agent="youragent", prompt="first", approval_mode="yolo", interactive=True, journal=journal)
            answers: list[str] = []
            async for event in run.events():
                if isinstance(event, MessageStopEvent):
                    answers.append(event.text)
                    await (run.send("second") if len(answers) == 1 else run.close())
            assert (await run).exit_reason == "completed"
    assert answers == ["You wrote: first", "You wrote: second"]
    adapter = mux.adapters.get("youragent")
    recorded = Recorded(adapter, save_run(journal, tmp_path / "two_prompts", adapter, version="1.2.3"))
    assert recorded.fixture.stdin == (b'{"prompt": "first"}', b'{"prompt": "second"}')
    assert [*check_is_understood(recorded), *check_conforms(recorded), *check_golden(recorded)] == []


def test_adapter_of_the_page_yields_conforming_events(mux: AgentMux) -> None:
    native = (
        b'{"type":"session","id":"s"}\n{"type":"text","delta":"hi"}\nnoise\n{"type":"heartbeat"}\n{"type":"done"}\n'
    )
    events = list(parse_transcript(mux.adapters.get("youragent"), read_transcript(native)))
    assert validate(events) == []
    assert [event.type for event in events if event.type.startswith("text")] == ["text_delta"]
