"""Without async, for scripts and notebooks: resources, typed results, a prompt."""

import json

from longshore import ServerError, SyncClient

with SyncClient("examples/inventory.py") as client:
    [contents] = client.read_resource("stock://all")
    print(json.loads(contents.text or "{}"))
    print(client.complete("restock", "item", "c").values)
    for message in client.get_prompt("restock", {"item": "cap"}).messages:
        print(message.role, message.content.text)
    try:
        client.read_resource("stock://spoon")
    except ServerError as problem:
        print(problem.code, problem.message)
