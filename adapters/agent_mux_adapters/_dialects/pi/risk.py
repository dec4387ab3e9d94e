"""How risky is what the agent asks permission for? Source: agent-events spec, section 18.1 (`riskLevel`).

low: reads; medium: file writes and ordinary commands; high: destructive, network or privileged. A guess for the
person who decides, from the words of the command: when in doubt the higher one.
"""

from itertools import pairwise

from agent_mux.facts import Risk

ALARMING = frozenset({
    "aws", "az", "chmod", "chown", "crontab", "curl", "dd", "doas", "fdisk", "ftp", "gcloud", "gh", "kill", "killall",
    "kubectl", "mkfs", "mount", "nc", "ncat", "pkexec", "pkill", "reboot", "rm", "rmdir", "rsync", "scp", "service",
    "sftp", "shred", "shutdown", "ssh", "su", "sudo", "systemctl", "telnet", "truncate", "umount", "wget",
})  # fmt: skip
ALARMING_PAIRS = frozenset({
    ("apt", "install"), ("apt-get", "install"), ("brew", "install"), ("docker", "push"), ("docker", "run"),
    ("git", "clean"), ("git", "clone"), ("git", "fetch"), ("git", "pull"), ("git", "push"), ("git", "reset"),
    ("npm", "install"), ("npm", "publish"), ("pip", "install"), ("terraform", "apply"), ("terraform", "destroy"),
})  # fmt: skip
READING = frozenset({
    "cat", "date", "df", "diff", "du", "echo", "file", "grep", "head", "id", "ls", "pwd", "rg", "stat", "tail", "tree",
    "uname", "wc", "which", "whoami",
})  # fmt: skip
_SEPARATORS = str.maketrans(dict.fromkeys(";|&()`\"'$<>{}\n\t\r", " "))
_COMBINING = frozenset(";|&<>`$\n")


def risk_of_command(command: str) -> Risk:
    """The risk of running this."""
    words = [word.rsplit("/", 1)[-1].lower() for word in command.translate(_SEPARATORS).split()]
    if not ALARMING.isdisjoint(words) or not ALARMING_PAIRS.isdisjoint(pairwise(words)):
        return "high"
    only_reads = bool(words) and words[0] in READING and not set(command) & _COMBINING
    return "low" if only_reads else "medium"
