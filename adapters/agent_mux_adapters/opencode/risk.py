"""How risky it is to grant a permission, by its name. Commands are judged by `agent_mux.risk`."""

from agent_mux.facts import Risk
from agent_mux.risk import risk_of_command

_RISKS: dict[str, Risk] = {
    "codesearch": "high",
    "external_directory": "high",
    "glob": "low",
    "grep": "low",
    "list": "low",
    "lsp": "low",
    "read": "low",
    "skill": "low",
    "todowrite": "low",
    "webfetch": "high",
    "websearch": "high",
}


def risk_of(permission: str, command: str) -> Risk:
    """The risk of granting a permission; `command`: what would run, if it is one to run something."""
    return risk_of_command(command) if permission == "bash" else _RISKS.get(permission, "medium")
