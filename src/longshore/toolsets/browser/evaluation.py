"""Running a script in the page's own world, and its value as JSON text."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from longshore.errors import ToolError
from longshore.toolsets.browser.events import PageError, exception_text
from longshore.toolsets.browser.page import Page

_JSON: Final = """function() {
  const seen = new Set();
  const text = JSON.stringify(this, (key, value) => {
    if (typeof value === "bigint") return String(value);
    if (typeof value === "function") return "[function]";
    if (value instanceof Node) return "[" + value.nodeName.toLowerCase() + "]";
    if (value instanceof Map) return Object.fromEntries(value);
    if (value instanceof Set) return [...value];
    if (typeof value === "object" && value !== null) {
      if (seen.has(value)) return "[seen before]";
      seen.add(value);
    }
    return value;
  });
  return text === undefined ? "undefined" : text;
}"""
"""Makes JSON text of any value, without what JSON can't hold."""
_CALL: Final = "function(...given) { return this(...given); }"


class ScriptElement(Struct, frozen=True):
    """The element argument of a function, in the world that the scripts of its frame run in."""

    session: str
    context: str
    """The unique id of that world."""
    object_id: str


async def evaluate(
    page: Page, script: str, element: ScriptElement | None, seconds: float, args: Sequence[Any] = ()
) -> str:
    """The value of an expression or function, in the frame of the element, without one in the main frame.

    A function gets the element, then `args`. Raises ToolError for arguments to an expression.
    """
    result = await _run(page, script, element, seconds)
    session = None if element is None else element.session
    if result.get("type") == "function":
        given: list[dict[str, Any]] = [] if element is None else [{"objectId": element.object_id}]
        given += [{"value": each} for each in args]
        result = _value(
            await page.call(
                "Runtime.callFunctionOn",
                {
                    "objectId": result["objectId"],
                    "functionDeclaration": _CALL,
                    "arguments": given,
                    "awaitPromise": True,
                    "userGesture": True,
                },
                session,
            )
        )
    elif args:
        raise ToolError("args are for a function, such as (a, b) => a + b; the script is none")
    if "objectId" not in result:
        return _plain(result)
    if result.get("type") == "symbol":
        return str(result.get("description", "symbol"))
    answer = await page.call(
        "Runtime.callFunctionOn",
        {"objectId": result["objectId"], "functionDeclaration": _JSON, "returnByValue": True},
        session,
    )
    return str(_value(answer).get("value", "undefined"))


async def holds(page: Page, expression: str, seconds: float) -> bool:
    """Whether an expression, or what a function returns, is true.

    Raises TimeoutError or CdpError if it has no value within `seconds`.
    """
    async with asyncio.timeout(seconds):
        result = await _run(page, expression, None, seconds)
        if result.get("type") == "function":
            result = await _run(page, f"({expression.strip().rstrip(';')})()", None, seconds)
    if "objectId" in result:
        return result.get("subtype") != "null"
    return bool(result.get("value"))


async def _run(page: Page, script: str, element: ScriptElement | None, seconds: float) -> dict[str, Any]:
    text = script.strip().rstrip(";")
    if text.startswith("{") and text.endswith("}"):
        text = f"({text})"  # an object, not a block
    elif text.startswith(("function", "async function")):
        text = f"({text})"
    answer = await _evaluate(page, text, element, seconds)
    if "Illegal return statement" in exception_text(answer.get("exceptionDetails", {})):
        answer = await _evaluate(page, f"(async () => {{ {script} }})()", element, seconds)
    result = _value(answer)
    if result.get("subtype") == "promise":  # the mode that allows `await` and repeated `const` does not await the value
        session = None if element is None else element.session
        result = _value(await page.call("Runtime.awaitPromise", {"promiseObjectId": result["objectId"]}, session))
    return result


async def _evaluate(page: Page, expression: str, element: ScriptElement | None, seconds: float) -> dict[str, Any]:
    place = {} if element is None else {"uniqueContextId": element.context}
    return await page.call(
        "Runtime.evaluate",
        {
            "expression": expression,
            "awaitPromise": True,
            "userGesture": True,
            "replMode": True,
            "timeout": round(seconds * 1000),
            **place,
        },
        None if element is None else element.session,
    )


def _value(answer: dict[str, Any]) -> dict[str, Any]:
    details = answer.get("exceptionDetails")
    if details:
        # Where there is a stack, its lines count from 0, and that of the details from 1.
        stack = details.get("stackTrace", {}).get("callFrames")
        line = int((stack[0] if stack else details).get("lineNumber", 0)) + 1
        raise PageError(f"the script failed at line {line}: {exception_text(details)}")
    result: dict[str, Any] = answer.get("result", {})
    return result


def _plain(result: dict[str, Any]) -> str:
    """A value other than an object, as JSON text."""
    from msgspec.json import encode

    if "unserializableValue" in result:
        return str(result["unserializableValue"])
    return "undefined" if result.get("type") == "undefined" else encode(result.get("value")).decode()
