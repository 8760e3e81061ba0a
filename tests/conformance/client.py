"""The client that the official conformance suite is run against: one short program for each of its scenarios.

MCP_CONFORMANCE_SCENARIO=tools_call python tests/conformance/client.py [--pinned] http://localhost:9200/mcp

The suite starts a server that watches, and this program with that server's address. Which revision is spoken is found
out, or with `--pinned` insisted on; either way it must be the one that the suite has in mind. Where a scenario's server
is one to be refused, that refusal, for the right reason, is the good end, and anything else fails. Written with the
public API alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from longshore import AuthorizationError, Client
from longshore.client import ElicitQuestion
from longshore.client.auth import ClientCredentials, EnterpriseManaged, JwtBearer, MemoryStorage, OAuth

SECONDS = 20.0
"""That any answer may take. The suite's servers are on this machine and answer at once, or never."""

DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""What the suite's authorization servers know this client by, where they take such a document."""

REFUSED = {
    "auth/scope-retry-limit": "it refuses what the login gave",
    "auth/resource-mismatch": "is about 'https://evil.example.com/mcp'",
    "auth/metadata-issuer-mismatch": "names the issuer 'https://attacker.example.com'",
    "auth/iss-supported-missing": "promises to name itself",
    "auth/iss-wrong-issuer": "names another issuer",
    "auth/iss-unexpected": "names another issuer",
    "auth/iss-normalized": "names another issuer",
}
"""Scenarios whose servers can't be trusted or are never content: no token is had of them. And what the refusal says."""

UNSPOKEN = "sep-2640-client-"
"""Scenarios of the skills extension, which are skipped with a client that does not speak it."""

Scenario = Callable[[Client, dict[str, Any]], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str) -> Callable[[Scenario], Scenario]:
    def add(function: Scenario) -> Scenario:
        SCENARIOS[name] = function
        return function

    return add


# -- tools, resources and prompts


@scenario("initialize")
@scenario("json-schema-ref-no-deref")
async def list_tools(client: Client, context: dict[str, Any]) -> None:
    await client.list_tools()


@scenario("tools_call")
async def call_a_tool(client: Client, context: dict[str, Any]) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


@scenario("sse-retry")
async def come_back_for_an_answer(client: Client, context: dict[str, Any]) -> None:
    """The stream is closed before the answer: the client comes back for it, when it was told to."""
    await client.list_tools()
    await client.call_tool("test_reconnection")


@scenario("request-metadata")
async def say_who_asks(client: Client, context: dict[str, Any]) -> None:
    await client.request("tools/list")
    await client.call_tool("any")


@scenario("http-standard-headers")
async def use_everything(client: Client, context: dict[str, Any]) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name)
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


@scenario("http-custom-headers")
async def repeat_arguments_in_headers(client: Client, context: dict[str, Any]) -> None:
    await client.list_tools()
    for call in context["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


@scenario("http-invalid-tool-headers")
async def use_only_sound_tools(client: Client, context: dict[str, Any]) -> None:
    """Those whose definition is wrong are not in the list; `client.problems` says why."""
    [tool] = await client.list_tools()
    assert len(client.problems) == 11, client.problems
    await client.call_tool(tool.name, {"region": "us-west1"})


@scenario("json-schema-2020-12-preservation")
async def keep_schemas_whole(client: Client, context: dict[str, Any]) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


# -- questions of the server's


@scenario("elicitation-sep1034-client-defaults")
async def take_the_defaults(client: Client, context: dict[str, Any]) -> None:
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults")


@scenario("sep-2322-client-request-state")
async def answer_in_rounds(client: Client, context: dict[str, Any]) -> None:
    """Several at once, so that what one round leaves behind could be mistaken for another's."""
    tools = await client.list_tools()
    await asyncio.gather(*(client.call_tool(tool.name) for tool in tools))


def answer_form(question: ElicitQuestion) -> dict[str, Any]:
    """Say yes; what has a default and is not named here takes that."""
    fields = (question.schema or {}).get("properties", {})
    return {"confirmed": True} if "confirmed" in fields else {}


def answer_sample(question: dict[str, Any]) -> str:
    return "Hello."


# -- logging in


async def use_after_login(client: Client, context: dict[str, Any]) -> None:
    """Of every scenario of authorization: the first tool, twice, for the second time may be asked for more."""
    tools = await client.list_tools()
    for _ in range(2):
        await client.call_tool(tools[0].name)


def log_in(url: str) -> str:
    """What a person's browser does: open the page, be sent back. Here nobody needs to say yes."""
    parts = urlsplit(url)
    with closing(HTTPConnection(parts.netloc, timeout=SECONDS)) as browser:
        browser.request("GET", f"{parts.path}?{parts.query}")
        return browser.getresponse().headers["Location"]


def make_auth(name: str, context: dict[str, Any]) -> Any:
    """How tokens are got: by the grant that the scenario is about, or as a person who logs in."""
    match name:
        case "auth/client-credentials-basic":
            return ClientCredentials(context["client_id"], context["client_secret"])
        case "auth/client-credentials-jwt":
            key, algorithm = context["private_key_pem"], context["signing_algorithm"]
            return ClientCredentials(context["client_id"], private_key=key, algorithm=algorithm)
        case "auth/enterprise-managed-authorization":
            return EnterpriseManaged(
                id_token=context["idp_id_token"],
                idp_token_endpoint=context["idp_token_endpoint"],
                idp_client_id=context["idp_client_id"],
                client_id=context["client_id"],
                client_secret=context["client_secret"],
            )
        case "auth/wif-jwt-bearer":
            return JwtBearer(context["valid_jwt"], client_id=context["client_id"])
        case _:
            return OAuth(
                client_id=context.get("client_id"),
                client_secret=context.get("client_secret"),
                # There the suite would look for the document on the Internet; of a registration it sees the same.
                client_metadata_url=None if name == "auth/offline-access-scope" else DOCUMENT,
                redirect=log_in,
                redirect_uri="http://localhost:3000/callback",
                storage=MemoryStorage(),
            )


# -- the program


async def play(name: str, url: str, era: str, context: dict[str, Any]) -> str:
    """Do what the scenario asks. Which revision was spoken."""
    logs_in = name.startswith("auth/")
    client = Client(
        url,
        era=era,
        timeout=SECONDS,
        auth=make_auth(name, context) if logs_in else None,
        on_elicit=answer_form,
        on_sample=answer_sample,
        roots=["/"],
    )
    async with client:
        await (use_after_login if logs_in else SCENARIOS[name])(client, context)
        return client.server.revision


def run(name: str, url: str, revision: str, pinned: bool, context: dict[str, Any]) -> str:
    """How it ended. Raises where that is not how it should."""
    reason = REFUSED.get(name)
    try:
        spoken = asyncio.run(play(name, url, revision if pinned else "auto", context))
    except AuthorizationError as problem:
        if reason is None or reason not in problem.what:
            raise
        return f"refused: {problem.what}"
    assert reason is None, f"this server is to be refused: {reason}"
    assert spoken == revision, f"{spoken} was spoken, not {revision}"
    return f"done in {spoken}"


def main() -> None:
    name, revision = os.environ["MCP_CONFORMANCE_SCENARIO"], os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if name.startswith(UNSPOKEN):
        print("nothing done: skills are not spoken")
        return
    print(run(name, sys.argv[-1], revision, "--pinned" in sys.argv, context))


if __name__ == "__main__":
    main()
