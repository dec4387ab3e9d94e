"""The sessions that agents store: listing, reading, searching, exporting and adding up costs. Nothing writes them."""
