"""What must not get into a file that is committed: values whose keys say that they are secret."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final, final

from longshore.schema.kinds import is_array, is_object
from longshore.testing.patterns import ANY, read_inner

HOLE: Final = "\ue001"
"""In the place of a secret, until the line is written."""
_SHORTEST: Final = 6
"""Characters. Shorter secrets are not looked for in other texts: `true` is in many."""
_INNER: Final = 3
"""Texts that are JSON, in texts that are JSON: so many levels are looked into."""

SECRETS: Final = (
    "authorization",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "bearer",
    "credential",
    "credentials",
    "cookie",
    "jwt",
    "api_key",
    "access_key",
    "secret_key",
    "private_key",
)
"""Keys that say so, and keys that end in one, such as `githubToken`. Case, `-` and `_` make no difference, nor does an
`s` behind it. `pwd` is none of them: it is as often a folder, and half of what a server says may hold that."""
_HARMLESS: Final = frozenset(("progresstoken", "pagetoken", "nextpagetoken"))
_SCHEMAS: Final = frozenset(("inputSchema", "outputSchema", "requestedSchema"))
"""Below these a key is the name of a parameter, and its value a schema."""
_TYPES: Final = frozenset(("string", "number", "integer", "boolean", "object"))
"""Not looked for in other texts: schemas are full of them."""
_QUERY: Final = re.compile(r"[?&]([^?&=#\s]+)=([^?&#\s\"'<>(){}]+)")
"""A parameter of a URL, which may stand in a text: its name and its value. `{…}` is a place for one."""
_QUESTIONS: Final = ("elicitation/create", "sampling/createMessage", "roots/list")


@final
class Redaction:
    """Takes secrets out. One that was seen once is taken out wherever it stands from then on."""

    def __init__(self, names: Iterable[str] | None = ()) -> None:
        """`names` beside SECRETS; None: nothing is secret."""
        if isinstance(names, str):
            raise TypeError(f"redact={names!r}: it takes a list of names; write redact=[{names!r}]")
        self._names = None if names is None else tuple(_plain(name) for name in (*SECRETS, *names) if _plain(name))
        self._seen: set[str] = set()
        self._states: dict[str, str] = {}

    def clean(self, message: Any) -> Any:
        """The message, with holes. All keys are looked at first: a result often says the same as text, and before."""
        if self._names is None:
            return message
        self._look(message, False, _INNER)
        return self._replace(message, False, _INNER, HOLE)

    # -- finding

    def _look(self, value: Any, secret: bool, inner: int) -> None:
        if is_object(value):
            for key, each in value.items():
                if key not in _SCHEMAS:
                    self._look_member(key, each, secret, inner)
        elif is_array(value):
            for each in value:
                self._look(each, secret, inner)
        elif secret and value is not None and not isinstance(value, bool):
            self._learn(str(value))
        elif isinstance(value, str):
            self._look_text(value, inner)

    def _look_text(self, text: str, inner: int) -> None:
        for name, value in _QUERY.findall(text):
            if self._is_secret(name, value):
                self._learn(value)
        if inner:
            self._look(read_inner(text), False, inner - 1)

    def _look_member(self, key: str, value: Any, secret: bool, inner: int) -> None:
        if secret or not self._is_secret(key, value):
            self._look(value, secret, inner)
        elif not _is_question(value):
            self._look(value.get("content") if _is_answer(value) else value, True, inner)

    def _learn(self, secret: str) -> None:
        """It may also stand in a text as JSON writes it."""
        assert self._names is not None
        if len(secret) >= _SHORTEST and secret not in _TYPES and _plain(secret) not in self._names:
            self._seen |= {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}

    # -- taking out

    def _replace(self, value: Any, secret: bool | None, inner: int, hole: str) -> Any:
        """`secret`: whether a key said so. None: keys say nothing, for they are names of parameters."""
        if is_object(value):
            return dict(self._replace_member(key, each, secret, inner, hole) for key, each in value.items())
        if is_array(value):
            return [self._replace(each, secret, inner, hole) for each in value]
        if value is None or isinstance(value, bool):
            return value
        if secret:
            return hole
        if isinstance(value, str):
            return self._replace_text(value, inner, hole)
        return hole if str(value) in self._seen else value

    def _replace_text(self, text: str, inner: int, hole: str) -> str:
        """JSON within a text keeps its form, so that a replayed one can still be read."""
        found = read_inner(text) if inner else None
        if found is not None:
            cleaned = self._replace(found, False, inner - 1, ANY)
            text = text if cleaned == found else json.dumps(cleaned, ensure_ascii=False)
        return hole if self._holds_secret(text) else text

    def _replace_member(self, key: str, value: Any, secret: bool | None, inner: int, hole: str) -> tuple[str, Any]:
        """A `requestState` may hold, in the server's own form, what a person answered; a client only returns it."""
        if self._holds_secret(key):
            return hole, hole
        if key == "requestState" and isinstance(value, str):
            return key, self._states.setdefault(value, f"state-{len(self._states) + 1}")
        if key in _SCHEMAS:
            return key, self._replace(value, None, inner, hole)
        if secret is not False or not self._is_secret(key, value) or _is_question(value):
            return key, self._replace(value, secret, inner, hole)
        if _is_answer(value):
            content = {"content": self._replace(value["content"], True, inner, hole)} if "content" in value else {}
            return key, {**self._replace(value, False, inner, hole), **content}
        return key, self._replace(value, True, inner, hole)

    def _holds_secret(self, text: str) -> bool:
        return any(known in text for known in self._seen)

    def _is_secret(self, key: str, value: Any) -> bool:
        """Whether the key says so: `token`, or `tokens` unless the value is how many there are."""
        assert self._names is not None
        plain = _plain(key)
        if not plain.endswith(self._names):
            plain = plain.removesuffix("s")
            if not plain.endswith(self._names) or _is_count(value):
                return False
        return plain not in _HARMLESS


def _is_question(value: Any) -> bool:
    """Whether it is a request of the server's under a name of its own, in `inputRequests`."""
    return is_object(value) and value.get("method") in _QUESTIONS


def _is_answer(value: Any) -> bool:
    """Whether it is what a person said to one, in `inputResponses`: whether they agreed is no secret."""
    return is_object(value) and "action" in value and value.keys() <= {"action", "content", "_meta"}


def _is_count(value: Any) -> bool:
    """Whether it is numbers and nothing else, such as `{"input": 5, "output": 7}`."""
    if is_object(value):
        return all(map(_is_count, value.values()))
    return all(map(_is_count, value)) if is_array(value) else isinstance(value, (int, float))


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()
