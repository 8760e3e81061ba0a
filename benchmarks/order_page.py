"""The sample project with a page where customers order, and two bugs: one that a test shows, one in the browser.

`shop/site.py` looks up the voucher of an order and does not take it off. `web/order.js` reads the total of an answer
from a place where it is not, so the page shows none. Orders are appended to `var/orders.jsonl`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.sample_project import FILES, README, git, make_project, write

SITE = '''"""The order page. `python3 -m shop.site` serves it on this machine; `--port 0` takes a free port."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from shop.money import MoneyError, show
from shop.pricing import Discount, Voucher, price

FOLDER = Path(__file__).resolve().parent.parent
PAGES = {"/": ("index.html", "text/html"), "/order.js": ("order.js", "text/javascript")}
PRODUCTS = {"kettle": Decimal("39.90"), "pan": Decimal("24.50"), "cup": Decimal("4.50")}
DISCOUNTS = [Discount(Decimal("0.05"), 5), Discount(Decimal("0.10"), 20)]
VOUCHERS = {each.code: each for each in (Voucher("SPRING", Decimal(10)), Voucher("THANKS", Decimal(5)))}
FIRST_NUMBER = 1001


class OrderError(ValueError):
    """An order that can't be taken."""


def quote(fields: Mapping[str, str]) -> dict[str, str]:
    """What an order costs."""
    product, code = fields.get("product", ""), fields.get("voucher", "").strip().upper()
    if product not in PRODUCTS:
        raise OrderError(f"there is no product {product!r}")
    voucher = VOUCHERS.get(code)
    if code and voucher is None:
        raise OrderError(f"there is no voucher {code}")
    total = price(PRODUCTS[product], int(fields.get("quantity", "1")), fields.get("country", "DE"), DISCOUNTS)
    return {"product": product, "total": show(total), "voucher": voucher.code if voucher else ""}


def order(fields: Mapping[str, str]) -> dict[str, str]:
    """Take an order, and return what the customer is shown."""
    if not fields.get("name") or "@" not in fields.get("email", ""):
        raise OrderError("a name and an address for the receipt are needed")
    path = FOLDER / "var" / "orders.jsonl"
    path.parent.mkdir(exist_ok=True)
    taken = path.read_text().count("\\n") if path.exists() else 0
    made = {**fields, **quote(fields), "number": str(FIRST_NUMBER + taken)}
    with path.open("a") as file:
        file.write(json.dumps(made) + "\\n")
    return made


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path in PAGES:
            name, kind = PAGES[address.path]
            self._send(200, kind, (FOLDER / "web" / name).read_bytes())
        elif address.path == "/quote":
            self._answer(quote, {key: values[0] for key, values in parse_qs(address.query).items()})
        else:
            self._send(404, "text/plain", b"not found")

    def do_POST(self) -> None:
        self._answer(order, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, make, fields: Mapping[str, str]) -> None:
        try:
            status, answer = 200, make(fields)
        except (MoneyError, OrderError, ValueError) as problem:
            status, answer = 400, {"problem": str(problem)}
        self._send(status, "application/json", json.dumps(answer).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """The log is not for every request."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    print(f"serving on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
'''

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Shop: order</title><link rel="icon" href="data:,"></head>
<body>
<header><h1>Order</h1><nav><a href="/">Order</a> <a href="/help">Help</a> <a href="/terms">Terms</a></nav></header>
<main>
<form id="order">
<label>Product <select name="product"><option value="kettle">Kettle</option><option value="pan">Pan</option>
<option value="cup">Cup</option></select></label>
<label>Quantity <input name="quantity" type="number" min="1" value="1"></label>
<label>Country <select name="country"><option value="DE">Germany</option><option value="FR">France</option>
<option value="NL">Netherlands</option></select></label>
<label>Voucher <input name="voucher"></label>
<label>Name <input name="name"></label>
<label>Email <input name="email" type="email"></label>
<p>Total: <output id="total">…</output></p>
<button>Order now</button>
</form>
<p id="message" role="status"></p>
</main>
<footer>Prices include taxes. Orders are delivered within three days.</footer>
<script src="/order.js"></script>
</body>
</html>
"""

SCRIPT = """// The order page: shows what the order costs while it is filled in, and sends it.

const form = document.querySelector("#order");
const total = document.querySelector("#total");
const message = document.querySelector("#message");

function fields() {
  return Object.fromEntries(new FormData(form));
}

async function ask(address, options) {
  message.textContent = "";
  const answer = await fetch(address, options);
  const data = await answer.json();
  if (!answer.ok) {
    message.textContent = data.problem;
    throw new Error(data.problem);
  }
  return data;
}

let asked = 0;

async function showTotal() {
  const number = ++asked;
  const { name, email, ...item } = fields();
  const data = await ask(`/quote?${new URLSearchParams(item)}`);
  if (number === asked) total.textContent = data.price.total;
}

async function send(event) {
  event.preventDefault();
  const body = JSON.stringify(fields());
  const data = await ask("/order", { method: "POST", headers: { "Content-Type": "application/json" }, body });
  message.textContent = `Thank you, ${data.name}. Order ${data.number}: ${data.total}`;
  form.reset();
}

form.addEventListener("change", showTotal);
form.addEventListener("submit", send);
"""

TEST_SITE = """import unittest

from shop.site import OrderError, quote


class QuoteTest(unittest.TestCase):
    def test_a_product_with_tax(self):
        self.assertEqual(quote({"product": "kettle", "quantity": "2"})["total"], "€94.96")

    def test_many_are_cheaper(self):
        self.assertEqual(quote({"product": "cup", "quantity": "20"})["total"], "€96.39")

    def test_a_voucher_is_taken_off(self):
        self.assertEqual(quote({"product": "kettle", "voucher": "spring"})["total"], "€35.58")

    def test_an_unknown_voucher_is_refused(self):
        with self.assertRaises(OrderError):
            quote({"product": "kettle", "voucher": "WINTER"})
"""

LAYOUT = "- `shop/stores/`: one store for each kind of record\n"
NEW_LAYOUT = "- `shop/site.py`, `web/`: the page for orders; `python3 -m shop.site --port 0` serves it on a free port\n"
PAGE_FILES = {
    ".gitignore": FILES[".gitignore"] + "var/\n",
    "README.md": README.replace(LAYOUT, LAYOUT + NEW_LAYOUT),
    "shop/site.py": SITE,
    "tests/test_site.py": TEST_SITE,
    "web/index.html": PAGE,
    "web/order.js": SCRIPT,
}

SITE_FIX = (
    'fields.get("country", "DE"), DISCOUNTS)',
    'fields.get("country", "DE"), DISCOUNTS, voucher)',
)
SCRIPT_FIX = ("data.price.total", "data.total")
CHANGE = """# Changes

## 1.4.2

- The order page shows the total, and takes vouchers off.
"""
SUBJECT = "Take vouchers off and show the total on the order page"
NAME, EMAIL, TOTAL = "Ada Lind", "ada@example.org", "€130.54"
"""Three kettles to Germany with the voucher SPRING: (3 × 39.90 - 10) × 1.19."""


def make_order_project(folder: Path) -> None:
    """Write the project into a new folder and commit it."""
    make_project(folder)
    for path, text in PAGE_FILES.items():
        write(folder / path, text)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Order on a page")


def find_faults(folder: Path) -> list[str]:
    """What is left to do of: both bugs fixed, the tests pass, one order by the page, the change noted and committed."""
    faults: list[str] = []
    tests = [sys.executable, "-m", "unittest", "discover", "-s", "tests"]
    if subprocess.run(tests, cwd=folder, capture_output=True).returncode:
        faults.append("the tests fail")
    if (folder / "web/order.js").read_text() != SCRIPT.replace(*SCRIPT_FIX):
        faults.append("web/order.js is not as fixed")
    orders = folder / "var" / "orders.jsonl"
    taken = [json.loads(line) for line in orders.read_text().splitlines()] if orders.exists() else []
    if [(each["name"], each["email"], each["total"]) for each in taken] != [(NAME, EMAIL, TOTAL)]:
        faults.append(f"other orders than one were taken: {taken}")
    if not (folder / "CHANGELOG.md").read_text().startswith(CHANGE):
        faults.append("the change is not noted")
    if git(folder, "log", "-1", "--format=%s").strip() != SUBJECT or git(folder, "status", "--porcelain"):
        faults.append("the work is not committed")
    return faults
