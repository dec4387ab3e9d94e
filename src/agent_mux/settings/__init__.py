"""The settings of agent-mux itself: its files, profiles, and which source of an option takes precedence.

Read in this order: `options_json` (how options are written as JSON), `config` and `profiles` (the files), `layers`
(merging by precedence), `resolver` (the effective options of one run).
"""
