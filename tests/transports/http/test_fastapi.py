"""The app in a FastAPI app: beside its routes and its dependencies, below a path, with its lifespan."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI

from posting import Session, call, modern, post_modern
from serving import serve

from .fixture import Rig


def test_it_can_be_mounted_in_fastapi() -> None:
    rig = Rig()

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await rig.app.start()
        yield
        await rig.app.shut(0)
        await rig.app.close()

    outer = FastAPI(lifespan=lifespan)

    @outer.get("/orders/{number}")
    async def order(number: int) -> dict[str, int]:
        return {"order": number}

    outer.mount("/agents", rig.app)
    with serve(outer, shut=[]) as server:
        assert server.send("GET", "/orders/7").finish().json == {"order": 7}
        answer = post_modern(server, modern(call("echo", {"text": "x"})), path="/agents/mcp").finish()
        assert answer.json["result"]["content"][0]["text"] == "x"
        loud = post_modern(server, modern(call("count", {"to": 2}, progressToken=1)), path="/agents/mcp").finish()
        assert len(loud.messages) == 3
        session = Session(server, path="/agents/mcp").open()
        stream = session.get().begin()
        assert session.call("later", text="x") == "x"
        assert session.delete().finish().status == 204
        stream.finish()
        assert server.send("GET", "/agents/health").finish().json == {"status": "ok"}
        described = server.send("GET", "/agents/openapi.json").finish().json
        assert (described["servers"], "/tools/echo" in described["paths"]) == ([{"url": "/agents"}], True)
        assert server.send("GET", "/openapi.json").finish().json["paths"].keys() == {"/orders/{number}"}


def test_it_needs_no_lifespan_in_fastapi() -> None:
    rig = Rig()
    outer = FastAPI()
    outer.mount("/", rig.app)
    with serve(outer, shut=[rig.app]) as server:
        assert Session(server).open().call("later", text="x") == "x"
