"""Separate working trees for runs: git worktrees that start as the repository is now, and what becomes of them."""
