r"""What keys look like: the prefixes that their issuers give them, so that they can be recognised.

Each shape has literals to look for, and an expression that must match where one of them stands. Its group `secret` is
what is hidden. Secrets are ASCII without quotes, backslashes and spaces: hiding one never breaks JSON. The expressions
do not ask what stands before: in JSON that may be the `n` of `\n`, or the `m` that ends a colour.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of key."""

    name: str
    literals: tuple[bytes, ...]
    expression: re.Pattern[bytes]


def _shape(name: str, literals: str, expression: str) -> Shape:
    """`literals` are apart by bars."""
    return Shape(name, tuple(literals.encode().split(b"|")), re.compile(expression.encode()))


_MIXED = r"(?=[\w.~+/=-]{0,300}\d)(?=[\w.~+/=-]{0,300}[A-Za-z])"
"""Somewhere in it is a digit, and a letter: no words."""

PRIVATE_KEY = b"PRIVATE KEY-----"

SHAPES: tuple[Shape, ...] = (
    _shape(
        "Anthropic, OpenAI, OpenRouter, and those who took their form",
        "sk-",
        r"sk-(?:(?:ant|proj|svcacct|admin|None|or-v1|lf)-(?P<secret>[\w-]{20,})"
        r"|(?=\w*\d)(?=\w*[A-Za-z])(?P<plain>[A-Za-z0-9]{32,}))",
    ),
    _shape("Google API key", "AIza", r"AIza(?P<secret>[\w-]{35})"),
    _shape("Google OAuth", "ya29.|GOCSPX-", r"(?:ya29\.|GOCSPX-)(?P<secret>[\w.-]{20,})"),
    _shape("GitHub", "ghp_|gho_|ghu_|ghs_|ghr_", r"gh[pousr]_(?P<secret>\w{36,})"),
    _shape("GitHub, fine-grained", "github_pat_", r"github_pat_(?P<secret>\w{36,})"),
    _shape(
        "GitLab",
        "glpat-|gldt-|glrt-|glcbt-|glptt-",
        r"gl[a-z]{2,5}-(?P<secret>[\w.-]{20,})",
    ),
    _shape("AWS access key id", "AKIA|ASIA", r"A[KS]IA(?P<secret>[A-Z2-7]{16})(?![A-Za-z0-9])"),
    _shape(
        "AWS secret access key",
        "ecret_access_key|ECRET_ACCESS_KEY|ecretAccessKey",
        r"(?i:ecret_?access_?key)[\\\"' ]{0,8}[:=][\\\"' ]{0,8}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    _shape(
        "Slack",
        "xox|xapp-",
        r"(?:xox[abeoprs]|xapp)-(?P<secret>[A-Za-z0-9-]{10,})",
    ),
    _shape("Slack webhook", "hooks.slack.com/services/", r"hooks\.slack\.com/services/(?P<secret>T\w+/B\w+/\w{20,})"),
    _shape("Stripe", "k_live_|k_test_", r"k_(?:live|test)_(?P<secret>[A-Za-z0-9]{16,})"),
    _shape("Stripe webhook", "whsec_", r"whsec_(?P<secret>[A-Za-z0-9+/=]{24,})"),
    _shape("Hugging Face", "hf_", r"hf_(?P<secret>[A-Za-z0-9]{30,})"),
    _shape("npm", "npm_", r"npm_(?P<secret>[A-Za-z0-9]{36,})"),
    _shape("PyPI", "pypi-AgE", r"pypi-(?P<secret>AgE[\w-]{50,})"),
    _shape(
        "xAI, Groq, Perplexity, Tavily", "xai-|gsk_|pplx-|tvly-", r"(?:xai-|gsk_|pplx-|tvly-)(?P<secret>[\w-]{24,})"
    ),
    _shape("SendGrid", "SG.", r"SG\.(?P<secret>[\w-]{16,}\.[\w-]{16,})"),
    _shape("DigitalOcean", "dop_v1_", r"dop_v1_(?P<secret>[a-f0-9]{64})"),
    _shape("JSON Web Token", "eyJ", r"(?P<secret>eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,})"),
    _shape("agent-mux", "amux_", r"amux_[0-9a-f]{12}_(?P<secret>[A-Za-z0-9]{43})"),
    _shape("age", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1(?P<secret>[A-Z0-9]{58})"),
    _shape("bearer", "earer ", rf"(?i:earer) +{_MIXED}(?P<secret>[\w.~+/=-]{{16,}})"),
    _shape(
        "Authorization",
        "uthorization|UTHORIZATION",
        rf"(?i:uthorization)[\\\"' ]{{0,8}}[:=][\\\"' ]{{0,8}}(?:[A-Za-z]+ +)?{_MIXED}(?P<secret>[\w.~+/=-]{{16,}})",
    ),
    _shape("password in a URL", "://", r"://[^\s/:@\"'\\<>{}$]{0,80}:(?P<secret>[^\s/@\"'\\<>{}$*]{3,200})@"),
    _shape(
        "assignment",
        "KEY=|TOKEN=|SECRET=|SSWORD=",
        rf"[A-Z]+=[\\\"']{{0,4}}{_MIXED}(?P<secret>[\w.~+/=-]{{12,}})",
    ),
)
