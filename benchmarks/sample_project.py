"""A small Python project in git, as a coding agent meets it: a package, its tests, and a bug that no test shows.

`round_cents` rounds half to even, where its docstring and the README promise half up. Putting that right breaks
`split`, which relied on it. The tests run on plain Python.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

README = """# Shop

Orders, stock and invoices of a small shop, on plain Python.

## Layout

- `shop/money.py`: amounts, parsing and rounding
- `shop/pricing.py`: discounts and taxes
- `shop/invoices.py`: what a customer owes, and paying in parts
- `shop/stores/`: one store for each kind of record
- `tests/`: one file for each module

## Rules

- An amount is a `Decimal` in euros. Floats are never used for money.
- Amounts are rounded to cents, half up: 2.345 becomes 2.35. Round once, at the end.
- Parts of an amount add up to the amount.
- A store refuses a record whose id it has.

## Tests

    python3 -m unittest discover -s tests

Every fix comes with a test that failed before it, and with a line in `CHANGELOG.md`.
"""

CHANGELOG = """# Changes

## 1.4.1

- `pricing.price` takes a voucher as well as a discount.

## 1.4.0

- Invoices can be paid in parts.
- `stores` refuse a second record with the same id.

## 1.3.0

- Taxes by country.
"""

MONEY = '''"""Amounts of money: parsing, rounding and printing."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

CENT = Decimal("0.01")
SYMBOLS = {"EUR": "€", "GBP": "£", "USD": "$"}


class MoneyError(ValueError):
    """A text or an amount that is no money."""


def parse(text: str) -> Decimal:
    """The amount in a text such as `1,299.90` or `EUR 12`."""
    cleaned = text.strip().replace(",", "")
    for name, symbol in SYMBOLS.items():
        cleaned = cleaned.removeprefix(name).removeprefix(symbol).strip()
    try:
        amount = Decimal(cleaned)
    except InvalidOperation:
        raise MoneyError(f"{text!r} is no amount; write it like 1299.90") from None
    if not amount.is_finite():
        raise MoneyError(f"{text!r} is no finite amount")
    return amount


def round_cents(amount: Decimal) -> Decimal:
    """The amount in whole cents, rounded half up."""
    if not amount.is_finite():
        raise MoneyError(f"{amount} can't be rounded")
    return amount.quantize(CENT, rounding=ROUND_HALF_EVEN)


def total(amounts: Iterable[Decimal]) -> Decimal:
    """The sum, rounded once at the end."""
    return round_cents(sum(amounts, Decimal(0)))


def show(amount: Decimal, currency: str = "EUR") -> str:
    """The amount as it is printed on an invoice."""
    if currency not in SYMBOLS:
        raise MoneyError(f"no symbol for {currency}; there are {', '.join(SYMBOLS)}")
    sign = "-" if amount < 0 else ""
    return f"{sign}{SYMBOLS[currency]}{abs(round_cents(amount)):,.2f}"


def share(amount: Decimal, part: Decimal, whole: Decimal) -> Decimal:
    """What `part` of `whole` has of the amount, not rounded."""
    if whole <= 0:
        raise MoneyError("the whole must be more than nothing")
    if not 0 <= part <= whole:
        raise MoneyError(f"a part of {part} is not within {whole}")
    return amount * part / whole


def convert(amount: Decimal, rate: Decimal) -> Decimal:
    """The amount in another currency, in whole cents."""
    if rate <= 0:
        raise MoneyError(f"a rate of {rate} is not above nothing")
    return round_cents(amount * rate)


def is_cents(amount: Decimal) -> bool:
    """Whether the amount has no fraction of a cent."""
    return amount == amount.quantize(CENT, rounding=ROUND_HALF_EVEN)
'''

PRICING = '''"""What a product costs a customer: discounts, vouchers and taxes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from shop.money import MoneyError, round_cents

TAXES = {
    "AT": Decimal("0.20"),
    "BE": Decimal("0.21"),
    "DE": Decimal("0.19"),
    "DK": Decimal("0.25"),
    "ES": Decimal("0.21"),
    "FR": Decimal("0.20"),
    "IT": Decimal("0.22"),
    "NL": Decimal("0.21"),
    "PL": Decimal("0.23"),
}


@dataclass(frozen=True)
class Discount:
    """A part of the price that a customer is spared from a quantity on."""

    part: Decimal
    from_quantity: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.part < 1:
            raise MoneyError(f"a discount of {self.part} is not between 0 and 1")
        if self.from_quantity < 1:
            raise MoneyError("a discount begins at a quantity of 1 or more")


@dataclass(frozen=True)
class Voucher:
    """An amount that is taken off once."""

    code: str
    amount: Decimal

    def __post_init__(self) -> None:
        if self.amount <= 0:
            raise MoneyError(f"the voucher {self.code} is worth nothing")


def best_discount(discounts: list[Discount], quantity: int) -> Decimal:
    """The largest discount that the quantity earns; 0 without one."""
    return max((each.part for each in discounts if quantity >= each.from_quantity), default=Decimal(0))


def net_price(unit: Decimal, quantity: int, discounts: list[Discount]) -> Decimal:
    """The price without tax, not rounded."""
    if quantity < 1:
        raise MoneyError(f"a quantity of {quantity} can't be priced")
    return unit * quantity * (1 - best_discount(discounts, quantity))


def tax(net: Decimal, country: str) -> Decimal:
    """The tax on a net price, in whole cents."""
    if country not in TAXES:
        raise MoneyError(f"no tax is known for {country}; there are {', '.join(TAXES)}")
    return round_cents(net * TAXES[country])


def price(
    unit: Decimal,
    quantity: int,
    country: str,
    discounts: list[Discount] | None = None,
    voucher: Voucher | None = None,
) -> Decimal:
    """What the customer pays, with tax, in whole cents."""
    net = net_price(unit, quantity, discounts or [])
    if voucher is not None:
        net = max(net - voucher.amount, Decimal(0))
    return round_cents(net) + tax(net, country)
'''

INVOICES = '''"""Invoices: lines, what is owed, and paying in parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

from shop.money import CENT, MoneyError, round_cents, show, total
from shop.pricing import Discount, price

DUE_DAYS = 14
MOST_PARTS = 24


@dataclass(frozen=True)
class Line:
    """A product on an invoice."""

    product: str
    unit: Decimal
    quantity: int
    discounts: tuple[Discount, ...] = ()

    def amount(self, country: str) -> Decimal:
        """What this line costs, with tax."""
        return price(self.unit, self.quantity, country, list(self.discounts))


@dataclass
class Invoice:
    """What a customer bought and has paid for."""

    number: str
    customer: str
    country: str
    issued: date
    lines: list[Line] = field(default_factory=list)
    paid: list[Decimal] = field(default_factory=list)

    def add(self, product: str, unit: Decimal, quantity: int = 1, *discounts: Discount) -> Line:
        """Add a line and return it."""
        line = Line(product, unit, quantity, discounts)
        self.lines.append(line)
        return line

    @property
    def amount(self) -> Decimal:
        """What all lines cost, with tax."""
        return total(line.amount(self.country) for line in self.lines)

    @property
    def owed(self) -> Decimal:
        """What is not paid yet."""
        return self.amount - sum(self.paid, Decimal(0))

    @property
    def due(self) -> date:
        return self.issued + timedelta(days=DUE_DAYS)

    def is_overdue(self, today: date) -> bool:
        return self.owed > 0 and today > self.due

    def pay(self, amount: Decimal) -> Decimal:
        """Book a payment and return what is owed afterwards."""
        if amount <= 0:
            raise MoneyError(f"a payment of {amount} is no payment")
        if amount > self.owed:
            raise MoneyError(f"{show(amount)} is more than the {show(self.owed)} that are owed")
        self.paid.append(round_cents(amount))
        return self.owed

    def print_lines(self) -> list[str]:
        """The invoice as text."""
        rows = [f"Invoice {self.number} for {self.customer}, due {self.due:%Y-%m-%d}"]
        for line in self.lines:
            rows.append(f"{line.quantity:4} x {line.product:<30} {show(line.amount(self.country)):>12}")
        rows.append(f"{'Total':<37} {show(self.amount):>12}")
        if self.paid:
            rows.append(f"{'Owed':<37} {show(self.owed):>12}")
        return rows


def split(amount: Decimal, parts: int) -> list[Decimal]:
    """Equal parts in whole cents. What is left over is added to the first ones, a cent each."""
    if not 1 <= parts <= MOST_PARTS:
        raise MoneyError(f"{parts} parts are not between 1 and {MOST_PARTS}")
    each = round_cents(amount / parts)
    left = int((amount - each * parts) / CENT)
    return [each + CENT if number < left else each for number in range(parts)]


def schedule(invoice: Invoice, parts: int, days: int = 30) -> list[tuple[date, Decimal]]:
    """When which part of an invoice is to be paid."""
    amounts = split(invoice.owed, parts)
    return [(invoice.due + timedelta(days=days * number), amount) for number, amount in enumerate(amounts)]
'''

TEST_MONEY = """import unittest
from decimal import Decimal

from shop.money import MoneyError, convert, is_cents, parse, round_cents, share, show, total


class ParseTest(unittest.TestCase):
    def test_a_plain_amount(self):
        self.assertEqual(parse("12.50"), Decimal("12.50"))

    def test_thousands_have_commas(self):
        self.assertEqual(parse("1,299.90"), Decimal("1299.90"))

    def test_a_currency_may_come_first(self):
        self.assertEqual(parse("EUR 12"), Decimal(12))
        self.assertEqual(parse("£3.20"), Decimal("3.20"))

    def test_other_text_is_refused(self):
        for text in ("", "twelve", "1.2.3", "NaN", "Infinity"):
            with self.subTest(text), self.assertRaises(MoneyError):
                parse(text)


class RoundTest(unittest.TestCase):
    def test_cents_stay(self):
        self.assertEqual(round_cents(Decimal("2.34")), Decimal("2.34"))

    def test_less_than_half_a_cent_is_dropped(self):
        self.assertEqual(round_cents(Decimal("2.344")), Decimal("2.34"))

    def test_more_than_half_a_cent_is_a_cent(self):
        self.assertEqual(round_cents(Decimal("2.346")), Decimal("2.35"))

    def test_infinity_is_refused(self):
        with self.assertRaises(MoneyError):
            round_cents(Decimal("Infinity"))

    def test_a_sum_is_rounded_once(self):
        self.assertEqual(total([Decimal("0.004")] * 3), Decimal("0.01"))


class ShowTest(unittest.TestCase):
    def test_with_a_symbol_and_thousands(self):
        self.assertEqual(show(Decimal("1299.9")), "€1,299.90")

    def test_a_negative_amount(self):
        self.assertEqual(show(Decimal(-3), "USD"), "-$3.00")

    def test_another_currency_is_refused(self):
        with self.assertRaises(MoneyError):
            show(Decimal(1), "XYZ")


class ShareTest(unittest.TestCase):
    def test_a_third(self):
        self.assertEqual(share(Decimal(9), Decimal(1), Decimal(3)), Decimal(3))

    def test_more_than_the_whole_is_refused(self):
        with self.assertRaises(MoneyError):
            share(Decimal(9), Decimal(4), Decimal(3))


class ConvertTest(unittest.TestCase):
    def test_in_cents(self):
        self.assertTrue(is_cents(convert(Decimal("9.99"), Decimal("1.0837"))))
"""

TEST_PRICING = """import unittest
from decimal import Decimal

from shop.money import MoneyError
from shop.pricing import Discount, Voucher, best_discount, net_price, price, tax


class PriceTest(unittest.TestCase):
    def test_with_tax(self):
        self.assertEqual(price(Decimal(10), 2, "DE"), Decimal("23.80"))

    def test_the_largest_discount_counts(self):
        discounts = [Discount(Decimal("0.05"), 2), Discount(Decimal("0.1"), 5)]
        self.assertEqual(best_discount(discounts, 5), Decimal("0.1"))
        self.assertEqual(best_discount(discounts, 4), Decimal("0.05"))
        self.assertEqual(best_discount(discounts, 1), Decimal(0))

    def test_a_voucher_is_taken_off_before_tax(self):
        self.assertEqual(price(Decimal(10), 1, "DE", voucher=Voucher("W", Decimal(5))), Decimal("5.95"))

    def test_a_voucher_never_pays_out(self):
        self.assertEqual(price(Decimal(3), 1, "DE", voucher=Voucher("W", Decimal(5))), Decimal(0))

    def test_no_quantity_is_refused(self):
        with self.assertRaises(MoneyError):
            net_price(Decimal(1), 0, [])

    def test_an_unknown_country_is_refused(self):
        with self.assertRaises(MoneyError):
            tax(Decimal(1), "XX")
"""

TEST_INVOICES = """import unittest
from datetime import date
from decimal import Decimal

from shop.invoices import Invoice, schedule, split
from shop.money import MoneyError


def make_invoice() -> Invoice:
    invoice = Invoice("2026-001", "Ada", "DE", date(2026, 3, 1))
    invoice.add("kettle", Decimal("39.90"))
    invoice.add("cup", Decimal("4.50"), 6)
    return invoice


class InvoiceTest(unittest.TestCase):
    def test_the_amount_is_the_sum_of_the_lines(self):
        self.assertEqual(make_invoice().amount, Decimal("79.61"))

    def test_a_payment_reduces_what_is_owed(self):
        self.assertEqual(make_invoice().pay(Decimal("70.00")), Decimal("9.61"))

    def test_paying_too_much_is_refused(self):
        with self.assertRaises(MoneyError):
            make_invoice().pay(Decimal(100))

    def test_it_is_overdue_after_two_weeks(self):
        self.assertFalse(make_invoice().is_overdue(date(2026, 3, 15)))
        self.assertTrue(make_invoice().is_overdue(date(2026, 3, 16)))


class SplitTest(unittest.TestCase):
    def test_equal_parts(self):
        self.assertEqual(split(Decimal("9.00"), 3), [Decimal("3.00")] * 3)

    def test_the_first_parts_have_what_is_left_over(self):
        self.assertEqual(split(Decimal("0.05"), 2), [Decimal("0.03"), Decimal("0.02")])

    def test_the_parts_add_up(self):
        for cents in range(1, 200, 4):
            amount = Decimal(cents) / 100
            self.assertEqual(sum(split(amount, 2)), amount)

    def test_a_schedule_has_a_date_for_each_part(self):
        dates = [day for day, _ in schedule(make_invoice(), 3)]
        self.assertEqual(dates, [date(2026, 3, 15), date(2026, 4, 14), date(2026, 5, 14)])
"""

STORE = '''"""The store of {plural}."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

{constant} = {limit}


class {title}Error(ValueError):
    """A record that the store of {plural} refuses."""


@dataclass(frozen=True)
class {title}:
    """One of the {plural}."""

    id: int
    {first}: str
    {second}: str = ""
    active: bool = True

    def as_row(self) -> dict[str, Any]:
        """The record as it is written to a file."""
        return asdict(self)


class {title}Store:
    """All {plural}, by id."""

    def __init__(self) -> None:
        self._records: dict[int, {title}] = {{}}

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[{title}]:
        return iter(sorted(self._records.values(), key=lambda record: record.id))

    def add(self, record: {title}) -> {title}:
        """Keep a record. Raises {title}Error for an id that is taken."""
        if record.id in self._records:
            raise {title}Error(f"there is a {name} with the id {{record.id}}")
        if len(self._records) >= {constant}:
            raise {title}Error(f"there are {{{constant}}} {plural}, which is the most")
        self._records[record.id] = record
        return record

    def get(self, id: int) -> {title}:
        """The record with this id. Raises {title}Error if there is none."""
        try:
            return self._records[id]
        except KeyError:
            raise {title}Error(f"there is no {name} with the id {{id}}") from None

    def find(self, text: str) -> list[{title}]:
        """The records whose {first} has this text."""
        return [record for record in self if text.lower() in record.{first}.lower()]

    def change(self, id: int, **fields: Any) -> {title}:
        """Replace fields of a record and return the new one."""
        changed = replace(self.get(id), **fields)
        self._records[id] = changed
        return changed

    def remove(self, id: int) -> None:
        """Forget a record. Raises {title}Error if there is none."""
        self.get(id)
        del self._records[id]

    def rows(self) -> list[dict[str, Any]]:
        """All records as they are written to a file."""
        return [record.as_row() for record in self]
'''

TEST_STORE = """import unittest

from shop.stores.{plural} import {title}, {title}Error, {title}Store


class {title}StoreTest(unittest.TestCase):
    def setUp(self):
        self.store = {title}Store()
        self.store.add({title}(1, "first"))

    def test_a_record_is_found_by_its_id(self):
        self.assertEqual(self.store.get(1).{first}, "first")

    def test_an_id_is_used_once(self):
        with self.assertRaises({title}Error):
            self.store.add({title}(1, "again"))

    def test_a_part_of_the_{first}_finds_a_record(self):
        self.store.add({title}(2, "second"))
        self.assertEqual([record.id for record in self.store.find("SEC")], [2])

    def test_a_changed_record_keeps_its_id(self):
        self.assertEqual(self.store.change(1, {first}="other").id, 1)

    def test_a_removed_record_is_unknown(self):
        self.store.remove(1)
        with self.assertRaises({title}Error):
            self.store.get(1)

    def test_rows_have_every_field(self):
        self.assertEqual(set(self.store.rows()[0]), {{"id", "{first}", "{second}", "active"}})
"""

STORES = {
    "carrier": ("carriers", "name", "phone"),
    "cart": ("carts", "owner", "note"),
    "category": ("categories", "title", "parent"),
    "customer": ("customers", "name", "email"),
    "employee": ("employees", "name", "role"),
    "order": ("orders", "customer", "note"),
    "payment": ("payments", "reference", "method"),
    "product": ("products", "title", "barcode"),
    "refund": ("refunds", "reason", "reference"),
    "reminder": ("reminders", "text", "channel"),
    "return": ("returns", "reason", "condition"),
    "review": ("reviews", "title", "text"),
    "shelf": ("shelves", "label", "room"),
    "shift": ("shifts", "employee", "place"),
    "shipment": ("shipments", "address", "tracking"),
    "subscription": ("subscriptions", "customer", "plan"),
    "supplier": ("suppliers", "name", "contact"),
    "ticket": ("tickets", "subject", "agent"),
    "transfer": ("transfers", "source", "target"),
    "voucher": ("vouchers", "code", "campaign"),
    "warehouse": ("warehouses", "city", "street"),
    "wish": ("wishes", "product", "note"),
}

FILES = {
    ".gitignore": "__pycache__/\n*.pyc\n",
    "CHANGELOG.md": CHANGELOG,
    "Makefile": "test:\n\tpython3 -m unittest discover -s tests\n",
    "README.md": README,
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1.4.1"\nrequires-python = ">=3.10"\n',
    "docs/money.md": "# Money\n\nAmounts are decimals in euros, rounded to cents, half up, once at the end.\n",
    "docs/stores.md": "# Stores\n\nEvery kind of record has a store that knows it by its id.\n",
    "shop/__init__.py": '"""A small shop."""\n',
    "shop/invoices.py": INVOICES,
    "shop/money.py": MONEY,
    "shop/pricing.py": PRICING,
    "shop/stores/__init__.py": '"""Stores of records."""\n',
    "tests/__init__.py": "",
    "tests/test_invoices.py": TEST_INVOICES,
    "tests/test_money.py": TEST_MONEY,
    "tests/test_pricing.py": TEST_PRICING,
}

HISTORY = ("Keep orders, stock and invoices", "Taxes by country", "Pay invoices in parts")
"""Subjects of the project's commits, the oldest first."""


def make_project(folder: Path) -> None:
    """Write the project into a new folder and commit it."""
    for path, text in FILES.items():
        write(folder / path, text)
    for number, (name, (plural, first, second)) in enumerate(STORES.items(), 1):
        names = {"name": name, "plural": plural, "title": name.capitalize(), "first": first, "second": second}
        store = STORE.format(**names, constant=f"MOST_{plural.upper()}", limit=number * 10_000)
        write(folder / "shop" / "stores" / f"{plural}.py", store)
        write(folder / "tests" / f"test_{plural}.py", TEST_STORE.format(**names))
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.com")
    git(folder, "add", ".")
    for subject in HISTORY:
        git(folder, "commit", "--quiet", "--allow-empty", "--message", subject)


def git(folder: Path, *arguments: str) -> str:
    """What git prints. The user's own settings are left out."""
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.check_output(["git", *arguments], cwd=folder, env=environment, text=True)


def write(path: Path, text: str) -> None:
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
