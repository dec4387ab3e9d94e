"""A secret that an agent streams in fragments: nothing that shows the run contains it, in any process."""

import json
import os
import sys
from pathlib import Path

import anyio
import pytest
from tests.process.scripted import MakeClient, ScriptedCodec, scripted_adapter
from tests.service.serving import serving
from tests.unit.redaction.key_samples import SAMPLES

from agent_mux import encode_event
from agent_mux.run.derivation import derive_events
from agent_mux.sdk.registry import AdapterRegistry

VALUE = "harmless-looking-but-s3cret"
KEY = SAMPLES["anthropic"]
BODY = f"""
sys.stdin.readline()
emit(session='S')
for character in 'keys {KEY} and ' + os.environ['MY_TOKEN'] + ' end':
    emit(text=character)
emit(done=True); drain()
"""
LATE_READER = """
import sys
from pathlib import Path
from tests.process.scripted import ScriptedCodec
from agent_mux import encode_event
from agent_mux.run.derivation import derive_events
for event in derive_events(Path(sys.argv[1]), ScriptedCodec):
    sys.stdout.buffer.write(encode_event(event) + b"\\n")
"""


@pytest.mark.anyio
async def test_late_reader_without_the_secrets_derives_the_same_bytes(make_client: MakeClient) -> None:
    with anyio.fail_after(60):
        async with make_client(BODY) as mux:
            run = mux.run(prompt="hi", env={"MY_TOKEN": VALUE}, event_buffer_size=5)
            live = [encode_event(event) async for event in run]
            result = await run
    assert run.journal is not None
    assert [encode_event(event) for event in derive_events(Path(run.journal), ScriptedCodec)] == live
    late = await anyio.run_process(
        [sys.executable, "-c", LATE_READER, str(run.journal)],
        cwd=Path(__file__).parents[2],
        env={"PATH": os.environ["PATH"]},
    )
    assert late.stdout.splitlines() == live
    shown = b"\n".join(live).decode()
    assert VALUE not in shown
    assert KEY[-12:] not in shown
    assert result.text.startswith("keys sk-ant-*1***")
    assert result.text.endswith("* end")
    assert len(result.text) == len(f"keys {KEY} and {VALUE} end")


def test_service_stores_and_shows_no_streamed_secret(tmp_path: Path) -> None:
    registry = AdapterRegistry()
    registry.register(scripted_adapter(BODY))
    project, directory = tmp_path / "project", tmp_path / "service"
    project.mkdir()
    with serving(directory, registry, roots=(project,)) as served:
        body = {"agent": "scripted", "prompt": "hi", "cwd": str(project), "env": {"MY_TOKEN": VALUE}}
        answer = served.http.post("/v1/runs", json=body)
        assert answer.status_code == 201, answer.text
        run_id = answer.json()["runId"]
        events = served.http.get(f"/v1/runs/{run_id}/events", params={"accumulated": "true"}).text
        view = served.http.get(f"/v1/runs/{run_id}").json()  # the stream of events ends with the run
        stored = b"".join(file.read_bytes() for file in directory.rglob("service.db*"))
    assert "session_end" in events
    assert view["result"]["text"].endswith("* end")
    shown = json.dumps(view) + events + stored.decode("utf-8", "replace")
    assert VALUE not in shown
    assert KEY[-12:] not in shown
