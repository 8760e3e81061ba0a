"""Files for agents: reading, editing and describing them, on open descriptors and bytes."""
