"""What the player is made of: standard library only, for it runs in an interpreter without site-packages."""
