"""Invented keys of every known format, assembled from parts so that no scanner reports this file as a leak."""

UP = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA" * 3
BASE32 = "QZ2X7LMNOPQRSTUV"
JWT = "ey" + "JhbGciOiJIUzI1NiJ9" + ".ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0" + "." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"

SAMPLES = {
    "anthropic": "sk-" + "ant-api03-" + UP,
    "openai": "sk-" + "proj-" + UP,
    "openai, old": "sk-" + UP[:48],
    "openrouter": "sk-" + "or-v1-" + "0a" * 32,
    "google": "AI" + "za" + UP[:35],
    "google oauth": "ya" + "29." + UP[:60],
    "github": "gh" + "p_" + UP[:36],
    "github app": "gh" + "s_" + UP[:36],
    "github fine-grained": "github" + "_pat_" + UP[:22] + "_" + UP[:59],
    "gitlab": "gl" + "pat-" + UP[:20],
    "aws id": "AK" + "IA" + BASE32,
    "aws secret": "aws_secret_access_key = " + UP[:40],
    "slack": "xo" + "xb-123456789012-" + UP[:24],
    "stripe": "sk" + "_live_" + UP[:24],
    "hugging face": "hf" + "_" + UP[:34],
    "npm": "np" + "m_" + UP[:36],
    "pypi": "py" + "pi-AgE" + UP[:60],
    "groq": "gs" + "k_" + UP[:52],
    "agent-mux": "amu" + "x_0123456789ab_" + UP[:43],
    "jwt": JWT,
    "bearer": "Authorization: Bearer " + UP[:30],
    "header": "authorization: token " + UP[:30],
    "url": "https://user:" + UP[:12] + "@example.com/x",
    "assignment": "MY_API_KEY=" + UP[:24],
}
"""Printed text by issuer; the secret is its last part."""

KEY_LINES = [UP[:64], UP[8:72], UP[:20]]
PRIVATE_KEY = "\n".join(("-----BEGIN RSA " + "PRIVATE KEY-----", *KEY_LINES, "-----END RSA " + "PRIVATE KEY-----"))

HARMLESS = (
    "task-runner and disk-usage, risk-free: sk-learn",
    "https://example.com:8080/a@b?x=1 and git@github.com:owner/repo.git",
    "Bearer of good news; basic authentication is required; Authorization: required",
    "MAX_TOKENS=4096 KEY=value TOKEN=$OTHER SECRET=process.env.SECRET",
    "5b7d1bd5-bd86-4624-bad9-c1a17aea4ea5 01ARZ3NDEKTSV4RRFFQ69G5FAV toolu_01A09q90qw90lq917835lq9",
    "call_abc123DEF456ghi789JKL012 msg_01XFDUDYJgAACzvnptvVoYEL resp_0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa",
    "npm_config_registry hf_hub_download ghp_ AKIA eyJ.eyJ SG.x pypi-server",
)
"""Texts that resemble keys but are not."""
