"""Secrets are found, hidden with the same length, and restored."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.redaction.key_samples import HARMLESS, KEY_LINES, PRIVATE_KEY, SAMPLES

from agent_mux.redaction import Redactor, redact_text
from agent_mux.redaction.redactor import MAX_RESTORABLE

ODD = ['quo"te and \\slash 1', "ünïcödé-passwörd", "tab\tand space 1", "plain-passw0rd"]


@pytest.mark.parametrize("printed", SAMPLES.values(), ids=SAMPLES)
def test_keys_of_known_formats_are_hidden_and_restored(printed: str) -> None:
    redactor = Redactor()
    secret = printed[-16:-14] if "@" in printed else printed[-12:]
    for around in ("{}", "see\\n{}\\n", 'x="{}"', "\x1b[31m{}\x1b[0m", "{},{}"):
        text = around.replace("{}", printed)
        masked = redactor.mask_text(text)
        assert secret not in masked
        assert len(masked) == len(text)
        assert redactor.restore(masked.encode()).decode() == text
        assert redactor.mask_text(masked) == masked


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_is_unchanged(text: str) -> None:
    assert Redactor().mask_text(text) == text


@pytest.mark.parametrize("text", [PRIVATE_KEY, json.dumps(PRIVATE_KEY), json.dumps(json.dumps(PRIVATE_KEY))])
def test_lines_of_a_private_key_are_hidden(text: str) -> None:
    redactor = Redactor()
    masked = redactor.mask_text(text + " and more text")
    assert not [line for line in KEY_LINES if line in masked]
    assert masked.endswith(" and more text")
    assert masked.count("-----") == 4
    assert redactor.restore(masked.encode()) == (text + " and more text").encode()


@pytest.mark.parametrize("value", ODD)
def test_known_value_is_hidden_in_every_json_spelling(value: str) -> None:
    redactor = Redactor([value])
    spelled = [value, *(json.dumps({"k": [value]}, ensure_ascii=flag) for flag in (True, False))]
    for text in (*spelled, *map(json.dumps, spelled)):
        masked = redactor.mask_text(text)
        assert redactor.mask(text.encode()) == masked.encode()
        assert len(masked.encode()) == len(text.encode())
        assert value not in masked
        assert redactor.restore(masked.encode()).decode() == text
        if text != value:
            assert json.loads(masked) != json.loads(text)


def test_restored_text_for_a_terminal_has_no_json_escapes() -> None:
    redactor = Redactor([ODD[0]])
    masked = redactor.mask(json.dumps(ODD[0]).encode())
    assert redactor.restore(masked[1:-1], is_json=False).decode() == ODD[0]


def test_json_escape_before_a_value_is_unchanged() -> None:
    redactor = Redactor(["nabc-12345"])
    line = json.dumps("x\nabc-12345")
    assert redactor.mask_text(line) == line
    assert json.loads(redactor.mask_text(json.dumps("x\\nabc-12345"))) != "x\\nabc-12345"


def test_each_secret_has_its_own_number() -> None:
    redactor = Redactor(["first-s3cret", "secnd-s3cret"])
    assert redactor.mask(b"first-s3cret secnd-s3cret first-s3cret") == b"*1********** *2********** *1**********"


def test_overlapping_secrets_are_hidden_together() -> None:
    redactor = Redactor(["sk-abc-12", "abc-12-de", "abc-12"])
    assert redactor.mask(b"(sk-abc-12-def)") == b"(*1**********f)"


def test_other_asterisks_are_not_restored() -> None:
    redactor = Redactor(["first-s3cret"])
    redactor.mask(b"first-s3cret")
    for text in (b"**bold** *1* *2*** 2*3*4 *99999999999* ***", b"*1*******"):
        assert redactor.restore(text) == text
    assert redactor.restore(b"***1*************") == b"**first-s3cret***"


def test_secrets_above_the_limit_are_hidden_but_not_restored() -> None:
    redactor = Redactor()
    keys = [SAMPLES["github"][:4] + f"{number:036d}" for number in range(MAX_RESTORABLE + 1)]
    masked = redactor.mask(" ".join(keys).encode()).split()
    assert redactor.restore(masked[-2]).decode() == keys[-2]
    assert masked[-1] == b"ghp_" + b"*" * 36
    assert redactor.restore(masked[-1]) == masked[-1]


def test_redact_text_hides_secrets_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "s0me-value-of-it")
    assert "s0me-value" not in redact_text("cannot use s0me-value-of-it")
    assert redact_text("nothing to hide") == "nothing to hide"


@given(st.lists(st.sampled_from([*ODD, *SAMPLES.values(), *HARMLESS, PRIVATE_KEY, "\n", "\\", '"', "*1*"])))
def test_masked_json_is_valid_and_restorable(parts: list[str]) -> None:
    redactor = Redactor(ODD)
    line = json.dumps({"text": " ".join(parts)}).encode()
    masked = redactor.mask(line)
    assert len(masked) == len(line)
    assert len(json.loads(masked)["text"].encode()) <= len(line)
    assert redactor.restore(masked) == line or b"*1*" in line


def test_text_with_surrogates_is_masked() -> None:
    """Unpaired surrogates, as in JSON and for undecodable bytes of file names."""
    assert Redactor(["abc-12345"]).mask_text("\ud800 abc-12345 \udc80").count("abc-12345") == 0
    assert Redactor().mask_text("\ud800 and \udc80") == "\ud800 and \udc80"
    assert Redactor(["abc-12345"]).mask_text("\udc80 abc-12345")[0] == "\udc80"
