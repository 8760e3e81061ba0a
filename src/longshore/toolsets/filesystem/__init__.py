"""Files within the roots: listing, searching, reading and editing."""
