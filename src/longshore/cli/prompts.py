"""Questions of a server to the user at the terminal: a form, field by field, or a page to open."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any, final

from longshore.cli.arguments import say_expected, take_text
from longshore.cli.screen import Screen, one_line
from longshore.client.handlers import ElicitQuestion
from longshore.schema.kinds import as_array, as_object, is_array, is_object
from longshore.schema.phrase import quote
from longshore.schema.walk import listed_values

_LINE_BYTES = 64 << 10
"""Most bytes of a typed line: a terminal passes 4 KiB."""


class EndOfInput(Exception):
    """The user ended the input (Ctrl-D)."""


@final
class Prompts:
    """Answers `on_elicit`, one question at a time."""

    def __init__(self, screen: Screen, server: str) -> None:
        self._screen = screen
        self._server = server
        self._lock = asyncio.Lock()

    async def __call__(self, question: ElicitQuestion) -> Any:
        """The answers as a dict, True for yes, False for no."""
        async with self._lock:
            with self._screen.hold():
                try:
                    return await (self._open_page(question) if question.mode == "url" else self._fill_in(question))
                except EndOfInput:
                    self._screen.fail("")
                    return False

    async def _open_page(self, question: ElicitQuestion) -> Any:
        """Show the URL and never open it: the user decides."""
        self._screen.fail(f"{self._server} asks you to open a page: {question.message}\n  {question.url}")
        return await self._yes_or_no("Have you been there, and do you agree?")

    async def _fill_in(self, question: ElicitQuestion) -> Any:
        schema = question.schema or {}
        properties, required = as_object(schema.get("properties")), as_array(schema.get("required"))
        self._screen.fail(f"{self._server} asks: {question.message}\n  (Ctrl-D: no answer)")
        if not properties:
            return await self._yes_or_no("Agree?")
        answers: dict[str, Any] = {}
        for name, field in properties.items():
            value = await self._field(name, as_object(field), needed=name in required)
            if value is not None:
                answers[name] = value
        return answers

    async def _field(self, name: str, field: dict[str, Any], *, needed: bool) -> Any:
        title = one_line(str(field.get("title") or name))
        about = one_line(str(field.get("description") or ""))
        label = f"{title} ({about})" if about and about != title else title
        if field.get("type") == "boolean":
            return await self._yes_or_no(label, field.get("default"), needed=needed)
        many = field.get("type") == "array"
        listed = _choices(as_object(field.get("items")) if many else field)
        for n, (_, shown) in enumerate(listed, 1):
            self._screen.fail(f"  {n}) {one_line(shown)}")
        what = "numbers, with commas" if many and listed else "a number" if listed else say_expected(field)
        default = f" [{quote(field['default'])}]" if "default" in field else "" if needed else " [nothing]"
        while True:
            text = (await self._ask(f"{label}, {what}{default}: ")).strip()
            if not text and ("default" in field or not needed):
                return field.get("default")
            try:
                if not text:
                    raise ValueError("it is needed (Ctrl-D: no answer)")
                value = _read(text, field, listed, many)
            except ValueError as problem:
                self._screen.fail(f"  {problem}")
                continue
            faults = find_faults(name, field, value)
            if not faults:
                return value
            self._screen.fail("\n".join(f"  {fault}" for fault in faults))

    async def _yes_or_no(self, label: str, default: Any = None, *, needed: bool = True) -> bool | None:
        """None if the field is optional and was left out."""
        open_one = "[y/n]" if needed else "[y/n, or nothing]"
        shown = "[Y/n]" if default is True else "[y/N]" if default is False else open_one
        while True:
            text = (await self._ask(f"{label} {shown} ")).strip().lower()
            if not text and (isinstance(default, bool) or not needed):
                return default if isinstance(default, bool) else None
            if text in ("y", "yes", "n", "no"):
                return text[0] == "y"

    async def _ask(self, prompt: str) -> str:
        self._screen.ask(prompt)
        try:
            return await read_line()
        except asyncio.CancelledError:
            self._screen.fail("")  # the next output begins on its own line
            raise


def _choices(field: dict[str, Any]) -> list[tuple[Any, str]]:
    """The values to choose from, with their titles. Protocol revisions spell them differently."""
    for key in ("oneOf", "anyOf"):
        listed: Any = field.get(key)
        if is_array(listed) and all(is_object(each) and "const" in each for each in listed):
            return [(each["const"], str(each.get("title", each["const"]))) for each in listed]
    values, names = listed_values(field), as_array(field.get("enumNames"))
    return list(zip(values, map(str, names if len(names) == len(values) else values), strict=True))


def _read(text: str, field: dict[str, Any], listed: list[tuple[Any, str]], many: bool) -> Any:
    """Parse a typed line. A choice is given by its number, its value or its title. Raises ValueError."""
    if not listed:
        return take_text(text, field, field)
    by_name = {name.casefold(): value for value, shown in reversed(listed) for name in (shown, str(value))}
    numbered = {str(n): value for n, (value, _) in enumerate(listed, 1)}
    chosen: list[Any] = []
    for word in filter(None, map(str.strip, text.split(","))) if many else (text,):
        if word not in numbered and word.casefold() not in by_name:
            raise ValueError(f"expected a number from 1 to {len(listed)}")
        chosen.append(numbered[word] if word in numbered else by_name[word.casefold()])
    return chosen if many else chosen[0]


def find_faults(name: str, field: dict[str, Any], value: Any) -> list[str]:
    """Validate an answer. A schema that can't be used finds nothing: the server decides then."""
    from longshore.schema.cost import compile_bounded

    validator = compile_bounded({"type": "object", "properties": {name: field}})
    return [] if validator is None else validator.errors({name: value})


async def read_line() -> str:
    """A line from the terminal. Raises EndOfInput at its end. It uses no thread, so Ctrl-C ends the process."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[bytes] = loop.create_future()
    descriptor = sys.stdin.fileno()

    def take() -> None:
        if not line.done():
            try:
                line.set_result(os.read(descriptor, _LINE_BYTES))
            except OSError:
                line.set_result(b"")  # the terminal was closed

    loop.add_reader(descriptor, take)
    try:
        data = await line
    finally:
        loop.remove_reader(descriptor)
    if not data:
        raise EndOfInput
    return data.decode("utf-8", "replace")
