"""Search in texts by their words: a tokenizer and BM25. Pure functions, without I/O."""
