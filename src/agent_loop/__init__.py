"""The embedded agent: a runtime for agents of your own, and what `amux-agent` is made of.

See docs/design/agent-loop.md.
"""
