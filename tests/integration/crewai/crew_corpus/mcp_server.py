"""An MCP server with one tool, over its standard input and output: what it does goes to the file
``CREW_CORPUS_LOG``."""

import json
import os
from pathlib import Path

from mcp.server.fastmcp import FastMCP

server = FastMCP("facts")


@server.tool()
def remote_lookup(q: str) -> str:
    """Look up q elsewhere."""
    with Path(os.environ["CREW_CORPUS_LOG"]).open("a") as file:
        file.write(json.dumps({"tool": "remote_lookup", "q": q}) + "\n")
    return f"fact<{q}>"


if __name__ == "__main__":
    server.run()
