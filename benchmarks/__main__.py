"""Runs every claim and writes results/latest.json."""

import sys

from benchmarks import cold_start, http, in_flight, large, list_tools, memory, recorder, sequential, sessions, shutdown
from benchmarks.command import main

MODULES = (cold_start, sequential, in_flight, memory, list_tools, large, recorder, shutdown, http, sessions)

if __name__ == "__main__":
    sys.exit(main([module.measure for module in MODULES], keep=True))
