"""Agents side by side: candidates work on one task from one frozen start, and checks decide.

See docs/design/compare.md.
"""
