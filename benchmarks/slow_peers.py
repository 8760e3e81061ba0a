"""What slow clients cost the healthy ones, and whether memory stays where it is meanwhile.

A quarter of the slow ones says nothing, a quarter stops in the middle of a request's head, a quarter sends its body
byte by byte, and a quarter listens to changes and never reads, while there is a change again and again. Whom the server
turns away comes back at once, so their number stays. wrk's connections are the healthy ones: their p99 without the slow
ones is the base of the one with them. Memory is read in the middle and at the end.
"""

from __future__ import annotations

import select
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

from benchmarks import wrk
from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.environment import SetupFailed
from benchmarks.http_messages import MODERN_HEADERS, Connection, Unexpected, encode, request, request_headers
from benchmarks.http_server import Serving, on_longshore
from benchmarks.load import LoadFailed, Session, progress

HEALTHY = 16
TURN_SECONDS = 0.5  # between two bytes of a body that trickles, and between two changes that are listened to
RECEIVE_BYTES = 4096  # what the system takes for a listener that does not read
WORSE, PLATEAU = 2.0, 1.1
BEFORE, DURING, MIDDLE, END = "healthy clients alone", "beside slow ones", "in the middle", "at the end"

# So high that nothing is refused: all of them are one caller, which real ones are not.
SERVER = on_longshore(
    "longshore",
    module="longshore_holding",
    LONGSHORE_HTTP_RATE="0",
    LONGSHORE_LIMITS_LISTENS="10000",
    LONGSHORE_LIMITS_HANDSHAKES="10000",
)

Kind = Callable[[], Connection]


def measure(session: Session) -> list[Claim]:
    count = session.pick(full=1000, quick=200)
    seconds = session.pick(full=40, quick=6)
    slowed = Claim("slow_peers_p99", f"HTTP tools/call beside {count:,} slow clients: p99, {HEALTHY} connections", "ms")
    grown = Claim("slow_peers_memory", f"The server's memory meanwhile, {2 * seconds} s", "MB", base=MIDDLE)
    slowed.targets = [Target(DURING, WORSE, against=BEFORE)]
    grown.targets = [Target(END, PLATEAU, against=MIDDLE)]
    slowed.settings = grown.settings = SERVER.settings
    try:
        wrk.find()
        with Serving(session, SERVER) as serving:
            _follow(session, serving, count, seconds, slowed, grown)
    except (SetupFailed, LoadFailed, Unexpected, OSError) as failure:
        slowed.errors.append(str(failure))
    progress("")
    return [slowed, grown]


def _follow(session: Session, serving: Serving, count: int, seconds: int, slowed: Claim, grown: Claim) -> None:
    def load(seconds: int) -> float:
        counted = wrk.run(session, serving, True, list(MODERN_HEADERS.items()), HEALTHY, seconds)
        if counted["troubles"]:
            slowed.errors.append(f"{counted['troubles']} errors of healthy clients")
        return float(counted["p99_ms"])

    progress("slow peers: healthy clients alone")
    load(1)  # to warm up
    slowed.add(BEFORE, [load(seconds // 2) for _ in range(2)])
    progress(f"slow peers: {count:,}")
    with SlowPeers(serving.port, count) as peers:
        first = load(seconds)
        grown.add(MIDDLE, [serving.memory()])
        slowed.add(DURING, [first, load(seconds)])
        grown.add(END, [serving.memory()])
        peers.check()
    turned = f"{peers.turned_away:,} slow clients were turned away and came back"
    slowed.notes.append(f"{turned}; those that listened had {peers.changes:,} changes to read.")


class SlowPeers:
    """Slow clients, kept as many as they are by a thread, for as long as the `with` lasts."""

    def __init__(self, port: int, count: int) -> None:
        self._port = port
        self._count = count
        self._ends = select.epoll()
        self._open: dict[int, tuple[Connection, Kind]] = {}
        """By their descriptors."""
        self._stopped = threading.Event()
        self._failure: Exception | None = None
        self.turned_away = self.changes = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> SlowPeers:
        kinds = (self._silent, self._half_head, self._trickling, self._listening)
        for n in range(self._count):
            self._begin(kinds[n % len(kinds)])
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._stopped.set()
        self._thread.join()
        for connection, _ in self._open.values():
            connection.close()
        self._ends.close()

    def check(self) -> None:
        """That they were all there until now."""
        if self._failure is not None:
            raise LoadFailed(f"the slow clients ended: {self._failure!r}")

    # -- each kind

    def _silent(self) -> Connection:
        return Connection(self._port)

    def _half_head(self) -> Connection:
        connection = Connection(self._port)
        connection.write(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: appli")
        return connection

    def _trickling(self) -> Connection:
        connection = Connection(self._port)
        connection.send("POST", {**MODERN_HEADERS, "Content-Length": "1000000"})
        return connection

    def _listening(self) -> Connection:
        connection = Connection(self._port, receive=RECEIVE_BYTES)
        wanted = {"resourceSubscriptions": ["note://updated"]}
        message = request(1, "subscriptions/listen", notifications=wanted)
        connection.begin("POST", request_headers(message), encode(message))
        return connection

    # -- what they do

    def _run(self) -> None:
        try:
            with Connection(self._port) as asking:
                while not self._stopped.is_set():
                    began = time.monotonic()
                    self._trickle()
                    asking.ask(1, "tools/call", name="touch")
                    self.changes += 1
                    self._come_back(began + TURN_SECONDS)
        except Exception as failure:
            self._failure = failure

    def _trickle(self) -> None:
        for connection, kind in self._open.values():
            if kind == self._trickling:
                try:
                    connection.write(b"x")
                except OSError:
                    pass  # it is found among those that were turned away

    def _come_back(self, until: float) -> None:
        """Until then, those whom the server turns away begin again."""
        while (left := until - time.monotonic()) > 0:
            for number, _ in self._ends.poll(left):
                connection, kind = self._open.pop(number)
                connection.close()
                self.turned_away += 1
                self._begin(kind)

    def _begin(self, kind: Kind) -> None:
        connection = kind()
        self._open[connection.fileno()] = connection, kind
        self._ends.register(connection.fileno(), select.EPOLLRDHUP)  # its end alone: nobody reads here


if __name__ == "__main__":
    sys.exit(main([measure]))
