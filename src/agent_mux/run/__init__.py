"""One run: the process, its journal, its events and its handle."""
