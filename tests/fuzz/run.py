"""Fuzz with coverage for some seconds: `python tests/fuzz/run.py --seconds 60`. What breaks a promise is saved.

Uses atheris (requirements/fuzz.txt). Without it, random mutations of the corpus are played for as long, and that
is said.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
CORPUS = Path(__file__).with_name("corpus")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    seconds = parser.parse_args().seconds
    try:
        import atheris
    except ImportError:
        print("atheris is not installed (requirements/fuzz.txt): random mutations in its place", file=sys.stderr)
        return mutate_for(seconds)
    with atheris.instrument_imports(include=["longshore"]):
        from fuzz.target import one_input

    with tempfile.TemporaryDirectory() as work:  # what it finds interesting stays out of the repository
        options = [
            f"-max_total_time={seconds}",
            "-max_len=4096",
            "-timeout=5",
            "-rss_limit_mb=1024",
            "-print_final_stats=1",
        ]
        atheris.Setup([sys.argv[0], work, str(CORPUS), f"-artifact_prefix={CORPUS}/", *options], one_input)
        atheris.Fuzz()
    return 0


def mutate_for(seconds: int) -> int:
    from fuzz.target import one_input
    from fuzz.test_corpus import mutate

    seed = time.time_ns()
    random, seeds, end, count = (
        Random(seed),
        [path.read_bytes() for path in sorted(CORPUS.iterdir())],
        time.monotonic() + seconds,
        0,
    )
    while time.monotonic() < end:
        data = mutate(random.choice(seeds), seeds, random)
        try:
            one_input(data)
        except BaseException:
            print(f"seed {seed}: saved as {save(data)}", file=sys.stderr)
            raise
        count += 1
    print(f"{count:,} inputs, no promise broken", file=sys.stderr)
    return 0


def save(data: bytes) -> Path:
    path = CORPUS / f"crash_{sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


if __name__ == "__main__":
    sys.exit(main())
