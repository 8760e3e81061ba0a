"""The hooks of a toolset are called one after the other, also where the task that calls them is cancelled."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from longshore import Toolset
from longshore.registry.toolset import ToolsetHandle
from longshore.registry.watch_hooks import WatchHooks
from talk import WAIT_SECONDS, until


class Blocking(Toolset):
    def __init__(self) -> None:
        self.events: list[str] = []
        self.begun, self.let = threading.Event(), threading.Event()

    def watched(self, uri: str) -> None:
        self.begun.set()
        assert self.let.wait(WAIT_SECONDS)
        self.events.append("+" + uri)

    def unwatched(self, uri: str) -> None:
        self.events.append("-" + uri)


def no_problem(*problem: Any) -> None:
    raise AssertionError(problem)


async def test_the_end_waits_for_a_thread_whose_task_was_cancelled() -> None:
    toolset, tasks = Blocking(), list[asyncio.Task[None]]()

    def spawn(work: Any) -> asyncio.Task[None]:
        tasks.append(asyncio.create_task(work))
        return tasks[-1]

    hooks = WatchHooks(ToolsetHandle(toolset), no_problem)
    hooks.watch(frozenset({"files://a"}), spawn)
    await until(toolset.begun.is_set)
    tasks[0].cancel()
    await asyncio.wait(tasks)
    end = asyncio.create_task(hooks.finish())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not end.done() and toolset.events == []
    toolset.let.set()
    await end
    assert toolset.events == ["+files://a", "-files://a"] and hooks.told == set()


async def test_a_task_that_never_ran_does_not_hold_up_the_next() -> None:
    toolset = Blocking()
    toolset.let.set()
    hooks = WatchHooks(ToolsetHandle(toolset), no_problem)

    def cancelled(work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        task.cancel()
        return task

    hooks.watch(frozenset({"files://a"}), cancelled)
    await asyncio.sleep(0)
    hooks.watch(frozenset({"files://a", "files://b"}), asyncio.create_task)
    await until(lambda: toolset.events == ["+files://a", "+files://b"])
    await hooks.finish()
    assert toolset.events[2:] == ["-files://a", "-files://b"]
