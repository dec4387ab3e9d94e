"""Loading and validating scripts."""

from pathlib import Path

import anyio
import msgspec
import pytest
from tests.unit.embedded.providers.harness import ask

from agent_loop.errors import ConfigurationError
from agent_loop.messages import ToolCall
from agent_loop.providers import script
from agent_loop.providers.script import Script, load_script
from agent_loop.providers.scripted_provider import ScriptedProvider

TOML = r"""
model = "tiny"
closing = "Bye."
capabilities = { context_window = 1000 }

[[steps]]
text = "I run them."
usage = { input_tokens = 5 }
tool_calls = [{ name = "shell", arguments = { command = "pytest" } }]

[[steps]]
error = { kind = "rate_limited", retry_after = 1.5 }
"""


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_script_is_a_toml_or_json_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"script{suffix}"
    whole = msgspec.toml.decode(TOML, type=Script)
    path.write_bytes(TOML.encode() if suffix == ".toml" else msgspec.json.encode(whole))
    provider = ScriptedProvider.from_name(str(path))
    response = anyio.run(ask, provider, "go")
    assert load_script(path) == whole
    assert response.tool_calls == (ToolCall("call_1", "shell", {"command": "pytest"}),)
    assert (provider.model, provider.capabilities.context_window) == ("tiny", 1000)
    assert response.messages[0].model == "tiny"


@pytest.mark.parametrize(
    "text",
    ["[[steps]]\ntxt = 'typo'", "not toml", "[[steps]]\ntext = '{{typo}}'", "[[steps]]\nrepeat = 'often'", "\xff"],
)
def test_invalid_script_is_reported_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigurationError, match=f"the script {path} cannot be used: "):
        load_script(path)


def test_missing_script_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read the script .*No such file"):
        ScriptedProvider.from_name(str(tmp_path / "none.toml"))


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "MAX_SCRIPT_BYTES", 10)
    path = tmp_path / "script.toml"
    path.write_text(TOML)
    with pytest.raises(ConfigurationError, match="larger than 10 bytes"):
        load_script(path)
