"""No secret of an agent appears in journals, events, results or output."""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest
from tests.process.installed_command import Installed
from tests.process.scripted import MakeClient, ScriptedCodec, scripted_adapter
from tests.unit.redaction.key_samples import KEY_LINES, PRIVATE_KEY, SAMPLES, UP

from agent_mux import AgentMux, Approve, McpServer, encode_event
from agent_mux.journal.file import JournalReader
from agent_mux.process.marker import processes_of
from agent_mux.run.derivation import derive_events
from agent_mux.sdk import codec, facts
from agent_mux.sdk.codec import CloseStdin, CodecOutput, Source, WriteStdin
from agent_mux.sdk.registry import AdapterRegistry

pytestmark = pytest.mark.anyio

OWN = {
    "OWN_API_KEY": "own-k3y-of-the-run",
    "QUOTED_PASSWORD": 'pa"ss \\w0rd of it',
    "FOREIGN_SECRET": "gehe1m-äöü-wört",
    "DATABASE_URL": "postgres://me:dat4base-pass@db/x",
    "SIGNING_KEY": PRIVATE_KEY,
}
INHERITED = {"INHERITED_TOKEN": "inher1ted-token-of-us"}
SERVERS = (
    McpServer("tools", command="x", args=("--api-key", "mcp-arg-s3cret"), env={"MCP_SECRET": "mcp-env-s3cret"}),
    McpServer(
        "web", "sse", url="https://u:mcp-url-s3cret@h/x?key=mcp-query-s3cret", headers={"X-Auth": "mcp-header-s3cret"}
    ),
)
OF_SERVERS = ["mcp-arg-s3cret", "mcp-env-s3cret", "mcp-url-s3cret", "mcp-query-s3cret", "mcp-header-s3cret"]
PROMPTED = SAMPLES["github"]

ECHO = """
import base64
def out(stream, text, size):
    data = text.encode()
    for at in range(0, len(data), size):
        os.write(stream, data[at:at + size])
        if size < 8: time.sleep(0.0002)
line = sys.stdin.readline()
emit(session='S')
for secret in json.loads(base64.b64decode(os.environ['PLANTED'])):
    for size in SIZES:
        out(1, json.dumps({'text': ' got ' + secret + ' '}) + '\\n', size)
        out(1, 'noise ' + secret + ' noise\\n', size)
        out(2, 'cannot use ' + secret + '\\n', size)
"""
DONE = "emit(done=True); drain()"


@dataclass
class Planted:
    """The secrets that must not be found, and the texts to search."""

    secrets: list[str]
    shown: dict[str, str] = field(default_factory=dict)

    def add_text(self, place: str, text: str) -> None:
        self.shown[place] = text

    def add_file(self, path: Path) -> None:
        self.add_text(path.name, path.read_bytes().decode("utf-8", "replace"))

    def check(self) -> None:
        words = {word for secret in self.secrets for word in (*KEY_LINES, *_spelled(secret))} - {""}
        found = {(place, word) for place, text in self.shown.items() for word in words if word in text}
        assert found == set()


def _spelled(secret: str) -> list[str]:
    return [] if "\n" in secret else [secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]]


def planted(of_servers: list[str]) -> Planted:
    shaped = [sample for name, sample in SAMPLES.items() if name not in {"assignment", "url", "header", "aws secret"}]
    known = [*OWN.values(), "dat4base-pass", *INHERITED.values(), *of_servers]
    return Planted([*known, *shaped, "https://me:" + UP[:12] + "@example.com"])


def environment(secrets: list[str]) -> dict[str, str]:
    return {**OWN, "PLANTED": base64.b64encode(json.dumps(secrets).encode()).decode()}


@pytest.mark.slow
@pytest.mark.parametrize("sizes", ["(1,)", "(3, 50, 100000)"])
async def test_journal_events_and_result_contain_no_secret(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, sizes: str
) -> None:
    for name, value in INHERITED.items():
        monkeypatch.setenv(name, value)
    secrets = planted(OF_SERVERS)
    body = ECHO.replace("SIZES", sizes) + "sys.stderr.write('last: ' + os.environ['OWN_API_KEY']); sys.exit(7)"
    with anyio.fail_after(60):
        async with make_client(body) as mux:
            run = mux.run(
                prompt="hi", env=environment(secrets.secrets), mcp_servers=SERVERS, event_buffer_size=5,
                collect_events=True, tags=[OWN["OWN_API_KEY"]], debug=True,
            )  # fmt: skip
            live = [encode_event(event) async for event in run]
            result = await run
    assert result.exit_reason == "crashed"
    assert run.journal is not None
    assert result.error is not None
    assert result.error.stderr.endswith("***")
    assert [encode_event(event) for event in derive_events(Path(run.journal), ScriptedCodec)] == live
    assert [encode_event(event) for event in result.events or ()] == live
    texts = [json.loads(line)["delta"] for line in live if b'"text_delta"' in line]
    assert len(texts) == len(secrets.secrets) * len(json.loads(f"[{sizes.strip('(),')}]"))
    assert all(text.startswith(" got ") and text.endswith(" ") for text in texts)
    secrets.add_file(Path(run.journal))
    secrets.add_text("events", b"\n".join(live).decode())
    secrets.add_text("result", json.dumps(result.to_dict(), ensure_ascii=False) + repr(result) + repr(run))
    secrets.check()


async def test_secret_in_a_prompt_reaches_only_the_agent(make_client: MakeClient) -> None:
    body = """
read()
emit(session='S')
line = json.loads(sys.stdin.readline())
emit(text='echo ' + line['send'])
emit(text=' and it is ' + str(line['send'] == 'use ' + 'ghp_' + os.environ['REST']))
emit(ask='curl -H ' + line['send'])
emit(text=read()['answer'])
emit(done=True)
drain()
"""
    with anyio.fail_after(30):
        async with make_client(body) as mux:
            run = mux.run(prompt=f"keep {PROMPTED}", interactive=True, env={"REST": PROMPTED[4:]})
            await run.send(f"use {PROMPTED}")
            async for event in run:
                if event.type == "approval_request":
                    assert PROMPTED not in event.detail
                    await run.interaction.respond(event.interaction_id, Approve())
                elif event.type == "turn_end":
                    await run.close()
            result = await run
            live = [encode_event(event) async for event in run]
    assert result.exit_reason == "completed"
    assert " and it is True" in result.text
    assert run.journal is not None
    assert [encode_event(event) for event in derive_events(Path(run.journal), ScriptedCodec)] == live
    found = Planted([PROMPTED])
    found.add_file(Path(run.journal))
    found.add_text("events", b"\n".join(live).decode())
    found.add_text("result", str(result.to_dict()))
    found.check()


@pytest.mark.slow
async def test_unterminated_line_is_kept(make_client: MakeClient) -> None:
    """Test this with a stream that a child process holds open after the agent's exit."""
    body = """
read()
os.write(1, b'{"text": "ghp_abc')
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)
sys.exit(3)
"""
    with anyio.fail_after(30):
        async with make_client(body) as mux:
            run = mux.run(prompt="hi")
            await run
    assert run.journal is not None
    printed = b"".join(
        record.payload for record in JournalReader(Path(run.journal)).read() if record.kind.value == b"O"
    )
    assert printed == b'{"text": "ghp_abc'
    assert processes_of(run.run_id) == []


@pytest.mark.slow
def test_command_line_output_contains_no_secret(tmp_path: Path) -> None:
    secrets = planted([])
    installed = Installed(tmp_path)
    body = ECHO.replace("SIZES", "(3,)") + DONE
    given = [word for name, value in environment(secrets.secrets).items() for word in ("--env", f"{name}={value}")]
    environ = {**INHERITED, **OWN}
    for flags in ([], ["--json"], ["--debug"]):
        done = installed.run("run", "scripted", "hi", *flags, *given, body=body, **environ)
        assert done.returncode == 0, done.stderr
        secrets.add_text(f"stdout of {flags}", done.stdout)
        secrets.add_text(f"stderr of {flags}", done.stderr)
    wrong = installed.run("run", "scripted", OWN["OWN_API_KEY"], "--model", "x", "--timeout", "-1", "--session",
                          PROMPTED, "--fork", OWN["OWN_API_KEY"], body=body, **environ)  # fmt: skip
    assert wrong.returncode == 2
    secrets.add_text("error", wrong.stdout + wrong.stderr)
    secrets.secrets.append(PROMPTED)
    wrong = installed.run("run", PROMPTED, "hi", "--debug", body=body, **environ)
    secrets.add_text("other error", wrong.stdout + wrong.stderr)
    assert "ghp_*" in wrong.stderr
    for journal in tmp_path.rglob("*.journal"):
        secrets.add_file(journal)
    assert any(place.endswith(".journal") for place in secrets.shown)
    secrets.check()


class ChunkCodec(ScriptedCodec):
    """A codec of a protocol without lines: output is text, and sent text is typed."""

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        done = (facts.TextEnd(), facts.TurnDone(), CloseStdin()) if b"bye" in line else ()
        return (facts.TextDelta(line.decode("utf-8", "replace")), *done)

    def request(self, action: codec.AnyAction) -> Iterable[CodecOutput]:
        return (WriteStdin(action.text.encode() + b"\n"),) if isinstance(action, codec.Send) else ()


async def test_end_of_a_chunk_is_held_back_only_briefly(tmp_path: Path) -> None:
    """An agent may wait for input after output that looks like the start of a key. Values are typed unchanged."""
    body = """
sys.stdin.readline()
os.write(1, b"name it: ghp_abc")
line = sys.stdin.readline()
os.write(1, b" equal " + str(line.strip() == os.environ["OWN_SECRET"]).encode() + b" bye ")
drain()
"""
    adapter = scripted_adapter(body)
    protocol = replace(adapter.protocols["lines"], codec=ChunkCodec, framing="chunks")
    registry = AdapterRegistry()
    registry.register(replace(adapter, protocols={"lines": protocol}))
    own = OWN["QUOTED_PASSWORD"]
    with anyio.fail_after(20):
        async with AgentMux(adapters=registry, default_agent="scripted", config_dir=tmp_path) as mux:
            run = mux.run(prompt="hi", env={"OWN_SECRET": own})
            run.on("text_delta", lambda event: asked.set() if event.accumulated.endswith("ghp_abc") else None)
            asked = anyio.Event()
            await asked.wait()
            await run.send(own)
            result = await run
    assert result.text == "name it: ghp_abc equal True bye "
    found = Planted([own])
    assert run.journal is not None
    found.add_file(Path(run.journal))
    found.check()
