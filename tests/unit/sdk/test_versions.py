"""Comparing the version of a program with the versions that recordings cover."""

import pytest

from agent_mux.sdk.versions import describe_state, find_version, sorted_versions, state_of

TESTED = sorted_versions(["1.18.33", "1.2.27", "1.18.33"])


def test_versions_are_sorted_by_number() -> None:
    assert TESTED == ("1.2.27", "1.18.33")


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("1.2.27", "tested"),
        ("1.18.33", "tested"),
        ("1.3.2", "in_range"),
        ("1.18.33-beta.1", "in_range"),
        ("1.2.26", "unknown"),
        ("1.19.0", "unknown"),
        (None, "unknown"),
    ],
)
def test_state_of_a_version(version: str | None, state: str) -> None:
    assert state_of(version, TESTED) == state


def test_without_tested_versions_every_version_is_unknown() -> None:
    assert state_of("1.0.0", ()) == "unknown"


@pytest.mark.parametrize(
    ("text", "version"),
    [("codex-cli 0.169.0\n", "0.169.0"), ("2026.01.28-abc", "2026.01.28-abc"), ("v3.11", "3.11"), ("none", None)],
)
def test_version_is_found_in_a_text(text: str, version: str | None) -> None:
    assert find_version(text) == version


def test_older_version_has_a_next_step() -> None:
    described = describe_state("OpenCode", "1.0.61", TESTED, agent="opencode")
    assert described == (
        "OpenCode 1.0.61 is older than the tested range, 1.2.27 to 1.18.33; update it: amux update opencode"
    )


def test_range_of_one_version_is_that_version() -> None:
    assert "newer than the tested range, 1.0.0;" in describe_state("X", "2.0.0", ("1.0.0",), agent="x")
