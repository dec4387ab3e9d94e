"""A secret that arrives in several chunks is hidden like one in a single chunk."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.redaction.key_samples import HARMLESS, KEY_LINES, PRIVATE_KEY, SAMPLES, UP

from agent_mux.redaction import RedactedStream, Redactor
from agent_mux.redaction.stream import MAX_HELD

VALUES = ['quo"te and \\slash 1', "ünïcödé-passwörd", "spaced passw0rd", "plain-passw0rd"]
SECRETS = {**SAMPLES, "private key": PRIVATE_KEY, **{value: value for value in VALUES}}


def through(text: bytes, pieces: list[bytes]) -> bytes:
    assert b"".join(pieces) == text
    stream = RedactedStream(Redactor(VALUES))
    return b"".join([*map(stream.feed, pieces), stream.flush()])


def tails(text: str) -> list[str]:
    return [line[-14:] for line in text.split("\n") if not line.startswith("-----")]


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("form", ["plain", "json"])
def test_secret_is_hidden_at_every_split_position(secret: str, form: str) -> None:
    line = f"before {secret} after" if form == "plain" else json.dumps({"text": f"before {secret} after"})
    text = f"first\n{line}\nlast\n".encode()
    whole = through(text, [text])
    hidden = whole.translate(None, b"*0123456789")
    ways = [[text[:cut], text[cut:]] for cut in range(len(text))]
    ways += [[text[at : at + size] for at in range(0, len(text), size)] for size in (1, 2, 3, 7)]
    for pieces in ways:
        out = through(text, pieces)
        assert len(out) == len(text)
        assert out.translate(None, b"*0123456789") == hidden, pieces
    assert not [tail for tail in tails(secret) if tail.encode() in whole and "@" not in tail]


@given(st.lists(st.sampled_from([*SECRETS.values(), *HARMLESS, "\n", " ", '"'])), st.data())
def test_secrets_are_hidden_for_any_chunks(parts: list[str], data: st.DataObject) -> None:
    text = " ".join(parts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    out = through(text, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)])
    assert len(out) == len(text)
    assert not [secret for secret in SECRETS.values() if secret.encode() in out]


@pytest.mark.parametrize("end", ["}", "]", "\n", '"', " ", ">", "\x1b[0m ", "🙂 "])
def test_nothing_is_held_back_after_a_delimiter(end: str) -> None:
    stream = RedactedStream(Redactor(VALUES))
    assert stream.feed(f"some text{end}".encode()) == f"some text{end}".encode()
    assert not stream.is_holding


def test_possible_start_of_a_secret_is_held_back() -> None:
    stream = RedactedStream(Redactor(["plain-passw0rd"]))
    assert stream.feed(b"it is plain-pa") == b"it is "
    assert stream.is_holding
    assert stream.feed(b"ssw0rd, is it") == b"*1************, is "
    assert stream.flush() == b"it"
    assert (stream.flush(), stream.is_holding) == (b"", False)


def test_held_bytes_of_a_long_line_are_limited() -> None:
    stream = RedactedStream(Redactor(["plain-passw0rd"]))
    out = [stream.feed(b"x" * 65536) for _ in range(16)]
    assert sum(map(len, out)) == 16 * 65536 - MAX_HELD
    assert len(stream.flush()) == MAX_HELD


def test_key_longer_than_the_limit_is_hidden_completely() -> None:
    key = SAMPLES["anthropic"] + UP * 200
    text = f"{key} and {key}\n".encode()
    for size in (1000, 4096, 5000, 65536):
        out = through(text, [text[at : at + size] for at in range(0, len(text), size)])
        assert len(out) == len(text)
        assert UP[:12].encode() not in out
        assert out.endswith(b"*\n")
        assert b" and sk-ant-*" in out


def test_private_key_in_several_lines_is_hidden() -> None:
    text = f"{PRIVATE_KEY}\nhello hello\n".encode()
    out = through(text, text.splitlines(keepends=True))
    assert not [line for line in KEY_LINES if line.encode() in out]
    assert out.endswith(b"PRIVATE KEY-----\nhello hello\n")


@given(
    st.lists(st.sampled_from([*SECRETS.values(), *HARMLESS, "\n", " ", '"', "\\", "x" * 50]), min_size=1),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_masked_json_is_valid_and_restorable_for_any_chunks(
    parts: list[str], is_ascii: bool, nested: bool, data: st.DataObject
) -> None:
    line = json.dumps({"a": [" ".join(parts)]}, ensure_ascii=is_ascii)
    text = f"{json.dumps({'b': line}) if nested else line}\n".encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    redactor = Redactor(VALUES)
    stream = RedactedStream(redactor)
    pieces = (text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))
    out = b"".join([*map(stream.feed, pieces), stream.flush()])
    assert json.loads(out)
    assert redactor.restore(out) == text
    assert not [line for line in KEY_LINES if line.encode() in out]
