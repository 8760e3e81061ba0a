"""Texts as random as credentials, the same in each run."""

from __future__ import annotations

HEX, UPPER = "0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def canary(number: int, length: int = 36, alphabet: str = "") -> str:
    """A text as random as a key, the same in each run."""
    letters = alphabet or "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
    value, made = number * 7_919 + 104_729, ""
    for _ in range(length):
        value = (value * 1_103_515_245 + 12_345) % 2**31
        made += letters[value // 7 % len(letters)]
    return made
