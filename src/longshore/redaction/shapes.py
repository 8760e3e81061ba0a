"""Classification of values: machine-made, chosen as a password, or neither. Pure functions."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Final

from longshore.text_search.tokenizer import STOP_WORDS

LEAST_CHARACTERS: Final = 6
"""Shorter passwords can't be distinguished from words."""
_RANDOM_CHARACTERS: Final = 8
_LONG_CHARACTERS: Final = 20
_SAMPLE_CHARACTERS: Final = 100
"""The characters at the beginning of a text that represent the rest."""
_RANDOM_BITS: Final = 2.5
"""Entropy of a character that a random text has at least."""
_ROUGH: Final = 0.24
"""Boundaries between letters, digits and capitals, of a character. Words and identifiers have half as many, random
texts twice as many."""

_PLACEHOLDER: Final = re.compile(
    r"<.*>|\[.*\]|\{.*\}|\*\w+|[*x•]{3,}|[$%@#]\{.*|\$\(.*|\$[A-Z][A-Z0-9_]*|\$[a-z_]+|%[A-Z_0-9]+%|%\w|@[\w.]+@"
    r"|.*(?:\$\{|\{\{|\{\w*\}|%\(\w|%s|xxxx|\*\*\*|…).*|.*\.\.\."
    r"|(?i:your[-_ ].*|.*(?:change.?me|placeholder|redacted).*)|(?:arn|op|vault|file|env):.*|ENC\(.*",
    re.DOTALL,
)
_EXPRESSION: Final = re.compile(
    r"((?:[A-Za-z_]\w*(?:\.|->|::))*[A-Za-z_]\w*)[\[(].*"
    r"|((?:[A-Za-z_]\w*(?:\.|->|::))+[A-Za-z_]\w*)"
    r"|([A-Za-z_]\w*)=(?!=*$).*"
)
"""An attribute, an item, a call or a named argument, of which a quote may have cut the end."""
_LEET: Final = 0.2
"""Boundaries between letters and digits, of a character: names of code have fewer."""
_LETTERS_OR_DIGITS: Final = re.compile(r"[A-Za-z]+|[0-9]+")
_NAMES_ITSELF: Final = re.compile(r"(?i:passw|passphrase|secret|token|credential|key$)")
_TYPE_NAME: Final = re.compile(r"[A-Z][A-Za-z]*")
_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_RUN: Final = re.compile(r"[A-Za-z0-9]+")
_ODD_SIGN: Final = re.compile(r"[^\w./:@,-]")
_MIXED: Final = re.compile(r"[0-9]|[^\w./:@, |\\()\[\]{}-]")
_GLUED_NUMBER: Final = re.compile(r"[A-Za-z][0-9]{5}|[0-9]{5}[A-Za-z]")
_BASE32: Final = re.compile(r"(?=.*[2-7])[A-Z2-7]{16,}=*")

_WORDS: Final = frozenset(
    """always automatic boolean buffer bytes char default denied disabled empty enabled encrypted expired expected false
    failed field forbidden forgot hashed hidden ignored incorrect input integer invalid label masked missing never
    nobody nothing object optional plain plaintext present prompt random required reset string text textarea true
    unchanged undefined unknown unset unused username validate value varchar wrong""".split()  # noqa: SIM905  a text is easier to read
)
"""Words after `password:` that are no password."""


def is_placeholder(text: str) -> bool:
    """Whether a text will be replaced by something else, such as `${TOKEN}`, or stands for any value."""
    return bool(_PLACEHOLDER.fullmatch(text))


def is_random(text: str) -> bool:
    """Whether a text looks random, or as mixed as a good password."""
    text = text[:_SAMPLE_CHARACTERS]
    if len(text) < _RANDOM_CHARACTERS or "://" in text or any(map(str.isspace, text)) or is_placeholder(text):
        return False
    if _entropy(text) < _RANDOM_BITS or not any(map(str.isalpha, text)):
        return False
    is_rough = _roughness(text) >= _ROUGH
    if not any(map(str.isdigit, text)):
        return is_rough and len(text) >= 2 * _RANDOM_CHARACTERS
    if is_rough or _BASE32.fullmatch(text):
        return True
    return any(shape.search(text) for shape in (_ODD_SIGN, _GLUED_NUMBER)) and not _NAMES_ITSELF.search(text)


def is_long_random(text: str) -> bool:
    """Whether a text as long as keys are looks random."""
    return len(text) >= _LONG_CHARACTERS and is_random(text)


def is_bare_random(text: str) -> bool:
    """Whether a text without quotes looks random, and not like an expression."""
    return is_random(text) and not _is_expression(text)


def is_long_bare_random(text: str) -> bool:
    return len(text) >= _LONG_CHARACTERS and is_bare_random(text)


def is_password(text: str) -> bool:
    """Whether a literal assigned to a password may be one: it is no placeholder, message or name."""
    if len(text) < LEAST_CHARACTERS or is_placeholder(text) or _is_reference(text):
        return False
    if any(map(str.isspace, text)):
        return _is_phrase(text)
    return is_random(text) or not (_NAMES_ITSELF.search(text) or text.lower() in _WORDS)


def is_bare_password(text: str) -> bool:
    """Whether a text without quotes may be a password: it may also be an expression, a name or a type."""
    text = text.rstrip(";,")
    if not is_password(text) or _is_expression(text):
        return False
    return is_random(text) or not (_is_name(text) or _TYPE_NAME.fullmatch(text))


def is_mixed_password(text: str) -> bool:
    """Whether a text may be a password that has a digit or a sign, as few names have."""
    return is_password(text) and not (_is_expression(text) or _is_name(text)) and bool(_MIXED.search(text))


def _is_phrase(text: str) -> bool:
    """Whether words are a passphrase and not a message, which has punctuation or words like `the`."""
    words = text.split()
    if is_random(words[-1]) or is_random(words[0]):
        return True
    return len(words) > 2 and all(re.fullmatch(r"[a-z]{2,}[0-9]*", word) and word not in STOP_WORDS for word in words)


def _is_reference(text: str) -> bool:
    """Whether a text is a path or an address, which refers to a secret."""
    return text.startswith(("/", "./", "../", "~/", "http://", "https://")) and not is_random(text)


def _is_name(text: str) -> bool:
    return "_" in text and text.isidentifier()


def _is_expression(text: str) -> bool:
    found = _EXPRESSION.fullmatch(text)
    return found is not None and _roughness(found[found.lastindex or 0], _LETTERS_OR_DIGITS) < _LEET


def _roughness(text: str, part: re.Pattern[str] = _PART) -> float:
    """How often letters, digits and capitals change within words, per letter or digit."""
    runs = _RUN.findall(text)
    boundaries = sum(len(part.findall(run)) - 1 for run in runs)
    return boundaries / max(1, sum(map(len, runs)))


def _entropy(text: str) -> float:
    """Bits per character, by the frequency of each in the text itself."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())
