"""The modules of the player; standard library only, because it runs without site-packages."""
