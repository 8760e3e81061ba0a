"""The corpus, replayed, and many cheap mutations of it: what `make fuzz` finds once is tested for ever."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from counts import count

from .target import one_input

SEEDS = sorted(Path(__file__).with_name("corpus").iterdir())
MUTATIONS = 20_000
TOKENS = [
    b"null", b"true", b"-1", b"1e999", b"9" * 25, b'""', b"{}", b"[]", b"\\u0000", b"\\ud800", b"\xff",
    b"\xe2\x80\xa8", b"\x00", b"\n",
    b'"id":', b'"jsonrpc":"2.0"', b'"method":"ping"', b'"params":', b"[" * 130, b'{"a":' * 130,
    b'"io.modelcontextprotocol/', b"tools/call",
]  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS, ids=[seed.name for seed in SEEDS])
def test_a_seed_breaks_no_promise(seed: Path) -> None:
    data = seed.read_bytes()
    for session in range(4):
        one_input(bytes([session]) + data[1:])


def test_there_is_a_corpus() -> None:
    assert len(SEEDS) >= 50


def test_mutations_break_no_promise() -> None:
    seeds = [seed.read_bytes() for seed in SEEDS]
    random = Random(20260728)
    for number in range(count(MUTATIONS)):
        data = mutate(random.choice(seeds), seeds, random)
        try:
            one_input(data)
        except BaseException as problem:
            raise AssertionError(f"mutation {number}: {data!r}") from problem


def mutate(data: bytes, seeds: list[bytes], random: Random) -> bytes:
    made = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(made) + 1)
        match random.randrange(7):
            case 0 if made:
                made[at % len(made)] = random.randrange(256)
            case 1:
                del made[at : at + random.randint(1, 8)]
            case 2:
                made[at:at] = random.choice(TOKENS)
            case 3:
                made[at : at + random.randint(0, 12)] = random.choice(TOKENS)
            case 4:
                other = random.choice(seeds)
                made[at:] = other[random.randrange(len(other) + 1) :]
            case 5:
                made[at:at] = made[max(0, at - random.randint(1, 40)) : at]
            case _:
                made[at:at] = bytes([random.randrange(256)])
    return bytes(made)
