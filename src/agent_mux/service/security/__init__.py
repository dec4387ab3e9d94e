"""Who may do what: one idea in each module, as pure functions; `guard` puts them in front of the application.

What each of them keeps away is in docs/design/threat-model.md.
"""
