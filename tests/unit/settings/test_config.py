"""`config.json`: parsing, errors, and changing one key."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mux.errors import AgentMuxError
from agent_mux.redaction import HIDDEN
from agent_mux.settings.config import CONFIG_KEYS, MuxConfig, parse_config, read_config, write_config_key
from agent_mux.settings.layers import options_from_fields
from agent_mux.settings.options_json import PER_RUN_FIELDS, PROFILE_KEYS

KEYS_OF_ALL = st.sampled_from([*CONFIG_KEYS, *PROFILE_KEYS, *PER_RUN_FIELDS, "maxAttempts", "name", "command"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mux" / "config.json"


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_missing_file_is_empty(path: Path) -> None:
    assert read_config(path) == MuxConfig(path=path)
    assert not path.parent.exists()


def test_all_keys_are_read(path: Path) -> None:
    write(
        path,
        {
            "defaultAgent": "a", "defaultModel": "m", "timeout": "1s", "profile": "fast", "runIndex": False,
            "policy": "rules.toml", "agents": {"a": {"model": "other", "policy": "/abs.toml"}, "b": {}},
        },
    )  # fmt: skip
    assert read_config(path) == MuxConfig(
        path=path,
        options={"agent": "a", "model": "m", "timeout": 1.0, "policy": path.parent / "rules.toml"},
        agents={"a": {"model": "other", "policy": Path("/abs.toml")}, "b": {}},
        profile="fast",
        run_index=False,
    )


def test_keys_are_those_of_a_profile_and_a_few_more() -> None:
    assert set(CONFIG_KEYS) - set(PROFILE_KEYS) == {"defaultAgent", "defaultModel", "agents", "profile", "runIndex"}
    assert set(PROFILE_KEYS) - set(CONFIG_KEYS) == {"agent", "model"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"defaultAgnet": "a"}, "defaultAgnet: got 'a'; allowed: no such key; did you mean 'defaultAgent'?"),
        ({"model": "m"}, "model: got 'm'; allowed: no such key; did you mean 'defaultModel'?"),
        ({"runindex": True}, "did you mean 'runIndex'?"),
        ({"defaultModel": 3}, "defaultModel: got 3; allowed: a string"),
        ({"env": {"A": "hunter2"}}, f"env: got {HIDDEN!r}; allowed: nothing in a settings file (environments may"),
        ({"projectId": "p"}, "projectId: got 'p'; allowed: nothing in a settings file"),
        ({"profile": "../x"}, "profile: got '../x'; allowed: the name of a profile"),
        ({"profile": 1}, "profile: got 1"),
        ({"runIndex": "no"}, "runIndex: got 'no'; allowed: true or false"),
        ({"agents": ["a"]}, "agents: got ['a']; allowed: an object with an object for each agent"),
        ({"agents": {"a": "m"}}, "agents.a: got 'm'; allowed: an object"),
        ({"agents": {"a": {"modle": "m"}}}, "agents.a.modle: got 'm'; allowed: no such key; did you mean 'model'?"),
        ({"agents": {"a": {"timeout": -1}}}, "agents.a.timeout: got -1; allowed: a number >= 0, in milliseconds"),
        ({"agents": {"a": {"agent": "b"}}}, "agents.a.agent"),
        ({"timeout": -1, "tags": 5, "zzz": 1}, "tags: got 5"),
    ],
)
def test_error_names_file_and_key(path: Path, content: Any, message: str) -> None:
    write(path, content)
    with pytest.raises(AgentMuxError) as raised:
        read_config(path)
    assert raised.value.code == "CONFIG_ERROR"
    assert str(raised.value).startswith(f"{path} cannot be used: ")
    assert message in str(raised.value)
    assert "hunter2" not in str(raised.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS_OF_ALL | st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(KEYS_OF_ALL, json_values, max_size=4))
def test_any_content_is_parsed_or_rejected(content: dict[str, Any]) -> None:
    try:
        made = parse_config(Path("/x/config.json"), content)
    except AgentMuxError as error:
        assert error.code == "CONFIG_ERROR"  # noqa: PT017  # either this or that
    else:
        for fields in (made.options, *made.agents.values()):
            options_from_fields({name: value for name, value in fields.items() if name != "policy"})


def test_other_keys_are_preserved(path: Path, tmp_path: Path) -> None:
    write(path, {"timeout": 1000, "agents": {"a": {"model": "m"}}, "tags": ["x"]})
    write_config_key(path, "profile", "fast", private=True, locks=tmp_path / "locks")
    assert list(json.loads(path.read_text()).items()) == [
        ("timeout", 1000), ("agents", {"a": {"model": "m"}}), ("tags", ["x"]), ("profile", "fast"),
    ]  # fmt: skip
    write_config_key(path, "profile", None, private=True, locks=tmp_path / "locks")
    assert "profile" not in json.loads(path.read_text())


@pytest.mark.parametrize("text", ["{", '{"timeout": "x"}', "[]"])
def test_invalid_file_is_not_replaced(path: Path, tmp_path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(AgentMuxError) as raised:
        write_config_key(path, "profile", "fast", private=True, locks=tmp_path / "locks")
    assert raised.value.code == "CONFIG_ERROR"
    assert path.read_text() == text


def test_invalid_value_is_not_written(path: Path, tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError):
        write_config_key(path, "timeout", -1, private=True, locks=tmp_path / "locks")
    assert not path.exists()


def test_examples_of_the_documentation_are_valid(tmp_path: Path) -> None:
    from agent_mux.journal.run_index import read_index

    page = (Path(__file__).parents[3] / "docs" / "how-to" / "configure-agent-mux.md").read_text("utf-8")
    config, line = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    config = parse_config(tmp_path / "config.json", json.loads(config))
    assert (config.profile, set(config.agents)) == ("review", {"codex"})
    (tmp_path / "index").write_text(line)
    [record] = read_index(tmp_path / "index")
    assert record.tags == ("nightly",)


def test_keys_in_the_documentation_exist() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "configure-agent-mux.md").read_text("utf-8")
    named = {key for row in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ", page, re.MULTILINE) for key in row.split(", ")}
    assert {key.strip("`") for key in named} <= {*CONFIG_KEYS, *PROFILE_KEYS}


def test_skill_folders_are_relative_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"skills": ["skills/dig", "/elsewhere"], "agents": {"a": {"skills": ["x"]}}}', "utf-8")
    read = read_config(path)
    assert read.options["skills"] == [str(tmp_path / "skills" / "dig"), "/elsewhere"]
    assert read.agents["a"]["skills"] == [str(tmp_path / "x")]
