"""What holds for runs that do not say otherwise: files, what may stand in them, and which of them wins."""
