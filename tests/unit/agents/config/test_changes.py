"""Changes of configuration are shown without secrets."""

from pathlib import Path

from agent_mux.agents.config.changes import ConfigFileChange, diff_without_secrets, hide_secrets

KEY = "q8dJ2kfP0aXz"


def test_secrets_are_hidden_by_key_and_by_table() -> None:
    data = {
        "apiKey": KEY, "model": "big", "env": {"A_TOKEN": KEY, "LANG": "C"}, "n": 3, "none": None,
        "servers": {"a": {"headers": {"X-Any": KEY}, "args": ["--api-key=" + KEY, "run"], "url": f"https://u:{KEY}@h/"}},
        "keys": [KEY, KEY],
    }  # fmt: skip
    shown = hide_secrets(data)
    assert KEY not in str(shown)
    assert (shown["model"], shown["env"]["LANG"], shown["n"], shown["none"]) == ("big", "C", 3, None)
    assert shown["servers"]["a"]["args"] == ["--api-key=[hidden]", "run"]
    assert hide_secrets(KEY, "token") == "[hidden]"


def test_diff_hides_secrets() -> None:
    before, after = f'{{"apiKey": "{KEY}",\n"a": 1}}', f'{{"apiKey": "{KEY}",\n"a": 2}}'
    shown = diff_without_secrets(ConfigFileChange(Path("/x.json"), "json", before, after))
    assert KEY not in shown
    assert '-"a": 1}' in shown
    assert '"apiKey": "[hidden]"' in shown


def test_diff_of_invalid_file_is_shown_unchanged() -> None:
    shown = diff_without_secrets(ConfigFileChange(Path("/x.json"), "json", "{nope", "{}"))
    assert "-{nope" in shown
