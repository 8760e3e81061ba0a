"""Lint rules for tools: what each client accepts, as data, and the code that finds tools which break a rule."""
