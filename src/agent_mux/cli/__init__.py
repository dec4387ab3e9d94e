"""The command line: argv -> library calls -> rendering. Nothing is decided here that a program could not ask for too."""
