"""Single pages: a simple one, a form, a thousand elements, a rich one, and buttons with effects."""

from __future__ import annotations

from collections.abc import Callable

ROWS = 250  # of four elements each
ARTICLES, LINKS, RECORDS, COLUMNS = 30, 40, 100, 8
STYLE = """<style>
body { font: 15px/1.5 sans-serif; margin: 2em auto; max-width: 70em; color: #222 }
.card { border: 1px solid #ccc; border-radius: 6px; margin: .5em 0; padding: .5em 1em }
.row { display: flex; gap: 1em; align-items: center } label { display: block; margin: .4em 0 }
table { border-collapse: collapse } td, th { border: 1px solid #ddd; padding: .2em .6em }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip: rect(0 0 0 0) }
</style>"""
WORDS = (
    "harbour",
    "crane",
    "ledger",
    "signal",
    "timber",
    "anchor",
    "beacon",
    "cargo",
    "deck",
    "ferry",
    "gauge",
    "hull",
    "inlet",
    "jetty",
    "keel",
    "lantern",
    "mast",
    "net",
    "oar",
    "pier",
    "quay",
    "rope",
    "sail",
    "tide",
    "vessel",
    "wharf",
    "yard",
    "zone",
    "current",
    "pilot",
    "dock",
    "freight",
)


def page(title: str, body: str, script: str = "") -> str:
    head = f'<meta charset="utf-8"><title>{title}</title><link rel="icon" href="data:,">{STYLE}'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}<script>{script}</script></body></html>'


def prose(seed: int, words: int) -> str:
    """Sentences that are always the same for a seed."""
    chosen = [WORDS[(seed * 7 + number * number + number * (seed % 5 + 3)) % len(WORDS)] for number in range(words)]
    sentences = [" ".join(chosen[at : at + 12]).capitalize() + "." for at in range(0, words, 12)]
    return " ".join(sentences)


def simple() -> str:
    return page(
        "Simple",
        '<h1>Simple page</h1><p>Some words.</p><a href="/form">A form</a> <button type="button">Press</button>',
    )


def form() -> str:
    """Eleven controls, of which five are filled."""
    fields = """<h1>Sign up</h1><form onsubmit="event.preventDefault()">
<label>Full name <input name="name" autocomplete="off"></label>
<label>Email <input name="email" type="email"></label>
<label>Phone <input name="phone" type="tel"></label>
<label>Country <select name="country"><option>Austria</option><option>Norway</option><option>Portugal</option></select>
</label>
<fieldset><legend>Plan</legend><label><input type="radio" name="plan" value="small" checked> Small</label>
<label><input type="radio" name="plan" value="large"> Large</label></fieldset>
<label><input type="checkbox" name="terms"> I accept the terms</label>
<label><input type="checkbox" name="news"> Send me news</label>
<label>Comments <textarea name="comments"></textarea></label>
<button type="submit">Sign up</button> <button type="reset">Clear</button></form><p id="echo"></p>"""
    script = """const form = document.querySelector('form'), echo = document.querySelector('#echo');
const tell = () => { echo.textContent = 'Entered: ' + [form.name.value, form.email.value, form.country.value,
form.terms.checked, form.comments.value].join(' / ') };
form.addEventListener('input', tell); form.addEventListener('change', tell);"""
    return page("Sign up", fields, script)


def thousand() -> str:
    """A list of products: a link, a checkbox, a field and a button each."""
    items = "".join(
        f"""<li><div class="card"><div class="row"><div><a href="/item/{number}">Product {number}</a></div>
<div><label><input type="checkbox" name="compare{number}"> Compare {number}</label></div>
<div><label>Quantity {number} <input name="quantity{number}" value="1" size="3"></label></div>
<div><button type="button">Buy {number}</button></div></div></div></li>"""
        for number in range(1, ROWS + 1)
    )
    return page("Products", f"<h1>Products</h1><main><ul>{items}</ul></main>")


ELEMENTS = [
    (role, f"{name} {number}")
    for number in range(1, ROWS + 1)
    for role, name in (("link", "Product"), ("checkbox", "Compare"), ("textbox", "Quantity"), ("button", "Buy"))
]
"""Role and name of all that one can act on in the page of a thousand."""


def rich() -> str:
    """A navigation of 40 links, 30 articles, and a table of 100 rows and 8 columns."""
    links = "".join(
        f'<li><a href="/topic/{number}">{prose(number, 2)[:-1]} {number}</a></li>' for number in range(LINKS)
    )
    articles = "".join(
        f"""<article class="card"><h2>{prose(number, 5)[:-1]}</h2><p>{prose(number + 50, 60)}</p>
<p>{prose(number + 90, 36)} <a href="/article/{number}">Read more of {number}</a></p></article>"""
        for number in range(ARTICLES)
    )
    heads = "".join(f"<th>{name}</th>" for name in (*WORDS[: COLUMNS - 1], "action"))
    rows = "".join(
        "<tr>"
        + "".join(f"<td>{WORDS[(row + column * 5) % len(WORDS)]} {row * column}</td>" for column in range(COLUMNS - 1))
        + f'<td><button type="button">Edit {row}</button></td></tr>'
        for row in range(RECORDS)
    )
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return page("News of the harbour", f"<nav><ul>{links}</ul></nav><main><h1>News</h1>{articles}{table}</main>")


def effects() -> str:
    """A button whose effect is there at once, and one that fetches first."""
    body = """<h1>Effects</h1><p>Two buttons.</p><button type="button" id="add">Add one</button>
<button type="button" id="load">Load</button><p id="count">Count: 0</p><p id="loaded">Nothing yet</p>"""
    script = """let count = 0, loads = 0; const put = (id, text) => { document.getElementById(id).textContent = text };
document.getElementById('add').onclick = () => put('count', `Count: ${++count}`);
document.getElementById('load').onclick = async () =>
put('loaded', await (await fetch(`/slow?n=${++loads}`)).text());"""
    return page("Effects", body, script)


PAGES: dict[str, Callable[[], str]] = {
    "/simple": simple,
    "/form": form,
    "/k1000": thousand,
    "/rich": rich,
    "/effects": effects,
}
