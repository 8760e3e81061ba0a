"""One process is asked, and the numbers are those of all."""

from __future__ import annotations

from .processes import Process, Site, opened, until


def metrics(process: Process) -> dict[str, float]:
    answer = process.send("GET", "/metrics").finish()
    answer.drop()
    assert answer.status == 200, answer
    lines = [line for line in answer.body.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_metrics_are_those_of_both_processes(fresh: Site) -> None:
    a, b = fresh.start(odd={"beat": (0.1, 1.0)})
    sessions = [opened(process) for process in (a, a, b)]
    for n in range(5):
        (a, b)[n % 2].do("echo", text=str(n))
    sessions[0].call("process")

    def summed(process: Process) -> bool:
        found = metrics(process)
        return (
            found["longshore_workers"] == 2
            and found['longshore_tool_calls_total{tool="echo"}'] == 5
            and found['longshore_tool_calls_total{tool="process"}'] == 1
            and found["longshore_sessions"] == 3
        )

    for process in (a, b):
        until(lambda process=process: summed(process), "the sum")
    a.kill()
    until(lambda: metrics(b)["longshore_workers"] == 1, "the other's being dead")
    assert metrics(b)['longshore_tool_calls_total{tool="echo"}'] == 2
