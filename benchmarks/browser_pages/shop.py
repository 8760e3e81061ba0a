"""A shop: search, products with options, a cart, an address form of eight fields, and a receipt."""

from __future__ import annotations

from html import escape
from urllib.parse import urlencode

from benchmarks.browser_pages.plain import page, prose

QUERY = "kettle"
PRODUCT = "Copper kettle"
OPTIONS = {"Colour": "Green", "Size": "2 litres", "Quantity": "3"}
ADDRESS = {
    "Full name": "Ada Lind",
    "Email": "ada@example.org",
    "Phone": "+47 555 0117",
    "Street": "Quay Road 12",
    "Postal code": "5003",
    "City": "Bergen",
    "Country": "Norway",
    "Delivery": "Express",
}
KINDS = ("kettle", "pan", "bowl", "jug")
MATERIALS = ("Copper", "Steel", "Enamel", "Glass", "Iron", "Ceramic")
PRODUCTS = [f"{material} {kind}" for kind in KINDS for material in MATERIALS]
PRICE = 30  # of the first one; each next costs one more
SIZES = ("1 litre", "2 litres", "3 litres")
COLOURS = ("Red", "Green", "Blue")
COUNTRIES = ("Austria", "Denmark", "France", "Germany", "Iceland", "Italy", "Norway", "Portugal", "Spain", "Sweden")
TOTAL = (PRICE + PRODUCTS.index(PRODUCT)) * int(OPTIONS["Quantity"])


def get(path: str, query: dict[str, str], orders: list[dict[str, str]]) -> str | None:
    """The page at this path; None if the shop has none."""
    match path.strip("/").split("/"):
        case ["shop"]:
            return _frame("Tide & Table", _cards(PRODUCTS[::2]))
        case ["shop", "search"]:
            wanted = query.get("q", "")
            found = [name for name in PRODUCTS if wanted.lower() in name.lower()]
            return _frame(f"Results for {escape(wanted)}", f"<p>{len(found)} products</p>{_filters()}{_cards(found)}")
        case ["shop", "product", number]:
            return _product(int(number))
        case ["shop", "cart"]:
            return _cart(query)
        case ["shop", "checkout"]:
            return _checkout(query)
        case ["shop", "receipt", number]:
            return _receipt(int(number), orders[int(number)])
        case _:
            return None


def post(path: str, fields: dict[str, str], orders: list[dict[str, str]]) -> str:
    """Where a form that was sent leads to."""
    if path == "/shop/order":
        orders.append(fields)
        return f"/shop/receipt/{len(orders) - 1}"
    return f"/shop/cart?{urlencode(fields)}"


def is_right(order: dict[str, str]) -> bool:
    return order == {"Product": PRODUCT} | OPTIONS | ADDRESS


def _frame(title: str, body: str) -> str:
    """What is on every page of a shop: a head with the search, a navigation and a foot."""
    links = "".join(f'<li><a href="/shop/search?q={kind}">{kind.capitalize()}s</a></li>' for kind in KINDS)
    more = ("New", "Sale", "Gifts", "Brands", "Recipes", "Stores")
    links += "".join(f'<li><a href="/shop/{name.lower()}">{name}</a></li>' for name in more)
    service = ("Delivery", "Returns", "Contact", "Careers", "Press", "Privacy", "Terms", "Cookies")
    foot = "".join(f'<li><a href="/about/{name.lower()}">{name} info</a></li>' for name in service)
    return page(
        f"{title} – Shop",
        f"""<header><a href="/shop">Tide &amp; Table</a><form action="/shop/search" role="search">
<label>Search <input type="search" name="q"></label><button>Go</button></form>
<nav><ul>{links}</ul></nav></header><main><h1>{title}</h1>{body}</main>
<footer><ul>{foot}</ul><p>{prose(3, 24)}</p></footer>""",
    )


def _cards(names: list[str]) -> str:
    return "".join(
        f"""<div class="card"><h3><a href="/shop/product/{PRODUCTS.index(name)}">{name}</a></h3>
<p>{prose(PRODUCTS.index(name), 24)}</p><p>€{PRICE + PRODUCTS.index(name)}.00</p>
<button type="button" aria-label="Remember {name}">♡</button></div>"""
        for name in names
    )


def _filters() -> str:
    boxes = "".join(f'<label><input type="checkbox" name="material"> Only {each}</label>' for each in MATERIALS)
    return f"<aside><h2>Filter</h2><form>{boxes}</form></aside>"


def _product(number: int) -> str:
    name = PRODUCTS[number]
    radios = "".join(
        f'<label><input type="radio" name="Colour" value="{each}"{" checked" * (each == "Red")}> {each}</label>'
        for each in COLOURS
    )
    reviews = "".join(
        f'<div class="card"><h3>{prose(each, 3)}</h3><p>{prose(each + 20, 36)}</p></div>' for each in range(12)
    )
    return _frame(
        name,
        f"""<p>€{PRICE + number}.00</p><p>{prose(number, 60)}</p><form method="post" action="/shop/add">
<input type="hidden" name="Product" value="{name}"><fieldset><legend>Colour</legend>{radios}</fieldset>
{_select("Size", SIZES)}<label>Quantity <input name="Quantity" value="1"></label>
<button>Add to cart</button></form><h2>Reviews</h2>{reviews}""",
    )


def _cart(chosen: dict[str, str]) -> str:
    lines = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in chosen.items())
    link = f'<a href="/shop/checkout?{escape(urlencode(chosen))}">Checkout</a>'
    return _frame("Your cart", f"<table>{lines}</table><p>{link}</p><h2>You may like</h2>{_cards(PRODUCTS[6:12])}")


def _checkout(chosen: dict[str, str]) -> str:
    hidden = "".join(
        f'<input type="hidden" name="{escape(key)}" value="{escape(value)}">' for key, value in chosen.items()
    )
    fields = "".join(
        f'<label>{name} <input name="{name}" autocomplete="off"></label>'
        for name in ADDRESS
        if name not in ("Country", "Delivery")
    )
    selects = _select("Country", COUNTRIES) + _select("Delivery", ("Standard", "Express"))
    form = f'<form method="post" action="/shop/order">{hidden}{fields}{selects}<button>Place order</button></form>'
    return _frame("Checkout", form)


def _receipt(number: int, order: dict[str, str]) -> str:
    unit = PRICE + PRODUCTS.index(order["Product"])
    rows = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in order.items())
    total = unit * int(order["Quantity"])
    return _frame("Thank you", f"<p>Order {1000 + number}</p><table>{rows}</table><p>Total: €{total}.00</p>")


def _select(name: str, options: tuple[str, ...]) -> str:
    choices = "".join(f"<option>{each}</option>" for each in options)
    return f'<label>{name} <select name="{name}">{choices}</select></label>'
