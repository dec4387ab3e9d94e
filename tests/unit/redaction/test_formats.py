"""Secrets of every known format are hidden: in plain text, in JSON, and in any chunks; other text is not."""

import json

import pytest
from benchmarks.secret_formats import Sample, samples

from agent_mux.redaction import RedactedStream, Redactor

SAMPLES = samples(seed=20261128)
SPLITS = 40

HARMLESS = (
    "password: str, token: Optional[str] = None, secret = get_secret(), api_key=os.environ['API_KEY2']",
    'token = get_token(); password = config2.get("password"); secret=self.client2.secret',
    '{"password": "password", "token": "<your-token-1>", "secret": "${SECRET_1}", "api_key": "YOUR_API_KEY_123"}',
    "password: ${DB_PASSWORD}\ntoken: {{ token_1 }}\nsecret: $SECRET_2\napi_key: changeme123",
    "const token = tokens[index2++]; const password = await readPassword2(prompt);",
    '{"input_tokens": 1234, "token_count": 12, "continuationToken": "TOK_STREAM_CP1_B64"}',
    "commit 8bb34f3312e94a59ab4c1b4dd0b5a2c0a4f0b6e1, integrity sha512-" + "aB3/" * 21 + "==",
    '"id": "5b7d1bd5-bd86-4624-bad9-c1a17aea4ea5", "ChangeToken": "abcd12f2-46da-4fdb-b8d5-fbd4c466928f"',
    "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyDatabaseSecret-a1b2c3",
    "postgres://user:password@localhost/db and https://user:pass@host and redis://:${REDIS_PASSWORD}@cache",
    "docker run -u 1000:1000 image; docker run --user $(id -u):$(id -g) image; .x{-webkit-user-select:none}",
    "Cookie: theme=dark; lang=en",
    "The password is stored in the keychain. Token: see below. Basic Authentication of users.",
    "class Login:\n    password: SecretStr\n    token: str = Field(min_length=12)",
    "ports: '5432:5432', image: postgres:16, key-value task_id cache-key dp.x sq0",
)


def _masked(text: str) -> str:
    redactor = Redactor()
    masked = redactor.mask_text(text)
    assert len(masked) == len(text)
    assert redactor.restore(masked.encode()).decode() == text
    assert redactor.mask_text(masked) == masked
    return masked


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
@pytest.mark.parametrize("form", ["plain", "inside", "json", "json in json"])
def test_secret_of_each_format_is_hidden(sample: Sample, form: str) -> None:
    text = sample.text if form == "plain" else f"see\n{sample.text}\nand more"
    for _ in range(form.count("json")):
        text = json.dumps({"text": text})
    masked = _masked(text)
    if "json" in form:
        json.loads(masked)
    assert not [secret for secret in sample.secrets if len(secret) > 8 and secret[-8:] in masked]


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
@pytest.mark.parametrize("form", ["plain", "json"])
def test_secret_of_each_format_is_hidden_in_any_chunks(sample: Sample, form: str) -> None:
    text = (
        f"first\nsee {sample.text} and\nlast\n" if form == "plain" else json.dumps({"text": f"see {sample.text} and"})
    )
    data = text.encode()
    hidden = Redactor().mask(data)
    for cut in range(0, len(data), max(len(data) // SPLITS, 1)):
        for size in (len(data), 5):
            stream = RedactedStream(Redactor())
            rest = data[cut:]
            pieces = [data[:cut], *(rest[at : at + size] for at in range(0, len(rest), size))]
            assert b"".join([*map(stream.feed, pieces), stream.flush()]) == hidden, pieces


@pytest.mark.parametrize("text", HARMLESS)
def test_code_and_placeholders_are_unchanged(text: str) -> None:
    assert Redactor().mask_text(text) == text
    assert Redactor().mask_text(json.dumps(text)) == json.dumps(text)


def test_number_of_formats() -> None:
    assert len(SAMPLES) >= 100
