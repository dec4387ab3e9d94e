"""How risky is what OpenCode asks permission for? Source: agent-events spec, section 18.1 (`riskLevel`).

low: reads; medium: file writes and ordinary commands; high: destructive, network or privileged. A guess for the
person who decides: when in doubt it says the higher one.
"""

from itertools import pairwise

from agent_mux.facts import Risk

_RISKS: dict[str, Risk] = {
    "codesearch": "high",
    "external_directory": "high",
    "glob": "low",
    "grep": "low",
    "list": "low",
    "lsp": "low",
    "read": "low",
    "skill": "low",
    "todowrite": "low",
    "webfetch": "high",
    "websearch": "high",
}
_ALARMING = frozenset({
    "apt", "apt-get", "aws", "az", "brew", "chmod", "chown", "crontab", "curl", "dd", "doas", "docker", "fdisk", "ftp",
    "gcloud", "gh", "kill", "killall", "kubectl", "mkfs", "mount", "nc", "ncat", "pip", "pkexec", "pkill", "reboot",
    "rm", "rmdir", "rsync", "scp", "service", "sftp", "shred", "shutdown", "ssh", "su", "sudo", "systemctl", "telnet",
    "terraform", "truncate", "umount", "wget",
})  # fmt: skip
_ALARMING_PAIRS = frozenset({
    "git clean", "git clone", "git fetch", "git pull", "git push", "git reset", "npm install", "npm publish",
})  # fmt: skip
_READING = frozenset({
    "cat", "date", "df", "diff", "du", "echo", "file", "grep", "head", "id", "ls", "pwd", "rg", "stat", "tail", "tree",
    "uname", "wc", "which", "whoami",
})  # fmt: skip
_SEPARATORS = str.maketrans(dict.fromkeys(";|&()`\"'$<>{}\n\t\r", " "))


def risk_of(permission: str, command: str) -> Risk:
    """The risk of granting a permission; `command`: what would run, if it is one to run something."""
    return _risk_of_command(command) if permission == "bash" else _RISKS.get(permission, "medium")


def _risk_of_command(command: str) -> Risk:
    words = [word.rsplit("/", 1)[-1].lower() for word in command.translate(_SEPARATORS).split()]
    pairs = {f"{one} {other}" for one, other in pairwise(words)}
    if not _ALARMING.isdisjoint(words) or not _ALARMING_PAIRS.isdisjoint(pairs):
        return "high"
    only_reads = bool(words) and words[0] in _READING and not set(command) & set(";|&<>`$\n")
    return "low" if only_reads else "medium"
