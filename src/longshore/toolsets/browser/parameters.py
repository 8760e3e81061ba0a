"""The types of the browser tools' parameters."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from longshore.registry.token_budget import MOST_TOKENS
from longshore.schema.annotations import Hidden
from longshore.toolsets.browser.answers import LEAST_ANSWER

# Parameters are None where they are left out: a default in the schema would cost a model tokens in every list.
BrowserId = Annotated[str | None, "such as b1"]
HiddenBrowserId = Annotated[str | None, Hidden()]
Target = Annotated[
    Literal["latest", "current", "byId"] | None, "which browser, if browserId is left out or unknown; byId: only that"
]
HiddenTarget = Annotated[Literal["latest", "current", "byId"] | None, Hidden()]
TabId = Annotated[str | None, "such as t1"]
HiddenTabId = Annotated[str | None, Hidden()]
Timeout = Annotated[int | None, "most to wait"]
HiddenTimeout = Annotated[int | None, Hidden()]
Tokens = Annotated[int, Meta(ge=LEAST_ANSWER, le=MOST_TOKENS), Hidden()]
Flag = bool | None
Ref = Annotated[str | None, "such as e12"]
Selector = Annotated[str | None, "CSS"]

Modifier = Literal["Alt", "Control", "Meta", "Shift"]
Button = Literal["left", "right", "middle"]
WaitUntil = Literal["load", "dom", "idle", "none"]
Value = str | float | bool


# These two have no docstring: it would be in every list, where the description of their array suffices.
class FieldValue(Struct, frozen=True, forbid_unknown_fields=True):
    value: Value
    label: str | None = None
    ref: str | None = None
    selector: str | None = None


class ActStep(Struct, frozen=True, forbid_unknown_fields=True):
    action: Literal["click", "fill", "select", "press", "hover", "drag", "scroll", "wait", "dialog"]
    ref: str | None = None
    label: str | None = None
    text: str | None = None
    selector: str | None = None
    value: Value | None = None
    to: str | None = None


class LoadedPage(Struct, frozen=True):
    """What the tool `browser` answers."""

    status: int
    title: str
    url: str
    content: str
    untrusted: list[str]
    """The page's own text."""
