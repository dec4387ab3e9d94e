"""Whether a `Host` means this server, and whether a browser was sent by a page of another site."""

import pytest

from agent_mux.service.security.http_rules import host_name, is_allowed_host, is_same_site

COMMON_ERRORS = "0.0.0.0"  # noqa: S104  # nothing is bound


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8642", "localhost"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("[::1]:8642", "::1"),
        ("amux.example.", "amux.example"),
        ("", None),
        ("::1", None),
        ("a:b", None),
        ("localhost:8642:1", None),
        ("localhost:999999", None),
        ("user@localhost", None),
        ("localhost/x", None),
        ("localhost evil.example", None),
        ("localhost\n", None),
        ("[localhost]", None),
    ],
)
def test_the_name_in_a_host(text: str, name: str | None) -> None:
    assert host_name(text) == name


@pytest.mark.parametrize(
    ("text", "bound", "further", "is_own"),
    [
        ("localhost:8642", "127.0.0.1", (), True),
        ("app.localhost", "127.0.0.1", (), True),
        ("127.0.0.1", "127.0.0.1", (), True),
        ("127.9.9.9:80", "127.0.0.1", (), True),
        ("[::1]", "127.0.0.1", (), True),
        ("evil.example", "127.0.0.1", (), False),
        ("localhost.evil.example", "127.0.0.1", (), False),
        ("127.0.0.1.evil.example", "127.0.0.1", (), False),
        ("notlocalhost", "127.0.0.1", (), False),
        ("192.0.2.7", "127.0.0.1", (), False),
        ("192.0.2.7", "192.0.2.7", (), True),
        ("192.0.2.8", "192.0.2.7", (), False),
        ("192.0.2.8", COMMON_ERRORS, (), True),
        ("[2001:db8::1]:443", "::", (), True),
        ("evil.example", COMMON_ERRORS, (), False),
        ("amux.example", "127.0.0.1", ("amux.example",), True),
        ("AMUX.example:443", "127.0.0.1", ("Amux.Example",), True),
        ("x.amux.example", "127.0.0.1", ("amux.example",), False),
        ("0x7f.1", "127.0.0.1", (), False),
        ("", "127.0.0.1", (), False),
    ],
)
def test_only_names_that_mean_this_server_are_its_own(
    text: str, bound: str, further: tuple[str, ...], is_own: bool
) -> None:
    assert is_allowed_host(text, bound, further) is is_own


@pytest.mark.parametrize(
    ("origin", "site", "is_own"),
    [
        (None, None, True),
        (None, "same-origin", True),
        (None, "none", True),
        (None, "same-site", False),
        (None, "cross-site", False),
        (None, "something new", False),
        ("http://localhost:8642", None, True),
        ("http://LOCALHOST:8642", "same-origin", True),
        ("http://localhost:8642", "cross-site", False),
        ("http://localhost:3000", None, False),
        ("http://localhost", None, False),
        ("http://localhost:8642.evil.example", None, False),
        ("http://localhost:8642@evil.example", None, False),
        ("http://evil.example/localhost:8642", None, False),
        ("ftp://localhost:8642", None, False),
        ("null", None, False),
        ("", None, False),
        ("http://[", None, False),
        ("https://amux.example", None, True),
        ("https://x.amux.example", None, False),
    ],
)
def test_requests_are_classified_by_their_site(origin: str | None, site: str | None, is_own: bool) -> None:
    assert is_same_site(origin, site, "localhost:8642", ("amux.example",)) is is_own
