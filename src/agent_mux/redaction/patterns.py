r"""Patterns of secrets: the prefixes of issuers (`issuers`), and the texts that precede secrets without one.

The rules of `issuers` hold for all patterns.
"""

from agent_mux.redaction import assignments
from agent_mux.redaction.issuers import ISSUERS, MIXED, SecretPattern, pattern

PRIVATE_KEYS = (b"PRIVATE KEY", b"Static key V1-----", b"Private-Lines:")
"""Parts of the lines before and after a private key in the formats PEM, PGP and SSH2, of OpenVPN, and of PuTTY."""

_SPACE = r"(?:[ \t]|\\+[nrt]|\\+u00[0-9a-f]{2})"
_TEXT = r"[^\s\"'\\`]"

PATTERNS: tuple[SecretPattern, ...] = (
    *ISSUERS,
    pattern(
        "AWS secret access key",
        "ecre|ECRE",
        r"(?i:ecret_?access_?key)[\\\"' ]{0,8}[:=][\\\"' ]{0,8}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    pattern("Azure account", "ntKey|essKe", r"[a-z]+Key=(?P<secret>[A-Za-z0-9+/]{43,88}={0,2})"),
    pattern("bearer", "earer ", rf"(?i:earer) +{MIXED}(?P<secret>[\w.~+/=-]{{16,}})"),
    pattern(
        "Authorization",
        "uthorization|UTHORIZATION",
        r"(?i:uthorization)[\\\"' ]{0,8}[:=][\\\"' ]{0,8}(?:"
        r"(?i:basic) +(?P<basic>(?=[A-Za-z0-9+/]{0,80}[a-z])(?=[A-Za-z0-9+/]{0,80}[A-Z])"
        r"[A-Za-z0-9+/]{8,}={0,2})(?![\w.-])|"
        rf"(?:[A-Za-z]+ +)?(?:token=[\\\"]{{0,4}})?{MIXED}(?P<secret>[\w.~+/=-]{{16,}}))",
    ),
    pattern(
        "password in a URL",
        "://",
        r"://[^\s/:@\"'\\<>{}$]{0,80}:(?P<secret>[^\s/@\"'\\<>{}$*][^\s/@\"'\\<>{}*]{2,200})@",
        is_placeholder_possible=True,
    ),
    pattern("signed URL", "ture=|sig=", r"(?:ture|sig)=(?P<secret>[\w%~+/=-]{32,})"),
    pattern(
        "cookie",
        "ookie",
        rf"ookie[\\\"']{{0,8}}: ?[\\\"']{{0,8}}(?:[\w.-]{{1,80}}=[^;\s\"'\\]{{0,200}}; ?){{0,20}}?"
        rf"[\w.-]{{1,80}}={MIXED}"
        r"(?P<secret>[\w.~+/=%-]{12,}(?:; ?[\w.-]{1,80}=[^;\s\"'\\]{8,}){0,20})",
    ),
    pattern(
        "curl",
        "-u |-u'|-u\"|-user",
        rf"(?<![A-Za-z0-9])(?:-u|-(?:proxy-)?user)(?=[ =\\\"'])[ =\\\"']{{0,8}}[^\s:\"'\\$]{{1,80}}"
        rf":(?P<secret>(?=\d{{0,20}}[^\d\s\"'\\]){_TEXT}{{3,200}})",
        is_placeholder_possible=True,
    ),
    pattern(
        "netrc",
        "login ",
        rf"login {_TEXT}{{1,80}}{_SPACE}{{1,8}}password {{1,4}}(?P<secret>{_TEXT}{{6,200}})",
    ),
    pattern(
        "pgpass",
        ":5432:|:*:",
        rf":(?:5432|\*):[\w.*-]{{1,60}}:[\w.*@-]{{1,60}}:(?P<secret>{_TEXT}{{6,200}})",
        is_placeholder_possible=True,
    ),
    pattern(
        "Docker, npm",
        'auth"|auth\\|_auth=',
        r"_?auth[\\\"']{0,8} {0,4}[:=] {0,4}[\\\"']{0,8}(?=[A-Za-z0-9+/]{0,80}[a-z])(?=[A-Za-z0-9+/]{0,300}[0-9=])"
        r"(?P<secret>[A-Za-z0-9+/]{12,}={0,2})(?![\w.-])",
        is_placeholder_possible=True,
    ),
    pattern(
        "key in base64",
        "LS0tLS1C",
        r"LS0tLS1CRUdJTiB(?:SU0EgU|QUklW|FQyBQU|PUEVOU|FTkNSW)(?P<secret>[A-Za-z0-9+/=]{40,})",
    ),
    pattern("WireGuard", "teKey|edKey", r"[a-z]+Key *= *(?P<secret>[A-Za-z0-9+/]{43}=)"),
    pattern(
        "assignment of a variable",
        "KEY=|OKEN|ECRE|ASSW",
        rf"[A-Z_]+=[\\\"']{{0,4}}(?:base64:)?{MIXED}(?P<secret>[\w.~+/=-]{{12,}})",
    ),
    pattern("assignment", assignments.NAMES, assignments.EXPRESSION, is_placeholder_possible=True),
)
"""All patterns; each can be recognized within `stream.MAX_HELD` bytes."""
