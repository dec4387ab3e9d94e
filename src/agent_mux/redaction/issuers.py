r"""Keys that are recognized by the prefix that their issuer gives them.

Each pattern has literals to search for, and an expression that must match at the position of a literal. The group
`secret` of the match is hidden, or the whole match. Secrets are ASCII without quotes, backslashes and spaces: hiding
one keeps JSON valid. The expressions ignore the preceding character where they can: in JSON it may be the `n` of `\n`,
or the `m` that ends a colour code.
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
    before: int = 0
    """Number of bytes before the literal at which the expression must match."""
    is_placeholder_possible: bool = False
    """Whether the value has no form of its own, so that `assignments.secret_of` decides about it."""


def pattern(
    name: str, literals: str, expression: str, *, before: int = 0, is_placeholder_possible: bool = False
) -> SecretPattern:
    """Create a pattern; `literals` are separated by `|`."""
    return SecretPattern(
        name, tuple(literals.encode().split(b"|")), expression.encode(), before, is_placeholder_possible
    )


def _prefixed(name: str, prefixes: str, secret: str) -> SecretPattern:
    """Create a pattern of keys that consist of one of these prefixes, separated by `|`, and a secret."""
    alternatives = prefixes.replace(".", r"\.").replace("+", r"\+")
    return pattern(name, prefixes, rf"(?:{alternatives})(?P<secret>{secret})")


MIXED = r"(?=[\w.~+/=-]{0,300}\d)(?=[\w.~+/=-]{0,300}[A-Za-z])"
"""Requires a digit and a letter, which excludes words."""
_START = r"(?:(?<![\w+/-])|(?<=\\[nrt]))"
"""No preceding letter, for prefixes that occur inside of other random text; `\\n` is the end of a line in JSON."""
_MIXED_WORD = r"(?=[A-Za-z]{0,40}\d)(?=\d{0,40}[A-Za-z])"

ISSUERS: tuple[SecretPattern, ...] = (
    pattern(
        "Anthropic, OpenAI, OpenRouter, and issuers with the same format",
        "sk-",
        r"sk-(?:(?:ant|proj|svcacct|admin|None|or-v1|lf)-(?P<secret>[\w-]{20,})"
        r"|(?=\w*\d)(?=\w*[A-Za-z])(?P<plain>[A-Za-z0-9]{32,}))",
    ),
    _prefixed("Google API key", "AIza", r"[\w-]{35}"),
    _prefixed("Google OAuth", "ya29.|GOCSPX-", r"[\w.-]{20,}"),
    pattern("Google refresh token", "1//0", rf"1//0{MIXED}(?P<secret>[\w-]{{30,}})"),
    _prefixed("GitHub", "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_", r"\w{36,}"),
    pattern(
        "GitLab",
        "glpat-|gldt-|glrt-|glcbt-|glptt-|glft-",
        r"gl[a-z]{2,5}-(?P<secret>[\w.-]{20,})",
    ),
    pattern("AWS access key id", "AKIA|ASIA", r"A[KS]IA(?P<secret>[A-Z2-7]{16})(?![A-Za-z0-9])"),
    pattern("AWS session token", "IQoJb3Jp", r"(?P<secret>IQoJb3Jp[\w/+=%-]{60,})"),
    _prefixed("AWS Bedrock", "ABSK", r"[A-Za-z0-9+/=]{100,}"),
    pattern(
        "Azure application", "7Q~|8Q~", r"(?<![\w.~-])[\w.~-]{3}\dQ~(?P<secret>[\w.~-]{31,34})(?![\w~-])", before=3
    ),
    pattern("Slack", "xox|xapp-", r"(?:xox[abceoprs]|xapp)(?:\.xox[a-z])?-(?P<secret>[A-Za-z0-9-]{10,})"),
    pattern(
        "webhook of Slack, Discord",
        "hooks.slack.com/services/|/api/webhooks/",
        r"(?:hooks\.slack\.com/services/(?P<secret>T\w+/B\w+/\w{20,})|/api/webhooks/\d{15,}/(?P<discord>[\w-]{50,}))",
    ),
    pattern("Stripe, Clerk, Paystack, PayPal", "k_live_|k_test_", r"k_(?:live|test)_(?P<secret>[A-Za-z0-9]{16,})"),
    _prefixed("Stripe webhook", "whsec_", r"[A-Za-z0-9+/=]{24,}"),
    _prefixed("Hugging Face", "hf_", r"[A-Za-z0-9]{30,}"),
    _prefixed("npm", "npm_", r"[A-Za-z0-9]{36,}"),
    pattern("PyPI", "pypi-AgE", r"pypi-(?P<secret>AgE[\w-]{50,})"),
    _prefixed("xAI, Groq, Perplexity, Tavily", "xai-|gsk_|pplx-|tvly-", r"[\w-]{24,}"),
    pattern(
        "Replicate, Fireworks, Netlify, Notion, Linear",
        "r8_|fw_|nfp_|ntn_|lin_api_|lin_oauth_",
        rf"(?:r8_|fw_|nfp_|ntn_|lin_api_|lin_oauth_){_MIXED_WORD}(?P<secret>[A-Za-z0-9]{{22,}})(?![\w.])",
    ),
    pattern("Notion, before 2024", "ecre", rf"ecret_{_MIXED_WORD}(?P<secret>[A-Za-z0-9]{{43}})(?!\w)"),
    _prefixed("SendGrid", "SG.", r"[\w-]{16,}\.[\w-]{16,}"),
    pattern("Brevo", "xkeysib-", r"xkeysib-(?P<secret>[a-f0-9]{64}-\w{16})"),
    pattern("DigitalOcean", "_v1_", r"do[opr]_v1_(?P<secret>[a-f0-9]{64})", before=3),
    pattern("Mailgun", "key-", _START + r"key-(?P<secret>[a-f0-9]{32})(?![\w-])"),
    pattern("Mailchimp", "-us", _START + r"(?P<secret>[a-f0-9]{32}-us\d{1,2})(?![\w-])", before=32),
    pattern("Telegram", ":AA", r"\d{8}:(?P<secret>AA[\w-]{33})(?![\w-])", before=8),
    pattern("Shopify", "shp", r"shp(?:at|ss|ca|pa|tka)_(?P<secret>[A-Za-z0-9]{32,})"),
    pattern("Databricks", "dapi", _START + r"dapi(?P<secret>[a-f0-9]{32}(?:-\d)?)(?![a-f0-9])"),
    _prefixed("Vault", "hvs.|hvb.", r"[\w-]{20,}"),
    pattern("Terraform", ".atlasv1.", r"(?P<secret>[A-Za-z0-9]{14}\.atlasv1\.[\w-]{50,})", before=14),
    pattern("Doppler", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{1,40}\.)?(?P<secret>[A-Za-z0-9]{40,})"),
    pattern("Square", "sq0", r"sq0[a-z]{3}-(?P<secret>[\w-]{22,})"),
    pattern("Square, access", "EAAA", rf"{_START}EAAA{MIXED}(?P<secret>[\w-]{{60}})(?![\w/+-])"),
    pattern(
        "Atlassian",
        "ATATT3|ATCTT3|ATBB",
        _START + r"AT(?:[AC]TT3[\w=-]{20}(?P<secret>[\w=-]{40,})|BB(?P<plain>\w{32,36}))",
    ),
    pattern("Sentry", "sntry", r"sntry[su]_(?P<secret>[\w+/=-]{40,})"),
    _prefixed("Grafana", "glsa_|glc_", r"[\w+/=]{32,}"),
    _prefixed("New Relic", "NRAK-|NRJS-", r"[\w-]{19,}"),
    _prefixed("Supabase", "sbp_", r"[\w-]{30,}"),
    pattern("Supabase, new", "ecre", r"sb_secret_(?P<secret>[\w-]{24,})", before=4),
    pattern("Vercel", "vcp_|vck_|vca_", rf"vc[pka]_{_MIXED_WORD}(?P<secret>[A-Za-z0-9]{{24,}})"),
    pattern("Fly", "fo1_|fm2_|fm1", rf"(?:fo1_|fm2_|fm1[ar]_){MIXED}(?P<secret>[\w+/=,-]{{40,}})"),
    pattern(
        "Cloudflare",
        "v1.0-|cfut_|cfat_",
        r"(?:v1\.0-(?P<secret>[a-f0-9]{24}-[a-f0-9]{100,})|cf[ua]t_(?P<plain>\w{40,}))",
    ),
    _prefixed("Heroku", "HRKU-", r"[\w-]{30,}"),
    _prefixed("Docker Hub", "dckr_", r"[po]at_[\w-]{20,}"),
    _prefixed("PlanetScale", "pscale_", r"[a-z]+_[\w.-]{32,}"),
    _prefixed("RubyGems, Postman, Figma, Pulumi", "rubygems_|PMAK-|figd_|pul-", r"[\w-]{40,}"),
    _prefixed("LangSmith, Pinecone, NVIDIA", "lsv2_|pcsk_|nvapi-", r"[\w-]{36,}"),
    _prefixed("Tailscale", "tskey-", r"[a-z]+-[\w-]{20,}"),
    pattern("HubSpot", "pat-na1-", r"pat-na1-(?P<secret>[a-f0-9-]{36})"),
    pattern("Artifactory", "AKCp", rf"{_START}AKCp{MIXED}(?P<secret>[A-Za-z0-9]{{60,}})"),
    pattern("Mapbox", "eyJ", r"[st]k\.(?P<secret>eyJ[\w-]{20,}\.[\w-]{20,})", before=3),
    pattern("JSON Web Token", "eyJ", r"(?P<secret>eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,})"),
    pattern("agent-mux", "amux_", r"amux_[0-9a-f]{12}_(?P<secret>[A-Za-z0-9]{43})"),
    pattern("age", "ECRE", r"AGE-SECRET-KEY-1(?P<secret>[A-Z0-9]{58})", before=5),
    pattern(
        "Twilio",
        "|".join(f"SK{digit}" for digit in "0123456789abcdef"),
        _START + r"SK(?P<secret>[0-9a-f]{32})(?![A-Za-z0-9])",
    ),
)
"""The keys of known issuers, frequent ones first."""
