"""The built-in server with toolsets that are imported at its start, or declared from an index. The argument says which:

imported       discovery, as the built-in server had it before there was an index
write FOLDER   no server: writes the index of the generated toolsets in this folder
index FOLDER   these toolsets, declared from the index
import FOLDER  these toolsets, imported
"""

import os
import sys
from importlib import import_module

from longshore.builtin import make

app = make(empty=True)
variant, *folder = sys.argv[1:]
sys.path[:0] = folder
if variant == "imported":
    from longshore.toolsets.discovery.tools import Discovery

    app.add_toolset(Discovery(app))
elif variant == "index":
    app.add_indexed(os.path.join(folder[0], "index.json"))
else:
    modules = sorted(name.removesuffix(".py") for name in os.listdir(folder[0]) if name.endswith(".py"))
    if variant == "write":
        from longshore.toolsets.index import write_index

        with open(os.path.join(folder[0], "index.json"), "wb") as file:
            file.write(write_index(app, {f"{name}:Generated": "" for name in modules}))
        sys.exit()
    for name in modules:
        app.add_toolset(import_module(name).Generated(app))

app.run()
