"""What the specification demands of a server, and which tests show that we do it.

Ids and wording follow the project's checklist of all five revisions; a row is one line of it that binds a server (or
both sides), on stdio or over HTTP. The lines that bind a client are in `client.py`. Transcripts are played over memory,
stdio and HTTP, so a row that names one is shown on all three, but for what `over_http.py` says is otherwise. Levels: M
must, N must not, S should, X should not, A may. A requirement that can't be shown yet, or does not apply, stands in
LEFT_OUT with its reason.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One requirement: its level, the revisions that it holds for, what it says, and the tests that show it."""

    level: str
    revisions: str
    says: str
    tests: tuple[str, ...]


T = "tests/transcripts/"
WIRE, PROTOCOL, SERVER = "tests/wire/", "tests/protocol/", "tests/server/"
APP, REGISTRY, PROCESS = "tests/app/", "tests/registry/", "tests/process/"
HTTP, POSTS, WORKERS = "tests/http/", "tests/transports/http/", "tests/workers/"
AUTH, SERVING, CONFORMANCE = "tests/auth/", "tests/http_process/", "tests/conformance/"
QUESTIONS, INTEROP, HOSTILE, SCHEMA = "tests/questions/", "tests/interop/", "tests/hostile/", "tests/schema/"

ROWS: dict[str, Row] = {
    "BASE-01": Row(
        "M",
        "all",
        'Messages are UTF-8 JSON with jsonrpc "2.0"; params are an object.',
        (
            f"{WIRE}test_hostile_frames.py::test_a_hostile_frame_in_a_session_gets_its_one_answer",
            f"{WIRE}test_json_grammar.py::test_invalid_json_is_a_parse_error",
        ),
    ),
    "BASE-02": Row(
        "M",
        "all",
        "A request's id is a string or an integer, never null.",
        (
            f"{WIRE}test_codec.py::test_ids_keep_their_type_and_value",
            f"{HOSTILE}test_live.py::test_every_hostile_frame_gets_its_one_answer_and_the_process_lives",
        ),
    ),
    "BASE-03": Row(
        "M",
        "legacy",
        "Our own requests never use an id twice in a session.",
        (f"{QUESTIONS}test_waiting.py::test_questions_have_ids_of_their_own",),
    ),
    "BASE-05": Row(
        "M",
        "all",
        "The id comes back with its JSON type; exactly one of result and error.",
        (
            f"{PROTOCOL}test_session.py::test_a_number_and_the_same_number_as_text_are_two_requests",
            f"{SERVER}test_exactly_once.py::test_cancels_that_race_with_ending_threads_lose_and_repeat_no_answer",
        ),
    ),
    "BASE-06": Row(
        "N",
        "all",
        "A notification is never answered.",
        (
            f"{HOSTILE}test_live.py::test_ten_thousand_malformed_frames_are_answered_without_growth",
            f"{T}methods_legacy.txt",
        ),
    ),
    "BASE-07": Row(
        "M",
        "2025-03-26",
        "Batches are taken; initialize is not part of one.",
        (
            f"{T}batches.txt",
            f"{POSTS}test_legacy.py::test_batches_are_answered_at_2025_03_26",
            f"{HTTP}test_smuggling.py::test_a_batch_of_a_session_takes_no_modern_messages",
        ),
    ),
    "BASE-08": Row(
        "M",
        "2025-06-18+",
        "One message a line or a POST; arrays are refused.",
        (
            f"{T}batches_elsewhere.txt",
            f"{POSTS}test_modern.py::test_every_refusal_has_its_status_its_code_and_the_id_of_its_request",
            f"{POSTS}test_legacy.py::test_every_refusal_has_its_status",
        ),
    ),
    "BASE-09": Row(
        "N",
        "modern",
        "No undefined code in -32020…-32099, nor -32002, nor -32042.",
        (
            f"{T}resources_modern.txt",
            f"{T}envelope.txt",
        ),
    ),
    "BASE-10": Row("X", "modern", "No use of -32000…-32019.", (f"{T}methods_modern.txt",)),
    "BASE-11": Row("M", "modern", "Every result has a resultType.", (f"{T}methods_modern.txt", f"{T}tools.txt")),
    "BASE-13": Row(
        "M",
        "2025-06-18+",
        "`_meta` keys keep the grammar; reserved prefixes are left alone.",
        (f"{APP}test_tool_options.py::test_a_list_shows_each_option_from_the_revision_on_that_knows_it",),
    ),
    "BASE-14": Row(
        "S",
        "all",
        "Requests have timeouts that can be set.",
        (
            f"{SERVER}test_engine.py::test_a_tool_that_takes_too_long_is_stopped_and_answered_once",
            f"{PROCESS}test_limits.py::test_the_servers_default_timeout_can_be_set_and_turned_off_by_a_tool",
            f"{QUESTIONS}test_waiting.py::test_the_clock_goes_on_when_the_answer_is_there",
        ),
    ),
    "LEG-02": Row(
        "M",
        "legacy",
        "The asked revision if it is supported, else another, the latest.",
        (
            f"{T}negotiation.txt",
            f"{PROTOCOL}test_revisions.py::test_any_other_handshake_gets_the_newest_revision_that_has_one",
            f"{INTEROP}test_tools.py::test_the_client_connects_and_learns_who_we_are",
        ),
    ),
    "LEG-03": Row(
        "M",
        "legacy",
        "Only the negotiated revision and capabilities are used.",
        (
            f"{T}lowering_2024_11_05.txt",
            f"{T}lowering_2025_03_26.txt",
            f"{T}lowering_2025_06_18.txt",
            f"{T}lowering_2025_11_25.txt",
            f"{T}lowering_2026_07_28.txt",
            f"{QUESTIONS}test_parameters.py::test_a_revision_without_elicitation_is_never_asked_even_if_it_declares_it",
        ),
    ),
    "LEG-04": Row(
        "X",
        "legacy",
        "Before `initialized` nothing is pushed but pings and log messages.",
        (
            f"{T}handshake.txt",
            f"{T}changes_legacy.txt",
        ),
    ),
    "LEG-05": Row(
        "M", "legacy", "A ping is answered at once with {}.", (f"{T}handshake.txt", f"{T}methods_legacy.txt")
    ),
    "MOD-03": Row(
        "M",
        "modern",
        "A missing envelope is -32602, over HTTP with 400.",
        (
            f"{T}envelope.txt",
            f"{POSTS}test_modern.py::test_every_refusal_has_its_status_its_code_and_the_id_of_its_request",
        ),
    ),
    "MOD-04": Row("M", "modern", "Requests without clientInfo are taken.", (f"{T}envelope.txt",)),
    "MOD-05": Row(
        "M",
        "modern",
        "An unsupported version is -32022 with supported and requested, over HTTP with 400.",
        (
            f"{T}envelope.txt",
            f"{POSTS}test_modern.py::test_every_refusal_has_its_status_its_code_and_the_id_of_its_request",
        ),
    ),
    "MOD-06": Row(
        "M",
        "modern",
        "A needed but undeclared capability is -32021 with requiredCapabilities, over HTTP with 400.",
        (
            f"{T}questions_without_capability.txt",
            f"{QUESTIONS}test_parameters.py::test_a_missing_capability_is_named_to_a_modern_client",
            f"{POSTS}test_modern.py::test_every_refusal_has_its_status_its_code_and_the_id_of_its_request",
        ),
    ),
    "MOD-07": Row(
        "M",
        "modern",
        "server/discover is there, and its capabilities are what is served.",
        (
            f"{T}methods_modern.txt",
            f"{T}listen_bare.txt",
            f"{APP}test_prompts.py::test_a_server_without_prompts_has_no_such_methods",
            f"{APP}test_resources.py::test_a_server_without_resources_has_no_such_methods",
        ),
    ),
    "MOD-08": Row("S", "modern", "serverInfo stands in every result's `_meta`.", (f"{T}methods_modern.txt",)),
    "MOD-09": Row(
        "N",
        "modern",
        "Nothing is taken from earlier requests, the connection or the process.",
        (
            f"{QUESTIONS}test_request_state.py::test_a_state_comes_back_on_another_connection_of_the_same_principal",
            f"{T}envelope.txt",
            f"{WORKERS}test_modern.py::test_a_question_asked_by_one_is_answered_at_the_other",
            f"{INTEROP}test_http.py::test_a_modern_client_leaves_no_session",
        ),
    ),
    "MOD-10": Row(
        "N",
        "modern",
        "Lists do not vary by connection or as a side effect.",
        (
            f"{APP}test_tool_options.py::test_tools_are_listed_in_the_order_in_which_they_were_declared",
            f"{SERVER}test_engine.py::test_two_links_with_the_same_ids_do_not_meet",
            f"{HTTP}test_authorization.py::test_everybody_who_is_in_sees_what_there_is",
        ),
    ),
    "MOD-11": Row(
        "N",
        "modern",
        "The server never sends a request.",
        (f"{QUESTIONS}test_request_state.py::test_a_modern_client_is_never_sent_a_request",),
    ),
    "MOD-13": Row(
        "M",
        "modern",
        "An unknown or removed method is -32601, over HTTP with 404.",
        (
            f"{T}methods_modern.txt",
            f"{POSTS}test_modern.py::test_what_the_modern_era_has_not_is_not_found",
        ),
    ),
    "MOD-14": Row("S", "modern", "The error to a modern `initialize` names the versions.", (f"{T}methods_modern.txt",)),
    "MOD-15": Row(
        "X",
        "modern",
        "clientInfo changes no behaviour.",
        (
            f"{APP}test_context.py::test_the_context_knows_the_request_the_client_and_the_principal",
            f"{T}envelope.txt",
        ),
    ),
    "DUAL-01": Row(
        "A",
        "all",
        "Both eras on one process and one endpoint: an envelope is modern, initialize is legacy.",
        (
            f"{T}envelope.txt",
            f"{INTEROP}test_tools.py::test_the_client_connects_and_learns_who_we_are",
            f"{POSTS}test_legacy.py::test_an_enveloped_request_is_modern_whatever_session_it_names",
            f"{HTTP}test_smuggling.py::test_an_envelope_in_a_session_is_no_way_around_the_headers",
        ),
    ),
    "STD-01": Row(
        "M",
        "all",
        "Newline framing; no message holds a newline.",
        (
            f"{WIRE}test_codec.py::test_no_frame_holds_a_raw_line_separator",
            f"{WIRE}test_framing.py::test_any_split_of_the_bytes_gives_the_same_frames",
        ),
    ),
    "STD-02": Row(
        "N",
        "all",
        "Nothing but messages on stdout.",
        (
            f"{PROCESS}test_stdout.py::test_output_of_a_tool_to_stdout_goes_to_stderr",
            f"{PROCESS}test_stdout.py::test_a_print_at_import_does_not_reach_the_stream",
        ),
    ),
    "STD-03": Row(
        "S",
        "all",
        "The process ends when its input does.",
        (
            f"{PROCESS}test_end_of_input.py::test_a_piped_request_is_answered_and_the_process_ends",
            f"{PROCESS}test_death.py::test_end_of_input_ends_the_process_and_all_descendants",
            f"{INTEROP}test_process.py::test_the_server_exits_cleanly_when_the_client_closes",
        ),
    ),
    "HTTP-01": Row(
        "M",
        "all HTTP",
        "The Origin is checked; a foreign one is 403.",
        (
            f"{HTTP}test_gate.py::test_pages_of_other_origins_are_refused",
            f"{HTTP}test_gate.py::test_host_and_origin_are_looked_at_everywhere",
            f"{PROTOCOL}test_hosts.py::test_no_other_page_may",
        ),
    ),
    "HTTP-02": Row(
        "S",
        "all HTTP",
        "A local server listens on loopback; whoever is reached from elsewhere asks for a credential.",
        (
            f"{SERVING}test_start.py::test_the_address_and_the_line_to_paste",
            f"{SERVING}test_start.py::test_the_built_in_server_asks_for_a_token_of_its_own",
            f"{SERVING}test_start.py::test_others_may_not_reach_a_server_that_asks_nobody",
            f"{HTTP}test_authorization.py::test_without_a_credential_nothing_is_to_be_had",
        ),
    ),
    "HTTP-04": Row(
        "M",
        "2025-03-26+",
        "A notification or response is accepted with 202 and no body.",
        (
            f"{POSTS}test_legacy.py::test_notifications_and_responses_are_accepted",
            f"{POSTS}test_modern.py::test_a_notification_is_taken_and_dropped",
        ),
    ),
    "HTTP-05": Row(
        "M",
        "2025-03-26+",
        "A request is answered with JSON or a stream.",
        (
            f"{POSTS}test_legacy.py::test_an_answer_is_json_unless_something_is_said_before_it",
            f"{POSTS}test_modern.py::test_an_answer_is_json_unless_something_is_said_before_it",
            f"{POSTS}test_modern.py::test_what_the_client_accepts_decides",
        ),
    ),
    "HTTP-06": Row(
        "M",
        "2025-03-26 to 2025-11-25",
        "GET is a stream or 405.",
        (
            f"{POSTS}test_legacy.py::test_get_and_delete_need_a_session",
            f"{POSTS}test_streams.py::test_the_stream_is_primed_where_clients_know_what_that_means",
        ),
    ),
    "HTTP-07": Row(
        "N",
        "2025-03-26 to 2025-11-25",
        "No responses on the GET stream unless it resumes; each message goes out on one stream.",
        (
            f"{POSTS}test_streams.py::test_of_two_streams_the_newest_is_the_one",
            f"{POSTS}test_legacy.py::test_a_question_is_asked_on_the_requests_own_stream_and_answered_by_a_post",
            f"{POSTS}test_many.py::test_a_session_may_have_many_requests_at_once_and_each_hears_its_own",
            f"{WORKERS}test_reaching.py::test_a_stream_that_moves_loses_nothing_and_repeats_nothing",
        ),
    ),
    "HTTP-08": Row(
        "M",
        "2025-03-26 to 2025-11-25",
        "A session's id is visible ASCII and random.",
        (
            f"{HTTP}test_authorization.py::test_ids_of_sessions_can_not_be_guessed",
            f"{POSTS}test_legacy.py::test_the_handshake_begins_a_session",
        ),
    ),
    "HTTP-09": Row(
        "S",
        "2025-03-26 to 2025-11-25",
        "A request without the id of its session is 400.",
        (f"{POSTS}test_legacy.py::test_every_refusal_has_its_status",),
    ),
    "HTTP-10": Row(
        "M",
        "2025-03-26 to 2025-11-25",
        "A session that has ended is 404.",
        (
            f"{POSTS}test_legacy.py::test_after_delete_there_is_no_session",
            f"{POSTS}test_sessions.py::test_a_session_that_is_not_used_for_its_time_is_forgotten",
            f"{WORKERS}test_sessions.py::test_an_ended_session_does_not_come_back",
        ),
    ),
    "HTTP-13": Row(
        "M",
        "2025-06-18 to 2025-11-25",
        "A bad version header is 400; without one the session knows.",
        (
            f"{POSTS}test_legacy.py::test_every_refusal_has_its_status",
            f"{POSTS}test_legacy.py::test_the_version_header_may_be_absent_or_any_that_has_a_handshake",
        ),
    ),
    "HTTP-14": Row(
        "M",
        "2025-03-26 to 2025-11-25",
        "Event ids are unique in a session; only the named stream is sent again.",
        (
            f"{POSTS}test_streams.py::test_an_answer_that_is_cut_anywhere_is_taken_up_and_comes_whole_and_once",
            f"{POSTS}test_streams.py::test_what_was_missed_on_the_stream_is_sent_again_once",
            f"{POSTS}test_principals.py::test_a_stream_of_another_session_is_not_there",
            f"{WORKERS}test_resuming.py::test_a_stream_of_another_session_is_not_sent",
        ),
    ),
    "HTTP-15": Row(
        "S",
        "2025-11-25",
        "A stream begins with an id and no data; who is sent away is told when to come back.",
        (
            f"{POSTS}test_streams.py::test_the_stream_is_primed_where_clients_know_what_that_means",
            f"{POSTS}test_streams.py::test_a_tool_may_send_its_client_away_again_and_again",
            f"{INTEROP}test_http.py::test_a_tool_sends_the_client_away_and_it_comes_back",
        ),
    ),
    "HTTP-17": Row(
        "X",
        "2025-03-26 to 2025-11-25",
        "Who hangs up does not cancel.",
        (
            f"{POSTS}test_legacy.py::test_who_hangs_up_takes_nothing_back",
            f"{POSTS}test_streams.py::test_a_call_goes_on_while_its_client_is_away",
            f"{INTEROP}test_http.py::test_a_call_goes_on_while_the_connection_is_down",
        ),
    ),
    "HTTP-18": Row(
        "S",
        "modern",
        "GET and DELETE are 405; ids of sessions and events are ignored.",
        (
            f"{POSTS}test_modern.py::test_get_and_delete_are_not_of_this_era",
            f"{POSTS}test_modern.py::test_a_session_id_and_a_last_event_id_mean_nothing",
        ),
    ),
    "HTTP-19": Row(
        "M",
        "modern",
        "Who hangs up cancels, and nothing more is sent.",
        (
            f"{POSTS}test_modern.py::test_who_hangs_up_takes_the_request_back",
            f"{POSTS}test_modern.py::test_who_hangs_up_on_a_parked_call_frees_its_place",
            f"{SERVING}test_hang_up.py::test_in_the_middle_of_an_answer",
        ),
    ),
    "HTTP-20": Row(
        "N",
        "modern",
        "A stream carries no requests, only what belongs to its own and then the response.",
        (
            f"{POSTS}test_modern.py::test_an_answer_is_json_unless_something_is_said_before_it",
            f"{QUESTIONS}test_request_state.py::test_a_modern_client_is_never_sent_a_request",
            f"{POSTS}test_many.py::test_clients_with_the_same_ids_never_get_each_others_answers",
        ),
    ),
    "HTTP-21": Row(
        "S",
        "modern",
        "Streams are not buffered by proxies, and long ones show signs of life.",
        (
            f"{POSTS}test_modern.py::test_an_answer_is_json_unless_something_is_said_before_it",
            f"{POSTS}test_modern.py::test_a_silent_stream_shows_signs_of_life",
        ),
    ),
    "HTTP-23": Row(
        "M",
        "2024-11-05",
        "The first event of a stream names the address to POST to.",
        (
            f"{HTTP}test_authorization.py::test_an_old_session_is_its_callers_alone",
            f"{POSTS}test_old.py::test_everything_is_answered_on_the_stream",
            f"{INTEROP}test_http.py::test_the_client_of_2024_lists_calls_and_hears",
        ),
    ),
    "HDR-02": Row(
        "M",
        "modern",
        "A header that is missing, wrong or can't be read is 400 and -32020.",
        (
            f"{HTTP}test_smuggling.py::test_a_name_that_is_not_the_bodys_has_nothing_run",
            f"{HTTP}test_smuggling.py::test_a_missing_name_has_nothing_run",
            f"{HTTP}test_smuggling.py::test_a_method_that_is_not_the_bodys_has_nothing_run",
            f"{HTTP}test_smuggling.py::test_a_version_that_is_not_the_bodys_has_nothing_run",
            f"{HTTP}test_smuggling.py::test_two_names_are_none",
            f"{POSTS}test_modern.py::test_the_ladder_is_climbed_in_order",
        ),
    ),
    "HDR-03": Row(
        "M",
        "modern",
        "Names of headers have any case, values have theirs.",
        (
            f"{HTTP}test_smuggling.py::test_the_name_as_it_should_be",
            f"{POSTS}test_modern.py::test_header_names_have_any_case_and_values_may_have_blanks_around_them",
        ),
    ),
    "HDR-05": Row(
        "M",
        "modern",
        "Base64 values are read strictly and compared with the body; a missing or different one is refused.",
        (
            f"{HTTP}test_smuggling.py::test_an_argument_that_is_not_the_bodys_has_nothing_run",
            f"{HTTP}test_smuggling.py::test_an_argument_in_the_header_alone_has_nothing_run",
            f"{PROTOCOL}test_http_headers.py::test_base64_has_one_spelling",
            f"{PROTOCOL}test_http_headers.py::test_header_values_are_decoded",
        ),
    ),
    "HDR-06": Row(
        "S",
        "modern",
        "Integers are compared as numbers.",
        (
            f"{HTTP}test_smuggling.py::test_arguments_as_they_should_be",
            f"{PROTOCOL}test_http_headers.py::test_integers_pass_for_themselves_alone",
        ),
    ),
    "TOOL-01": Row(
        "M",
        "all",
        "Tools are declared and listed.",
        (
            f"{T}tools.txt",
            f"{INTEROP}test_tools.py::test_the_client_lists_and_calls_tools",
        ),
    ),
    "TOOL-02": Row(
        "S",
        "modern",
        "The order of tools is always the same.",
        (f"{APP}test_tool_options.py::test_tools_are_listed_in_the_order_in_which_they_were_declared",),
    ),
    "TOOL-03": Row(
        "M",
        "all",
        "inputSchema is an object schema.",
        (
            f"{APP}test_arguments.py::test_a_tool_without_parameters_says_so",
            f"{REGISTRY}test_mistakes.py::test_a_mistake_is_three_lines",
        ),
    ),
    "TOOL-04": Row(
        "M",
        "2025-06-18+",
        "structuredContent keeps outputSchema, with the text beside it.",
        (
            f"{APP}test_results.py::test_a_declared_type_gives_text_and_structured_content_that_keep_the_schema",
            f"{APP}test_results.py::test_a_wrong_result_is_an_error_for_the_model_and_a_line_in_the_log",
        ),
    ),
    "TOOL-06": Row(
        "S",
        "all",
        "An unknown tool or a malformed call is a JSON-RPC error.",
        (f"{APP}test_arguments.py::test_an_unknown_tool_or_a_malformed_call_is_an_invalid_parameter",),
    ),
    "TOOL-07": Row(
        "S",
        "all",
        "A tool's failure and bad arguments are results with isError.",
        (
            f"{APP}test_arguments.py::test_wrong_arguments_are_an_error_result_with_a_line_for_each_fault",
            f"{INTEROP}test_tools.py::test_failures_are_results_that_the_model_can_read",
        ),
    ),
    "TOOL-08": Row(
        "S",
        "2025-11-25+",
        "Tool names keep charset and length and are unique.",
        (
            f"{REGISTRY}test_mistakes.py::test_the_names_at_the_edge_of_what_is_allowed_are_allowed",
            f"{REGISTRY}test_mistakes.py::test_the_error_for_a_second_tool_of_a_name_has_the_location_of_the_first",
        ),
    ),
    "TOOL-10": Row(
        "M",
        "all",
        "Inputs are validated, calls need their scopes and are limited in rate and number, outputs are checked.",
        (
            f"{APP}test_raw.py::test_arguments_that_break_the_schema_never_reach_the_handler",
            f"{PROCESS}test_limits.py::test_so_many_run_so_many_wait_and_the_next_is_refused",
            f"{HOSTILE}test_live.py::test_the_text_of_an_exception_never_reaches_the_client",
            f"{HTTP}test_authorization.py::test_a_tool_is_open_to_those_who_have_its_scopes",
            f"{HTTP}test_rates.py::test_a_modern_call_too_many_is_an_error_that_says_when_to_try_again",
            f"{HTTP}test_rates.py::test_a_batch_is_no_way_around_it",
            f"{SERVER}test_rate_limits.py::test_so_many_go_at_once_and_not_one_more",
        ),
    ),
    "TOOL-11": Row(
        "S",
        "all",
        "list_changed goes out when the list changes.",
        (
            f"{T}changes_legacy.txt",
            f"{APP}test_context.py::test_the_client_is_notified_when_a_thread_adds_or_removes_tools",
        ),
    ),
    "RES-01": Row(
        "M",
        "all",
        "Resources are declared, listed, validated; bytes are encoded.",
        (
            f"{T}resources_legacy.txt",
            f"{T}resources_modern.txt",
            f"{INTEROP}test_features.py::test_the_client_reads_texts_bytes_and_templates",
        ),
    ),
    "RES-02": Row(
        "S/M",
        "all",
        "Not found is -32002 (legacy) or -32602 (modern), with data.uri.",
        (
            f"{T}resources_legacy.txt",
            f"{T}resources_modern.txt",
        ),
    ),
    "RES-03": Row(
        "N",
        "modern",
        "A missing resource has no empty contents.",
        (f"{APP}test_resources.py::test_an_unknown_uri_is_not_found_and_calls_no_reader",),
    ),
    "RES-05": Row(
        "M",
        "modern",
        "No path leaves its place.",
        (
            f"{REGISTRY}test_template.py::test_a_value_that_climbs_out_of_its_place_matches_nothing",
            f"{REGISTRY}test_template.py::test_no_text_makes_a_path_of_what_could_leave_it",
        ),
    ),
    "PRM-01": Row("M", "all", "Prompts are declared and listed.", (f"{T}prompts.txt",)),
    "PRM-02": Row(
        "S",
        "all",
        "A bad name or argument is -32602.",
        (
            f"{T}prompts.txt",
            f"{APP}test_prompts.py::test_arguments_that_do_not_fit_are_invalid_parameters",
        ),
    ),
    "CMP-01": Row(
        "M",
        "2025-03-26+",
        "Completions are declared; at most 100 values.",
        (
            f"{APP}test_completions.py::test_at_most_a_hundred_values_are_sent_with_their_total",
            f"{APP}test_completions.py::test_completion_is_declared_where_there_is_something_to_complete",
        ),
    ),
    "CMP-02": Row(
        "M",
        "all",
        "Completion requests are validated and limited, and give away no more than was declared.",
        (
            f"{APP}test_completions.py::test_an_unknown_completion_is_an_invalid_parameter",
            f"{HTTP}test_rates.py::test_completion_is_limited_too",
            f"{CONFORMANCE}test_fixtures.py::test_a_completion_depends_on_what_was_typed",
        ),
    ),
    "LOG-01": Row("M", "all", "logging is declared where messages are sent.", (f"{T}logging.txt",)),
    "LOG-02": Row(
        "N",
        "modern",
        "No message without a logLevel in that request; none on a listen.",
        (
            f"{APP}test_context.py::test_a_modern_client_gets_logs_at_the_level_of_each_request",
            f"{T}logging.txt",
            f"{CONFORMANCE}test_fixtures.py::test_a_stateless_client_that_asks_for_no_log_gets_none",
        ),
    ),
    "LOG-03": Row("S", "all", "An unknown level is -32602.", (f"{T}logging.txt",)),
    "LOG-04": Row(
        "N",
        "all",
        "No secrets in log messages of ours.",
        (
            f"{HOSTILE}test_live.py::test_the_text_of_an_exception_never_reaches_the_client",
            f"{HTTP}test_canary.py::test_static_tokens",
            f"{HTTP}test_canary.py::test_access_tokens",
        ),
    ),
    "PAG-02": Row(
        "S",
        "all",
        "Cursors are stable; a wrong one is -32602.",
        (
            f"{T}pagination.txt",
            f"{APP}test_pages.py::test_a_cursor_stays_good_while_others_come_and_go",
            f"{APP}test_pages.py::test_a_cursor_that_we_never_gave_is_an_invalid_parameter",
        ),
    ),
    "CACHE-01": Row(
        "M",
        "modern",
        "ttlMs and cacheScope stand on the six results.",
        (
            f"{T}methods_modern.txt",
            f"{APP}test_resources.py::test_a_modern_read_may_be_cached_for_max_age",
        ),
    ),
    "CACHE-02": Row(
        "M",
        "modern",
        "All pages of a list have one cacheScope; who may do what does not hang on it.",
        (
            f"{APP}test_pages.py::test_every_page_of_the_modern_era_carries_the_same_cache_scope",
            f"{HTTP}test_authorization.py::test_everybody_who_is_in_sees_what_there_is",
        ),
    ),
    "MRTR-01": Row(
        "N",
        "modern",
        "input_required only on tools/call, prompts/get and resources/read.",
        (
            f"{QUESTIONS}test_parameters.py::test_prompts_have_asked_parameters_too",
            f"{QUESTIONS}test_parameters.py::test_resources_have_asked_parameters_too",
            f"{T}methods_modern.txt",
        ),
    ),
    "MRTR-02": Row(
        "M",
        "modern",
        "An input_required result has questions or a state.",
        (f"{QUESTIONS}test_request_state.py::test_a_round_names_its_kind_and_the_server",),
    ),
    "MRTR-03": Row(
        "N",
        "modern",
        "Nothing is asked that the request did not declare.",
        (
            f"{QUESTIONS}test_parameters.py::test_a_modern_client_is_asked_only_for_what_this_request_declares",
            f"{QUESTIONS}test_parameters.py::test_a_page_needs_a_client_that_declares_url_mode",
        ),
    ),
    "MRTR-04": Row(
        "M",
        "modern",
        "A requestState is signed; a changed one is an error.",
        (
            f"{QUESTIONS}test_request_state.py::test_a_state_with_any_byte_changed_is_refused",
            f"{T}questions_modern.txt",
        ),
    ),
    "MRTR-05": Row(
        "S",
        "modern",
        "It is bound to principal, expiry and request; missing answers are asked again.",
        (
            f"{QUESTIONS}test_request_state.py::test_a_state_of_another_principal_is_refused",
            f"{QUESTIONS}test_request_state.py::test_a_state_of_other_arguments_is_refused",
            f"{QUESTIONS}test_request_state.py::test_a_state_lives_ten_minutes",
            f"{QUESTIONS}test_request_state.py::test_only_a_missing_answer_is_asked_for_again",
            f"{QUESTIONS}test_request_state.py::test_answers_without_a_question_are_ignored",
            f"{HTTP}test_authorization.py::test_a_question_is_answered_by_whom_it_was_put_to",
            f"{WORKERS}test_modern.py::test_an_answer_sent_to_both_at_once_is_used_once",
        ),
    ),
    "SUB-01": Row(
        "M",
        "modern",
        "A listen is acknowledged first, with what is honoured.",
        (
            f"{T}listen.txt",
            f"{T}listen_bare.txt",
            f"{POSTS}test_modern.py::test_a_listen_is_acknowledged_hears_what_it_asked_for_and_ends_with_its_client",
        ),
    ),
    "SUB-02": Row(
        "M",
        "modern",
        "Every message of a listen carries its id.",
        (
            f"{T}listen.txt",
            f"{T}listen_updates.txt",
            f"{POSTS}test_modern.py::test_a_listen_is_acknowledged_hears_what_it_asked_for_and_ends_with_its_client",
        ),
    ),
    "SUB-03": Row(
        "N",
        "modern",
        "No kinds that were not asked for.",
        (
            f"{T}listen.txt",
            f"{SERVER}test_engine.py::test_every_link_and_each_listen_is_notified_of_a_changed_list_once",
        ),
    ),
    "SUB-04": Row(
        "S",
        "modern",
        "A listen that we end gets its result first.",
        (
            f"{SERVER}test_engine.py::test_listens_that_we_end_get_their_result_and_then_a_cancel",
            f"{PROCESS}test_end_of_input.py::test_a_listen_gets_its_final_result",
            f"{POSTS}test_modern.py::test_listens_end_with_their_result_when_the_server_does",
            f"{SERVING}test_stop.py::test_streams_end_with_their_last_event",
        ),
    ),
    "PROG-01": Row(
        "M",
        "all",
        "Progress grows, and stops with the call.",
        (
            f"{T}progress.txt",
            f"{APP}test_context.py::test_progress_goes_out_before_the_answer_and_only_grows",
        ),
    ),
    "CAN-01": Row(
        "M",
        "all",
        "Races are no fault; unknown ids are ignored.",
        (
            f"{T}cancellation.txt",
            f"{QUESTIONS}test_waiting.py::test_unexpected_answers_are_ignored",
            f"{POSTS}test_legacy.py::test_notifications_and_responses_are_accepted",
        ),
    ),
    "CAN-02": Row(
        "S",
        "legacy",
        "A cancelled call stops and is not answered.",
        (
            f"{T}cancellation.txt",
            f"{APP}test_context.py::test_a_cancelled_def_sees_the_cancel_and_gets_no_answer",
            f"{INTEROP}test_features.py::test_a_cancelled_call_is_stopped_and_never_answered",
            f"{POSTS}test_legacy.py::test_a_cancel_ends_a_request_without_an_answer",
            f"{WORKERS}test_reaching.py::test_a_call_is_cancelled_through_the_other_process",
        ),
    ),
    "CAN-04": Row(
        "N",
        "modern",
        "We send cancelled only for listens.",
        (
            f"{SERVER}test_engine.py::test_listens_that_we_end_get_their_result_and_then_a_cancel",
            f"{QUESTIONS}test_request_state.py::test_a_modern_client_is_never_sent_a_request",
            f"{POSTS}test_modern.py::test_listens_end_with_their_result_when_the_server_does",
        ),
    ),
    "SAMP-02": Row(
        "N",
        "2025-11-25+",
        "No tools for a model whose client did not declare them.",
        (f"{QUESTIONS}test_sampling.py::test_tools_are_offered_only_to_a_client_that_declares_them",),
    ),
    "SAMP-03": Row(
        "M",
        "2025-11-25+",
        "tool_use and tool_result are balanced.",
        (f"{QUESTIONS}test_sampling.py::test_a_conversation_whose_tool_uses_and_results_do_not_match_is_not_sent",),
    ),
    "ELI-02": Row(
        "N",
        "2025-06-18+",
        "No secrets by a form.",
        (f"{QUESTIONS}test_parameters.py::test_a_secret_is_never_asked_by_a_form",),
    ),
    "ELI-05": Row(
        "N",
        "2025-11-25+",
        "What a call puts into a URL is escaped and nothing of ours is added.",
        (f"{QUESTIONS}test_parameters.py::test_a_person_can_be_sent_to_a_page_whose_address_holds_escaped_arguments",),
    ),
    "ELI-06": Row(
        "M",
        "2025-11-25",
        "url questions have an elicitationId.",
        (
            f"{QUESTIONS}test_parameters.py::test_a_person_can_be_sent_to_a_page_whose_address_holds_escaped_arguments",
            f"{T}questions_legacy.txt",
        ),
    ),
    "ELI-07": Row(
        "M",
        "modern",
        "Decline, cancel and no answer are handled.",
        (
            f"{QUESTIONS}test_parameters.py::test_a_required_parameter_that_is_declined_ends_the_call_and_says_so",
            f"{QUESTIONS}test_waiting.py::test_a_call_whose_client_disconnects_is_still_answered",
        ),
    ),
    "SCH-01": Row(
        "M",
        "2025-11-25+",
        "2020-12 is the default; another dialect is used or refused in words.",
        (
            f"{SCHEMA}test_validate.py::test_known_dialects_are_honoured",
            f"{SCHEMA}test_validate.py::test_an_unusable_schema_is_refused_with_a_remedy",
        ),
    ),
    "SCH-02": Row(
        "M",
        "2025-11-25+",
        "Keywords go out as they were written.",
        (f"{APP}test_raw.py::test_every_keyword_of_the_schema_stands_in_the_list_as_it_was_written",),
    ),
    "SCH-03": Row(
        "N", "modern", "No $ref is fetched.", (f"{APP}test_raw.py::test_a_reference_to_elsewhere_is_never_fetched",)
    ),
    "SCH-04": Row(
        "S",
        "modern",
        "What a schema may cost is bounded.",
        (
            f"{SCHEMA}test_validate.py::test_depth_is_limited_at_its_edge",
            f"{SCHEMA}test_validate.py::test_size_is_limited_at_its_edge",
            f"{SCHEMA}test_validate.py::test_evil_patterns_end",
        ),
    ),
    "AUTH-01": Row(
        "M",
        "2025-06-18+",
        "The metadata of RFC 9728 is served and names the authorization servers.",
        (
            f"{HTTP}test_access_tokens.py::test_metadata_is_at_both_addresses_and_open_to_all",
            f"{HTTP}test_access_tokens.py::test_a_mounted_app_has_its_metadata_at_the_root_and_below_itself",
            f"{AUTH}test_metadata.py::test_the_metadata_document_names_resource_servers_and_scopes",
        ),
    ),
    "AUTH-02": Row(
        "M",
        "2025-06-18+",
        "A token is checked, also for whom it is; a bad one is 401.",
        (
            f"{HTTP}test_access_tokens.py::test_a_token_that_is_not_for_us_is_no_good",
            f"{HTTP}test_access_tokens.py::test_a_token_of_a_stranger_is_no_good",
            f"{AUTH}test_jwt.py::test_tokens_with_wrong_claims_are_refused",
            f"{AUTH}test_introspection.py::test_introspection_results_that_are_refused",
        ),
    ),
    "AUTH-03": Row(
        "M",
        "2025-06-18",
        "401 says where the metadata is.",
        (
            f"{HTTP}test_access_tokens.py::test_the_challenge_leads_to_the_metadata",
            f"{HTTP}test_access_tokens.py::test_metadata_follows_the_address",
        ),
    ),
    "AUTH-04": Row(
        "S",
        "2025-11-25+",
        "Challenges name scopes; 403 names all that the operation needs.",
        (
            f"{HTTP}test_access_tokens.py::test_a_challenge_says_where_to_go_and_what_for",
            f"{HTTP}test_authorization.py::test_all_that_a_tool_needs_is_named_at_once",
            f"{HTTP}test_authorization.py::test_a_session_needs_them_too",
            f"{HTTP}test_authorization.py::test_scopes_that_every_request_needs",
        ),
    ),
    "AUTH-05": Row(
        "M",
        "modern",
        "No scope stands for another here, so each that is needed is named; offline_access never is.",
        (
            f"{HTTP}test_access_tokens.py::test_a_challenge_says_where_to_go_and_what_for",
            f"{AUTH}test_challenge.py::test_offline_access_is_never_named",
        ),
    ),
    "AUTH-06": Row(
        "N",
        "2025-06-18+",
        "A token is for us or refused, and goes no further than the guard.",
        (
            f"{HTTP}test_canary.py::test_no_tool_can_see_a_token",
            f"{HTTP}test_canary.py::test_static_tokens",
            f"{HTTP}test_access_tokens.py::test_a_token_that_is_not_for_us_is_no_good",
            f"{AUTH}test_introspection.py::test_static_tokens_are_never_sent_out",
        ),
    ),
    "SEC-01": Row(
        "N",
        "legacy",
        "The id of a session is no credential; it is random and belongs to one caller.",
        (
            f"{HTTP}test_authorization.py::test_a_session_is_its_callers_alone",
            f"{HTTP}test_authorization.py::test_the_id_of_a_session_is_no_credential_in_any_place",
            f"{HTTP}test_authorization.py::test_ids_of_sessions_can_not_be_guessed",
            f"{HTTP}test_access_tokens.py::test_a_session_asks_for_a_token_each_time_and_goes_by_what_it_says_now",
            f"{WORKERS}test_sessions.py::test_the_session_of_another_caller_is_unknown_in_either_process",
        ),
    ),
    "SEC-02": Row(
        "N",
        "modern",
        "A state is no authentication: it is signed and bound.",
        (
            f"{QUESTIONS}test_request_state.py::test_a_state_of_another_principal_is_refused",
            f"{QUESTIONS}test_request_state.py::test_a_state_of_another_server_is_refused",
            f"{HTTP}test_authorization.py::test_a_question_is_answered_by_whom_it_was_put_to",
        ),
    ),
    "TASK-01": Row(
        "M",
        "2025-11-25",
        "A call that asks for a task is run as any other where tasks are not declared, and we declare none.",
        (f"{T}tools.txt",),
    ),
    "DEP-01": Row(
        "S",
        "modern",
        "Use of what is deprecated is noted.",
        (
            f"{QUESTIONS}test_sampling.py::test_a_deprecated_feature_is_reported_once",
            f"{HTTP}test_deprecated.py::test_the_transport_of_2024_is_noted_once",
        ),
    ),
}

LEFT_OUT: dict[str, str] = {
    "STD-06": "a server of ours asks nobody for a token on stdio, so there is nothing to show; for the client there is",
    "ELI-04": "who opens a URL is known to the author's web page, not to us; docs/questions.md says what to check",
    "HDR-08": "what an argument holds only its author knows; docs/writing-a-server.md says to mark no secret",
    "EXT-01": "no extension of the server's is built yet, so none is declared and none can be used one-sidedly",
    **dict.fromkeys(
        [f"TEXT-{n:02}" for n in (1, 2, 3, 4, 5)],
        "the tasks extension is not built yet: it is not declared, and no result of ours is a task",
    ),
    "APP-01": "the apps extension is not built yet; an author may serve ui:// resources as any others",
    "SEC-03": "no caller is led on to another authorization server: who runs us signs in to what is mounted",
}

REQUIREMENTS: tuple[str, ...] = (
    *(f"BASE-{n:02}" for n in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 13, 14)),
    *(f"LEG-{n:02}" for n in (2, 3, 4, 5)),
    *(f"MOD-{n:02}" for n in (3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15)),
    "DUAL-01",
    *(f"STD-{n:02}" for n in (1, 2, 3, 6)),
    *(f"HTTP-{n:02}" for n in (1, 2, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 17, 18, 19, 20, 21, 23)),
    *(f"HDR-{n:02}" for n in (2, 3, 5, 6, 8)),
    *(f"TOOL-{n:02}" for n in (1, 2, 3, 4, 6, 7, 8, 10, 11)),
    *(f"RES-{n:02}" for n in (1, 2, 3, 5)),
    *(f"PRM-{n:02}" for n in (1, 2)),
    *(f"CMP-{n:02}" for n in (1, 2)),
    *(f"LOG-{n:02}" for n in (1, 2, 3, 4)),
    "PAG-02",
    *(f"CACHE-{n:02}" for n in (1, 2)),
    *(f"MRTR-{n:02}" for n in (1, 2, 3, 4, 5)),
    *(f"SUB-{n:02}" for n in (1, 2, 3, 4)),
    "PROG-01",
    *(f"CAN-{n:02}" for n in (1, 2, 4)),
    *(f"SAMP-{n:02}" for n in (2, 3)),
    *(f"ELI-{n:02}" for n in (2, 4, 5, 6, 7)),
    *(f"SCH-{n:02}" for n in (1, 2, 3, 4)),
    *(f"AUTH-{n:02}" for n in range(1, 7)),
    *(f"SEC-{n:02}" for n in (1, 2, 3)),
    "TASK-01",
    *(f"TEXT-{n:02}" for n in (1, 2, 3, 4, 5)),
    "EXT-01",
    "APP-01",
    "DEP-01",
)
