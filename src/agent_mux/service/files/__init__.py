"""The files of a run: which it changed, their content, and the difference as a patch."""
