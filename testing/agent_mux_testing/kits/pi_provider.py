"""Test-kit helpers: a provider in the agents' configuration that speaks chat completions with the scripted model."""

import json
from pathlib import Path

from agent_mux.events.base import CostRecord
from agent_mux_testing.live import SUBTASK, KitContext

PROVIDER, MODEL = "scripted", "scripted-model"
OTHER_MODEL = "scripted-other"
CONTEXT_WINDOW = 100_000
PRICES = {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1}
"""US dollars per million tokens."""
PER_CALL = CostRecord(
    total_usd=0.0,
    input_tokens=120,
    output_tokens=12,
    thinking_tokens=5,
    cached_tokens=30,
    cache_creation_tokens=0,
    source="native",
)


def provider(context: KitContext, key: str) -> dict[str, object]:
    """Return the provider as an entry of the agent's list of models."""
    model = {
        "id": MODEL,
        "name": "Scripted",
        "reasoning": True,
        "input": ["text", "image"],
        "contextWindow": CONTEXT_WINDOW,
        "maxTokens": 8000,
        "cost": PRICES,
    }
    models = [model, {**model, "id": OTHER_MODEL}]
    return {"baseUrl": f"{context.url}/v1", "api": "openai-completions", "apiKey": key, "models": models}


def write_settings_once(context: KitContext, name: str, settings: object) -> None:
    """Write a settings file unless it exists, so that changes of a scenario last until its next run."""
    if not (context.home / name).exists():
        context.write(name, json.dumps(settings))


def skill_package(directory: Path) -> tuple[tuple[tuple[str, ...], ...], str]:
    """Create a package with one skill; return the commands to run before its installation (none), and its source."""
    skill = directory / "skills" / "demo" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: demo\ndescription: A demo\n---\nDo.\n", "utf-8")
    manifest = {"name": "demo-package", "version": "1.2.0", "description": "A demo", "pi": {"skills": ["./skills"]}}
    (directory / "package.json").write_text(json.dumps(manifest), "utf-8")
    return (), str(directory)


def subtask(task: str) -> str:
    """Return the prompt for a sub-agent."""
    return f"{SUBTASK} {task}"
