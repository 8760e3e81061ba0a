"""What the page script does with elements: finding, reading, filling, and getting them ready for the mouse."""

# ruff: noqa: E501  # each page is one line
from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest

from longshore.errors import ToolError
from longshore.toolsets.browser import actions
from longshore.toolsets.browser.actions import (
    Click,
    Drag,
    ElementTarget,
    Field,
    Fill,
    Hover,
    Point,
    Select,
    Value,
    Wait,
)

from .page import TestPage, fill, open_page


@pytest.fixture(scope="module")
def page(browser_path: str) -> Iterator[TestPage]:
    with open_page() as opened:
        yield opened


def click(**target: str) -> Click:
    return Click(target=ElementTarget(**target))


CLOSED = """<x-box></x-box><p id=o>-</p><script>{const root = []; customElements.define('x-box', class extends HTMLElement {
constructor() { super(); const inside = this.attachShadow({mode: 'closed'});
inside.innerHTML = '<label>Code <input></label><select aria-label=Size><option>S<option>M</select><button>Go</button>';
inside.querySelector('button').onclick = () => o.textContent = 'sent ' + inside.querySelector('input').value } })}</script>"""
CUSTOM_LIST = """<b id=l>Fruit</b><div id=c role=combobox tabindex=0 aria-labelledby=l aria-expanded=false aria-controls=list>None</div>
<div id=list role=listbox hidden></div><script>
c.onclick = () => { c.ariaExpanded = 'true'; setTimeout(() => { list.hidden = false;
list.innerHTML = '<div role=option>Apple</div><div role=option>Pear</div>';
for (const each of list.children) each.onclick = () => { c.textContent = each.textContent; list.hidden = true; c.ariaExpanded = 'false' } }, 150) };
c.onkeydown = (e) => { if (e.key === 'Escape') { list.hidden = true; c.ariaExpanded = 'false' } }</script>"""
SUGGESTIONS = """<input id=i role=combobox aria-label=City aria-expanded=false aria-controls=list><div id=list role=listbox></div><p id=o>-</p><script>
const all = ['Rome', 'Roma', 'Paris']; i.oninput = () => { const found = all.filter((x) => i.value && x.includes(i.value));
i.ariaExpanded = String(found.length > 0); list.innerHTML = found.map((x) => `<div role=option>${x}</div>`).join('');
for (const each of list.children) each.onclick = () => { o.textContent = 'chose ' + each.textContent; i.value = each.textContent; list.innerHTML = ''; i.ariaExpanded = 'false' } }</script>"""
SLIDER = """<div id=s role=slider tabindex=0 aria-label=Level aria-valuemin=0 aria-valuemax=100 aria-valuenow=50>x</div><script>
s.onkeydown = (e) => { s.ariaValueNow = Number(s.ariaValueNow) + ({ArrowUp: 5, ArrowDown: -5}[e.key] ?? 0) }</script>"""


# -- refs


def test_a_ref_stays_when_the_label_changes(page: TestPage) -> None:
    page.set("<button id=b>Add</button>")
    ref = page.ref("Add")
    page.evaluate("b.textContent = 'Added'")
    assert page.ref("Added") == ref


def test_an_element_is_found_again_after_a_rerender(page: TestPage) -> None:
    page.set("<div id=d><button>Add</button></div><p id=o>-</p>")
    ref = page.ref("Add")
    page.evaluate("d.innerHTML = '<i>x</i><button onclick=\"o.textContent = 1\">Add</button>'")
    outcome = page.act(click(ref=ref))
    assert "found again" in outcome.line
    assert page.evaluate("o.textContent") == '"1"'


def test_an_element_that_several_are_like_is_not_guessed(page: TestPage) -> None:
    page.set("<div id=d><button>Add</button></div>")
    ref = page.ref("Add")
    page.evaluate("d.innerHTML = '<button>Add</button>'.repeat(4)")
    said = page.refusal(click(ref=ref))
    assert "several are like it" in said
    assert said.count('button "Add" e') == 3


def test_one_of_several_is_not_found_again_when_another_is_left(page: TestPage) -> None:
    button = "<button onclick='o.textContent = 1'>Delete</button>"
    page.set(f"<ul id=d><li>Alpha {button}<li>Beta {button}</ul><p id=o>-</p>")
    first = next(line.ref for line in page.snapshot().lines if line.text.endswith("Delete"))
    page.evaluate("d.innerHTML = d.lastElementChild.outerHTML")
    said = page.refusal(click(ref=str(first)))
    assert "is no longer on the page" in said and 'there is button "Delete" e' in said
    assert page.evaluate("o.textContent") == '"-"'


def test_an_element_that_an_answer_has_shown_with_another_ref_keeps_it(page: TestPage) -> None:
    page.set("<div id=d><button>Delete</button></div>")
    first = page.ref("Delete")
    page.evaluate("d.innerHTML = '<button>Delete</button>'")
    second = page.ref("Delete")
    assert f'there is button "Delete" {second}' in page.refusal(click(ref=first))
    page.evaluate("d.innerHTML = '<button>Delete</button>'")
    assert "found again" in page.act(click(ref=second)).line


def test_an_element_that_no_answer_has_shown_is_found_again(page: TestPage) -> None:
    page.set("<div id=d><button>Add</button></div>")
    ref = page.ref("Add")
    for _ in range(2):
        page.evaluate("d.innerHTML = '<button>Add</button>'")
        page.run(page.tab.snapshot())
    assert "found again" in page.act(click(ref=ref)).line


def test_one_of_several_that_no_answer_has_shown_is_not_guessed(page: TestPage) -> None:
    page.set("<div id=d><button>Add</button></div>")
    ref = page.ref("Add")
    page.evaluate("d.innerHTML = '<button>Add</button>'.repeat(2)")
    page.run(page.tab.snapshot())
    page.evaluate("d.lastChild.remove()")
    assert "no longer on the page" in page.refusal(click(ref=ref))


def test_an_element_that_is_gone_and_a_ref_of_nothing_are_told(page: TestPage) -> None:
    page.set("<button id=b>Add</button>")
    ref = page.ref("Add")
    page.evaluate("b.remove()")
    assert "no longer on the page" in page.refusal(click(ref=ref))
    assert "not known" in page.refusal(click(ref="e999999"))
    assert "is no ref" in page.refusal(click(ref="button"))


# -- budgets


def test_a_snapshot_stops_at_its_limit_and_says_so(page: TestPage) -> None:
    page.set("<p>x</p>" * 300)
    told = page.run(page.script().snapshot(limit=100))
    assert told.truncated
    assert len(told.lines) == 100
    assert not page.run(page.script().snapshot()).truncated


@pytest.mark.parametrize(
    "html",
    [
        "<button>B</button>",
        "<label>F <input></label>",
        "<i role=checkbox id=c></i><input>",
        "<input aria-labelledby=o>",
    ],
)
def test_a_page_of_thousands_of_controls_is_shown_in_part_and_says_so(page: TestPage, html: str) -> None:
    page.set("<b id=o>Of</b><div id=d></div>")
    page.evaluate(f"d.innerHTML = {html!r}.repeat(30000), d.offsetHeight")
    made = page.snapshot()  # within its time limit
    assert made.truncated and len(made.lines) > 100


def test_a_document_that_is_nested_too_deep_is_shown_up_to_there(page: TestPage) -> None:
    page.set(
        "<h1>Top</h1><div id=d></div><script>let e = d; for (let n = 0; n < 1800; n += 1)"
        " e = e.appendChild(document.createElement('div')); e.append('deep')</script><p>After</p>"
    )
    told = page.run(page.script().snapshot())
    assert [line.text for line in told.lines] == ["h1 Top", "> After"]
    assert told.truncated


def test_scope_depth_and_mode_narrow_a_snapshot(page: TestPage) -> None:
    page.set("<nav><a href=/>A</a></nav><main id=m><h1>T</h1><button>B</button></main>")
    assert page.lines(target=ElementTarget(selector="#m")) == ["main", "h1 T", "e1 button B"]
    assert page.lines(depth=1) == ["navigation", "main", "h1 T", "e1 button B"]
    assert page.lines(mode="interactive") == [" e1 link A", "e2 button B"]
    assert page.lines(links=True)[1] == " e1 link A -> /"
    with pytest.raises(ToolError, match="not on the page"):
        page.snapshot(target=ElementTarget(selector="#none"))


def test_frames_that_are_left_out_are_counted(page: TestPage) -> None:
    page.set("<iframe srcdoc='<p>in</p>'></iframe>" * 52)
    texts = [line.text for line in page.snapshot().lines]
    assert texts.count("> in") == 50
    assert "(2 frames from here on are not looked into; give one as scope)" in texts


# -- find


def test_things_are_found_by_text_pattern_and_role(page: TestPage) -> None:
    page.set("<main><h2>Fruit</h2><button>Buy pear</button><button>Buy plum</button><p>A pear tree</p></main>")

    def found(**query: Any) -> list[str]:
        return [match.text.partition(" ")[2] for match in page.run(page.tab.find(**query)).matches]

    assert found(text="PEAR") == ["button Buy pear", "> A pear tree"]
    assert found(text="pear", role="button") == ["button Buy pear"]
    assert found(regex="p(ear|lum)$") == ["button Buy pear", "button Buy plum"]
    assert found(role="h2") == ["h2 Fruit"]
    found = page.run(page.tab.find(role="button", limit=1))
    matches, total = found.matches, found.total
    assert (len(matches), total) == (1, 2)
    with pytest.raises(ToolError, match="regex"):
        page.run(page.tab.find(regex="("))


def test_a_text_that_is_found_can_be_dragged(page: TestPage) -> None:
    page.set(
        "<ul><li draggable=true id=a>One</li><li id=b>Two</li></ul><p id=o>-</p><script>"
        "a.ondragstart = (e) => e.dataTransfer.setData('text', 'x'); b.ondragover = (e) => e.preventDefault();"
        "b.ondrop = (e) => { o.textContent = 'dropped ' + e.dataTransfer.getData('text') }</script>"
    )
    refs = [match.ref for match in page.run(page.tab.find(regex="One|Two")).matches]
    assert all(refs)
    assert "> dropped x" in page.act(Drag(target=ElementTarget(ref=refs[0]), to=ElementTarget(ref=refs[1]))).diff


def test_an_error_names_the_ref_the_selector_or_the_pattern(page: TestPage) -> None:
    page.set("<p id=p>x</p>")

    def refusal(work: Awaitable[object]) -> str:
        with pytest.raises(ToolError) as caught:
            page.run(work)
        return str(caught.value)

    tab = page.tab
    unknown, missing = 'ref "e999": is not known on this page', 'selector "#none": is not on the page'
    assert refusal(tab.snapshot(target=ElementTarget(ref="e999"))).startswith(unknown)
    assert refusal(tab.read(ref="e999")).startswith(unknown)
    assert refusal(tab.snapshot(target=ElementTarget(selector="#none"))).startswith(missing)
    assert refusal(tab.read(selector="#none")).startswith(missing)
    assert refusal(tab.read(selector="[")).startswith('selector "[": is no valid CSS selector')
    assert refusal(tab.find(regex="(")) == 'regex "(": is no valid regular expression: Unterminated group'


# -- read

EVERYTHING = """<main><h1>Title</h1><p>A <b>bold</b> <a href="/x">link</a> and <code>code</code>.</p>
<ul><li>One<ul><li>Deep</li></ul></li><li>Two</li></ul><blockquote>Said</blockquote><pre>a
  b</pre><table><tr><th>Item<th>Price</tr><tr><td>Kettle|pot<td>5</tr></table><img alt="Cat" src="data:,">
<input value="typed"><input type=password value="hunter2"><select><option>S<option selected>M</select>
<p hidden>secret</p><script>var x</script><hr><button>A</button><button>B</button></main><footer>Foot</footer>"""


def test_a_page_is_read_as_markdown_text_html_and_tables(page: TestPage) -> None:
    page.set(EVERYTHING)

    def read(**how: Any) -> str:
        return page.run(page.tab.read(**how)).text

    text = read()
    for part in (
        "# Title\n", "A bold [link](/x) and `code`.", "- One\n  - Deep\n- Two", "> Said", "```\na\n  b\n```",
        "| Item | Price |\n| --- | --- |\n| Kettle/pot | 5 |", "![Cat]", "typed", "M", "---", "A B",
    ):  # fmt: skip
        assert part in text, (part, text)
    for absent in ("secret", "hunter2", "var x", "Foot"):
        assert absent not in text
    plain = read(format="text")
    assert "Title\n" in plain and "#" not in plain and "A bold link and code." in plain
    assert read(format="table") == "| Item | Price |\n| Kettle/pot | 5 |"
    html = read(format="html", selector="main")
    assert "<h1>Title</h1>" in html and "<script" not in html and "hunter2" not in html
    assert read(selector="footer") == "Foot"
    assert page.run(page.tab.read(limit_chars=7)).text == "# Title"
    with pytest.raises(ToolError, match="not on the page"):
        read(selector="#none")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<ol><li>x<li>y</ol>", "1. x\n2. y"),
        ("<ol start=3><li>x<li value=7>y<li hidden>z<li>w</ol>", "3. x\n7. y\n8. w"),
        ("<ol reversed><li>x<li>y</ol>", "2. x\n1. y"),
        ("<ol reversed start=-1><li>x<li>y</ol>", "-1. x\n-2. y"),
        ("<ul><li>x<ol><li>y<li>z</ol><li>w</ul>", "- x\n  1. y\n  2. z\n- w"),
        ("<blockquote>q1<p>q2</blockquote>after", "> q1\n>\n> q2\n\nafter"),
        ("before<blockquote><p>q1<blockquote>q2</blockquote></blockquote>", "before\n\n> q1\n>\n> > q2"),
        ("<blockquote><ul><li>x<li>y</ul><pre>a\n b</pre></blockquote>", "> - x\n> - y\n>\n> ```\n> a\n>  b\n> ```"),
        ("<ul><li><blockquote>q</blockquote><li>x</ul>", "- > q\n\n- x"),
        ("<blockquote><hr>q<table><tr><td>a</table></blockquote>", "> ---\n>\n> q\n>\n> | a |\n> | --- |"),
    ],
)  # fmt: skip
def test_lists_and_quotes_are_read_as(page: TestPage, html: str, expected: str) -> None:
    page.set(html)
    assert page.run(page.tab.read()).text == expected


@pytest.mark.parametrize(
    "html",
    [
        "<input type=password name=pw value=hunter2>",
        "<input type=text name=pw value=hunter2 autocomplete=current-password>",
        "<input type=text name=pw value=hunter2 autocomplete='section-a new-password'>",
        "<input type=password name=pw value=hunter2><button type=button onclick='document.forms[0].pw.type = \"text\"'>Show</button>",
    ],
    ids=["field", "autocomplete", "autocomplete of a section", "shown by a button"],
)
def test_the_html_of_a_page_or_a_field_has_no_password(page: TestPage, html: str) -> None:
    page.set(f"<form>{html}<img alt=a><input name=user value=ada></form>")
    page.snapshot()
    if "Show" in html:
        page.evaluate("document.querySelector('button').click()")
    for selector in ("[name=pw]", "form", None):
        text = page.run(page.tab.read(format="html", selector=selector)).text
        assert 'name="pw"' in text and "hunter2" not in text
        assert ('value="ada"' in text) == (selector != "[name=pw]")


def test_reading_html_loads_no_image_again_and_runs_no_constructor(page: TestPage) -> None:
    page.set(
        "<x-count></x-count><img src='data:,a' id=i><script>n = 0; customElements.define('x-count', class extends HTMLElement {"
        " constructor() { super(); n += 1 } })</script>"
    )
    assert "<x-count>" in page.run(page.tab.read(format="html")).text
    assert page.evaluate("n") == "1"


TWO_FRAMES = "".join(
    f"<iframe srcdoc='<button>Go</button><p id=o></p><input aria-label=Only{n}>'></iframe>" for n in (1, 2)
)


def test_what_two_frames_have_is_not_guessed_but_that_of_the_main_frame_is_taken(page: TestPage) -> None:
    page.set(TWO_FRAMES)
    said = page.refusal(click(text="Go"))
    assert 'text "Go": is in 2 frames; there is button "Go" f' in said and said.count('button "Go" f') == 2
    page.act(fill("typed", label="Only2"))
    assert [line.endswith("textbox,focused Only2 = typed") for line in page.lines() if "typed" in line] == [True]
    page.set("<button onclick='this.textContent = 1'>Go</button>" + TWO_FRAMES)
    assert "button,focused 1" in page.act(click(text="Go")).diff


def test_what_is_found_in_a_frame_says_in_which(page: TestPage) -> None:
    page.set("<main><button>Go</button></main>" + TWO_FRAMES)
    matches = page.run(page.tab.find(text="Go")).matches
    assert len(matches) == 3 and matches[0].path == []
    for match in matches[1:]:
        assert match.ref is not None
        assert match.path == [f"frame {match.ref.partition('e')[0]} about:srcdoc"]


# -- fill


@pytest.mark.parametrize(
    ("html", "value", "expected"),
    [
        ("<input aria-label=X>", "text", "text"),
        ("<input aria-label=X value=old>", "", ""),
        ("<textarea aria-label=X></textarea>", "two\nlines", "two\nlines"),
        ("<input type=email aria-label=X>", "a@b.c", "a@b.c"),
        ("<input type=password aria-label=X>", "secret", "secret"),
        ("<input type=number aria-label=X>", 12.5, "12.5"),
        ("<input type=number aria-label=X>", 12.0, "12"),
        ("<input type=range max=10 aria-label=X>", 7, "7"),
        ("<input type=date aria-label=X>", "2024-05-06", "2024-05-06"),
        ("<input type=time aria-label=X>", "10:30", "10:30"),
        ("<input type=month aria-label=X>", "2024-05", "2024-05"),
        ("<input type=week aria-label=X>", "2024-W05", "2024-W05"),
        ("<input type=datetime-local aria-label=X>", "2024-05-06T10:30", "2024-05-06T10:30"),
        ("<input type=color aria-label=X>", "#ff0000", "#ff0000"),
        ("<select aria-label=X><option value=1>One<option value=2>Two</select>", "two", "2"),
        ("<select aria-label=X><option value=1>One<option value=2>Two</select>", "2", "2"),
    ],
)
def test_a_field_takes_a_value(page: TestPage, html: str, value: Value, expected: str) -> None:
    page.set(html.replace("aria-label=X", "aria-label=X id=x"))
    page.evaluate(
        "x.addEventListener('input', () => x.dataset.n = 1); x.addEventListener('change', () => x.dataset.c = 1)"
    )
    page.act(fill(value, label="X"))
    assert page.evaluate("x.value") == f'"{expected}"'.replace("\n", "\\n")
    assert page.evaluate("[x.dataset.n, x.dataset.c]") == '["1","1"]'


@pytest.mark.parametrize(
    ("html", "value", "expected"),
    [
        ("<input type=checkbox id=x aria-label=X>", True, "true"),
        ("<input type=checkbox id=x aria-label=X checked>", False, "false"),
        ("<input type=checkbox id=x aria-label=X checked>", "yes", "true"),
        ("<input type=checkbox id=x aria-label=X checked>", "off", "false"),
        ("<input type=checkbox id=x aria-label=X checked>", "No", "false"),
        ("<input type=checkbox id=x aria-label=X>", 1, "true"),
        ("<input type=checkbox id=x aria-label=X checked>", 0.0, "false"),
        ("<input type=checkbox id=x style='display:none'><label for=x>X</label>", True, "true"),
        ("<fieldset><legend>X</legend><label><input type=radio name=r>A</label><label><input type=radio name=r id=x>B</label></fieldset>", "B", "true"),
        ("<div role=radiogroup aria-label=X><input type=radio id=x aria-label=B></div>", "b", "true"),
        ("<div id=d><input type=checkbox id=x aria-label=X onclick='d.innerHTML = \"<i id=x>\"; d.firstChild.checked = true'></div>", True, "true"),
        ("<i role=switch id=x tabindex=0 aria-label=X aria-checked=false onclick='setTimeout(() => x.ariaChecked = x.checked = true, 100)'>x</i>", True, "true"),
    ],
)  # fmt: skip
def test_a_box_is_checked(page: TestPage, html: str, value: Value, expected: str) -> None:
    page.set(html)
    page.act(fill(value, label="X"))
    assert page.evaluate("x.checked") == expected


@pytest.mark.parametrize(
    ("html", "value", "said"),
    [
        ("<input type=checkbox aria-label=X {}>", True, "was clicked, and is still not checked"),
        ("<input type=checkbox aria-label=X checked {}>", False, "was clicked, and is still checked"),
        ("<input type=radio aria-label=X {}>", True, "was clicked, and is still not checked"),
        ("<i role=switch aria-label=X tabindex=0 {}>x</i>", True, "was clicked, and is still not checked"),
        ("<div role=radiogroup aria-label=X><input type=radio aria-label=B {}></div>", "B", "is still not checked"),
    ],
)
def test_a_box_that_stays_as_it_is_is_an_error_and_clicked_once(
    page: TestPage, html: str, value: Value, said: str
) -> None:
    page.set(html.format("onclick='document.title += 1; return false'"))
    assert said in page.refusal(fill(value, label="X"))
    assert page.evaluate("document.title") == '"page1"'


@pytest.mark.parametrize(
    ("html", "label"),
    [
        ("<label>First name <input></label>", "First name"),
        ("<label>First name: * <input></label>", "first name"),
        ("<label for=i>First name (required)</label><input id=i>", "First name"),
        ("<label>First name of the guest <input></label>", "First name"),
        ("<label>Your first name <input></label>", "First name"),
        ("<input placeholder='First name'>", "First name"),
        ("<input name=first aria-label=Other>", "first"),
        ("<input id=first aria-label=Other>", "first"),
        ("<div><span>First name</span><div><input></div></div>", "First name"),
        ("<label for=i>First name</label><input id=i aria-label='Choose'>", "First name"),
        ("<iframe srcdoc='<label>First name <input></label>'></iframe>", "First name"),
        ("<b id=l>First name</b><input aria-labelledby=l><ul role=listbox aria-labelledby=l></ul>", "First name"),
    ],
)
def test_a_field_is_found_by_its_label(page: TestPage, html: str, label: str) -> None:
    page.set(html)
    page.act(fill("Ada", label=label))
    assert any(line.endswith("= Ada") for line in page.lines())


BESIDE = """<form><label>First</label><input name=a><label>Last</label><span>as in passport</span><input name=b><br>
Street: <input name=c><br>City:<br><input name=d><br><input type=checkbox name=e> Agree<br><input type=checkbox name=f> News
<div><b>Age</b><i>?</i></div><div><input name=g></div><table><tr><td>Phone<td><input name=h><tr><td>Fax<td><input name=i></table>
<label>Mail <input name=j></label><p>Sent to you</p><p><input name=k><span>Note</span></p><button>Send</button><input name=l></form>"""


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("First", "a"), ("Last", "b"), ("Street", "c"), ("City", "d"), ("Agree", "e"), ("News", "f"), ("Age", "g"),
        ("Phone", "h"), ("Fax", "i"), ("Mail", "j"), ("Note", "k"),
    ],
)  # fmt: skip
def test_a_text_beside_a_field_is_its_label(page: TestPage, label: str, name: str) -> None:
    page.set(BESIDE)
    page.act(fill(True if name in "ef" else "typed", label=label))
    filled = "Object.fromEntries([...document.forms[0].elements].filter(e => e.value === 'typed' || e.checked).map(e => [e.name, 1]))"
    assert page.evaluate(filled) == f'{{"{name}":1}}'


@pytest.mark.parametrize("label", ["Send", "passport", "Nothing"])
def test_a_text_that_is_no_label_is_not_on_the_page(page: TestPage, label: str) -> None:
    page.set(BESIDE)
    assert "is not on the page" in page.refusal(fill("x", label=label))


def test_a_text_between_two_boxes_is_the_label_of_neither(page: TestPage) -> None:
    page.set("<p><input type=checkbox name=a><b>Agree</b><input type=checkbox name=b><b>News</b></p>")
    assert "is the label of 2 elements" in page.refusal(fill(True, label="Agree"))
    page.act(fill(True, label="News"))
    assert page.evaluate("document.querySelector('[name=b]').checked") == "true"


def test_the_label_that_fits_exactly_is_taken(page: TestPage) -> None:
    page.set("<label>Name <input id=a></label><label>Name of pet <input></label>")
    page.act(fill("Ada", label="Name"))
    assert page.evaluate("a.value") == '"Ada"'


@pytest.mark.parametrize(
    ("html", "value", "said"),
    [
        ("<input aria-label=X disabled>", "a", "is disabled"),
        ("<input aria-label=X readonly>", "a", "is readonly"),
        ("<input aria-label=X maxlength=3>", "abcd", "at most 3 characters"),
        ("<input type=date aria-label=X>", "6 May", "takes YYYY-MM-DD"),
        ("<input type=number aria-label=X>", "many", "takes a number"),
        ("<input type=file aria-label=X>", "a", "browser_files"),
        ("<select aria-label=X><option>One<option>Two</select>", "Three", 'it has "One", "Two"'),
        ("<select aria-label=X><option>One<option disabled>Two</select>", "Two", "disabled"),
        ("<input type=radio aria-label=X checked>", False, "choose another"),
        ("<input type=checkbox aria-label=X>", "unchecked", 'takes true or false, not "unchecked"'),
        ("<input type=checkbox aria-label=X>", "maybe", "takes true or false"),
        ("<input type=checkbox aria-label=X>", "", "takes true or false"),
        ("<input type=checkbox aria-label=X>", 2, "takes true or false"),
        ("<i role=switch aria-label=X tabindex=0>x</i>", "checked", "takes true or false"),
        ("<select aria-label=X><option>One<option>Two</select>", "One, Two", 'has no option "One, Two"'),
        ("<select multiple aria-label=X><option>One<option>Two</select>", "One, Three", 'has no option "Three"; it has "One", "Two"'),
        ("<div role=radiogroup aria-label=X><input type=radio aria-label=A></div>", "B", 'it has "A"'),
        ("<input aria-label=Y>", "a", 'not on the page; there is textbox "Y"'),
        ("<input aria-label=X><input aria-label=X>", "a", "is the label of 2 elements"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused(page: TestPage, html: str, value: Value, said: str) -> None:
    page.set(html)
    assert said in page.refusal(fill(value, label="X"))


@pytest.mark.parametrize(
    ("value", "chosen"),
    [("Olive", ["o"]), ("Ham, Olive", ["h", "o"]), ("o,h", ["h", "o"]), ("Cheese, mild", ["c"]), ("", [])],
)
def test_several_options_of_a_list_are_chosen_by_one_text(page: TestPage, value: str, chosen: list[str]) -> None:
    page.set(
        "<select multiple id=x aria-label=X><option value=h>Ham<option value=o>Olive<option value=c>Cheese, mild<option value=t selected>Tuna</select>"
    )
    page.act(fill(value, label="X"))
    assert json.loads(page.evaluate("[...x.selectedOptions].map(e => e.value)")) == chosen


def test_fields_before_one_that_fails_are_named(page: TestPage) -> None:
    page.set("<input aria-label=A><input aria-label=B disabled>")
    fields = [Field(target=ElementTarget(label="A"), value="1"), Field(target=ElementTarget(label="B"), value="2")]
    assert 'filled before it: "A"' in page.refusal(Fill(fields=fields))


def test_an_editor_takes_a_text_with_lines(page: TestPage) -> None:
    page.set("<div contenteditable aria-label=Note id=n>old</div>")
    page.act(fill("new text", label="Note"))
    assert page.evaluate("n.innerText") == '"new text"'


def test_a_field_that_undoes_what_is_set_gets_keys(page: TestPage) -> None:
    page.set(
        "<input id=i aria-label=Masked><script>let typed = ''; i.onkeydown = (e) => { if (e.key.length === 1 && !e.ctrlKey) typed += e.key };"
        "i.oninput = () => { i.value = typed }</script>"
    )
    page.act(fill("123", label="Masked"))
    assert page.evaluate("i.value") == '"123"'


def test_an_option_of_a_list_that_is_no_form_element_is_chosen(page: TestPage) -> None:
    page.set(CUSTOM_LIST)
    assert " combobox,collapsed Fruit = Pear" in page.act(fill("Pear", label="Fruit")).diff
    page.set(CUSTOM_LIST)
    page.act(Select(target=ElementTarget(label="Fruit"), values=["Apple"]))
    assert page.evaluate("c.textContent") == '"Apple"'
    assert 'has no option "Plum"; it has "Apple", "Pear"' in page.refusal(fill("Plum", label="Fruit"))
    assert page.evaluate("list.hidden") == "true"


def test_the_suggestion_that_was_typed_is_taken_and_no_other(page: TestPage) -> None:
    page.set(SUGGESTIONS)
    assert "> chose Rome" in page.act(fill("Rome", label="City")).diff
    page.set(SUGGESTIONS)
    shown = page.act(fill("Rom", label="City")).diff
    assert "option Rome" in shown and "option Roma" in shown and "chose" not in shown


def test_a_slider_of_a_script_is_moved_by_keys(page: TestPage) -> None:
    page.set(SLIDER)
    assert "slider,focused Level = 80" in page.act(fill(80, label="Level")).diff
    assert "slider,focused Level = 15" in page.act(fill(15, label="Level")).diff
    assert "takes 0 to 100" in page.refusal(fill(101, label="Level"))
    assert "takes a number" in page.refusal(fill("high", label="Level"))
    assert "stays at" in page.refusal(fill(17, label="Level"))


def test_closed_shadow_roots_are_found_filled_and_clicked(page: TestPage) -> None:
    page.set(CLOSED)
    fields = [
        Field(target=ElementTarget(label="Code"), value="abc"),
        Field(target=ElementTarget(label="Size"), value="M"),
    ]
    page.act(Fill(fields=fields))
    assert "> sent abc" in page.act(click(text="Go")).diff
    matches = page.run(page.tab.find(text="size")).matches
    assert matches[0].text.endswith("combobox Size = M of S/M")
    assert "abc" in page.run(page.tab.read(format="text")).text


def test_a_closed_shadow_root_of_a_part_of_the_page_is_found_and_clicked(page: TestPage) -> None:
    page.set(
        "<div id=h></div><p id=o>-</p><script>{const inside = h.attachShadow({mode: 'closed'}); inside.innerHTML = '<button>Go</button>';"
        "inside.firstChild.onclick = () => o.textContent = 'gone' }</script>"
    )
    assert "> gone" in page.act(click(text="Go")).diff


# -- ready for the mouse


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ("<button disabled>X</button>", "is disabled"),
        ("<fieldset disabled><button>X</button></fieldset>", "is disabled"),
        ("<button>X</button><div id=c style='position:fixed;inset:0'>Cookies?</div>", 'is covered by div "Cookies?"'),
        ("<button>X</button><dialog id=d aria-label=Sure>y</dialog><script>d.showModal()</script>", 'is covered by dialog "Sure"'),
        ("<div inert><button>X</button></div>", "can't be used now"),
        ("<button style='pointer-events:none'>X</button>", "takes no clicks now (its style says pointer-events: none)"),
        ("<button id=b style='position:absolute'>X</button><script>let n = 0; (function move() { b.style.left = (n++ * 37) % 500 + 'px'; requestAnimationFrame(move) })()</script>",
            "is moving"),
        ("<button style='position:fixed;left:-200px'>X</button>", "outside the window"),
        ("<iframe srcdoc='<button>X</button>'></iframe><div style='position:fixed;inset:0'>Cookies?</div>", 'is covered by div "Cookies?"'),
    ],
)  # fmt: skip
def test_an_element_that_can_not_be_clicked_says_why(
    page: TestPage, html: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "READY_SECONDS", 0.3)
    page.set(html)
    assert said in page.refusal(click(text="X"))


def test_what_scrolls_is_scrolled_to_what_is_clicked(page: TestPage) -> None:
    """Inside a part of its own, and below a header that stays."""
    page.set(
        "<header style='position:sticky;top:0;height:300px;background:#eee'>H</header>"
        "<div style='height:100px;overflow:auto'><div style='height:400px'>a</div><button onclick='this.textContent = 1'>X</button></div>"
        "<div style='height:3000px'></div><button onclick='this.textContent = 2'>Y</button>"
    )
    assert "button,focused 1" in page.act(click(text="X")).diff
    assert "button,focused 2" in page.act(click(text="Y")).diff
    page.evaluate("scrollBy(0, -200)")
    assert "button,focused 1" in page.act(click(text="1")).diff


def test_a_click_follows_what_moves_when_the_pointer_leaves_a_menu(page: TestPage) -> None:
    page.set(
        "<style>#m ul { display: none } #m:hover ul { display: block; height: 200px }</style>"
        "<div id=m>Menu<ul><li>a</ul></div><button onclick='this.textContent = 1'>X</button>"
    )
    page.act(Hover(target=ElementTarget(text="Menu")))
    assert "button,focused 1" in page.act(click(text="X")).diff


def test_a_label_is_clicked_for_its_field(page: TestPage) -> None:
    page.set(
        "<label for=i style='position:absolute'>Birthday</label><input id=i style='position:absolute;left:0;top:0;width:300px' onclick='this.value = 1'>"
    )
    page.act(click(text="Birthday"))
    assert page.evaluate("i.value") == '"1"'


def test_what_is_behind_a_dialog_is_not_taken_for_what_is_in_it(page: TestPage) -> None:
    page.set(
        "<button>OK</button><dialog id=d><button onclick='d.close()'>OK</button></dialog><script>d.showModal()</script>"
    )
    page.act(click(text="OK"))
    assert page.evaluate("d.open") == "false"


def test_what_fades_in_and_out_is_in_the_answer(page: TestPage) -> None:
    page.set(
        "<style>#d { opacity: 0; transition: opacity .3s; pointer-events: none } #d.on { opacity: 1; pointer-events: auto }</style>"
        "<button onclick=\"d.className = 'on'\">Open</button><div id=d>Panel <button onclick=\"d.className = ''\">Close</button></div>"
    )
    page.evaluate("d.addEventListener('transitionend', () => { if (d.className) d.append(' ready') })")
    assert "ready" in page.act(click(text="Open")).diff
    assert "- > Panel" in page.act(click(text="Close")).diff


def test_the_place_that_a_router_shows_later_is_in_the_answer(page: TestPage) -> None:
    page.set(
        "<button onclick=\"location.hash = '#/two'; setTimeout(() => v.textContent = 'second', 120)\">Two</button>"
        "<main id=v>home</main>"
    )
    assert "> second" in page.act(click(text="Two")).diff


# -- submit

SENT = 'onsubmit="event.preventDefault(); o.textContent = 1"'


@pytest.mark.parametrize(
    ("form", "line", "sent"),
    [
        ("<form SENT><input aria-label=A></form>", 'Filled textbox "A" REF and submitted', "1"),
        ("<form SENT><input aria-label=A><input></form>", 'Filled textbox "A" REF and pressed Enter', "-"),
        ("<form SENT><select aria-label=A><option>y<option>x</select></form>", 'Filled combobox "A" REF and submitted', "1"),
        ("<form SENT><input name=elements><textarea aria-label=A></textarea><input type=image src='data:,'></form>", 'Filled textbox "A" REF and submitted', "1"),
        ("<input aria-label=A>", 'Filled textbox "A" REF and pressed Enter', "-"),
        ("<form SENT><input aria-label=A><input aria-label=B required><button>Go</button></form>", 'Filled textbox "A" REF and tried to submit, but "B" is not valid', "-"),
        ("<form SENT novalidate><input aria-label=A><input required><button>Go</button></form>", 'Filled textbox "A" REF and submitted', "1"),
    ],
)  # fmt: skip
def test_an_answer_says_whether_a_form_was_submitted(page: TestPage, form: str, line: str, sent: str) -> None:
    page.set(form.replace("SENT", SENT) + "<p id=o>-</p>")
    filled = page.act(Fill(fields=[Field(target=ElementTarget(label="A"), value="x")], submit=True))
    assert re.sub(r"\be\d+", "REF", filled.line) == line
    assert page.evaluate("o.textContent") == f'"{sent}"'


def test_a_form_whose_button_is_disabled_is_not_submitted(page: TestPage) -> None:
    page.set(f"<form {SENT}><input aria-label=A><button disabled>Send</button></form><p id=o>-</p>")
    said = page.refusal(Fill(fields=[Field(target=ElementTarget(label="A"), value="x")], submit=True))
    assert 'button "Send"' in said and 'is disabled (filled before it: "A")' in said
    assert page.evaluate("o.textContent") == '"-"'


# -- waiting


def test_a_text_in_a_shadow_root_is_waited_for(page: TestPage) -> None:
    page.set(
        "<x-a>Total: </x-a><script>customElements.define('x-a', class extends HTMLElement { connectedCallback() {"
        "const root = this.attachShadow({mode: 'closed'}); root.innerHTML = '<p>Loading</p>';"
        "setTimeout(() => { root.innerHTML = '<slot></slot> <b>5 euros</b>' }, 100) } })</script>"
    )
    assert page.act(Wait(text="total: 5 Euros")).line == "It is there"
    assert "is still there" in page.refusal(Wait(text_gone="5 euros", seconds=0.2))
    assert page.act(Wait(text_gone="Loading")).line == "The wait is over"


# -- points


@pytest.mark.parametrize(("x", "y"), [(-1, 5), (5, -1), (1000, 5), (5, 700)])
def test_a_point_outside_of_the_window_is_not_clicked(page: TestPage, x: float, y: float) -> None:
    page.set("<button>A</button>")
    assert "is outside the window, which is 1000 x 700" in page.refusal(Click(target=Point(x, y)))
    assert "Clicked the point 999,699" in page.act(Click(target=Point(999, 699))).line
