"""Removes secrets from what is recorded: credentials by their looks, values by their names, and secrets that we know.

What we know are the tokens of the configuration and the values of secret-looking variables of the environment.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

import msgspec

from longshore.redaction.rules import MARKER
from longshore.redaction.texts import remove_secrets
from longshore.telemetry import known_secrets
from longshore.telemetry.known_secrets import SHORTEST

KEPT_BYTES: Final = 16 << 10
"""Of arguments and of a result, until they are read. Twice what is shown: a secret that is cut off looks like none."""
_SECRET_NAME: Final = re.compile(
    r"(?i)pass(?:word|wd|phrase|code)?(?![a-z])|pwd|secret|token|credential|authorization|cookie|signature|otp(?![a-z])"
    r"|(?:api|access|private|account|auth|encryption|signing|shared|master|client|ssh|license)[_-]?key|(?:^|_)pin$"
)
_FOLDERS: Final = ("PWD", "OLDPWD")
_ASSIGNED: Final = re.compile(
    r"(?i)(?P<name>(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|credential)[\w-]{0,20}"
    r"(?:=|[\"']?[ \t]{0,3}[:=][ \t]{0,3}(?=[\"']))[\"']?)(?P<value>[^\s\"',;&)}\]\[]{4,})"
)
"""A value that is given to such a name. The general rules leave out what may be prose; here nothing is searched for."""
_ESCAPE: Final = re.compile(r"\\+([\"'/nrt\\])")
_UNESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}

_has_environment = False


def redact(text: str) -> str:
    """A text without secrets."""
    if len(text) < SHORTEST:
        return text
    for secret in known():
        if secret in text:
            text = text.replace(secret, MARKER)
    return _ASSIGNED.sub(rf"\g<name>{MARKER}", remove_secrets(text)[0])


def known() -> set[str]:
    """The secrets that are known. The environment is looked at once: what is added later is a child's."""
    global _has_environment
    if not _has_environment:
        _has_environment = True
        known_secrets.add(value for name, value in os.environ.items() if _is_secret(name, value))
    return known_secrets.secrets


def _is_secret(name: str, value: str) -> bool:
    """Whether a variable holds a secret, and not the place of one."""
    return bool(_SECRET_NAME.search(name)) and name not in _FOLDERS and not value.startswith(("/", "~", "."))


def redact_json(data: bytes, most: int) -> str:
    """JSON without secrets, at most so many characters of it. It may have been cut."""
    try:
        text = msgspec.json.encode(_redact_value(msgspec.json.decode(data))).decode()
    except (msgspec.DecodeError, RecursionError):  # a frame is looked at before its depth is checked
        text = redact(_unescape(data.decode(errors="replace")))
    return text if len(text) <= most else text[:most] + "…"


def _redact_value(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return MARKER if value and _SECRET_NAME.search(name) else _redact_text(value)
    if isinstance(value, list):
        return [_redact_value(each, name) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        found: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {redact(key): _redact_value(each, key) for key, each in found.items()}
    return value


def _redact_text(text: str) -> str:
    """A string of a JSON value, which may be JSON itself, as the texts of results often are."""
    if text[:1] in ("{", "["):
        try:
            return msgspec.json.encode(_redact_value(msgspec.json.decode(text))).decode()
        except (msgspec.DecodeError, RecursionError):
            pass
    return redact(text)


def _unescape(text: str) -> str:
    """The text of JSON that was cut, so that the rules see its strings as they are."""
    return _ESCAPE.sub(lambda found: _UNESCAPED.get(found[1], found[1]), text)
