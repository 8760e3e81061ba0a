"""The figures: one module a claim, the peers and a hand-written floor measured in the same run.

`python -m benchmarks` runs them all, `python -m benchmarks.sequential --quick` runs one.
"""
