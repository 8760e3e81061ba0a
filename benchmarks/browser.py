"""The browser: the built-in server against Playwright MCP and chrome-devtools-mcp.

All are asked over real stdio by the same client, with the same Chromium and the same pages on loopback. A step is what
a model has to call until it has seen the step's effect, and every effect is verified. With `--peers-only` ours is
left out.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.browser_agents import DEVTOOLS, PEERS, PINS, PLAYWRIGHT, Agent, Element, Longshore, Value
from benchmarks.browser_pages import Site, plain, serve, shop
from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.environment import SetupFailed, pinned
from benchmarks.load import LoadFailed, Session, measure_in_turns, precedence, progress

OURS = Longshore.name
PEER_NAMES = tuple(peer.name for peer in PEERS)
FETCHES = 20
FIELDS: dict[Element, Value] = {
    ("textbox", "Full name"): "Ada Lind",
    ("textbox", "Email"): "ada@example.org",
    ("combobox", "Country"): "Norway",
    ("checkbox", "I accept the terms"): True,
    ("textbox", "Comments"): "By the door",
}
ENTERED = "Entered: Ada Lind / ada@example.org / Norway / true / By the door"
OPTIONS: dict[Element, Value] = {
    ("radio", shop.OPTIONS["Colour"]): True,
    ("combobox", "Size"): shop.OPTIONS["Size"],
    ("textbox", "Quantity"): shop.OPTIONS["Quantity"],
}
ADDRESS: dict[Element, Value] = {
    ("combobox" if name in ("Country", "Delivery") else "textbox", name): value for name, value in shop.ADDRESS.items()
}


@dataclass(frozen=True)
class Step:
    """What the shopper does, and what is to be seen then."""

    name: str
    act: Callable[[Agent, Site], str]
    shows: str


STEPS = (
    Step("list the tools", lambda agent, _: agent.list_tools(), "tools"),
    Step("open the shop", lambda agent, site: agent.open_and_look(site.url("shop")), "Search"),
    Step("search", lambda agent, _: agent.search("Search", shop.QUERY, "Go"), shop.PRODUCT),
    Step("open a result", lambda agent, _: agent.click("link", shop.PRODUCT), "Add to cart"),
    Step("choose and add to cart", lambda agent, _: agent.submit(OPTIONS, "Add to cart"), "Checkout"),
    Step("go to the checkout", lambda agent, _: agent.click("link", "Checkout"), "Postal code"),
    Step("address and order", lambda agent, _: agent.submit(ADDRESS, "Place order"), f"Total: €{shop.TOTAL}.00"),
)
"""Ten things: open, search, open a result, three options, add, check out, send eight fields, read the receipt."""


class Contest:
    """The agents with their servers running."""

    def __init__(self, session: Session, agents: Sequence[Agent], site: Site) -> None:
        self._session, self._agents, self._site = session, agents, site

    def claims(self) -> list[Claim]:
        return [*self._snapshots(), self._click(), self._fetch(), self._fill(), self._shopping()]

    def _snapshots(self) -> list[Claim]:
        thousand = self._snapshot("k1000", f"the page of {len(plain.ELEMENTS):,} elements", plain.ELEMENTS)
        edits = [("button", f"Edit {number}") for number in range(plain.RECORDS)]
        rich = self._snapshot("rich", "a page of articles, links and a table", edits)
        _set_targets(thousand[0], 0.45)
        _set_targets(thousand[1], 0.4)
        return [*thousand, *rich]

    def _snapshot(self, page: str, what: str, elements: Sequence[Element]) -> list[Claim]:
        rounds = self._session.pick(full=15, quick=3)
        tokens = _claim(f"browser_{page}_tokens", f"A snapshot of {what}", "tokens")
        time = _claim(f"browser_{page}", f"The same: time, median of {rounds}", "ms")
        for agent in self._agents:
            agent.open(self._site.url(page))
            agent.reset()
            agent.look()
            tokens.add(agent.name, [agent.tokens])
            missing = _missing(agent, elements)
            if missing and page == "k1000":  # rows of a table can have refs in another form
                said = f"{agent.name}: {missing} of {len(elements)} elements have no ref"
                (tokens.errors if agent.name == OURS else tokens.notes).append(said)
        measure_in_turns(time, rounds, {agent.name: partial(_time, agent, agent.look) for agent in self._agents})
        return [tokens, time]

    def _click(self) -> Claim:
        rounds = self._session.pick(full=15, quick=3)
        claim = _claim(
            "browser_click", f"A click with an effect at once, until it is reported, median of {rounds}", "ms"
        )
        clicks = {agent.name: self._clicker(agent) for agent in self._agents}
        measure_in_turns(claim, rounds, clicks)
        _set_targets(claim, 0.5)
        claim.notes += [f"{agent.name}: {agent.calls // (rounds + 1)} calls a click." for agent in self._agents]
        return claim

    def _clicker(self, agent: Agent) -> Callable[[], float]:
        agent.open_and_look(self._site.url("effects"))
        agent.calls = 0
        count = 0

        def click() -> float:
            nonlocal count
            count += 1
            said = ""

            def act() -> None:
                nonlocal said
                said = agent.click("button", "Add one")

            milliseconds = _time(agent, act)
            if f"Count: {count}" not in said:
                raise LoadFailed(f"{agent.name}: the click's effect is not in {said[:500]!r}")
            return milliseconds

        return click

    def _fetch(self) -> Claim:
        title = f"A click that fetches for 300 ms: effect in the click's own answer, of {FETCHES}"
        claim = Claim("browser_fetch", title, "clicks", targets=[Target(OURS, FETCHES, at_most=False)])
        for agent in self._agents:
            agent.open_and_look(self._site.url("effects"))
            at_once = afterwards = 0
            times: list[float] = []
            for number in range(1, FETCHES + 1):
                progress(f"{claim.name} {number}/{FETCHES}  {agent.name}")
                before, wanted = agent.milliseconds, f"Loaded {number}"
                at_once += _shows(agent.press("button", "Load"), wanted)
                times.append(agent.milliseconds - before)
                afterwards += _shows(_look(agent), wanted)
            claim.add(agent.name, [at_once])
            looks = f"{afterwards} seen by a look right after it"
            claim.notes.append(f"{agent.name}: {statistics.median(times):,.0f} ms a click; {looks}.")
        claim.notes.append("Playwright MCP's answers name a file that has the page: its own answer shows no effect.")
        progress("")
        return claim

    def _fill(self) -> Claim:
        rounds = self._session.pick(full=9, quick=2)
        claim = _claim("browser_fill", f"Filling {len(FIELDS)} fields in one call, median of {rounds}", "ms")
        measure_in_turns(claim, rounds, {agent.name: partial(self._fill_once, agent) for agent in self._agents})
        _set_targets(claim, 0.6)
        return claim

    def _fill_once(self, agent: Agent) -> float:
        agent.open_and_look(self._site.url("form"))
        milliseconds = _time(agent, lambda: agent.enter(FIELDS))
        if ENTERED not in (said := agent.look()):
            raise LoadFailed(f"{agent.name}: not all fields are filled: {said[:2000]!r}")
        return milliseconds

    def _shopping(self) -> Claim:
        claim = _claim("browser_shopping", "Shopping in ten steps, with the tools' listing", "tokens")
        costs: dict[str, list[float]] = {}
        for agent in self._agents:
            progress(f"{claim.name}  {agent.name}")
            costs[agent.name], failure = self._shop(agent)
            if failure:
                claim.errors.append(f"{agent.name}: {failure}")
            else:
                claim.add(agent.name, [sum(costs[agent.name])])
                claim.notes.append(f"{agent.name}: {agent.calls} calls, {agent.milliseconds / 1e3:.1f} s.")
        progress("")
        _set_targets(claim, 0.35)
        claim.notes += [
            f"{agent.name}: its listing counts {agent.listed} tools, those of the browser. The peers have no others."
            for agent in self._agents
            if isinstance(agent, Longshore)
        ]
        claim.notes += _table(costs)
        return claim

    def _shop(self, agent: Agent) -> tuple[list[float], str]:
        """The tokens of each step, and what failed."""
        agent.reset()
        costs: list[float] = []
        orders = len(self._site.orders)
        for step in STEPS:
            before = agent.tokens
            try:
                said = step.act(agent, self._site)
            except LoadFailed as failure:
                return costs, f"failed to {step.name}: {failure}"
            costs.append(agent.tokens - before)
            if step.shows not in said:
                return costs, f"{step.name}: no {step.shows!r} in {said[:1000]!r}"
        placed = self._site.orders[orders:]
        right = len(placed) == 1 and shop.is_right(placed[0])
        return costs, "" if right else f"another order than the one wanted: {placed}"


def measure(session: Session, contestants: Sequence[type[Agent]] = (Longshore, *PEERS)) -> list[Claim]:
    try:
        with TemporaryDirectory() as temporary, serve() as site, precedence(session), ExitStack() as stack:
            start = _start(session, contestants, site, Path(temporary))
            agents = [_agent(contestant, Path(temporary), "contest") for contestant in contestants]
            for agent in agents:
                stack.enter_context(agent.server)
            return [start, *Contest(session, agents, site).claims()]
    except (LoadFailed, SetupFailed, OSError) as failure:
        return [Claim("browser", "The browser", "ms", errors=[str(failure)])]


def _start(session: Session, contestants: Sequence[type[Agent]], site: Site, temporary: Path) -> Claim:
    """From the start of a server's process to its answer that the first page is loaded."""
    rounds = session.pick(full=7, quick=2)
    claim = _claim("browser_start", f"Start of the process until the first page is loaded, median of {rounds}", "ms")
    versions = f"{PLAYWRIGHT} {pinned(PLAYWRIGHT, PINS)}, {DEVTOOLS} {pinned(DEVTOOLS, PINS)}"
    claim.notes.append(f"{versions}; the peers run Chromium without its sandbox where they are root.")

    def start(contestant: type[Agent]) -> float:
        agent = _agent(contestant, temporary, "start")
        began = perf_counter()
        with agent.server:
            said = agent.open(site.url("simple"))
            milliseconds = (perf_counter() - began) * 1e3
            if "Simple" not in said:
                raise LoadFailed(f"{agent.name}: the page was not loaded: {said[:500]!r}")
        return milliseconds

    measure_in_turns(claim, rounds, {each.name: partial(start, each) for each in contestants})
    _set_targets(claim, 0.7)
    return claim


def _agent(contestant: type[Agent], temporary: Path, purpose: str) -> Agent:
    folder = temporary / purpose / contestant.__name__
    folder.mkdir(parents=True, exist_ok=True)
    return contestant(folder)


def _claim(name: str, title: str, unit: str) -> Claim:
    """The target is set when the peers are measured: it is against the better one."""
    return Claim(name, title, unit, base=PEER_NAMES[0])


def _set_targets(claim: Claim, limit: float) -> None:
    claim.base = claim.lowest(*PEER_NAMES)
    claim.targets = [Target(OURS, limit, against=claim.base)]


def _time(agent: Agent, act: Callable[[], object]) -> float:
    """Milliseconds of all calls that it takes."""
    before = agent.milliseconds
    act()
    return agent.milliseconds - before


def _look(agent: Agent) -> str:
    """A look that leaves no trace in what was seen."""
    seen = agent.seen
    said = agent.look()
    agent.seen = seen
    return said


def _shows(text: str, wanted: str) -> bool:
    """Whether it is there as a whole: `Loaded 1` is not in `Loaded 12`."""
    _, found, rest = text.partition(wanted)
    return bool(found) and not rest[:1].isdigit()


def _missing(agent: Agent, elements: Sequence[Element]) -> int:
    found = agent.elements()
    refs = {found[element] for element in elements if element in found}
    return len(elements) - len(refs)


def _table(costs: dict[str, list[float]]) -> list[str]:
    """The tokens of every step, the contestants side by side."""
    rows = [f"{'':26}" + "".join(f"{name:>22}" for name in costs)]
    for number, step in enumerate(STEPS):
        cells = "".join(f"{each[number]:22,.0f}" if number < len(each) else f"{'–':>22}" for each in costs.values())
        rows.append(f"{step.name:26}{cells}")
    return rows


if __name__ == "__main__":
    chosen: tuple[type[Agent], ...] = (Longshore, *PEERS)
    if "--peers-only" in sys.argv:
        sys.argv.remove("--peers-only")
        chosen = PEERS
    sys.exit(main([partial(measure, contestants=chosen)]))
