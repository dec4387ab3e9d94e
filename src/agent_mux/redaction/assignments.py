r"""Secrets that are recognized by the name before them: `password: ...`, `"token": "..."`, `--api-key ...`.

The value has no form of its own, so that it must look random: source code assigns words, types, calls, and placeholders
to the same names.
"""

import re

NAMES = (
    "assw|ASSW|assp|ecre|ECRE|OKEN|"
    "oken\"|oken'|oken\\|oken:|oken=|oken =|-token |"
    "pi_k|pi-k|piKe|pi-K|PI_K|PI-K|ess_k|essKe|ess-k|uth_k|uthKe|uth-K|ion_k|ion-K|ntKey|teKey|edKey|KEY=|"
    "_PASS|_pass|Pwd=|_PWD"
)
"""Ends of names of secrets, as literals to search for. Those of `token` continue: `tokens` are counted everywhere."""

LITERAL = (
    r"(?:(?i:assword|asswd|assphrase|ecret|-?token|oken|pi_?-?key|ess_?-?key|uth_?-?key|(?<=ript)ion_?-?key|(?<=rypt)ion_?-?key|ntKey|"
    r"teKey|edKey|_pass|_pwd|pwd)(?i:_?-?(?:access)?_?-?key(?:_base)?|\d)?|KEY)"
)
SEPARATOR = r"[\\\"']{0,8}(?:[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,8}|[ \t]{1,4})"
OPEN_SEPARATOR = r"[\\\"']{0,8}[ \t]{0,4}(?::=|=>|[:=])?[ \t]{0,8}"
"""A separator that may be incomplete."""
VALUE = r"[^\s\"'\\`\x00-\x20\x7f-\xff]"

EXPRESSION = rf"{LITERAL}{SEPARATOR}(?P<quotes>[\\\"']{{0,8}})(?:base64:)?(?P<secret>{VALUE}{{6,100}})"

_PASSWORD = re.compile(rb"(?i)ass|pwd")
_NO_SECRET = re.compile(
    rb"(?i)[$%<{\[(*&@#!|]|(?:https?|file|ftp)://|/|\.\.?/|process\.|os\.|env[.(]|self\.|this\.|str\(|sha\d+[-:]|urn:|"
    rb"data:|application/|[a-f0-9]{8}-(?:[a-f0-9]{4}-){3}[a-f0-9]{12}\Z|.*(?:\.\.\.|xxxx|\*\*\*|your|example|change.?me|placeholder|redacted|dummy|insert|\$\{|\{\{|<[a-z]|"
    rb"\(\)|\[\]|->|=>|::|&&|\|\|)"
)
_PLACEHOLDER = re.compile(
    rb"(?i)\$[{(A-Z_]|\*|%[sd(]|[<{\[]|.*(?:\.\.\.|xxxx|\*\*\*|your|example|change.?me|placeholder|redacted|dummy|\$\{)|"
    rb"(?:pass|password|passwd|pw|pwd|secret|token|key|user|username|x+|\d{1,5}|key_\d+)\Z"
)
"""What stands for a secret in documentation, where it is clear that one follows."""
_PLAIN = re.compile(rb"(.)\1*|[A-Za-z_.:/,;-]+|[\d.,:;+-]+|(?:[A-Z]?[a-z_]+|[A-Z_]+)[\d_]{1,4}[;,.)]*", re.DOTALL)
"""Words, names, numbers, and words with a number: `password1`, `token_2`."""
_CODE = re.compile(
    rb"[A-Za-z_$][\w$]*(?:[.\[(?!:][\w$.\[\]()?!:'\"]*)+[;,)]*|.*[()\[\]{}<>|].*|[A-Za-z_]+\d[;,]*|.*,[a-z]+\.[A-Za-z]+=.*|_*[A-Za-z][a-z0-9]*(?:[_-][A-Za-z0-9]*)+[,;]*"
)
"""Expressions of source code, and names in snake case: `oauth2.token`, `get(0)`, `test_client_2`."""
_CODE_IN_QUOTES = re.compile(
    rb"[a-z][a-z0-9]*(?:[_-][a-z0-9]{0,9})+|[A-Za-z]+\d?(?:\[-?\d+\])?(?:[.:][A-Za-z]+(?:\[-?\d+\])?)+"
)
"""Names in quotes: `imdsv2_session_token`, `Jobs[-1].JobId`."""
_CURSOR = re.compile(
    rb"(?i)(?:continuation|page|next|change|progress|cancell?ation|sync|resum\w*|in|out)(?:put)?[_-]?t?oken\Z"
)
"""Names of tokens that are positions in a list."""
_FLAG = re.compile(rb"(?:\A|[\s\"'\\nrt])--?[A-Za-z-]{0,30}\Z")
_RUNS = re.compile(rb"[a-z]+|[A-Z]+|\d+|[^A-Za-z0-9]+")
_MIN_PASSWORD, _MIN_TOKEN = 8, 12  # bytes; shorter values are words more often than not
_MIN_RUNS = 4  # changes between small letters, capitals, digits and others
_REST = re.compile(VALUE.encode() + rb"{0,4000}")
_NEXT_FIELD = re.compile(rb"[&;,](?=[A-Za-z][\w-]*=)|[;&]\Z")
"""Separators of fields in queries and connection strings: `password=...&ssl=true`."""
_ENDS = (b"", b'"', b"'", b"\\")  # any other byte after a value in quotes continues a sentence
_TRAILING = b",;.)]}>"


def secret_of(data: bytes, found: re.Match[bytes]) -> tuple[int, int] | None:
    """Return the position of the secret in an assignment, None if its value is probably no secret."""
    start, end = found.span("secret")
    value = found["secret"]
    if "quotes" not in found.re.groupindex:  # the context is clear, the value may be a placeholder
        return None if _PLACEHOLDER.match(value) else (start, end)
    rest = _REST.match(data, end)  # what decides is in the first bytes: output that repeats a name must not take long
    end = rest.end() if rest is not None else end
    is_quoted = bool(found["quotes"])
    if not is_quoted:
        value = _NEXT_FIELD.split(value, 1)[0].rstrip(_TRAILING)
    name = data[max(found.start() - 24, 0) : found.start() + 4]
    is_secret = (
        _CURSOR.search(name) is None
        and (data[end : end + 1] in _ENDS if is_quoted else _CODE.fullmatch(found["secret"]) is None)
        and _is_assigned(data, found, is_quoted=is_quoted)
        and is_probable_secret(value, is_quoted=is_quoted, is_password=_PASSWORD.search(found[0][:20]) is not None)
    )
    if not is_secret:
        return None
    whole = data[start:end]
    return start, start + len(whole if is_quoted else _NEXT_FIELD.split(whole, 1)[0].rstrip(_TRAILING))


def _is_assigned(data: bytes, found: re.Match[bytes], *, is_quoted: bool) -> bool:
    """Return whether the value belongs to the name: neither `arn:secret:name` nor prose."""
    between = data[found.start() : found.start("secret")]
    has_sign = b"=" in between or b":" in between
    if is_quoted:
        return has_sign or _is_flag(data, found.start())
    if between.endswith(b":"):
        return False
    return has_sign or _PASSWORD.search(between) is not None or _is_flag(data, found.start())


def _is_flag(data: bytes, start: int) -> bool:
    return _FLAG.search(data[max(start - 40, 0) : start]) is not None


def is_probable_secret(value: bytes, *, is_quoted: bool, is_password: bool) -> bool:
    """Return whether a value that follows the name of a secret is one, and no word, placeholder or code."""
    if _NO_SECRET.match(value) or _PLAIN.fullmatch(value):
        return False
    runs = len(_RUNS.findall(value))
    if not is_quoted:
        has_digit = any(byte in b"0123456789" for byte in value)
        return has_digit and runs >= _MIN_RUNS and len(value) >= (_MIN_PASSWORD if is_password else _MIN_TOKEN)
    if _CODE_IN_QUOTES.fullmatch(value):
        return False
    if is_password:
        return len(value) >= _MIN_PASSWORD and runs >= _MIN_RUNS - 1
    return len(value) >= _MIN_TOKEN and runs >= _MIN_RUNS
