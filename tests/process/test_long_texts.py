"""A text above the limit of its run: cut in events and in the result, and read whole from the journal."""

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from tests.process.scripted import MakeClient, ScriptedCodec

from agent_mux import encode_event, validate
from agent_mux.errors import AgentMuxError
from agent_mux.run.derivation import DerivedRun
from agent_mux.run.result import RunResult
from agent_mux.run.whole_text import WholeText

pytestmark = pytest.mark.anyio
LIMIT = 4096
LONG = """
read()
for number in range(300): emit(text=f"{number:09d}\\u20ac")
emit(over=True)
for number in range(300): emit(text=f"{number:09d}.")
emit(done=True)
drain()
"""
FIRST = "".join(f"{number:09d}\u20ac" for number in range(300))
WHOLE = FIRST + "\n\n" + "".join(f"{number:09d}." for number in range(300))


async def test_the_result_is_cut_and_the_whole_text_is_read_by_range(make_client: MakeClient) -> None:
    with anyio.fail_after(30):
        async with make_client(LONG) as mux:
            run = mux.run(prompt="hi", max_text_bytes=LIMIT, collect_events=True)
            result = await run
            whole = await run.read_text()
            part = await run.read_text(3000, 1500)
            nothing = await run.read_text(1 << 40, 5)
    assert result.exit_reason == "completed"
    assert WHOLE.startswith(result.text)
    assert result.truncated_bytes == len(WHOLE.encode()) - len(result.text.encode())
    assert len(result.text.encode()) <= LIMIT
    assert whole.decode() == WHOLE
    assert part == WHOLE.encode()[3000:4500]
    assert nothing == b""
    assert RunResult.from_dict(json.loads(json.dumps(result.to_dict()))).truncated_bytes == result.truncated_bytes
    assert result.events is not None
    assert not validate(result.events)


async def test_derived_events_and_results_are_cut_at_the_same_byte(make_client: MakeClient) -> None:
    with anyio.fail_after(30):
        async with make_client(LONG) as mux:
            run = mux.run(prompt="hi", max_text_bytes=LIMIT, collect_events=True)
            result = await run
    derived = DerivedRun(Path(run.journal or ""), ScriptedCodec)
    lines = [encode_event(event) for _, batch in derived.batches() for event in batch]
    assert result.events is not None
    assert lines == [encode_event(event) for event in result.events]
    assert derived.result().to_dict() == {name: value for name, value in result.to_dict().items() if name != "events"}


async def test_a_text_without_a_limit_is_whole(make_client: MakeClient) -> None:
    with anyio.fail_after(30):
        async with make_client(LONG, max_text_bytes=0) as mux:
            result = await mux.run(prompt="hi", stream=False)
            assert (result.text, result.truncated_bytes) == (WHOLE, None)
            result = await mux.run(prompt="hi", stream=False, max_text_bytes=LIMIT)
            assert WholeText(Path(result.journal or ""), ScriptedCodec).read().decode() == WHOLE
            assert result.truncated_bytes


async def test_a_run_without_a_journal_has_no_whole_text(make_client: MakeClient) -> None:
    with anyio.fail_after(30):
        async with make_client(LONG) as mux:
            run = mux.run(prompt="hi", max_text_bytes=LIMIT, journal=False)
            result = await run
            assert result.truncated_bytes
            with pytest.raises(AgentMuxError, match="no journal") as raised:
                await run.read_text()
    assert raised.value.code == "RUN_NOT_FOUND"


PROBE = """
import anyio, resource, sys
from pathlib import Path
from tests.process.scripted import scripted_adapter
from agent_mux import AgentMux
from agent_mux.sdk.registry import AdapterRegistry

BODY = '''
read()
for _ in range({count}): emit(text="x" * (1 << 20))
emit(done=True)
drain()
'''

async def main():
    adapters = AdapterRegistry()
    peaks = []
    for count in (4, 80):
        adapters = AdapterRegistry()
        adapters.register(scripted_adapter(BODY.format(count=count)))
        async with AgentMux(adapters=adapters, config_dir=Path(sys.argv[1]), default_agent="scripted") as mux:
            run = mux.run(prompt="hi", approval_mode="yolo")
            async for event in run:
                pass
            result = await run
            assert result.exit_reason == "completed", result
            assert len(result.text) + (result.truncated_bytes or 0) == count << 20
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    print(peaks[1] - peaks[0])
anyio.run(main)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_length_of_a_text(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROBE, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2], check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 40, f"{done.stdout} MiB more for 76 MiB of text"
