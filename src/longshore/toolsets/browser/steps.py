"""The steps of `browser_act`, as a model gives them."""

from __future__ import annotations

import re
from typing import Final

from longshore.errors import ToolError
from longshore.toolsets.browser import actions
from longshore.toolsets.browser.actions import ElementTarget
from longshore.toolsets.browser.parameters import ActStep
from longshore.toolsets.browser.script import REF

MOST_STEPS: Final = 50
MOST_WAIT_SECONDS: Final = 30.0
_REF: Final = re.compile(REF)


def is_ref(text: str) -> bool:
    """Whether a text is a ref such as e12, not a CSS selector."""
    return _REF.fullmatch(text) is not None


def read_target(text: str) -> ElementTarget:
    """The element identified by its ref or by a CSS selector."""
    return ElementTarget(ref=text) if is_ref(text) else ElementTarget(selector=text)


def make_step(step: ActStep) -> actions.Step:
    """The step to perform. Raises ToolError that names missing parameters."""
    given = ElementTarget(ref=step.ref, selector=step.selector, text=step.text, label=step.label)
    has_target = any((step.ref, step.selector, step.text, step.label))
    match step.action:
        case "click":
            return actions.Click(target=given)
        case "hover":
            return actions.Hover(target=given)
        case "fill" | "select":
            if step.value is None:
                raise ToolError(f"a {step.action} step needs a value")
            return actions.Fill(fields=[actions.Field(target=given, value=step.value)])
        case "press":
            if not isinstance(step.value, str) or not step.value:
                raise ToolError('a press step needs keys as its value, such as "Enter" or "Control+A"')
            return actions.Press(keys=step.value.split() or ["Space"], target=given if has_target else None)
        case "drag":
            return actions.Drag(target=given, to=ElementTarget(ref=step.to))
        case "scroll":
            pixels = _number(step, "pixels") if step.value is not None else 0.0
            return actions.Scroll(target=given if has_target else None, y=pixels)
        case "wait":
            return _wait(step)
        case "dialog":
            return _dialog(step.value)


def _dialog(value: str | float | bool | None) -> actions.AnswerDialog:
    if value is None or isinstance(value, bool):
        return actions.AnswerDialog(accept=value is not False)
    if value in ("accept", "dismiss"):
        return actions.AnswerDialog(accept=value == "accept")
    return actions.AnswerDialog(accept=True, text=str(value) or None)


def _wait(step: ActStep) -> actions.Wait:
    if step.text is not None:
        return actions.Wait(text=step.text)
    if step.selector is not None or step.ref is not None:
        return actions.Wait(target=ElementTarget(ref=step.ref, selector=step.selector))
    seconds = _number(step, "milliseconds") / 1000
    if not 0 < seconds <= MOST_WAIT_SECONDS:
        raise ToolError(f"a wait step takes up to {MOST_WAIT_SECONDS * 1000:.0f} milliseconds")
    return actions.Wait(seconds=seconds)


def _number(step: ActStep, unit: str) -> float:
    try:
        return float(step.value)  # type: ignore[arg-type]  # None and texts are refused below
    except (TypeError, ValueError):
        raise ToolError(f"a {step.action} step needs a value in {unit}") from None
