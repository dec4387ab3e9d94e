"""One run of one agent, from its options to its result, and the scheduling of runs."""
