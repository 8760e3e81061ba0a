"""Code mode: Python that calls tools, in a sandbox."""
