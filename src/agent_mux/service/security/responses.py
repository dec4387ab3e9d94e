"""Headers of every answer: what a browser may do with it, which is nothing but to show it as what it is.

Agents print what they like, scripts too. An answer is never taken for a page (exact types, `nosniff`); if it were one,
no script of it would run (`default-src 'none'`); no other site can frame or embed it; nobody keeps a copy.
"""

from starlette.datastructures import MutableHeaders

HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def add_headers(headers: MutableHeaders) -> None:
    """Those that are not there. A route may say its own; a test says that none is weaker."""
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
