"""The command line: argv -> library calls -> rendering. It decides nothing."""
