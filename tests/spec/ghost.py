"""What the ContextGraph document says of its server (S-122 to S-156), and which tests show it.

Rows as in `manifest.py`. Levels: M must, S should, D is described so, X an example. `docs/seeds.md` has the reasons for
what no test shows.
"""

from __future__ import annotations

from .manifest import Row

GHOST = "tests/seeds/ghost/test_document.py"


def _row(level: str, says: str, *tests: str) -> Row:
    return Row(level, "2025-03-26", says, tuple(test if "::" in test else f"{GHOST}::{test}" for test in tests))


_EXAMPLES = "test_the_handshake_of_the_document_is_answered_as_it_says"
_CODES = "test_an_invalid_request_an_unknown_method_and_wrong_parameters_have_their_codes"
_LINES = "test_every_line_is_one_message_and_logs_go_to_stderr"
_FOUND = "test_what_is_known_is_found_in_the_database_of_the_variable"

_CLIENT = "tests/seeds/ghost/test_clients.py::test_the_official_client_remembers_and_asks"

GHOST_ROWS: dict[str, Row] = {
    "S-122": _row(
        "D",
        "Resources, tools and prompts, over JSON-RPC 2.0.",
        "test_a_peer_of_the_dialect_gets_the_rest_of_its_revision",
    ),
    "S-123": _row("M", "The client starts the server; UTF-8; one message a line.", _LINES, _EXAMPLES),
    "S-124": _row("M", "Logs go to stderr, and nothing but messages to stdout.", _LINES),
    "S-126": _row(
        "D",
        "Over HTTP: POST, maybe streams, and bearer tokens.",
        "tests/seeds/ghost/test_http.py::test_over_http_a_post_with_the_token_is_answered",
    ),
    "S-127": _row(
        "M",
        "initialize, initialized, then lists and calls.",
        _EXAMPLES,
        _CLIENT,
        "tests/seeds/ghost/test_http.py::test_lines_are_answered_in_the_form_of_the_document",
    ),
    "S-128": _row("M", "A success has jsonrpc, the id of its request, and a result.", _EXAMPLES),
    "S-129": _row("M", "An error has a code, a message and data.", _CODES),
    "S-130": _row("M", "A notification has no id, and is not answered.", "test_a_notification_is_not_answered"),
    "S-131": _row(
        "M",
        "initialize names a version, the client and its capabilities.",
        _EXAMPLES,
        "test_a_handshake_without_a_version_is_refused",
    ),
    "S-132": _row(
        "M",
        "It is answered with the version, the tools capability, name and version.",
        _EXAMPLES,
        "test_handshakes_up_to_2025_03_26_get_the_dialect",
    ),
    "S-133": _row("M", "notifications/initialized is taken.", _EXAMPLES),
    "S-134": _row("D", "tools/list has empty params.", _EXAMPLES),
    "S-135": _row("D", "The list has query_context with a query.", _EXAMPLES),
    "S-136": _row("D", "query_context is called with a query.", _FOUND, "test_an_empty_graph_says_so_as_json_text"),
    "S-137": _row("D", "A success has content, and isError is false.", "test_an_empty_graph_says_so_as_json_text"),
    "S-138": _row("M", "A failed tool is a result with isError.", "test_a_failed_tool_is_a_result_with_is_error"),
    "S-140": _row(
        "D",
        "An entry of mcpServers has type, command, args, and CONTEXTGRAPH_DB in env.",
        "test_the_entry_of_the_document_starts_the_server",
        "test_the_entry_of_our_page_starts_the_server_by_its_command_and_args",
        _FOUND,
    ),
    "S-142": _row("M", "A message has no line break within.", _LINES),
    "S-143": _row("M", "Messages are valid UTF-8.", "test_text_that_is_no_json_is_a_parse_error_without_an_id"),
    "S-144": _row("M", "Input is validated by its schema.", _CODES),
    "S-145": _row("M", "An unknown method is -32601.", _CODES),
    "S-146": _row(
        "D",
        "Tools that never change are declared with listChanged false.",
        "test_tools_that_never_change_are_declared_so",
    ),
    "S-147": _row(
        "D",
        "The codes of JSON-RPC have their meanings.",
        _CODES,
        "test_an_exception_is_a_tool_error_without_its_text",
        "tests/seeds/test_every_dialect.py::test_a_failure_of_the_server_is_an_internal_error",
    ),
    "S-148": _row("D", "-32800 is a cancelled request.", "test_a_cancelled_request_is_answered_with_its_code"),
    "S-149": _row(
        "D",
        "-32801 is a response over the limits.",
        "test_a_result_over_the_limit_is_answered_with_its_code",
        "test_what_is_found_may_exceed_a_limit_that_is_configured",
    ),
    "S-150": _row("D", "Content is text, an image or a resource.", "test_content_has_the_types_of_the_document"),
    "S-151": _row("D", "A server has a name, a version, and a tool with a described parameter.", _EXAMPLES, _CLIENT),
    "S-152": _row("D", "What a search finds is JSON text.", _FOUND, "test_an_empty_graph_says_so_as_json_text"),
    "S-153": _row(
        "M",
        "A line that can't be read is -32700 with the id null.",
        "test_text_that_is_no_json_is_a_parse_error_without_an_id",
    ),
    "S-154": _row("D", "initialize, tools/list and tools/call, else -32601.", _EXAMPLES, _CODES),
}
GHOST_LEFT_OUT: dict[str, str] = {
    "S-125": "advice: stdio rather than HTTP for local tools; it is what the entry point serves unless told otherwise",
    "S-139": "where the Claude Code of then read its configuration; docs/seeds.md has the places of today beside them",
    "S-141": "the document's line lacks the command; docs/seeds.md has it with one",
    "S-155": "names the revisions that it is based on",
    "S-156": "where its author stored the research",
}
GHOST_REQUIREMENTS = [f"S-{n}" for n in range(122, 157)]
