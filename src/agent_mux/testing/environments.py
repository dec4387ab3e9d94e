"""What a real CLI gets for an environment in tests: a home of its own, a scripted model, dummy keys, nothing else.

Only what is returned here may be set (`env -i`): whatever the developer has in the shell must not decide a test.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["ENVIRONMENTS", "claude_environment", "codex_environment"]

DUMMY_KEY = "sk-dummy"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

_CODEX_CONFIG = """\
model = "gpt-5.5"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = {base_url}
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
request_max_retries = 1
stream_max_retries = 1

# Without this, every exit waits 5 s for a server that is not there.
[analytics]
enabled = false
"""


def claude_environment(url: str, home: Path) -> dict[str, str]:
    """For Claude Code against the scripted model at `url`."""
    environment = {
        **_minimal(home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": DUMMY_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",  # of 10, with waits up to 39 s
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }
    if os.geteuid() == 0:
        environment["IS_SANDBOX"] = "1"  # root may bypass permissions only in a sandbox; being offline is one
    return environment


def codex_environment(url: str, home: Path) -> dict[str, str]:
    """For Codex against the scripted model at `url`. Writes its `config.toml`."""
    codex_home = home / ".codex"
    codex_home.mkdir(parents=True, exist_ok=True)
    config = _CODEX_CONFIG.format(base_url=json.dumps(f"{url}/v1"))
    (codex_home / "config.toml").write_text(config, "utf-8")
    return {**_minimal(home), "CODEX_HOME": str(codex_home), "SCRIPTED_API_KEY": DUMMY_KEY}


ENVIRONMENTS: Mapping[str, Callable[[str, Path], dict[str, str]]] = {
    "claude": claude_environment,
    "codex": codex_environment,
}


def _minimal(home: Path) -> dict[str, str]:
    home.mkdir(parents=True, exist_ok=True)
    return {"PATH": SYSTEM_PATH, "HOME": str(home), "TERM": "dumb", "LANG": "C.UTF-8"}
