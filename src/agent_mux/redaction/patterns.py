r"""Patterns of secrets: the prefixes and formats by which the keys of known issuers are recognized.

Each pattern has literals to search for, and an expression that must match at the position of a literal. The group
`secret` of the match is hidden. Secrets are ASCII without quotes, backslashes and spaces: hiding one keeps JSON valid.
The expressions ignore the preceding character: in JSON it may be the `n` of `\n`, or the `m` that ends a colour code.
"""

from typing import NamedTuple


class SecretPattern(NamedTuple):
    """The format of one kind of secret."""

    name: str
    """Issuer or use, for readers of this file."""
    literals: tuple[bytes, ...]
    """Texts that every such secret contains or follows."""
    expression: bytes
    """Compiled when one of the literals is found: most processes find none."""


def _pattern(name: str, literals: str, expression: str) -> SecretPattern:
    """Create a pattern; `literals` are separated by `|`."""
    return SecretPattern(name, tuple(literals.encode().split(b"|")), expression.encode())


_MIXED = r"(?=[\w.~+/=-]{0,300}\d)(?=[\w.~+/=-]{0,300}[A-Za-z])"
"""Requires a digit and a letter, which excludes words."""

PRIVATE_KEY = b"PRIVATE KEY-----"
"""Part of the first and the last line of a private key in PEM format."""

PATTERNS: tuple[SecretPattern, ...] = (
    _pattern(
        "Anthropic, OpenAI, OpenRouter, and issuers with the same format",
        "sk-",
        r"sk-(?:(?:ant|proj|svcacct|admin|None|or-v1|lf)-(?P<secret>[\w-]{20,})"
        r"|(?=\w*\d)(?=\w*[A-Za-z])(?P<plain>[A-Za-z0-9]{32,}))",
    ),
    _pattern("Google API key", "AIza", r"AIza(?P<secret>[\w-]{35})"),
    _pattern("Google OAuth", "ya29.|GOCSPX-", r"(?:ya29\.|GOCSPX-)(?P<secret>[\w.-]{20,})"),
    _pattern("GitHub", "ghp_|gho_|ghu_|ghs_|ghr_", r"gh[pousr]_(?P<secret>\w{36,})"),
    _pattern("GitHub, fine-grained", "github_pat_", r"github_pat_(?P<secret>\w{36,})"),
    _pattern(
        "GitLab",
        "glpat-|gldt-|glrt-|glcbt-|glptt-",
        r"gl[a-z]{2,5}-(?P<secret>[\w.-]{20,})",
    ),
    _pattern("AWS access key id", "AKIA|ASIA", r"A[KS]IA(?P<secret>[A-Z2-7]{16})(?![A-Za-z0-9])"),
    _pattern(
        "AWS secret access key",
        "ecret_access_key|ECRET_ACCESS_KEY|ecretAccessKey",
        r"(?i:ecret_?access_?key)[\\\"' ]{0,8}[:=][\\\"' ]{0,8}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    _pattern(
        "Slack",
        "xox|xapp-",
        r"(?:xox[abeoprs]|xapp)-(?P<secret>[A-Za-z0-9-]{10,})",
    ),
    _pattern("Slack webhook", "hooks.slack.com/services/", r"hooks\.slack\.com/services/(?P<secret>T\w+/B\w+/\w{20,})"),
    _pattern("Stripe", "k_live_|k_test_", r"k_(?:live|test)_(?P<secret>[A-Za-z0-9]{16,})"),
    _pattern("Stripe webhook", "whsec_", r"whsec_(?P<secret>[A-Za-z0-9+/=]{24,})"),
    _pattern("Hugging Face", "hf_", r"hf_(?P<secret>[A-Za-z0-9]{30,})"),
    _pattern("npm", "npm_", r"npm_(?P<secret>[A-Za-z0-9]{36,})"),
    _pattern("PyPI", "pypi-AgE", r"pypi-(?P<secret>AgE[\w-]{50,})"),
    _pattern(
        "xAI, Groq, Perplexity, Tavily", "xai-|gsk_|pplx-|tvly-", r"(?:xai-|gsk_|pplx-|tvly-)(?P<secret>[\w-]{24,})"
    ),
    _pattern("SendGrid", "SG.", r"SG\.(?P<secret>[\w-]{16,}\.[\w-]{16,})"),
    _pattern("DigitalOcean", "dop_v1_", r"dop_v1_(?P<secret>[a-f0-9]{64})"),
    _pattern("JSON Web Token", "eyJ", r"(?P<secret>eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,})"),
    _pattern("agent-mux", "amux_", r"amux_[0-9a-f]{12}_(?P<secret>[A-Za-z0-9]{43})"),
    _pattern("age", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1(?P<secret>[A-Z0-9]{58})"),
    _pattern("bearer", "earer ", rf"(?i:earer) +{_MIXED}(?P<secret>[\w.~+/=-]{{16,}})"),
    _pattern(
        "Authorization",
        "uthorization|UTHORIZATION",
        rf"(?i:uthorization)[\\\"' ]{{0,8}}[:=][\\\"' ]{{0,8}}(?:[A-Za-z]+ +)?{_MIXED}(?P<secret>[\w.~+/=-]{{16,}})",
    ),
    _pattern("password in a URL", "://", r"://[^\s/:@\"'\\<>{}$]{0,80}:(?P<secret>[^\s/@\"'\\<>{}$*]{3,200})@"),
    _pattern(
        "assignment",
        "KEY=|TOKEN=|SECRET=|SSWORD=",
        rf"[A-Z]+=[\\\"']{{0,4}}{_MIXED}(?P<secret>[\w.~+/=-]{{12,}})",
    ),
)
