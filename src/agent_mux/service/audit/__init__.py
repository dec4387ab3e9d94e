"""The audit trail: who did what, recorded before it happens or in its own transaction."""
