"""Answer a server's questions, and show its progress."""

import asyncio

from longshore import Client
from longshore.client import ElicitQuestion, LogMessage


def ask(question: ElicitQuestion) -> dict[str, bool] | bool:
    print(question.message)
    if question.mode == "url":
        return False  # only with the person's consent, and never opened by a program
    return dict.fromkeys((question.schema or {})["properties"], True)


def log(message: LogMessage) -> None:
    print(f"{message.level}: {message.data}")


async def main() -> None:
    async with Client("examples/refund.py", on_elicit=ask) as shop:
        print((await shop.call_tool("refund", {"order": "A9"})).text)
    async with Client("examples/progress.py", on_log=log, log_level="info") as miner:
        steps: list[float] = []
        number = await miner.call_tool(
            "mine", {"zeros": 4}, returns=int, on_progress=lambda done, *_: steps.append(done)
        )
        print(number, "was found; we were told on the way:", bool(steps))


if __name__ == "__main__":
    asyncio.run(main())
