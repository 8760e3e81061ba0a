from textwrap import dedent

import pytest

from longshore.schema.docstring import parse

# docstring, parameter names, summary, descriptions
CASES: dict[str, tuple[str | None, list[str], str, dict[str, str]]] = {
    "none": (None, ["a"], "", {}),
    "empty": ("", ["a"], "", {}),
    "only blanks": ("\n   \n", ["a"], "", {}),
    "one line": ("Add two numbers.", ["a", "b"], "Add two numbers.", {}),
    "one line that looks like an item": ("city: the city's name", ["city"], "", {"city": "the city's name"}),
    "plain, own paragraph": (
        "Forecast for a city.\n\n    city: the city's name\n    days: how many days\n    ",
        ["city", "days"],
        "Forecast for a city.",
        {"city": "the city's name", "days": "how many days"},
    ),
    "plain, same paragraph": (
        "Forecast.\ncity: the name\ndays: how many",
        ["city", "days"],
        "Forecast.",
        {"city": "the name", "days": "how many"},
    ),
    "plain, continued": (
        "Forecast.\n\ncity: the name,\n    in English\ndays: how many\n  of them",
        ["city", "days"],
        "Forecast.",
        {"city": "the name, in English", "days": "how many of them"},
    ),
    "plain, text after it": (
        "Forecast.\n\ncity: the name\n\nSlow on Sundays.",
        ["city"],
        "Forecast.\n\nSlow on Sundays.",
        {"city": "the name"},
    ),
    "plain, bullets": (
        "Forecast.\n\n- city: the name\n* `days`: how many\n- **unit** (str): C or F",
        ["city", "days", "unit"],
        "Forecast.",
        {"city": "the name", "days": "how many", "unit": "C or F"},
    ),
    "plain, colon inside": ("F.\n\nurl: like http://a:80", ["url"], "F.", {"url": "like http://a:80"}),
    "colons in prose": (
        "Note: this is slow. Use days: 3 or so.\nWarning: it costs.",
        ["days"],
        "Note: this is slow. Use days: 3 or so.\nWarning: it costs.",
        {},
    ),
    "names that are no parameters": (
        "F.\n\nnote: not a parameter\ncity: the name",
        ["city"],
        "F.\n\nnote: not a parameter",
        {"city": "the name"},
    ),
    "an item in the middle of prose": (
        "Reads\ncity: a thing\nand goes on.",
        ["city"],
        "Reads\ncity: a thing\nand goes on.",
        {},
    ),
    "google": (
        "Forecast.\n\n    Args:\n        city: The name.\n        days: How many.\n"
        "\n    Returns:\n        The text.\n    ",
        ["city", "days"],
        "Forecast.",
        {"city": "The name.", "days": "How many."},
    ),
    "google, types": (
        "F.\n\nArgs:\n    a (int): one\n    b (Callable[[int], str], optional): two\n    c (dict(str, int)): three",
        ["a", "b", "c"],
        "F.",
        {"a": "one", "b": "two", "c": "three"},
    ),
    "google, continued": (
        "F.\n\nArguments:\n    a: one\n        and more: much\n\n        more\n    b: two",
        ["a", "b"],
        "F.",
        {"a": "one and more: much more", "b": "two"},
    ),
    "google, unknown names": (
        "F.\n\nArgs:\n    ctx: the context\n    a: one\n    **kwargs: rest",
        ["a"],
        "F.",
        {"a": "one"},
    ),
    "google, other sections": (
        "F.\n\nArgs:\n    a: one\n\nRaises:\n    ValueError: if a is bad\n\nExample:\n    f(1)\n\nYields:\n    b",
        ["a", "b"],
        "F.\n\nExample:\n    f(1)",
        {"a": "one"},
    ),
    "google, empty section": ("F.\n\nArgs:\n\nMore.", ["a"], "F.\n\nArgs:\n\nMore.", {}),
    "google, Parameters:": ("F.\n\nParameters:\n  a: one", ["a"], "F.", {"a": "one"}),
    "google, item without text": ("F.\n\nArgs:\n    a:\n        one", ["a"], "F.", {"a": "one"}),
    "numpy": (
        "F.\n\nParameters\n----------\na : int\n    one\nb : str, optional\n    two\n    lines\n"
        "\nReturns\n-------\nint\n    it",
        ["a", "b"],
        "F.",
        {"a": "one", "b": "two lines"},
    ),
    "numpy, shared and untyped": (
        "F.\n\nParameters\n----------\na, b : int\n    both\nc\n    three\n\nNotes\n-----\nSlow.",
        ["a", "b", "c"],
        "F.\n\nNotes\n-----\nSlow.",
        {"a": "both", "b": "both", "c": "three"},
    ),
    "rest": (
        "F.\n\n:param city: the name\n:type city: str\n:param int days: how many\n"
        ":return: text\n:rtype: str\n:raises ValueError: never",
        ["city", "days"],
        "F.",
        {"city": "the name", "days": "how many"},
    ),
    "rest, continued": (
        "F.\n\n:param a: one\n    more\n\n    still more\n:param b: two\n\nAfter.",
        ["a", "b"],
        "F.\n\nAfter.",
        {"a": "one more still more", "b": "two"},
    ),
    "rest, a role is no field": ("See :func:`x` and\n:class:`y`.", ["x"], "See :func:`x` and\n:class:`y`.", {}),
    "crlf": ("F.\r\n\r\nArgs:\r\n    a: one\r\n", ["a"], "F.", {"a": "one"}),
    "tabs": ("F.\n\n\tArgs:\n\t\ta: one\n", ["a"], "F.", {"a": "one"}),
    "indented first line": ("\n    F.\n\n    Args:\n        a: one\n    ", ["a"], "F.", {"a": "one"}),
    "two paragraphs": ("One.\n\n\n\nTwo.", [], "One.\n\nTwo.", {}),
    "order of the parameters": ("b: two\na: one", ["a", "b"], "", {"a": "one", "b": "two"}),
    "without parameters": ("F.\n\nArgs:\n    none", [], "F.", {}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_docstring_is_read(case: tuple[str | None, list[str], str, dict[str, str]]) -> None:
    doc, names, summary, parameters = case
    found = parse(doc, names)
    assert found.summary == summary
    assert found.parameters == parameters
    assert list(found.parameters) == [n for n in names if n in parameters]


def test_a_real_docstring_reads_as_it_is_written_in_source() -> None:
    def forecast(city: str, days: int = 3) -> str:
        """The weather in a city for the coming days.

        Uses the national service; covers Europe only.

        city: its name in English
        days: how many, at most 7
        """
        return city * days

    found = parse(forecast.__doc__, ["city", "days"])
    assert found.summary == dedent("""\
        The weather in a city for the coming days.

        Uses the national service; covers Europe only.""")
    assert found.parameters == {"city": "its name in English", "days": "how many, at most 7"}
