"""Small helpers without knowledge of agents or runs: files, paths, logging, sanitizing of text, the version."""
