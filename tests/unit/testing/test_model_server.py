"""The scripted model over HTTP, with requests like those of real CLIs. `serving` bounds every test."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent_mux_testing import model_server
from agent_mux_testing.model_server import (
    ChosenStep,
    HttpError,
    RequestContent,
    Script,
    ScriptedModelServer,
    ScriptMessage,
    ScriptReasoning,
    ScriptStep,
    ScriptText,
    ToolUse,
    load_script,
    parse_script,
    say,
)

pytestmark = pytest.mark.anyio
BOUND = 60.0
TOOLS = [{"name": "Bash"}]
FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Client:
    """Sends requests to one server; returns streams as (name, data) pairs."""

    def __init__(self, session: aiohttp.ClientSession, server: ScriptedModelServer) -> None:
        self.session, self.server = session, server

    async def stream(self, path: str, **body: Any) -> list[tuple[str, dict[str, Any]]]:
        async with self.session.post(self.server.url + path, json={"stream": True, "model": "m", **body}) as response:
            assert response.status == 200, await response.text()
            return [event async for event in events_of(response)]

    async def messages(self, text: str = "hi", **body: Any) -> list[tuple[str, dict[str, Any]]]:
        return await self.stream("/v1/messages", messages=[user(text)], **{"tools": TOOLS, **body})

    async def responses(self, text: str = "hi", **body: Any) -> list[tuple[str, dict[str, Any]]]:
        return await self.stream("/v1/responses", **{"input": [user(text)], **body})

    async def post(self, path: str, **body: Any) -> tuple[int, Any]:
        async with self.session.post(self.server.url + path, json=body) as response:
            return response.status, await response.json()


async def events_of(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    name = ""
    async for line in response.content:
        field, _, value = line.decode().rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@contextlib.asynccontextmanager
async def serving(script: Any, **options: Any) -> AsyncIterator[Client]:
    async with (
        asyncio.timeout(BOUND),
        ScriptedModelServer(script, **options) as server,
        aiohttp.ClientSession() as session,
    ):
        yield Client(session, server)


def text_of(events: list[tuple[str, dict[str, Any]]]) -> str:
    deltas = (data["delta"] for _, data in events if "delta" in data)
    return "".join(delta if isinstance(delta, str) else delta.get("text", "") for delta in deltas)


# The Messages API


class CountingModel:
    """A model that computes each answer from the request."""

    unused = ()

    def choose(self, content: RequestContent, *, aux: bool) -> ChosenStep:
        count = len(json.loads(content.whole))
        return ChosenStep(say(f"{count} messages{', no tools' if aux else ''}"), count)


async def test_source_of_answers_reacts_to_requests() -> None:
    async with serving(CountingModel()) as client:
        bodies = [
            {"messages": [user("a")] * count, "tools": tools} for count, tools in ((1, TOOLS), (2, TOOLS), (2, []))
        ]
        answers = [(await client.post("/v1/messages", **body))[1]["content"][0]["text"] for body in bodies]
        steps = [request.step for request in client.server.requests]
    assert answers == ["1 messages", "2 messages", "2 messages, no tools"]
    assert steps == [1, 2, 2]


async def test_text_is_streamed_in_pieces_between_start_and_stop() -> None:
    async with serving({"steps": [{"blocks": [{"type": "text", "text": "Hello you"}]}]}) as client:
        events = await client.messages()
    assert [name for name, _ in events] == [
        "message_start",
        "ping",
        "content_block_start",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert text_of(events) == "Hello you"
    assert events[-2][1]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}


async def test_tool_use_streams_its_input_and_stops_for_the_tool() -> None:
    script = Script(steps=(ScriptStep(blocks=(ToolUse("Bash", {"command": "echo hi"}),)),))
    async with serving(script) as client:
        events = await client.messages()
    block = events[2][1]["content_block"]
    assert block["id"].startswith("toolu_")
    assert block == {"type": "tool_use", "id": block["id"], "name": "Bash", "input": {}}
    streamed = "".join(data["delta"]["partial_json"] for name, data in events if name == "content_block_delta")
    assert json.loads(streamed) == {"command": "echo hi"}
    assert events[-2][1]["delta"]["stop_reason"] == "tool_use"


async def test_broken_tool_input_is_streamed_as_it_is() -> None:
    script = {"steps": [{"blocks": [{"type": "tool_use", "name": "Bash", "raw_input": '{"a": '}], "pieces": 1}]}
    async with serving(script) as client:
        events = await client.messages()
    assert events[3][1]["delta"]["partial_json"] == '{"a": '


async def test_thinking_is_signed_and_opaque_blocks_go_through() -> None:
    result = {"type": "web_search_tool_result", "tool_use_id": "x", "content": []}
    script = {"steps": [{"blocks": [{"type": "thinking", "thinking": "hm"}, result]}]}
    async with serving(script) as client:
        events = await client.messages()
    deltas = [data["delta"]["type"] for name, data in events if name == "content_block_delta"]
    assert deltas == ["thinking_delta", "thinking_delta", "signature_delta"]
    assert result in [data["content_block"] for name, data in events if name == "content_block_start"]


async def test_usage_starts_with_one_output_token_and_ends_with_the_scripted_ones() -> None:
    script = {"steps": [{"blocks": [], "usage": {"input_tokens": 7, "output_tokens": 9}}]}
    async with serving(script) as client:
        events = dict(await client.messages())
    assert events["message_start"]["message"]["usage"]["output_tokens"] == 1
    assert events["message_start"]["message"]["usage"]["input_tokens"] == 7
    assert events["message_delta"]["usage"]["output_tokens"] == 9


async def test_a_request_without_stream_gets_one_message() -> None:
    async with serving(Script(steps=(say("Hello"),))) as client:
        status, message = await client.post("/v1/messages", messages=[user("hi")], tools=TOOLS, model="m")
    assert status == 200
    assert message["content"] == [{"type": "text", "text": "Hello"}]
    assert message["stop_reason"] == "end_turn"


async def test_requests_without_tools_leave_the_steps_alone() -> None:
    script = {"steps": [{"blocks": [{"type": "text", "text": "main"}]}]}
    async with serving({**script, "aux": {"blocks": [{"type": "text", "text": "title"}]}}) as client:
        assert text_of(await client.messages(tools=[])) == "title"
        assert text_of(await client.messages()) == "main"
        assert [request.kind for request in client.server.requests] == ["aux", "messages"]
        assert [request.step for request in client.server.requests] == [None, 0]


async def test_aux_steps_are_for_aux_requests_only() -> None:
    script = {"steps": [{"is_aux": True, "when": "weather", "blocks": [{"type": "text", "text": "sunny"}]}]}
    async with serving(script) as client:
        assert text_of(await client.messages("the weather")) == "(script exhausted)"
        assert text_of(await client.messages("the weather", tools=[])) == "sunny"


async def test_tokens_can_be_counted() -> None:
    async with serving({}) as client:
        assert await client.post("/v1/messages/count_tokens", messages=[]) == (200, {"input_tokens": 123})


async def test_an_error_event_ends_the_stream() -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    async with serving({"steps": [{"blocks": [{"type": "text", "text": "x"}], "sse_error": overloaded}]}) as client:
        events = await client.messages()
    assert events[-1] == ("error", overloaded)


# The Responses API


async def test_items_are_streamed_with_running_numbers() -> None:
    script = Script(steps=(ScriptStep(items=(ScriptReasoning("Think"), ScriptMessage("Hello", phase="final_answer"))),))
    async with serving(script) as client:
        events = await client.responses()
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    assert [name for name, _ in events if name.endswith("item.done")] == ["response.output_item.done"] * 2
    name, data = events[-1]
    assert name == "response.completed"
    assert [item["type"] for item in data["response"]["output"]] == ["reasoning", "message"]
    assert data["response"]["output"][1]["phase"] == "final_answer"
    assert data["response"]["usage"]["total_tokens"] == 120


async def test_calls_carry_arguments_namespace_and_free_text() -> None:
    call = {"type": "function_call", "name": "echo", "namespace": "mcp__echo", "arguments": {"text": "ping"}}
    patch = {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch"}
    search = {"type": "web_search_call", "status": "completed", "action": {"query": "q"}}
    async with serving({"steps": [{"items": [call, patch, search]}]}) as client:
        events = await client.responses()
    done = [data["item"] for name, data in events if name == "response.output_item.done"]
    assert json.loads(done[0]["arguments"]) == {"text": "ping"}
    assert done[0]["namespace"] == "mcp__echo"
    assert done[1]["input"] == "*** Begin Patch"
    assert done[2]["action"] == {"query": "q"}


@pytest.mark.parametrize(
    ("ending", "name"),
    [
        ({"failed": {"code": "insufficient_quota", "message": "no"}}, "response.failed"),
        ({"incomplete": {"reason": "max_output_tokens"}}, "response.incomplete"),
    ],
)
async def test_a_response_can_end_badly(ending: dict[str, Any], name: str) -> None:
    async with serving({"steps": [{"items": [], **ending}]}) as client:
        events = await client.responses()
    assert events[-1][0] == name


async def test_a_response_without_stream_comes_whole() -> None:
    async with serving(Script(steps=(say("Hello"),))) as client:
        status, response = await client.post("/v1/responses", input="hi", model="m")
    assert (status, response["status"]) == (200, "completed")
    assert response["output"][0]["content"][0]["text"] == "Hello"


async def test_patterns_are_filled_in_from_the_conversation() -> None:
    arguments = '{"session_id":{{re:session ID (\\d+)}}}'
    script = {"steps": [{"items": [{"type": "function_call", "name": "write_stdin", "arguments": arguments}]}]}
    async with serving(script) as client:
        events = await client.responses("session ID 12, then session ID 34")
    assert events[-1][1]["response"]["output"][0]["arguments"] == '{"session_id":34}'


# Which step answers


async def test_steps_come_in_order_repeat_and_run_out() -> None:
    script = Script(
        steps=(
            ScriptStep(blocks=(ScriptText("twice"),), repeat=2),
            ScriptStep(blocks=(ScriptText("for bananas"),), when="banana"),
            ScriptStep(blocks=(ScriptText("sub-agent"),), first="SUBTASK", repeat=True),
        )
    )
    async with serving(script) as client:
        answers = [text_of(await client.messages(text)) for text in ("a", "b", "c", "banana", "SUBTASK", "SUBTASK")]
        assert client.server.unused_steps == ()
    assert answers == ["twice", "twice", "(script exhausted)", "for bananas", "sub-agent", "sub-agent"]


async def test_a_step_can_be_for_one_model() -> None:
    async with serving(Script(steps=(ScriptStep(blocks=(ScriptText("big"),), model="^opus"),))) as client:
        assert text_of(await client.messages(model="sonnet")) == "(script exhausted)"
        assert text_of(await client.messages(model="opus-5")) == "big"


async def test_a_script_for_the_other_api_is_an_http_error() -> None:
    async with serving(Script(steps=(ScriptStep(items=(ScriptMessage("x"),)),))) as client:
        status, error = await client.post("/v1/messages", messages=[user("hi")], tools=TOOLS)
    assert status == 400
    assert "needs `blocks`" in error["error"]["message"]


# When things go wrong


async def test_http_errors_carry_body_and_headers() -> None:
    limited = HttpError(429, {"error": {"type": "rate_limit_error"}}, {"retry-after": "1"})
    async with serving(
        Script(steps=(ScriptStep(error=limited), ScriptStep(error=HttpError(502, "<html>bad gateway</html>"))))
    ) as client:
        url = client.server.url + "/v1/messages"
        async with client.session.post(url, json={"tools": TOOLS}) as response:
            assert (response.status, response.headers["retry-after"]) == (429, "1")
            assert (await response.json())["error"]["type"] == "rate_limit_error"
        async with client.session.post(url, json={"tools": TOOLS}) as response:
            assert (response.status, await response.text()) == (502, "<html>bad gateway</html>")


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
async def test_a_dropped_connection_ends_in_the_middle_of_the_text(path: str) -> None:
    step = ScriptStep(blocks=(ScriptText("cut off here"),), items=(ScriptMessage("cut off here"),), drop=True)
    seen = []
    async with serving(Script(steps=(step,))) as client:
        async with client.session.post(client.server.url + path, json={"stream": True, "tools": TOOLS}) as response:
            with pytest.raises(aiohttp.ClientPayloadError):
                seen.extend([event async for event in events_of(response)])
        async with client.session.post(client.server.url + path, json={"stream": True, "tools": TOOLS}) as response:
            assert response.status == 200  # the server lives on


async def test_a_hanging_stream_ends_with_the_server() -> None:
    script = Script(steps=(ScriptStep(blocks=(ScriptText("slow"),), pieces=1, hang=True),))
    async with (
        serving(script) as client,
        client.session.post(client.server.url + "/v1/messages", json={"stream": True, "tools": TOOLS}) as response,
    ):
        events = events_of(response)
        names = [(await anext(events))[0] for _ in range(4)]
        assert names[-1] == "content_block_delta"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0.05)


async def test_the_client_may_leave_a_hanging_stream() -> None:
    async with serving(Script(steps=(ScriptStep(items=(ScriptMessage("slow"),), hang=True),))) as client:
        async with client.session.post(client.server.url + "/v1/responses", json={"stream": True}) as response:
            await anext(events_of(response))
        assert text_of(await client.responses()) == "(script exhausted)"


async def test_delays_come_before_the_answer_and_between_its_events() -> None:
    loop = asyncio.get_running_loop()
    async with serving(Script(steps=(ScriptStep(blocks=(ScriptText("abc"),), pre_delay=0.05, delay=0.01),))) as client:
        begun = loop.time()
        events = await client.messages()
        assert loop.time() - begun >= 0.05 + 0.01 * len(events)


async def test_the_end_of_the_server_cuts_delays_short() -> None:
    async with serving(Script(steps=(ScriptStep(blocks=(), pre_delay=3600.0),))) as client:
        asking = asyncio.create_task(client.session.post(client.server.url + "/v1/messages", json={"tools": TOOLS}))
        await client.server.requested(1)
    with contextlib.suppress(aiohttp.ClientError):
        await asking


# The request log


async def test_requests_are_kept_without_secrets(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    headers = {"X-Api-Key": "sk-secret", "Authorization": "Bearer sk-secret", "X-App": "cli"}
    async with serving({}, log=log) as client:
        body = {"tools": TOOLS, "system": "s" * 5000, "messages": [user("hi")]}
        async with client.session.post(client.server.url + "/v1/messages?beta=1", json=body, headers=headers):
            await client.server.requested(1)
        request = client.server.requests[0]
    assert (request.method, request.path, request.kind) == ("POST", "/v1/messages?beta=1", "messages")
    assert (request.headers["x-api-key"], request.headers["x-app"]) == ("(redacted)", "cli")
    assert request.body == body
    line = json.loads(log.read_bytes())
    assert "sk-secret" not in log.read_text()
    assert line["body"]["tools"] == ["Bash"]
    assert len(line["body"]["system"]) < 1300


async def test_unknown_routes_and_unreadable_bodies_are_recorded() -> None:
    async with serving({}) as client:
        async with client.session.post(client.server.url + "/v1/nowhere", data=b"\xff\xfe") as response:
            assert response.status == 404
        async with client.session.get(client.server.url + "/v1/models") as response:
            assert (await response.json())["data"] == []
        assert [request.kind for request in client.server.requests] == ["unknown", "models"]
        assert "unreadable" in client.server.requests[0].body


# Scripts


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ([], "Expected `object`"),
        ({"stps": []}, "unknown field `stps`"),
        ({"steps": [3]}, r"\$.steps\[0\]"),
        ({"steps": [{"when": "("}]}, "when is not a regular expression"),
        ({"steps": [{"pieces": 0}]}, "pieces must be at least 1"),
        ({"steps": [{"delay": -1}]}, "cannot be negative"),
        (
            {"steps": [{"blocks": [{"type": "text"}]}]},
            r"missing required field `text` - at `\$.steps\[0\].blocks\[0\]`",
        ),
        ({"steps": [{"items": [{"type": "message", "text": "{{re:(}}"}]}]}, "is not a regular expression"),
    ],
)
async def test_bad_scripts_are_refused_with_the_place(script: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_script(script)


async def test_a_bad_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"script\.json: "):
        load_script(path)


async def test_the_scripts_of_all_recordings_load() -> None:
    paths = sorted(FIXTURES.glob("*/*/*/script.json"))
    assert paths
    for path in paths:
        load_script(path)


async def test_everything_promised_is_there() -> None:
    assert all(hasattr(model_server, name) for name in model_server.__all__)


# The command


@pytest.mark.slow
def test_the_command_prints_its_port_and_ends_with_sigterm(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"steps": []}')
    command = [sys.executable, "-m", "agent_mux_testing.model_server", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["url"] == f"http://127.0.0.1:{ready['port']}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == 0


@pytest.mark.slow
def test_the_command_refuses_a_bad_script(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"stps": []}')
    command = [sys.executable, "-m", "agent_mux_testing.model_server", "--script", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND, check=False)
    assert done.returncode == 2
    assert "unknown field `stps`" in done.stderr


SAY_ONCE = '{"steps": [{"blocks": [{"type": "text", "text": "Hello"}]}]}'
ASK = """
import json, sys, urllib.request
tool = {"type": "function", "function": {"name": "f"}}
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [tool]}).encode()
url = f"http://127.0.0.1:{sys.argv[1]}/v1/chat/completions"
for _ in range(int(sys.argv[2])):
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    answer = json.load(urllib.request.urlopen(request, timeout=30))
    print(answer["choices"][0]["message"]["content"])
"""


def run_with_command(tmp_path: Path, *command: str, port: int = 0) -> "subprocess.CompletedProcess[str]":
    script = tmp_path / "script.json"
    script.write_text(SAY_ONCE)
    start = [sys.executable, "-m", "agent_mux_testing.model_server", "--script", str(script), "--port", str(port)]
    return subprocess.run([*start, "--", *command], capture_output=True, text=True, timeout=60, check=False)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.slow
def test_each_command_is_answered_from_the_first_step(tmp_path: Path) -> None:
    port = free_port()
    for _ in range(2):
        done = run_with_command(tmp_path, sys.executable, "-c", ASK, str(port), "1", port=port)
        assert (done.returncode, done.stdout, done.stderr) == (0, "Hello\n", "")


@pytest.mark.slow
def test_requests_without_a_step_are_reported(tmp_path: Path) -> None:
    port = free_port()
    done = run_with_command(tmp_path, sys.executable, "-c", ASK, str(port), "2", port=port)
    assert done.stdout == "Hello\n(script exhausted)\n"
    assert done.stderr == "scripted model: request 2 (/v1/chat/completions) matched no unused step\n"


@pytest.mark.slow
def test_the_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    assert run_with_command(tmp_path, sys.executable, "-c", "raise SystemExit(3)").returncode == 3
    missing = run_with_command(tmp_path, "no-such-program")
    assert (missing.returncode, missing.stderr) == (
        127,
        "error: cannot start no-such-program: No such file or directory\n",
    )


@pytest.mark.slow
def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        done = run_with_command(tmp_path, sys.executable, "-c", "", port=port)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: cannot listen on port {port}:")
    assert "choose another --port" in done.stderr
