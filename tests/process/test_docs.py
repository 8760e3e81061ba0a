"""docs/serving.md says what limits.py says."""

from __future__ import annotations

from pathlib import Path

from longshore.config.reference import docs
from longshore.config.sections import FLAGS
from longshore.limits import DEFAULT_LIMITS, Limits

PAGE = Path(__file__).parents[2] / "docs/serving.md"
BEGIN, END = (
    "<!-- limits: generated from limits.py, checked by tests/process/test_docs.py -->",
    "<!-- end of limits -->",
)


def spell(name: str, value: float) -> str:
    if name.endswith("_bytes") and value >= 1024:
        return f"{value >> 20} MiB" if value % (1 << 20) == 0 else f"{value >> 10} KiB"  # type: ignore[operator]
    return f"{value:,g} s" if name.endswith("_seconds") else f"{value:,}"


def table() -> str:
    rows = ["| limit | default | why |", "|---|---|---|"]
    for name, words in docs(Limits).items():
        rows.append(f"| `{name}` | {spell(name, getattr(DEFAULT_LIMITS, name))} | {words} |")
    return "\n".join(rows)


def test_the_table_of_limits_is_the_codes() -> None:
    page = PAGE.read_text()
    assert page.partition(BEGIN)[2].partition(END)[0].strip() == table(), "run: python tests/process/test_docs.py"


def test_every_option_is_on_the_page() -> None:
    assert all(f"`{option}" in PAGE.read_text() for option in ("--eof-grace", "--timeout"))
    assert {"--eof-grace", "--timeout"} <= set(FLAGS)


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}")
