"""How risky is what an agent asks permission for? Source: agent-events spec, section 18.1 (`riskLevel`).

- low: it reads.
- medium: it writes files, or runs an ordinary command.
- high: it destroys, reaches the network, or needs privileges.

A guess for whoever decides, from the words of the command: when in doubt the higher one. It is no sandbox. Adapters
know the tools of their agent; what a command is, is the same for all of them.
"""

from itertools import pairwise

from agent_mux.facts import Risk

ALARMING = frozenset({
    "aws", "az", "chmod", "chown", "crontab", "curl", "dd", "doas", "fdisk", "ftp", "gcloud", "gh", "iwr",
    "invoke-webrequest", "kill", "killall", "kubectl", "mkfs", "mount", "nc", "ncat", "pkexec", "pkill", "reboot",
    "remove-item", "rm", "rmdir", "rsync", "scp", "service", "sftp", "shred", "shutdown", "ssh", "su", "sudo",
    "systemctl", "telnet", "truncate", "umount", "wget",
})  # fmt: skip
"""Programs that destroy, reach the network or need privileges, wherever in a command they are named."""
ALARMING_PAIRS = frozenset({
    ("apt", "install"), ("apt-get", "install"), ("brew", "install"), ("cargo", "publish"), ("docker", "exec"),
    ("docker", "push"), ("docker", "run"), ("git", "clean"), ("git", "clone"), ("git", "fetch"), ("git", "pull"),
    ("git", "push"), ("git", "reset"), ("npm", "ci"), ("npm", "i"), ("npm", "install"), ("npm", "publish"),
    ("pip", "install"), ("pip3", "install"), ("pnpm", "install"), ("terraform", "apply"), ("terraform", "destroy"),
    ("uv", "publish"), ("yarn", "add"), ("yarn", "install"),
})  # fmt: skip
"""A program and the word after it."""
READING = frozenset({
    "cat", "date", "df", "diff", "du", "echo", "file", "grep", "head", "id", "ls", "pwd", "rg", "stat", "tail", "tree",
    "uname", "wc", "which", "whoami",
})  # fmt: skip
"""Programs that only read, as long as nothing is combined with them."""
_SEPARATORS = str.maketrans(dict.fromkeys(";|&()`\"'$<>{}\n\t\r", " "))
_COMBINING = frozenset(";|&<>`$\n")


def risk_of_command(command: str) -> Risk:
    """The risk of running this in a shell. A program may be named by its path, and in any case of letters."""
    words = [word.rsplit("/", 1)[-1].lower() for word in command.translate(_SEPARATORS).split()]
    if not ALARMING.isdisjoint(words) or not ALARMING_PAIRS.isdisjoint(pairwise(words)):
        return "high"
    only_reads = bool(words) and words[0] in READING and not set(command) & _COMBINING
    return "low" if only_reads else "medium"
