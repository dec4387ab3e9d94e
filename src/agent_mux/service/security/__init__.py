"""Access control: pure rules for HTTP messages and tokens, and the guard that applies them before every route.

The threats that they counter are listed in docs/design/threat-model.md.
"""
