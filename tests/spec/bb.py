"""What the document of bb-mcp-server says (S-157 to S-200), and which tests show it.

Rows as in `manifest.py`. Levels: M must, D is described so, X an example, Y may, F an extension of a later
version, which here is what a handshake with a dated version gives.
"""

from __future__ import annotations

from .manifest import Row

BB = "tests/seeds/bb/test_document.py"


def _row(level: str, says: str, *tests: str) -> Row:
    return Row(level, "1.0", says, tuple(test if "::" in test else f"{BB}::{test}" for test in tests))


BB_ROWS: dict[str, Row] = {
    "S-157": _row(
        "M",
        "The methods are initialize, tools/list and tools/call.",
        "test_the_session_of_the_document_is_answered_as_it_says",
        "test_an_unknown_method_is_not_found_before_and_after_the_handshake",
    ),
    "S-158": _row(
        "M",
        "All messages follow JSON-RPC 2.0.",
        "test_a_message_of_the_wrong_form_is_an_invalid_request",
        "tests/seeds/bb/test_hostile.py::test_every_hostile_frame_gets_its_one_answer_and_the_process_lives",
    ),
    "S-159": _row("M", 'A request has jsonrpc "2.0".', "test_a_message_of_the_wrong_form_is_an_invalid_request"),
    "S-160": _row("M", "A request's method is a string.", "test_a_message_of_the_wrong_form_is_an_invalid_request"),
    "S-161": _row(
        "Y",
        "params is an object, and optional.",
        "test_a_handshake_without_its_parameters_is_refused",
        "test_the_list_of_tools_needs_no_params",
    ),
    "S-162": _row(
        "M",
        "A request's id is a string or a number.",
        "test_a_message_of_the_wrong_form_is_an_invalid_request",
        "test_ids_are_echoed_as_they_came",
    ),
    "S-163": _row(
        "M",
        "A success has jsonrpc, result and the request's id.",
        "test_the_session_of_the_document_is_answered_as_it_says",
        "test_ids_are_echoed_as_they_came",
    ),
    "S-164": _row(
        "M",
        "An error has an integer code, a short message and maybe data; its id is null if unknown.",
        "test_text_that_is_no_json_is_a_parse_error",
        "test_a_message_of_the_wrong_form_is_an_invalid_request",
    ),
    "S-165": _row(
        "M",
        "The codes of JSON-RPC have their meanings.",
        "tests/seeds/test_every_dialect.py::test_a_failure_of_the_server_is_an_internal_error",
        "test_text_that_is_no_json_is_a_parse_error",
        "test_a_message_of_the_wrong_form_is_an_invalid_request",
        "test_an_unknown_method_is_not_found_before_and_after_the_handshake",
    ),
    "S-166": _row(
        "M",
        "-32000 to -32003: tool not found, execution failed, invalid tool params, not initialized.",
        "test_an_unknown_tool_is_not_found",
        "test_an_exception_of_a_tool_is_an_execution_failure_with_its_text",
    ),
    "S-167": _row("M", "initialize comes before every other method.", "test_a_call_before_the_handshake_is_refused"),
    "S-168": _row(
        "M",
        "initialize needs protocolVersion and clientInfo.name; clientInfo.version is optional.",
        "test_a_handshake_without_its_parameters_is_refused",
        "test_the_version_of_a_client_is_optional",
    ),
    "S-169": _row(
        "M",
        "initialize answers protocolVersion, serverInfo and the capabilities tools and dynamicToolRegistration.",
        "test_the_session_of_the_document_is_answered_as_it_says",
    ),
    "S-170": _row("X", "The example's values.", "test_the_session_of_the_document_is_answered_as_it_says"),
    "S-171": _row(
        "M",
        "A handshake without its parameters is refused with -32602.",
        "test_a_handshake_without_its_parameters_is_refused",
    ),
    "S-172": _row("D", "tools/list takes no parameters.", "test_the_list_of_tools_needs_no_params"),
    "S-173": _row("M", "Each tool has name, description and inputSchema.", "test_the_list_of_tools_needs_no_params"),
    "S-174": _row(
        "D",
        "There is a tool hello with a required string name.",
        "test_the_session_of_the_document_is_answered_as_it_says",
    ),
    "S-175": _row(
        "M", "tools/list before initialize is refused with -32003.", "test_a_call_before_the_handshake_is_refused"
    ),
    "S-176": _row(
        "M",
        "tools/call needs name and arguments.",
        "test_the_parameters_of_a_call_are_checked_in_the_order_of_the_document",
    ),
    "S-177": _row(
        "M",
        "A result is an array of content, each with the fields of its type.",
        "test_content_other_than_text_has_the_fields_of_its_type",
    ),
    "S-178": _row(
        "X", 'hello of World answers "Hello, World!".', "test_the_session_of_the_document_is_answered_as_it_says"
    ),
    "S-179": _row(
        "M",
        "tools/call fails with -32003, -32000, -32002 or -32001.",
        "test_an_unknown_tool_is_not_found",
        "test_the_parameters_of_a_call_are_checked_in_the_order_of_the_document",
    ),
    "S-180": _row(
        "D",
        "-32001 has the tool, the exception's text and its trace in data.",
        "test_an_exception_of_a_tool_is_an_execution_failure_with_its_text",
        "test_debug_mode_adds_the_stack_trace",
    ),
    "S-181": _row(
        "X",
        "The three sessions of the examples.",
        "test_the_session_of_the_document_is_answered_as_it_says",
        "test_a_call_before_the_handshake_is_refused",
        "test_an_unknown_tool_is_not_found",
    ),
    "S-182": _row("M", "The server knows whether it is initialized.", "test_a_call_before_the_handshake_is_refused"),
    "S-183": _row("M", "Every method but initialize checks that.", "test_a_call_before_the_handshake_is_refused"),
    "S-184": _row("M", "The tools are there at the start.", "test_the_list_of_tools_needs_no_params"),
    "S-185": _row(
        "M",
        "Checks come in order: JSON, structure, method, params, the tool's schema.",
        "test_text_that_is_no_json_is_a_parse_error",
        "test_an_unknown_method_is_not_found_before_and_after_the_handshake",
        "test_the_parameters_of_a_call_are_checked_in_the_order_of_the_document",
    ),
    "S-186": _row(
        "M",
        "Every exception of a tool is -32001.",
        "test_an_exception_of_a_tool_is_an_execution_failure_with_its_text",
        "tests/seeds/bb/test_hostile.py::test_a_tool_that_crashes_is_an_execution_failure_and_the_process_lives",
    ),
    "S-187": _row(
        "M",
        "data has tool and error; stacktrace only in debug mode.",
        "test_an_exception_of_a_tool_is_an_execution_failure_with_its_text",
        "test_debug_mode_adds_the_stack_trace",
    ),
    "S-188": _row(
        "M",
        "Every request and response emits telemetry.",
        "test_every_request_completion_and_invocation_is_on_stderr",
        "tests/seeds/test_every_dialect.py::test_a_call_is_recorded_from_its_request_to_its_end",
    ),
    "S-189": _row(
        "M", "A received request: method, id, time.", "test_every_request_completion_and_invocation_is_on_stderr"
    ),
    "S-190": _row(
        "M",
        "A completed request: method, id, duration, outcome.",
        "test_every_request_completion_and_invocation_is_on_stderr",
    ),
    "S-191": _row(
        "M",
        "A tool's invocation: name, duration, outcome.",
        "test_every_request_completion_and_invocation_is_on_stderr",
    ),
    "S-192": _row(
        "M",
        "Tests of parsing.",
        "test_text_that_is_no_json_is_a_parse_error",
        "test_a_message_of_the_wrong_form_is_an_invalid_request",
    ),
    "S-193": _row(
        "M",
        "Tests of routing and of parameters.",
        "test_an_unknown_method_is_not_found_before_and_after_the_handshake",
        "test_the_parameters_of_a_call_are_checked_in_the_order_of_the_document",
    ),
    "S-194": _row(
        "M",
        "Tests of each handler, good and bad.",
        "test_a_handshake_without_its_parameters_is_refused",
        "test_the_list_of_tools_needs_no_params",
        "test_the_parameters_of_a_call_are_checked_in_the_order_of_the_document",
    ),
    "S-195": _row(
        "M",
        "Tests of a whole session on stdio, of errors, and of several calls.",
        "test_the_session_of_the_document_is_answered_as_it_says",
    ),
    "S-196": _row(
        "F",
        "Notifications, in a later version.",
        "test_nothing_unasked_is_sent_to_a_peer_of_the_document",
        "test_a_dated_handshake_gets_mcp_with_progress_and_errors_as_results",
        "test_a_notification_is_never_answered",
    ),
    "S-197": _row(
        "F",
        "Progress, in a later version.",
        "test_nothing_unasked_is_sent_to_a_peer_of_the_document",
        "test_a_dated_handshake_gets_mcp_with_progress_and_errors_as_results",
    ),
    "S-198": _row("F", "Cancellation, in a later version.", "test_a_call_of_a_dated_session_can_be_cancelled"),
    "S-199": _row(
        "F",
        "Streamed responses, in a later version.",
        "tests/seeds/bb/test_http.py::test_a_dated_session_gets_a_stream_of_what_comes_before_the_answer",
    ),
    "S-200": _row(
        "F",
        "Batches, in a later version.",
        "test_a_message_of_the_wrong_form_is_an_invalid_request",
        "test_a_batch_is_taken_after_a_handshake_of_2025_03_26",
    ),
}
BB_REQUIREMENTS = [f"S-{n}" for n in range(157, 201)]
