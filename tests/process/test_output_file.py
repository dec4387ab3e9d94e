"""Standard output as a file, for programs that exit before a pipe has taken all their output."""

import json

import anyio
import pytest
from tests.process.scripted import MakeClient
from tests.process.test_runs import run_to_end, watch

from agent_mux import Approve
from agent_mux.run.environment import temp_dir_of

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]

EXITS_EARLY = """
read(); emit(session="S")
os.set_blocking(1, False)
data = b"".join(json.dumps({"text": "x" * 1_000_000}).encode() + b"\\n" for _ in range(3)) + b'{"done": true}\\n'
try: os.write(1, data)
except BlockingIOError: pass
os._exit(0)
"""
"""A program as Node runs it: `process.exit()` drops what a pipe has not taken."""


async def test_output_is_complete_although_the_program_exits_at_once(make_client: MakeClient) -> None:
    _, result = await run_to_end(lambda body: make_client(body, stdout="file"), EXITS_EARLY)
    assert (result.exit_reason, len(result.text)) == ("completed", 3_000_000)


async def test_events_arrive_while_the_file_grows(make_client: MakeClient) -> None:
    body = "read(); emit(ask='it'); emit(text=read()['answer']); emit(done=True); drain()"
    with anyio.fail_after(20):
        async with make_client(body, stdout="file") as mux:
            _, result = await watch(mux.run(prompt="hi", on_approval_request=lambda _: Approve()))
    assert (result.exit_reason, result.text) == ("completed", "yes")


@pytest.mark.slow
async def test_output_of_a_process_that_outlives_the_agent_is_read_to_its_end(make_client: MakeClient) -> None:
    body = """
read(); emit(session="S"); emit(text="a"); emit(done=True)
subprocess.Popen([sys.executable, "-c", "import time; print('{\\"nothing\\": 1}', flush=True); time.sleep(1000)"])
os._exit(0)
"""
    _, result = await run_to_end(lambda body: make_client(body, stdout="file"), body)
    assert (result.exit_reason, result.text) == ("completed", "a")


async def test_file_is_private_and_has_no_name(make_client: MakeClient) -> None:
    body = "read(); s = os.fstat(1); emit(text=json.dumps([oct(s.st_mode), s.st_nlink])); emit(done=True); drain()"
    _, result = await run_to_end(lambda body: make_client(body, stdout="file"), body)
    assert json.loads(result.text) == ["0o100600", 0]
    assert not temp_dir_of(result.run_id).exists()
