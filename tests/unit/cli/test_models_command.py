"""`amux models`: with the shipped models, and with an agent that prints recorded output."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Amux, Done

from agent_mux.cli.model_commands import format_tokens

LISTINGS = Path(__file__).parents[1] / "adapters" / "pi" / "listings"
AGENTS = ("CODEX", "CURSOR", "OMP", "OPENCLAW", "OPENCODE", "PI")
LISTED = 78


@pytest.fixture(autouse=True)
def nothing_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for agent in AGENTS:
        monkeypatch.setenv(f"AMUX_{agent}_EXECUTABLE", str(tmp_path / "none"))


@pytest.fixture
def pi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    program = tmp_path / "pi"
    program.write_text(f"#!/bin/sh\ncat {LISTINGS}/0.87.1.txt\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("AMUX_PI_EXECUTABLE", str(program))
    return program


def data(done: Done) -> Any:
    answer = json.loads(done.out)
    assert (done.code, done.err, answer["ok"]) == (0, "", True)
    return answer["data"]


def failure(done: Done) -> tuple[int, str, str]:
    error = json.loads(done.out)["error"]
    return done.code, error["code"], error["message"]


def test_a_list_for_people(amux: Amux) -> None:
    done = amux("models", "list", "claude")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines() if line.strip()]
    assert " ".join(lines[0]) == "model provider context output $ in $ out $ cached can"
    [opus] = [line for line in lines if line[0] == "claude-opus-5-5"]
    assert opus[1:] == ["anthropic", "1M", "128k", "4", "20", "0.2", "thinking,", "images,", "pdf,", "schema"]
    assert done.err == "as known on 2026-11-22\n"


def test_a_list_for_programs(amux: Amux) -> None:
    listed = {model["modelId"]: model for model in data(amux("models", "list", "claude-code", "--json"))}
    opus = listed["claude-opus-5-5"]
    assert (opus["agent"], opus["provider"], opus["alias"]) == (
        "claude", "anthropic", ["claude-opus-5.5", "opus", "best"],
    )  # fmt: skip
    assert (opus["contextWindow"], opus["maxOutputTokens"], opus["asOf"]) == (1_000_000, 128_000, "2026-11-22")
    assert opus["price"] == {"input": 4, "output": 20, "cachedInput": 0.2, "cacheCreation": 5}
    assert listed["claude-haiku-5-5"]["price"]["threshold"] == 100_000
    assert listed["claude-haiku-5-5"]["price"]["beyond"]["input"] == 0.5
    assert listed["opusplan"]["price"] is None


@pytest.mark.slow
def test_the_models_of_all_agents(amux: Amux) -> None:
    listed = data(amux("models", "list", "--json"))
    assert {"claude", "codex", "copilot", "hermes", "opencode", "pi"} <= {model["agent"] for model in listed}
    assert {"acp", "terminal"}.isdisjoint({model["agent"] for model in listed})
    assert "claude-opus-5-5" in amux("models", "list").out


def test_an_agent_without_models(amux: Amux) -> None:
    assert data(amux("models", "list", "terminal", "--json")) == []
    done = amux("models", "list", "terminal")
    assert (done.code, done.out) == (0, "")
    assert done.err == "no models known; the agent accepts the names that its own command accepts\n"


def test_one_model_for_people(amux: Amux) -> None:
    done = amux("models", "show", "codex", "gpt-5.6-sol-2026-07-09")
    assert (done.code, done.err) == (0, "")
    known = dict(line.split("  ", 1) for line in done.out.splitlines())
    assert {name: value.strip() for name, value in known.items()} == {
        "model": "gpt-5.6-sol",
        "name": "GPT-5.6 Sol",
        "provider": "openai",
        "protocol": "openai-responses",
        "context window": "1050000",
        "max output": "128000",
        "can": "thinking, images, pdf, schema",
        "thinking efforts": "low, medium, high, xhigh, max",
        "price": "$4 in, $20 out, $0.4 cached, $5 cache write per million tokens; "
        "above 272k input tokens: $8 in, $30 out",
        "as of": "2026-11-22",
    }


def test_one_model_for_programs(amux: Amux) -> None:
    found = data(amux("models", "show", "claude", "opus", "--json"))
    assert (found["modelId"], found["status"], found["agent"]) == ("claude-opus-5-5", "alias", "claude")


def test_a_deprecated_model_is_shown_with_a_warning(amux: Amux) -> None:
    done = amux("models", "show", "claude", "claude-opus-4-1")
    assert done.code == 0
    assert done.err == (
        "warning: claude-opus-4-1 is deprecated and will be retired on 2026-08-05; use claude-opus-5-5 instead\n"
    )
    assert data(amux("models", "show", "claude", "claude-opus-4-1", "--json"))["status"] == "deprecated"


def test_an_unknown_model(amux: Amux) -> None:
    done = amux("models", "show", "claude", "opsu", "--json")
    message = "unknown claude model 'opsu'; did you mean opus?"
    assert failure(done) == (2, "VALIDATION_ERROR", message)
    hostile = amux("models", "show", "claude", "\x1b[2Jx")
    assert hostile.code == 2
    assert "\x1b" not in hostile.err


def test_unknown_agents_are_errors(amux: Amux) -> None:
    for arguments in (("list", "cloud"), ("get", "cloud", "x"), ("refresh", "cloud"), ("current", "cloud")):
        code, name, message = failure(amux("models", *arguments, "--json"))
        assert (code, name) == (3, "AGENT_NOT_FOUND")
        assert "'claude'" in message


@pytest.mark.slow
@pytest.mark.usefixtures("pi")
def test_refresh_stores_the_models_of_an_agent(amux: Amux, tmp_path: Path) -> None:
    before = amux("models", "list", "pi")
    assert before.err == "as known on 2026-11-22; `amux models refresh pi` updates the list\n"
    assert data(amux("models", "refresh", "pi", "--json")) == [{"agent": "pi", "models": LISTED}]
    assert (tmp_path / "config" / "cache" / "models" / "pi.json").exists()
    after = amux("models", "list", "pi")
    assert after.err.startswith("as listed by the agent on 2")
    assert "gpt-realtime-2.1" in after.out
    assert "gpt-realtime-2.1" not in before.out
    listed = {model["modelId"]: model for model in data(amux("models", "list", "pi", "--json"))}
    gemini = listed["google/gemini-2.5-pro"]
    assert (len(listed), gemini["contextWindow"], gemini["maxOutputTokens"]) == (LISTED, 1_048_576, 65_536)
    assert gemini["price"]["threshold"] == 200_000


@pytest.mark.slow
@pytest.mark.usefixtures("pi")
def test_refresh_stores_models_in_the_given_directory(amux: Amux, tmp_path: Path) -> None:
    assert amux("models", "refresh", "pi", "--config-dir", tmp_path / "other").code == 0
    assert (tmp_path / "other" / "cache" / "models" / "pi.json").exists()
    assert "gpt-realtime-2.1" in amux("--config-dir", tmp_path / "other", "models", "list", "pi").out
    assert "gpt-realtime-2.1" not in amux("models", "list", "pi").out


@pytest.mark.parametrize(
    ("script", "code", "name"),
    [
        ("exit 7", 12, "AGENT_CRASH"),
        ("echo what?", 1, "PARSE_ERROR"),
        ("echo No models available.", 5, "AUTH_ERROR"),
    ],
)
def test_an_agent_that_does_not_answer(amux: Amux, pi: Path, script: str, code: int, name: str) -> None:
    assert amux("models", "refresh", "pi").code == 0
    pi.write_text(f"#!/bin/sh\n{script}\n")
    assert failure(amux("models", "refresh", "pi", "--json"))[:2] == (code, name)
    assert len(data(amux("models", "list", "pi", "--json"))) == LISTED


def test_an_agent_that_is_not_installed_or_has_no_listing(amux: Amux) -> None:
    assert failure(amux("models", "refresh", "pi", "--json"))[:2] == (4, "AGENT_NOT_INSTALLED")
    code, name, message = failure(amux("models", "refresh", "claude", "--json"))
    assert (code, name) == (6, "CAPABILITY_ERROR")
    assert message == "claude does not support listing its models; the known ones come with agent-mux"


@pytest.mark.usefixtures("pi")
def test_refresh_without_an_agent_refreshes_all(amux: Amux) -> None:
    outcomes = {outcome["agent"]: outcome for outcome in data(amux("models", "refresh", "--json"))}
    assert set(outcomes) == {agent.lower() for agent in AGENTS}
    assert outcomes["pi"] == {"agent": "pi", "models": LISTED}
    assert outcomes["codex"]["code"] == "AGENT_NOT_INSTALLED"
    assert "codex" in amux("models", "refresh").out


def test_refresh_fails_if_no_agent_answers(amux: Amux) -> None:
    done = amux("models", "refresh")
    assert done.code == 1
    assert done.out.count("not an executable file") == len(AGENTS)


def test_the_current_model_is_shown_with_its_source(amux: Amux) -> None:
    assert data(amux("models", "current", "claude-code", "--json")) == {
        "agent": "claude",
        "model": None,
        "source": "agent",
    }
    done = amux("models", "current", "claude")
    assert (done.code, done.out) == (0, "")
    assert done.err == "no model is set for claude: the agent chooses, and reports the model when it starts\n"


def test_a_model_is_set_in_the_agents_own_configuration(amux: Amux, tmp_path: Path) -> None:
    settings = tmp_path / "home" / ".claude" / "settings.json"
    told = amux("models", "set", "claude", "opus", "--dry-run")
    assert (told.code, settings.exists()) == (0, False)
    assert '+  "model": "opus"' in told.out
    assert data(amux("models", "set", "claude-code", "opus", "--json"))["changed"] is True
    assert json.loads(settings.read_text()) == {"model": "opus"}
    assert data(amux("models", "current", "claude", "--json")) == {
        "agent": "claude", "model": "opus", "source": "agent config", "path": str(settings),
    }  # fmt: skip
    done = amux("models", "current", "claude")
    assert (done.out, done.err) == ("opus\n", f"set by: agent config ({settings})\n")


def test_the_configuration_of_a_project_counts_in_it(amux: Amux, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    assert amux("models", "set", "claude", "haiku", "--scope", "project", "--cwd", project).code == 0
    assert data(amux("models", "current", "claude", "--cwd", project, "--json"))["model"] == "haiku"
    assert data(amux("models", "current", "claude", "--cwd", tmp_path, "--json"))["model"] is None


def test_an_unknown_model_is_set_with_a_warning(amux: Amux) -> None:
    done = amux("models", "set", "claude", "opsu")
    assert done.code == 0
    assert done.err.startswith("warning: unknown claude model 'opsu', passed on unchanged; did you")
    assert amux("models", "current", "claude").out == "opsu\n"


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [(None, ""), (999, "999"), (8192, "8.19k"), (272_000, "272k"), (1_000_000, "1M"), (1_048_576, "1.05M")],
)
def test_sizes_are_short(tokens: int | None, shown: str) -> None:
    assert format_tokens(tokens) == shown
