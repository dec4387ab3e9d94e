"""The credentials and skills of the agents of this dialect: variables, lists of providers, skill folders."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentPaths, Scope
from agent_mux.sdk.documents import Format, open_document
from agent_mux.sdk.installation import DefinitionFolder, DefinitionFolders, FoundCredentials
from agent_mux_adapters._dialects.tolerant import mapping, text

KEY_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "XAI_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "DEEPSEEK_API_KEY",
    "CEREBRAS_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "AI_GATEWAY_API_KEY",
    "BASETEN_API_KEY",
    "FIREWORKS_API_KEY",
    "KIMI_API_KEY",
    "META_API_KEY",
    "MINIMAX_API_KEY",
    "MOONSHOT_API_KEY",
    "NVIDIA_API_KEY",
    "OPENCODE_API_KEY",
    "TOGETHER_API_KEY",
    "XIAOMI_API_KEY",
    "XIAOMI_TOKEN_PLAN_AMS_API_KEY",
    "XIAOMI_TOKEN_PLAN_CN_API_KEY",
    "XIAOMI_TOKEN_PLAN_SGP_API_KEY",
    "ZAI_API_KEY",
    "COPILOT_GITHUB_TOKEN",
    "HF_TOKEN",
)
"""Variables that all agents of the dialect read; each agent reads more.

Measured with `pi --list-models` and `omp models`, one variable at a time.
"""
CLOUD_VARIABLES = ("AWS_BEARER_TOKEN_BEDROCK", "GOOGLE_CLOUD_API_KEY")
_AWS_PAIR = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_REFERENCE = re.compile(r"\$(?:[$!]|\{(?P<braced>[A-Za-z_]\w*)\}|(?P<bare>[A-Za-z_]\w*))", re.ASCII)


def aws_keys(place: AgentPaths) -> FoundCredentials | None:
    """Return evidence of AWS keys, which are a pair of variables; None unless both are set."""
    return FoundCredentials(where=_AWS_PAIR[0]) if all(place.environ.get(name) for name in _AWS_PAIR) else None


def is_key(value: Any, environ: Mapping[str, str]) -> bool:
    """Return whether a setting yields a key: a literal, references to set variables (`$NAME`), a command (`!...`)."""
    key = text(value)
    if key.startswith("!"):
        return True
    named = (found["braced"] or found["bare"] for found in _REFERENCE.finditer(key))
    return bool(key) and all(environ.get(name) for name in named if name)


def provider_key(path: Path, form: Format, environ: Mapping[str, str]) -> FoundCredentials | None:
    """Find a key in a list of providers (`{"providers": {name: {"apiKey": ...}}}`). Raises `OSError`, `ValueError`."""
    try:
        settings = open_document(path.read_text("utf-8-sig"), form).data()
    except FileNotFoundError:
        return None
    for name, provider in mapping(settings.get("providers")).items():
        if is_key(mapping(provider).get("apiKey"), environ):
            return FoundCredentials(where=f"{path} (providers.{name}.apiKey)")
    return None


def skill_folders(
    own: Callable[[AgentPaths], Path], project: str, shared: tuple[tuple[Scope, str], ...], depth: int = 1
) -> DefinitionFolders:
    """Return the skill folders of an agent: its own, the project's, and shared ones in the home or the project.

    These agents do not load a skill without a description; a skill without a name has the name of its folder.
    """
    folders = (
        DefinitionFolder(scope="global", path=lambda place: own(place) / "skills"),
        DefinitionFolder(scope="project", path=lambda place: place.project_file(project, "skills")),
        *(_shared(scope, name) for scope, name in shared),
    )
    return DefinitionFolders(folders=folders, layout="folder", file="SKILL.md", required=("description",), depth=depth)


def _shared(scope: Scope, name: str) -> DefinitionFolder:
    if scope == "global":
        return DefinitionFolder(scope=scope, path=lambda place: place.home / name / "skills", is_shared=True)
    return DefinitionFolder(scope=scope, path=lambda place: place.project_file(name, "skills"), is_shared=True)
