"""Parameters with `Ask`: a wrong question is refused at registration, not when the client is asked."""

from __future__ import annotations

from typing import Any

from longshore.nearest import nearest
from longshore.protocol.questions import Ask, Elicit, Sample
from longshore.schema.signature import Parameter, Signature, SignatureProblem


def check_asked(signature: Signature) -> None:
    """Refuse a question that names no parameter of the call, or that asks for what no form can hold."""
    names = [parameter.name for parameter in signature.parameters]
    for parameter in signature.asked:
        ask: Ask = parameter.marker
        for text in _texts(ask):
            _check_holes(parameter, text, names)
        _check_form(parameter, ask)


def _texts(ask: Ask) -> list[str]:
    match ask.question:
        case str() as text:
            texts = [text, ask.url]
        case Elicit(message=message, url=url):
            texts = [message, ask.url or url]
        case Sample(prompt=str() as prompt):
            texts = [prompt]
        case _:
            texts = []
    return [text for text in texts if text is not None]


def _check_holes(parameter: Parameter, text: str, names: list[str]) -> None:
    from string import Formatter

    try:
        holes = [hole for _, hole, _, _ in Formatter().parse(text) if hole is not None]
    except ValueError as problem:
        raise SignatureProblem(f"the question for {parameter.name!r}: {problem}", "write {{ for a brace") from None
    for hole in holes:
        name = hole.split(".")[0].split("[")[0]
        if name not in names:
            near = nearest(name, names)
            fix = f"did you mean {{{near}}}?" if near else f"it can name: {', '.join(names) or 'nothing'}"
            raise SignatureProblem(f"the question for {parameter.name!r} names {{{hole}}}, which is no argument", fix)


def _check_form(parameter: Parameter, ask: Ask) -> None:
    kind = _asked_type(parameter, ask)
    if kind is None or kind in (bool, str, int, float):
        return
    from longshore.schema.infer import form_schema

    form_schema(kind, parameter.name)


def _asked_type(parameter: Parameter, ask: Ask) -> Any:
    """The type that a form asks for; None where there is no form."""
    if isinstance(ask.question, str):
        return None if ask.url is not None else parameter.type
    if isinstance(ask.question, Elicit) and not (ask.url or ask.question.url or ask.question.schema):
        return ask.question.type
    return None
