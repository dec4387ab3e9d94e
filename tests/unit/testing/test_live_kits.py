"""Live kits: each one fulfils the requirements of the end-to-end suite."""

import tomllib
from pathlib import Path

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.live import (
    DUMMY_KEY,
    Edit,
    KitContext,
    LiveKit,
    Mcp,
    Read,
    Say,
    Shell,
    UnsupportedPart,
    Write,
    answer,
    delegation,
    kit_of,
    kits,
    launch,
    pin_of,
    refuse,
)
from agent_mux_testing.provision import TOOLS

KITS = list(kits().values())
every_kit = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.agent)
PARTS = (Say("hi"), Shell("ls"), Write("a", "b\n"), Edit("a", "b", "c"), Read("a"), Mcp("echo", {"text": "t"}))


def place(tmp_path: Path) -> KitContext:
    return KitContext(url="http://127.0.0.1:8099", home=tmp_path / "home", path="/opt/tools:/usr/bin")


@every_kit
def test_agents_get_a_home_of_their_own_and_dummy_keys(
    kit: LiveKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "sk-real")
    environment = kit.environment(place(tmp_path))
    written = "".join(path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert environment["HOME"] == str(tmp_path / "home")
    assert (tmp_path / "home").is_dir()
    assert environment["PATH"].endswith("/opt/tools:/usr/bin")
    assert "sk-real" not in str(environment) + written
    assert DUMMY_KEY in str(environment) + written
    assert "http://127.0.0.1:8099" in str(environment) + written


@every_kit
def test_parts_have_the_form_of_the_agents_api(kit: LiveKit, tmp_path: Path) -> None:
    content = []
    for part in PARTS:
        try:
            step = answer(kit, tmp_path, part)
        except UnsupportedPart:
            assert not isinstance(part, Say | Shell)
            continue
        content += step.items if kit.api == "responses" and step.items else step.blocks or ()
    assert len(content) >= len(PARTS) - 1
    assert all(str(part) for part in content)


@every_kit
def test_kits_are_of_adapters_and_pin_what_was_recorded(kit: LiveKit) -> None:
    adapter = AdapterRegistry().get(kit.agent)
    # An adapter that drives any program is tested with a version of its protocol.
    assert adapter.takes_command or adapter.tested_version == kit.pins[0].version
    assert all(name in TOOLS for pin in kit.pins for name in pin.needs)
    for pin in kit.pins:
        assert [bool(pin.npm), bool(pin.pip), bool(pin.script)].count(True) == 1
        assert all(pin.version in package for package in (*pin.npm[:1], *([pin.pip] if pin.pip else [])))


@every_kit
def test_a_program_is_named_by_variable_or_by_command(kit: LiveKit, tmp_path: Path) -> None:
    adapter = AdapterRegistry().get(kit.agent)
    start = launch(kit, place(tmp_path), "/opt/tools/agent")
    named = {adapter.executable_variable: "/opt/tools/agent"}
    by_command = adapter.takes_command and not adapter.executables
    assert start.command == (("/opt/tools/agent", *kit.arguments) if by_command else ())
    assert start.environment == {**kit.environment(place(tmp_path)), **({} if by_command else named)}
    assert by_command or not kit.arguments


@every_kit
def test_every_refusal_has_its_message(kit: LiveKit) -> None:
    for refusal in ("unauthorized", "rate_limited", "server_error", "refused", "context_exceeded"):
        step = refuse(kit.api, refusal, repeat=True)
        assert step.error is not None or step.failed is not None
        assert step.repeat is True


def test_an_unknown_kit_and_an_unpinned_version_are_refused() -> None:
    with pytest.raises(AgentMuxError, match="no live kit for 'nobody'"):
        kit_of("nobody")
    with pytest.raises(AgentMuxError, match=r"claude 0\.0\.1 is not pinned; pinned: "):
        pin_of("claude", "0.0.1")


def test_a_delegation_is_for_the_sub_agent_first() -> None:
    steps = delegation(kit_of("claude"), Path("/w"), "count", Say("3"))
    assert steps[0].first is not None
    assert "count" in str(steps[1].blocks)


def test_codex_is_sent_to_the_scripted_model(tmp_path: Path) -> None:
    environment = kit_of("codex").environment(place(tmp_path))
    config = tomllib.loads((Path(environment["CODEX_HOME"]) / "config.toml").read_text())
    provider = config["model_providers"][config["model_provider"]]
    assert provider["base_url"] == "http://127.0.0.1:8099/v1"
    assert provider["env_key"] in environment
    assert config["analytics"] == {"enabled": False}
