"""What BrowserOS's document says of its JSON-RPC transport (S-31 to S-84), and which tests show it.

Rows as in `manifest.py`. Levels: M must, D is described so, X an example. `docs/seeds.md` has the reasons for what no
test shows.
"""

from __future__ import annotations

from .manifest import Row

FOLDER = "tests/seeds/browseros"


def _row(level: str, says: str, *tests: str) -> Row:
    """The tests are named `file::test` below the folder of the document, those of `test_document.py` without a file."""
    named = (test if "::" in test else f"test_document.py::{test}" for test in tests)
    paths = (test if test.startswith("tests/") else f"{FOLDER}/{test}" for test in named)
    return Row(level, "2.0", says, tuple(paths))


_BARE_POST = "test_port.py::test_a_bare_post_is_answered_in_the_form_of_the_document_and_begins_no_session"
_FILE = "test_configuration.py::test_the_file_of_the_document_is_read_and_each_value_says_so"
_VARIABLES = "test_configuration.py::test_the_variables_of_the_document_are_read_and_each_value_says_so"
_CHOICE = "test_configuration.py::test_without_a_client_on_stdin_it_listens_unless_it_is_told_otherwise"
_TIMES = "test_configuration.py::test_a_tool_is_stopped_after_its_own_time_else_after_that_of_all"
_SERVER = "test_python_api.py::test_the_server_of_the_document_serves_stdin_until_it_ends"
_UNIT_TESTS = "test_python_api.py::test_the_unit_tests_of_the_document_pass"
_PIPE = "test_shell.py::test_a_line_piped_in_is_answered_and_the_process_ends"
_NC = "test_shell.py::test_a_background_server_answers_nc_on_port_9100_and_ends_by_a_signal"
_INTERNAL = "tests/seeds/test_every_dialect.py::test_a_failure_of_the_server_is_an_internal_error"
_DEBUG = "test_shell.py::test_debug_details_go_to_a_file_by_redirection"

BROWSEROS_ROWS: dict[str, Row] = {
    "S-31": _row("D", "There are two transports, HTTP and JSON-RPC 2.0 over stdio.", _BARE_POST, _PIPE),
    "S-33": _row(
        "M",
        "The full JSON-RPC 2.0 specification is implemented.",
        "test_ids_are_echoed_as_they_came",
        "test_errors_have_the_codes_and_names_of_the_tables",
        "test_notifications_are_not_answered",
        "test_a_batch_is_answered_by_one_array",
        "test_hostile.py::test_every_hostile_frame_gets_its_one_answer_and_the_process_lives",
    ),
    "S-34": _row(
        "D",
        "A request has a string id, tools/call a name and arguments.",
        "test_a_page_is_loaded_as_the_document_shows",
        "test_ids_are_echoed_as_they_came",
    ),
    "S-35": _row(
        "D",
        "A success has the tool's name, and as result the handler's value.",
        "test_a_page_is_loaded_as_the_document_shows",
        "test_the_result_is_the_value_of_the_tool",
        "test_python_api.py::test_the_result_is_what_the_handler_returned",
    ),
    "S-36": _row(
        "D",
        "An unknown tool is -32000 with its name, and the available tools in data.",
        "test_an_unknown_tool_is_answered_as_the_document_shows",
    ),
    "S-37": _row(
        "D",
        "The codes of JSON-RPC have their names.",
        "test_errors_have_the_codes_and_names_of_the_tables",
        "test_port.py::test_errors_of_bare_posts_have_the_codes_of_the_document",
        _INTERNAL,
    ),
    "S-38": _row(
        "D",
        "-32000 to -32003: tool not found, execution error, timeout, permission denied.",
        "test_the_failures_of_tools_have_their_codes",
        "test_a_command_beyond_the_timeout_of_its_call_is_a_timeout",
        "test_configuration.py::test_a_page_that_takes_longer_than_the_limit_of_the_browser_is_a_timeout",
        "test_an_unknown_tool_is_answered_as_the_document_shows",
        "test_port.py::test_writes_and_the_terminal_need_a_token",
    ),
    "S-39": _row("D", "tools/list needs no params.", "test_the_tools_are_listed_as_the_document_shows"),
    "S-40": _row(
        "D",
        "A list has the name of each tool, and whether it is available.",
        "test_the_tools_are_listed_as_the_document_shows",
        "test_a_tool_that_is_off_is_listed_as_unavailable",
        "test_a_tool_that_can_not_run_here_is_listed_as_unavailable",
    ),
    "S-41": _row(
        "D",
        "The tools are browser, filesystem and terminal.",
        "test_the_tools_are_listed_as_the_document_shows",
        "test_the_terminal_runs_commands_for_who_started_the_server",
        "test_the_output_of_a_command_is_always_a_text",
    ),
    "S-42": _row(
        "D",
        "browser takes url and wait_for_load.",
        "test_a_page_is_loaded_as_the_document_shows",
        "test_the_load_of_a_page_is_waited_for_unless_the_call_says_otherwise",
    ),
    "S-43": _row(
        "D",
        'The result of browser has status "success", title, url and content.',
        "test_a_page_is_loaded_as_the_document_shows",
        "test_a_page_that_is_an_error_of_its_site_is_no_success",
    ),
    "S-44": _row("D", 'ping is answered with status "ok".', "test_a_ping_is_answered_as_the_document_shows"),
    "S-45": _row(
        "D",
        "No initialize is needed.",
        "test_the_tools_are_listed_as_the_document_shows",
        "test_a_ping_is_answered_as_the_document_shows",
        "test_a_page_is_loaded_as_the_document_shows",
        _BARE_POST,
    ),
    "S-46": _row(
        "M",
        "browseros.mcp has MCPJsonRpcServer, create_stdio_server and JsonRpcRequest.",
        _UNIT_TESTS,
        _SERVER,
        "test_python_api.py::test_messages_are_read_and_written_as_json_has_them",
    ),
    "S-47": _row(
        "D",
        "create_stdio_server(debug=True).",
        _SERVER,
        "test_python_api.py::test_create_stdio_server_makes_an_empty_server",
    ),
    "S-48": _row(
        "D",
        "A handler takes one dict and returns a value for JSON.",
        _SERVER,
        "test_python_api.py::test_the_result_is_what_the_handler_returned",
    ),
    "S-49": _row("D", "add_tool(name, callable), also of a lambda.", _SERVER, _UNIT_TESTS),
    "S-50": _row("D", "run() blocks and reads stdin.", _SERVER),
    "S-51": _row(
        "D",
        "filesystem takes action and path, and its result has success and path.",
        "test_the_file_tool_says_that_it_succeeded_and_where",
        _SERVER,
    ),
    "S-52": _row("X", "python -m browseros.mcp.server starts the server.", _PIPE, "test_profile_and_module_are_one"),
    "S-53": _row(
        "X",
        "The entry for Claude Desktop, with its transport and variables.",
        "test_clients.py::test_claude_desktop_gets_mcp_by_its_entry",
        "test_clients.py::test_the_official_client_gets_mcp_by_the_entry_of_claude_desktop",
        "test_a_handshake_gets_mcp_with_full_listings_and_errors_as_results",
    ),
    "S-54": _row(
        "X",
        "The Python client writes a line, reads exactly one, and raises the error's message.",
        "test_clients.py::test_the_python_client_prints_the_result",
        "test_clients.py::test_the_python_client_raises_what_failed",
        "test_answers_come_in_the_order_of_the_requests",
        "test_queue.py::test_piped_requests_see_what_the_ones_before_have_done",
        "test_nothing_unasked_is_ever_sent",
    ),
    "S-55": _row("X", "It starts the server with pipes.", "test_clients.py::test_the_python_client_prints_the_result"),
    "S-56": _row(
        "X",
        "The JavaScript client matches answers by their ids.",
        "test_clients.py::test_the_typescript_client_lists_and_calls",
    ),
    "S-57": _row("X", "Its callTool and listTools.", "test_clients.py::test_the_typescript_client_lists_and_calls"),
    "S-58": _row(
        "D",
        "There is a settings page. Ours is at /console, since we build no browser.",
        "tests/console/test_graph.py::test_settings_of_the_browseros_profile_go_into_its_own_file",
    ),
    "S-59": _row("D", "The JSON-RPC transport can be enabled.", _FILE, _CHOICE),
    "S-60": _row(
        "D",
        "The transport is stdio or http.",
        _CHOICE,
        "test_configuration.py::test_the_file_chooses_the_transport_too",
    ),
    "S-61": _row(
        "D",
        "Debug logging is on or off.",
        _FILE,
        _DEBUG,
        "test_configuration.py::test_the_file_switches_debug_logging_on",
    ),
    "S-62": _row("D", "The timeout is in seconds.", _FILE, _TIMES),
    "S-63": _row("D", "BROWSEROS_MCP_TRANSPORT.", _VARIABLES, _CHOICE),
    "S-64": _row("D", "BROWSEROS_MCP_DEBUG.", _VARIABLES, _DEBUG),
    "S-65": _row("D", "BROWSEROS_MCP_TIMEOUT, in seconds.", _VARIABLES, _TIMES),
    "S-66": _row(
        "D",
        "~/.config/browseros/mcp_config.json has transport, debug, timeout and tools.",
        _FILE,
        "test_configuration.py::test_a_malformed_file_is_refused_with_its_line_and_field",
    ),
    "S-67": _row(
        "D",
        "A tool has its own enabled and timeout, which overrides the one for all.",
        _FILE,
        _TIMES,
        _VARIABLES,
        "test_configuration.py::test_a_disabled_tool_is_not_available",
    ),
    "S-68": _row(
        "D",
        'filesystem has max_file_size, such as "10MB".',
        _FILE,
        "test_configuration.py::test_files_over_the_limit_are_neither_read_nor_written_nor_copied",
        "test_configuration.py::test_a_long_file_is_read_whole",
    ),
    "S-69": _row(
        "D",
        "HTTP/1.1 on port 9100 by default; stdio needs no port.",
        _NC,
        _BARE_POST,
        "test_configuration.py::test_the_default_port_is_that_of_the_document",
        "test_shell.py::test_a_busy_port_does_not_concern_a_server_on_stdio",
        "test_configuration.py::test_a_socket_on_stdin_is_stdio",
        "test_configuration.py::test_options_for_http_are_taken_where_it_may_listen",
    ),
    "S-71": _row(
        "D",
        "Streams are server-sent events over HTTP, and lines on stdio.",
        "test_port.py::test_a_dated_session_gets_a_stream_of_events",
        "test_port.py::test_lines_are_answered_one_for_one_in_order",
    ),
    "S-72": _row(
        "D",
        "Errors are HTTP statuses over HTTP, and codes of JSON-RPC on stdio.",
        "test_port.py::test_rest_has_the_tools_with_http_statuses",
        "test_errors_have_the_codes_and_names_of_the_tables",
    ),
    "S-73": _row(
        "D",
        "HTTP authenticates by headers or cookies, stdio by the process.",
        "test_port.py::test_with_a_token_they_are_done",
        "test_port.py::test_a_browser_may_have_the_token_in_a_cookie",
        "test_port.py::test_writes_and_the_terminal_need_a_token",
        "test_port.py::test_a_change_of_files_without_a_token_is_refused_and_changes_nothing",
        "test_port.py::test_a_page_is_loaded_without_a_token",
        "test_the_terminal_runs_commands_for_who_started_the_server",
    ),
    "S-74": _row(
        "D",
        "Only HTTP can be reached from other machines.",
        "test_port.py::test_beyond_loopback_every_caller_needs_the_token",
        "test_port.py::test_lines_are_not_taken_from_beyond_loopback",
        "test_port.py::test_a_caller_beyond_loopback_does_not_pass_for_a_local_one",
    ),
    "S-75": _row(
        "X",
        "A VS Code extension starts the module and writes one line.",
        "test_clients.py::test_the_vs_code_extension_gets_its_answer",
    ),
    "S-76": _row("X", "A tools/list line piped in is answered, and the process ends.", _PIPE),
    "S-77": _row("X", "The output can be piped to jq.", _PIPE),
    "S-78": _row("X", "Unit test: a list of an added tool.", _UNIT_TESTS),
    "S-79": _row("X", "Unit test: a call in JSON of several lines.", _UNIT_TESTS),
    "S-80": _row(
        "X",
        "A server in the background answers nc on port 9100, and is ended by its id.",
        _NC,
        "test_queue.py::test_two_lines_by_nc_are_both_answered",
        "test_queue.py::test_a_server_that_is_stopped_answers_what_waits",
    ),
    "S-81": _row("X", "A ping piped in is a sign of life.", "test_shell.py::test_a_ping_piped_in_is_a_sign_of_life"),
    "S-82": _row(
        "D",
        "Debug details go to stderr; the process is found by the name of its module.",
        _DEBUG,
        _SERVER,
        "test_shell.py::test_the_details_of_an_error_are_in_the_file_that_takes_stderr",
        "test_shell.py::test_the_process_is_found_by_the_name_of_its_module",
    ),
    "S-83": _row(
        "X",
        "A list piped in shows which tools there are.",
        "test_shell.py::test_the_tools_are_listed_where_one_was_not_found",
    ),
    "S-84": _row(
        "D",
        "There are pages on the tool usage indicator, the HTTP transport and the server.",
        "test_pages.py::test_the_companion_pages_of_the_document_are_here",
    ),
}
BROWSEROS_LEFT_OUT: dict[str, str] = {
    "S-32": "goals: any language, little overhead; the clients that it names are shown by S-53, S-56 and S-75",
    "S-70": "latencies depend on the machine, and no test asserts a time; benchmarks/ measures ours",
}
BROWSEROS_REQUIREMENTS = [f"S-{n}" for n in range(31, 85)]
