"""What a server offers, before and now: which changes its callers notice."""
