"""Deny patterns and the filtered environment of commands."""

import pytest

from agent_loop.tools.builtin.shell_rules import DENIED, denied_by, without_secrets


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /", "sudo rm  -rf  /", "cd x && rm -rf /;echo", "/bin/rm -rf /", "rm -rf '/'", 'bash -c "rm -rf /"',
        "eval 'rm -rf ~'", "rm -rf /*", ":(){ :|:& };:", "/sbin/mkfs.ext4 /dev/sda", "rm -rf / 'open",
        "true\nshutdown now",
    ],
)  # fmt: skip
def test_commands_with_denied_words_are_refused(command: str) -> None:
    assert denied_by(command, DENIED) is not None


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /tmp/x",
        "rm -rf ./build",
        "echo shutdowns",
        "grep -r reboot-time .",
        "git commit -m 'no rm -rf / here'",
        "",
    ],
)
def test_words_are_compared_whole_and_quoted_text_is_one_word(command: str) -> None:
    assert denied_by(command, DENIED) is None


def test_deny_patterns_are_configurable() -> None:
    assert denied_by("git push --force origin", ["", "git push --force"]) == "git push --force"
    assert denied_by("rm -rf /", []) is None


def test_variables_that_look_like_secrets_are_left_out() -> None:
    secrets = [
        "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "GITHUB_TOKEN", "GITHUB_PAT",
        "SENTRY_DSN", "DATABASE_URL", "SLACK_WEBHOOK_URL", "SESSION_COOKIE",
        "gh_token",
        "TOKEN",
        "DB_PASSWORD", "GOOGLE_APPLICATION_CREDENTIALS", "STRIPE_SECRET", "CLAUDE_CODE_OAUTH_TOKEN", "SSH_PASSPHRASE",
    ]  # fmt: skip
    plain = {"PATH": "/bin", "HOME": "/", "LANG": "C", "KEYBOARD": "us", "TOKENIZERS_PARALLELISM": "1", "MONKEY": "m"}
    given = {**dict.fromkeys(secrets, "s"), **plain}
    assert without_secrets(given) == plain
    assert without_secrets(given, keep=["GITHUB_TOKEN"]) == {**plain, "GITHUB_TOKEN": "s"}
