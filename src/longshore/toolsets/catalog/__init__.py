"""Tools that find, describe and call the tools of a server that are not listed."""
