"""The namespaces of a remote client return the same values as those of `AgentMux` on the service's machine."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest
from tests.service.cutting import cutting
from tests.service.serving import Serving, serving

from agent_mux import AgentMux, AgentMuxError, BlockingRemoteMux, CapabilityError, RemoteMux, encode_event
from agent_mux.api.agents import (
    AgentView,
    DetectedView,
    agent_view,
    capabilities_from_json,
    capabilities_json,
    detected_from_view,
    detected_view,
)
from agent_mux.api.costs import CostView, cost_from_view, cost_json
from agent_mux.api.models import ModelView, model_from_view, model_json
from agent_mux.api.profiles import ProfileView, profile_from_view, profile_view
from agent_mux.cli.main import main
from agent_mux.client.remote.connection import path_of
from agent_mux.journal.run_index import append_line, encode_line, new_index_record
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.models import ModelCapabilities, Price
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sessions.summary import SessionFilter

STORES = Path(__file__).parents[1] / "stores"
HOMES = ("claude/2.1.330", "codex/0.169.0", "copilot/1.0.102", "gemini/0.61.0", "omp/18.2.3", "pi/0.87.1")
LONG = "1c2b5137-32b6-4a15-be24-b89dbb938b9b"
Both = tuple[AgentMux, RemoteMux]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("names")
    home, project = directory / "home", directory / "project"
    for store in HOMES:
        shutil.copytree(STORES / store / "home", home, dirs_exist_ok=True)
    (project / ".agent-mux").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("AGENT_MUX_CONFIG_DIR", str(directory / "config"))
        patch.setenv("PATH", str(directory))  # there is no agent
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "AGENT_MUX_SERVER", "AGENT_MUX_SERVER_TOKEN"):
            patch.delenv(name, raising=False)
        patch.chdir(project)
        yield directory


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[Serving]:
    record = new_index_record(started_at=0, run_id="R", agent="claude", session_id=LONG, tags=("red",))
    append_line(place / "config" / "run-index.jsonl", encode_line(record))
    with serving(place / "config") as server:
        yield server


@pytest.fixture
def both(served: Serving) -> Both:
    return AgentMux(), RemoteMux(served.url)


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except AgentMuxError as error:
        return (type(error), error.code, error.message)


def same(both: Both, call: Callable[..., Any], *arguments: Any) -> Any:
    here, there = (outcome(call, mux, *arguments) for mux in both)
    assert there == here
    assert type(there) is type(here)
    return here


# -- sessions


@pytest.mark.parametrize(
    ("wanted", "how"),
    [
        ({}, {}),
        ({}, {"sort": "turns", "limit": 2}),
        ({}, {"sort": "cost", "limit": None}),
        ({}, {"limit": 0}),
        ({}, {"limit": -1}),
        ({"agent": "claude-code"}, {}),
        ({"agent": "codex", "model": "no-such"}, {}),
        ({"cwd": "/home/dev/other"}, {}),
        ({"tags": ("red",)}, {}),
        ({"tags": ("red", "blue")}, {}),
        ({"since": datetime(2026, 1, 1, tzinfo=UTC)}, {}),
        ({"until": 1}, {}),
        ({"agent": "nobody"}, {}),
        ({"agent": "replay"}, {}),
    ],
)
def test_sessions_are_listed_and_counted(both: Both, wanted: dict[str, Any], how: dict[str, Any]) -> None:
    same(both, lambda mux: mux.sessions.list(SessionFilter(**wanted), **how))
    for by in ("agent", "model", "day", "tag"):
        found = same(both, lambda mux, by: mux.sessions.total_cost(SessionFilter(**wanted), group_by=by), by)
        assert isinstance(found, tuple | dict)
        same(both, lambda mux, by: mux.sessions.total_cost(SessionFilter(**wanted), group_by=by).total, by)


@pytest.mark.slow
def test_files_that_cannot_be_read_are_named(served: Serving, both: Both, place: Path) -> None:
    noise = place / "home" / ".claude" / "projects" / "-home-dev-project" / "noise.jsonl"
    noise.write_bytes(b"noise\n")
    try:
        for agent in (None, "claude", "codex"):
            found = same(both, lambda mux, agent: mux.sessions.list(SessionFilter(agent=agent)).skipped, agent)
            assert [one.path for one in found] == ([] if agent == "codex" else [str(noise)])
        listed, named = (httpx.get(f"{served.url}/v1/sessions{path}", timeout=30) for path in ("", "/skipped"))
        assert listed.headers["agent-mux-skipped"] == "1"
        [skipped] = named.json()
        assert skipped == {"agent": "claude", "path": str(noise), "reason": "it has no line that can be read"}
    finally:
        noise.unlink()
    assert "agent-mux-skipped" not in httpx.get(f"{served.url}/v1/sessions", timeout=30).headers


def test_quotas_are_listed(both: Both, place: Path) -> None:
    limits = {"primary": {"used_percent": 50, "window_minutes": 300, "resets_at": 1_795_300_000}}
    row = {"type": "event_msg", "payload": {"type": "token_count", "rate_limits": limits}}
    folder = place / "home/.codex/sessions/2026/11/23"
    folder.mkdir(parents=True)
    (folder / "rollout-2026-11-23T00-00-00-quota.jsonl").write_text(json.dumps(row) + "\n")
    (known,) = same(both, lambda mux: mux.quota.list())
    assert (known.agent, known.windows[0].window) == ("codex", "five_hour")
    assert same(both, lambda mux: mux.quota.get("codex")) == known
    assert same(both, lambda mux: mux.quota.get("claude-code")) is None
    assert same(both, lambda mux: mux.quota.get("nobody"))[1] == "AGENT_NOT_FOUND"
    shutil.rmtree(folder)


@pytest.mark.slow
def test_pages_are_joined(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.client.remote.sessions.MAX_PAGE_SIZE", 3)
    count = len(same(both, lambda mux: mux.sessions.list(limit=None)))
    assert count > 6
    for limit in range(count + 2):
        assert len(same(both, lambda mux, limit: mux.sessions.list(limit=limit), limit)) == min(limit, count)


@pytest.mark.parametrize(
    ("text", "how"), [("file", {}), ("FILE", {"sort": "date", "limit": 2}), ("no such thing", {}), ("é&=?#%", {})]
)
def test_sessions_are_searched(both: Both, text: str, how: dict[str, Any]) -> None:
    same(both, lambda mux: mux.sessions.search(text, **how))
    same(both, lambda mux: mux.sessions.search(text, SessionFilter(agent="claude"), **how))


@pytest.mark.slow
def test_every_session_is_read_whole(both: Both) -> None:
    here, there = both
    found = here.sessions.list(limit=None)
    assert {one.agent for one in found} == {"claude", "codex", "copilot", "gemini", "omp", "pi"}
    for one in found:
        assert there.sessions.get(one.id) == here.sessions.get(one.id)
        events = [[encode_event(event) for event in mux.sessions.events(one.id)] for mux in both]
        assert events[1] == events[0]
        assert len(events[0]) > 2


@pytest.mark.parametrize("form", ["json", "jsonl", "markdown", "html"])
def test_documents_are_the_same(both: Both, form: Any) -> None:
    assert LONG in same(both, lambda mux: mux.sessions.export(LONG, form))


@pytest.mark.parametrize(
    ("session", "wanted"),
    [
        (LONG, {}),
        (LONG[:8], {}),
        (LONG[:3], {}),
        (f"claude-code:{LONG}", {}),
        (LONG, {"agent": "claude"}),
        (f"claude:{LONG}", {"agent": "claude-code"}),
        (f"claude:{LONG}", {"agent": "codex"}),
        (LONG, {"agent": "codex"}),
        (LONG, {"agent": "nobody"}),
        (LONG, {"agent": "replay"}),
        (LONG, {"tags": ("red",)}),
        (LONG, {"tags": ("blue",)}),
        (f"claude:{LONG}", {"cwd": "/nowhere"}),
        ("claude:", {}),
        (":", {}),
        ("", {}),
        ("nobody:1234", {}),
        ("claude:..", {}),
        ("..:..", {}),
        ("claude:../../etc/passwd", {}),
        ("claude:\udcff", {}),
    ],
)
def test_session_ids_resolve_alike(both: Both, session: str, wanted: dict[str, Any]) -> None:
    calls = [outcome(mux.sessions.get, session, SessionFilter(**wanted)) for mux in both]
    if isinstance(calls[0], tuple):  # the service was asked with the agent in front
        assert calls[0][:2] == calls[1][:2]
    else:
        assert calls[0] == calls[1]


def test_two_sessions_are_compared(both: Both) -> None:
    first, second = [one.id for one in both[0].sessions.list(SessionFilter(agent="codex"))][:2]
    assert same(both, lambda mux: mux.sessions.diff(first, first)).is_same
    same(both, lambda mux: mux.sessions.diff(first, second))


def test_errors_are_raised_when_events_are_read(both: Both) -> None:
    events = both[1].sessions.events("claude:nothing-like-it")
    with pytest.raises(AgentMuxError) as caught:
        next(events)
    assert caught.value.code == "SESSION_NOT_FOUND"


def test_a_cut_off_event_stream_raises(served: Serving) -> None:
    sizes = iter([1 << 60, 3000])  # the first asks for the name of the agent
    with cutting(served.url, lambda: next(sizes, 0)) as proxy:
        events = RemoteMux(proxy.url).sessions.events(f"claude:{LONG}")
        assert next(events).type == "session_start"
        with pytest.raises(AgentMuxError) as caught:
            list(events)
    assert caught.value.code == "UNAVAILABLE"


# -- models


def test_models_are_the_same(both: Both) -> None:
    assert len(same(both, lambda mux: mux.models.catalog())) > 3
    same(both, lambda mux: mux.models.list())
    for agent in ("claude", "claude-code", "replay", "nobody"):
        same(both, lambda mux, agent: mux.models.list(agent), agent)


@pytest.mark.parametrize(
    ("agent", "name"),
    [("claude", "opus"), ("claude", "claude-opos"), ("claude", "a/b c?#%"), ("claude", ".."), ("nobody", "x")],
)
def test_names_of_models_resolve_alike(both: Both, agent: str, name: str) -> None:
    same(both, lambda mux: mux.models.get(agent, name))
    same(both, lambda mux: mux.models.validate(agent, name))
    tokens = {"input_tokens": 300_000, "output_tokens": 5, "cached_tokens": 7, "cache_creation_tokens": 9}
    same(both, lambda mux: mux.models.estimate_cost(agent, name, **tokens))


def test_every_model_is_validated_alike(both: Both) -> None:
    names = [(agent, model.model_id) for agent, offered in both[0].models.catalog().items() for model in offered[:4]]
    verdicts = {same(both, lambda mux, one: mux.models.validate(*one), one).status for one in names}
    assert "ok" in verdicts


# -- profiles


@pytest.fixture
def kept(both: Both) -> Iterator[Both]:
    local = both[0].profiles
    local.set("review", {"agent": "claude", "timeout": 60.5, "retry_policy": {"max_attempts": 2}, "skills": ["a.md"]})
    local.set("review", {"model": "opus", "policy": "rules.json"}, scope="project")
    local.set("bare", {"tags": ["x"]})
    yield both
    for name in local.names():
        for scope in ("global", "project"):
            outcome(partial(local.delete, name, scope=scope))


def test_profiles_are_the_same(kept: Both) -> None:
    assert same(kept, lambda mux: mux.profiles.names()) == ("bare", "review")
    assert len(same(kept, lambda mux: mux.profiles.list())) == 2
    for name in ("bare", "review", "reviews", "a/b", ""):
        same(kept, lambda mux, name: mux.profiles.get(name), name)
    same(kept, lambda mux: mux.profiles.get("bare", scope="global"))
    for mux in kept:
        with pytest.raises(AgentMuxError) as caught:
            mux.profiles.get("bare", scope="project")
        assert caught.value.code == "PROFILE_NOT_FOUND"


def test_a_damaged_profile_is_the_same_error(kept: Both, place: Path) -> None:
    (place / "config" / "profiles" / "bad.json").write_text("{")
    assert same(kept, lambda mux: mux.profiles.list())[1] == "CONFIG_ERROR"
    assert same(kept, lambda mux: mux.profiles.get("bad"))[1] == "CONFIG_ERROR"
    assert "bad" in same(kept, lambda mux: mux.profiles.names())


def test_profiles_are_written_and_removed_there(kept: Both) -> None:
    here, there = kept
    fields = {"agent": "claude", "timeout": 2.5, "tags": ["x", "y"]}
    path = there.profiles.set("made", fields, replace=True)
    assert path == here.profiles.get("made").paths["global"]
    assert dict(here.profiles.get("made").fields) == fields
    assert there.profiles.delete("made") == path
    assert "made" not in here.profiles.names()
    same(kept, lambda mux: mux.profiles.delete("made"))
    same(kept, lambda mux: mux.profiles.delete("review"))
    same(kept, lambda mux: mux.profiles.set("made", {"turns": 1}, replace=True))
    assert outcome(lambda: there.profiles.set("x", {"timeout": -1}, replace=True))[1] == "VALIDATION_ERROR"
    with pytest.raises(CapabilityError, match="replace=True"):
        there.profiles.set("bare", {"model": "opus"})
    assert dict(here.profiles.get("bare").fields) == {"tags": ["x"]}


# -- agents


def test_adapters_are_the_same_as_locally(both: Both) -> None:
    here, there = both
    assert there.adapters.names() == here.adapters.names()
    assert there.adapters.problems == here.adapters.problems
    body = list(there.adapters)
    assert body == [there.adapters.get(one.agent) for one in body]
    for known, one in zip(here.adapters, body, strict=True):
        for name in ("agent", "display_name", "aliases", "min_version", "tested_version", "capabilities"):
            assert getattr(one, name) == getattr(known, name)
        assert sorted(one.protocols) == sorted(known.protocols)


def test_adapters_are_found_by_alias(both: Both) -> None:
    for name in ("claude", "claude-code", "nobody", "..", "a/b"):
        same(both, lambda mux, name: name in mux.adapters, name)
        same(both, lambda mux, name: mux.adapters.get(name).agent, name)


@pytest.mark.slow
def test_installations_are_the_same_as_locally(both: Both, place: Path) -> None:
    program = place / "codex"

    async def look() -> None:
        here, there = both
        assert await there.detector.detect_all() == await here.detector.detect_all()
        assert await there.detector.detect("claude-code") == await here.detector.detect("claude-code")
        program.write_text("#!/bin/sh\necho codex-cli 0.169.0\n")
        program.chmod(0o755)
        assert not (await there.detector.detect("codex")).installed
        for mux in both:
            mux.detector.forget()
        assert (await there.detector.detect("codex")).version == "0.169.0"
        assert await there.detector.detect_all() == await here.detector.detect_all()
        with pytest.raises(AgentMuxError) as caught:
            await there.detector.detect("nobody")
        assert caught.value.code == "AGENT_NOT_FOUND"

    try:
        for backend in ("asyncio", "trio"):
            anyio.run(look, backend=backend)
            program.unlink()
            for mux in both:
                mux.detector.forget()
            anyio.run(both[1].detector.detect_all)
    finally:
        program.unlink(missing_ok=True)


# -- what there is not


@pytest.mark.parametrize(
    "call",
    [
        lambda mux: mux.sessions.find(LONG),
        lambda mux: mux.sessions.known(),
        lambda mux: mux.sessions.watch(LONG),
        lambda mux: mux.models.refresh("claude"),
        lambda mux: mux.models.current("claude"),
        lambda mux: mux.profiles.apply("review", RunOptions(agent="claude", prompt="x")),
        lambda mux: mux.profiles.make_default("review"),
        lambda mux: mux.adapters.register(None),
    ],
)
def test_methods_that_need_local_files_are_refused(both: Both, call: Callable[[Any], Any]) -> None:
    with pytest.raises(CapabilityError, match="a service does not support"):
        call(both[1])


@pytest.mark.parametrize("name", ["config", "auth", "mcp", "skills", "subagents", "plugins", "hooks"])
def test_machine_settings_stay_local(both: Both, name: str) -> None:
    with pytest.raises(AttributeError, match="use it on the machine of the service"):
        getattr(both[1], name)


def test_a_directory_of_sessions_is_refused(both: Both, place: Path) -> None:
    with pytest.raises(AgentMuxError, match="directory") as caught:
        both[1].sessions.list(SessionFilter(agent="claude", directory=place))
    assert caught.value.code == "VALIDATION_ERROR"


def test_every_local_method_exists_remotely(both: Both) -> None:
    for name in ("sessions", "models", "profiles", "detector", "adapters", "comparisons"):
        here, there = (getattr(mux, name) for mux in both)
        methods = {one for one in dir(type(here)) if not one.startswith("_")}
        assert methods <= {one for one in dir(type(there)) if not one.startswith("_")} | set(vars(there))


def test_blocking_clients_have_the_same_namespaces(served: Serving, both: Both) -> None:
    mux = BlockingRemoteMux(served.url)  # not opened: none of it needs that
    assert mux.sessions.list() == both[0].sessions.list()
    assert mux.models.catalog() == both[0].models.catalog()
    assert mux.profiles.names() == both[0].profiles.names()
    assert mux.adapters.names() == both[0].adapters.names()


def test_an_unreachable_service_is_unavailable() -> None:
    mux = RemoteMux("http://127.0.0.1:9")
    for call in (mux.sessions.list, mux.models.list, mux.profiles.list, lambda: next(mux.sessions.events("claude:x"))):
        with pytest.raises(AgentMuxError) as caught:
            call()
        assert caught.value.code == "UNAVAILABLE"


class Strange(BaseHTTPRequestHandler):
    """Answers every request with an invalid response."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}" if self.path.endswith("/capabilities") else b"no JSON\n")

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


def test_unreadable_responses_are_reported() -> None:
    server = HTTPServer(("127.0.0.1", 0), Strange)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        mux = RemoteMux(f"http://127.0.0.1:{server.server_port}")
        wanted = SessionFilter(agent="claude")
        for call in (
            mux.sessions.list,
            mux.models.list,
            mux.profiles.list,
            lambda: list(mux.sessions.events("x", wanted)),
            lambda: mux.sessions.get("claude:x"),
            lambda: mux.adapters.get("claude"),
        ):
            with pytest.raises(AgentMuxError, match=r"cannot (be )?read") as caught:
                call()
            assert caught.value.code == "UNAVAILABLE"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# -- commands


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any, str]]:
    def call(*arguments: str) -> tuple[int, Any, str]:
        capfd.readouterr()
        code = main([*arguments])
        out, err = capfd.readouterr()
        # As values: prices are written as 4 here, and as 4.0 there.
        is_json = "--json" in arguments and out.startswith('{"ok"')
        return code, msgspec.json.decode(out) if is_json else out, err

    return call


@pytest.mark.parametrize("json", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(
    "command",
    [
        "sessions list",
        "sessions list -n 2 --sort turns --cwd /home/dev/other",
        "sessions list -a nobody",
        f"sessions show {LONG}",
        f"sessions show claude:{LONG} --events",
        "sessions show claude:nothing-like-it",
        "sessions search file",
        f"sessions export {LONG} -f html",
        "cost report --by model",
        "models list",
        "models get claude opus",
        "models get claude opos",
        "profiles list",
        "profiles show review",
        "profiles show nothing",
        "adapters list",
        "adapters detect",
        "adapters detect claude-code",
        "detect claude",
    ],
)
def test_commands_print_the_same_for_a_service(
    kept: Both, served: Serving, printed: Any, command: str, json: tuple[str, ...]
) -> None:
    assert kept[0].profiles.names()
    words = (*command.split(), *json)
    here = printed(*words)
    for there in (printed(*words, "--server", served.url), printed("--server", served.url, *words)):
        text = msgspec.json.encode(there).decode()
        assert here[0] == 0 or text.count("`amux ") == text.count(f" --server {served.url}`")
        plain = text.replace(f" --server {served.url}`", "`")
        assert msgspec.json.decode(plain) == msgspec.json.decode(msgspec.json.encode(here))
    assert here[1] or here[2]


def test_models_of_one_agent_are_printed_without_their_age(served: Serving, printed: Any) -> None:
    assert printed("models", "list", "claude", "--server", served.url)[:2] == printed("models", "list", "claude")[:2]


def test_the_environment_does_not_redirect_listings(printed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MUX_SERVER", "http://127.0.0.1:9")
    assert printed("profiles", "list")[0] == 0


# -- shapes there and back


def through(value: Any, kind: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value), type=kind)


@pytest.mark.parametrize("adapter", list(AdapterRegistry()), ids=lambda adapter: adapter.agent)
def test_agents_and_models_survive_a_round_trip(adapter: Adapter) -> None:
    assert capabilities_from_json(through(capabilities_json(adapter), dict[str, Any])) == adapter.capabilities
    assert detected_from_view(through(agent_view(adapter), AgentView)).display_name == adapter.display_name
    for model in adapter.models():
        assert model_from_view(through(model_json(model, adapter.agent), ModelView)) == model


def test_prices_survive_a_round_trip() -> None:
    price = Price(1.0, 2.0, 0.0, None, 200_000, Price(3.0, 4.0, None, 0.5))
    model = ModelCapabilities(model_id="m", provider="p", price=price)
    assert model_from_view(through(model_json(model, "x"), ModelView)) == model


def test_fields_missing_from_an_older_service_have_defaults() -> None:
    assert capabilities_from_json({"agent": "x", "canFly": True}).approval_modes == ("yolo",)


def test_costs_survive_a_round_trip(both: Both) -> None:
    report = both[0].sessions.total_cost(group_by="model")
    back = cost_from_view(through(cost_json("model", report), CostView))
    assert (back, back.total, list(back)) == (report, report.total, list(report))


def test_detection_survives_a_round_trip(both: Both) -> None:
    found = anyio.run(both[0].detector.detect_all)
    assert [detected_from_view(through(detected_view(one), DetectedView)) for one in found] == found


def test_a_profile_is_returned_without_secrets(kept: Both) -> None:
    profile = kept[0].profiles.get("review")
    assert profile_from_view(through(profile_view(profile), ProfileView)) == profile
    server = {"name": "s", "command": "x", "env": {"API_KEY": "sk-0123456789abcdef0123"}}
    kept[0].profiles.set_keys("secret", {"mcpServers": [server]})
    (body,) = kept[1].profiles.get("secret").fields["mcp_servers"]
    assert body.command == "x"
    assert "0123456789" not in repr(body)


def test_any_name_is_one_segment_of_a_path() -> None:
    assert path_of("a/b", "..", "c?d#e%", q="ü &", tag=("x", "y"), none=None) == (
        "/v1/a%2Fb/%2E%2E/c%3Fd%23e%25?q=%C3%BC+%26&tag=x&tag=y"
    )
