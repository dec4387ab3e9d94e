"""Publication of the events of runs to subscribers, in the program and over HTTP."""
