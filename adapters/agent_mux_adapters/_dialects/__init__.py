"""Native dialects that several agents share."""
