"""Snapshots as text: folded landmarks, cut texts, outlines and differences."""

from __future__ import annotations

from longshore.registry.token_budget import count_tokens
from longshore.toolsets.browser.answers import show_page
from longshore.toolsets.browser.script import SnapshotLine
from longshore.toolsets.browser.snapshot import CUT_TEXT, MOST_TEXT, diff, fold_behind, fold_repeated, outline, render


def menu(first: int, *names: str, current: str = "") -> list[SnapshotLine]:
    links = [
        SnapshotLine(1, f"e{first + n} link{',current' if name == current else ''} {name}", f"e{first + n}")
        for n, name in enumerate(names)
    ]
    return [SnapshotLine(0, "navigation"), *links]


def texts(lines: list[SnapshotLine]) -> list[str]:
    return [line.text for line in lines]


def test_a_menu_that_is_as_on_the_page_before_is_one_line() -> None:
    before = [*menu(1, "Home", "Shop", "Help", current="Home"), SnapshotLine(0, "main"), SnapshotLine(0, "h1 Home")]
    after = [*menu(11, "Home", "Shop", "Help", current="Shop"), SnapshotLine(0, "main"), SnapshotLine(0, "h1 Shop")]
    assert texts(fold_repeated(after, before)) == ["navigation (3 lines as on the page before)", "main", "h1 Shop"]


def test_a_menu_with_another_link_is_shown() -> None:
    before, after = menu(1, "Home", "Shop", "Help"), menu(11, "Home", "Shop", "Log out")
    assert fold_repeated(after, before) == after


def test_a_short_menu_is_shown_again() -> None:
    assert fold_repeated(menu(11, "Home", "Shop"), menu(1, "Home", "Shop")) == menu(11, "Home", "Shop")


def test_content_that_repeats_is_not_folded() -> None:
    page = [SnapshotLine(0, "main"), *(SnapshotLine(0, f"> {n}") for n in range(9))]
    assert fold_repeated(page, page) == page


def test_long_texts_are_cut_and_the_answer_says_so() -> None:
    fits, long = SnapshotLine(0, "> " + "x" * (MOST_TEXT - 2)), SnapshotLine(0, "> " + "x" * (MOST_TEXT - 1))
    assert show_page([fits], 6000) == fits.text
    assert show_page([long], 6000) == f"{long.text[:CUT_TEXT]}…\n[long texts are cut: browser_read]"


def test_the_name_of_a_control_is_not_cut() -> None:
    line = SnapshotLine(0, "e1 button " + "x" * 300, "e1")
    assert show_page([line], 6000) == line.text


def test_a_page_that_does_not_fit_is_outlined_with_headings_that_are_links() -> None:
    lines = [
        SnapshotLine(0, "main"),
        SnapshotLine(0, "e1 link,h2 News", "e1"),
        *(SnapshotLine(0, f"> line {n}") for n in range(1000)),
    ]
    shown = show_page(lines, 500)
    assert "1 refs" in shown and "e1 link,h2 News (1000 lines)" in shown
    assert count_tokens(shown) <= 500


def test_an_outline_and_a_page_are_never_over_their_budget() -> None:
    lines = [SnapshotLine(n % 7, f'e{n} link,h2 "{n}" \\ ' + "é" * 50, f"e{n}") for n in range(3000)]
    for budget in (100, 500, 6000):
        assert count_tokens(outline(lines, budget)) <= budget + 30  # the hint at its end
        assert count_tokens(render(lines, budget).text) <= budget


def test_of_many_lines_that_went_the_first_are_named_and_what_came_is_shown() -> None:
    before = [SnapshotLine(0, f"> old {n}") for n in range(200)]
    after = [SnapshotLine(0, "h1 New"), SnapshotLine(0, "e1 button Go", "e1")]
    shown = diff(before, after).split("\n")
    assert shown == [*(f"- > old {n}" for n in range(4)), "- 196 more lines", "+ h1 New", "+ e1 button Go"]
    assert len(diff(before[:8], after).split("\n")) == 10


def test_a_difference_that_does_not_fit_counts_what_it_leaves_out_of_each_kind() -> None:
    before = [
        *(SnapshotLine(0, f"e{n} button {n}", f"e{n}") for n in range(100)),
        *(SnapshotLine(0, f"> {n}") for n in range(50)),
    ]
    after = [
        *(SnapshotLine(0, f"e{n} button,disabled {n}", f"e{n}") for n in range(100)),
        SnapshotLine(0, "> x"),
        SnapshotLine(0, "> y"),
    ]
    shown = diff(before, after, 100).split("\n")
    changed = sum(line.startswith("~ ") for line in shown)
    removed = 4 + int(next(line for line in shown if line.endswith(" more lines")).split()[1])
    assert removed == 50
    assert shown[-1] == f"[… 2 new, {100 - changed} changed lines left out; browser_snapshot shows the page]"


def test_what_is_behind_a_dialog_is_one_line() -> None:
    lines = [
        SnapshotLine(0, "h1 Shop", behind=True),
        SnapshotLine(0, "> text", behind=True),
        SnapshotLine(0, "dialog"),
        SnapshotLine(1, "e1 button OK", "e1"),
    ]
    assert texts(fold_behind(lines)) == ["(2 lines that can't be used now)", "dialog", "e1 button OK"]
    assert show_page(lines, 500).startswith("(2 lines that can't be used now)\ndialog\n")


def test_a_difference_names_changed_new_and_removed_lines() -> None:
    before = [SnapshotLine(0, "e1 button Add", "e1"), SnapshotLine(0, "> old"), SnapshotLine(0, "h2 End")]
    after = [
        SnapshotLine(0, "e1 button,focused Added", "e1"),
        SnapshotLine(0, "h2 End"),
        SnapshotLine(0, "> one"),
        SnapshotLine(0, "> two"),
    ]
    shown = diff(before, after).split("\n")
    assert shown == ["- > old", "~ e1 button,focused Added", "after h2 End", "+ > one", "+ > two"]


def test_what_only_one_of_two_truncated_snapshots_reaches_is_no_change() -> None:
    page = [SnapshotLine(0, f"> {n}") for n in range(50)]
    assert diff(page[:30], page, truncated=True) == diff(page, page[:30], truncated=True) == ""
    assert diff(page[:30], [SnapshotLine(0, "> new"), *page[:29]], truncated=True) == "+ > new"
    assert diff(page[:30], [SnapshotLine(0, "> new"), *page[:29]]).endswith("- > 29")


def test_the_focus_is_a_change_only_if_it_is_all_that_changed() -> None:
    def page(focused: str, count: int) -> list[SnapshotLine]:
        names = {"e1": "Add", "e2": "Remove"}
        state = {ref: ",focused" if ref == focused else "" for ref in names}
        buttons = [SnapshotLine(0, f"{ref} button{state[ref]} {name}", ref) for ref, name in names.items()]
        return [buttons[0], SnapshotLine(0, f"> {count}"), buttons[1]]

    assert diff(page("e1", 0), page("e2", 1)) == "~ > 1"
    assert diff(page("e1", 0), page("e2", 0)) == "~ e1 button Add\n~ e2 button,focused Remove"
    assert diff(page("e1", 0), page("e1", 0)) == ""
    long = [SnapshotLine(0, "> x")] * 4001
    assert diff([*page("e1", 0), *long], [*page("e2", 1), *long]) == "- > 0\n+ > 1"


def test_lines_that_take_the_place_of_as_many_like_them_are_changed_ones() -> None:
    before = [SnapshotLine(0, "e1 button Add", "e1"), SnapshotLine(0, "> 0"), SnapshotLine(0, "> none")]
    assert diff(
        before, [SnapshotLine(0, "e1 button More", "e1"), SnapshotLine(0, "> 1"), SnapshotLine(0, "> one")]
    ) == ("~ e1 button More\n~ > 1\n~ > one")
    assert diff(before, [SnapshotLine(0, "e9 button Add", "e9"), SnapshotLine(0, "> 1"), before[2]]).split("\n") == [
        "- e1 button Add",
        "- > 0",
        "+ e9 button Add",
        "+ > 1",
    ]
