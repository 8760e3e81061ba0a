"""What the specification demands of a client, and which tests show that ours does it.

Rows as in `manifest.py`, of the lines of the checklist that bind a client or both sides. The official suite's scenarios
for a client run by `make conformance`; the rows here do not lean on it. What is only partly so says so.
"""

from __future__ import annotations

from .manifest import Row

C = "tests/client/"
H, OAUTH, PEERS, CLI = f"{C}http/", f"{C}auth/", "tests/interop/client/", "tests/cli/"

CLIENT_ROWS: dict[str, Row] = {
    "BASE-01": Row(
        "M",
        "all",
        'Messages are UTF-8 JSON with jsonrpc "2.0"; params are an object.',
        (
            f"{C}test_messages.py::test_no_id_is_used_twice_and_every_line_is_one_message",
            f"{C}test_malformed_answers.py::test_arguments_that_are_no_json_fail_at_once_and_leave_nothing",
            f"{C}test_malformed_answers.py::test_malformed_answers_fail_their_call_and_no_other",
        ),
    ),
    "BASE-02": Row(
        "M",
        "all",
        "A request's id is a string or an integer, never null.",
        (f"{C}test_messages.py::test_no_id_is_used_twice_and_every_line_is_one_message",),
    ),
    "BASE-03": Row(
        "M",
        "legacy",
        "No id is used twice in a session.",
        (f"{C}test_messages.py::test_no_id_is_used_twice_and_every_line_is_one_message",),
    ),
    "BASE-04": Row(
        "M",
        "modern",
        "An id differs from those of all requests under way.",
        (
            f"{C}test_messages.py::test_no_id_is_used_twice_and_every_line_is_one_message",
            f"{C}test_questions.py::test_each_round_has_a_state_and_an_id_of_its_own",
        ),
    ),
    "BASE-05": Row(
        "M",
        "all",
        "An answer of ours has the id of its question with its type, and a result or an error.",
        (
            f"{C}test_handshake.py::test_a_ping_is_answered_with_nothing_at_any_time",
            f"{C}test_malformed_answers.py::test_requests_that_make_no_sense_are_refused",
            f"{C}test_malformed_answers.py::test_answers_under_another_id_are_not_taken",
            f"{C}test_cancel.py::test_a_cancellation_names_the_request_and_the_reason",
        ),
    ),
    "BASE-06": Row(
        "N",
        "all",
        "A notification is never answered.",
        (f"{C}test_messages.py::test_no_notification_is_ever_answered",),
    ),
    "BASE-07": Row(
        "M",
        "2025-03-26",
        "Batches are taken; initialize is not part of one, for we send none.",
        (
            f"{C}test_frames.py::test_a_batch_of_many_answers",
            f"{C}test_messages.py::test_no_id_is_used_twice_and_every_line_is_one_message",
        ),
    ),
    "BASE-08": Row(
        "M",
        "2025-06-18+",
        "One message a line or a POST. An array that comes all the same is noted, and the answers in it count.",
        (
            f"{C}test_messages.py::test_no_id_is_used_twice_and_every_line_is_one_message",
            f"{H}test_duties.py::test_over_http_the_headers_say_the_same",
            f"{C}test_malformed_answers.py::test_batches",
        ),
    ),
    "BASE-12": Row(
        "M",
        "modern",
        "Without a resultType a result is complete, of an unknown kind it is none.",
        (
            f"{C}test_result_types.py::test_a_result_of_an_unknown_kind_is_none",
            f"{C}test_questions.py::test_results_of_other_kinds_are_not_taken_for_results",
            f"{C}test_questions.py::test_resources_and_prompts_may_ask_too",
        ),
    ),
    "BASE-13": Row(
        "M",
        "2025-06-18+",
        "What we put into `_meta` keeps the grammar; what a caller puts there goes with it, unchecked.",
        (f"{C}test_handshake.py::test_every_modern_request_carries_revision_client_and_capabilities",),
    ),
    "BASE-14": Row(
        "S",
        "all",
        "Requests have timeouts that can be set, with an end whatever progress there is.",
        (
            f"{C}test_clock.py::test_each_request_ends_at_its_own_time_whatever_was_sent_before",
            f"{C}test_cancel.py::test_progress_restarts_the_timeout",
            f"{C}test_cancel.py::test_progress_that_never_ends_is_no_life",
            f"{C}test_malformed_answers.py::test_a_server_that_never_answers_times_out",
        ),
    ),
    "LEG-01": Row(
        "M",
        "legacy",
        "initialize comes first, then notifications/initialized.",
        (
            f"{C}test_handshake.py::test_nothing_is_sent_before_the_handshake_is_over",
            f"{C}test_eras.py::test_whatever_it_says_to_the_probe_the_handshake_follows",
            f"{H}test_channel.py::test_no_request_is_sent_before_the_handshake_is_confirmed",
        ),
    ),
    "LEG-03": Row(
        "M",
        "legacy",
        "Only the negotiated revision; no undeclared list, log or handler. What a caller names is sent all the same.",
        (
            f"{C}test_lists.py::test_undeclared_parts_are_not_requested",
            f"{C}test_messages.py::test_a_server_without_logging_is_not_asked_for_it",
            f"{C}test_questions.py::test_undeclared_questions_are_refused",
            f"{C}test_eras.py::test_a_revision_that_is_insisted_on_is_had_or_not",
            f"{C}test_eras.py::test_a_handshake_that_fails_says_why",
            f"{H}test_channel.py::test_requests_of_a_session_carry_its_id",
        ),
    ),
    "LEG-04": Row(
        "X",
        "legacy",
        "Before the handshake is answered nothing is sent, but for the probe that comes before it.",
        (
            f"{C}test_handshake.py::test_nothing_is_sent_before_the_handshake_is_over",
            f"{H}test_channel.py::test_no_request_is_sent_before_the_handshake_is_confirmed",
        ),
    ),
    "LEG-05": Row(
        "M",
        "legacy",
        "A ping is answered at once with {}.",
        (f"{C}test_handshake.py::test_a_ping_is_answered_with_nothing_at_any_time",),
    ),
    "LEG-06": Row(
        "N",
        "legacy",
        "initialize is never cancelled.",
        (
            f"{C}test_handshake.py::test_a_handshake_is_never_cancelled",
            f"{C}test_cancel.py::test_a_handshake_is_never_cancelled",
            f"{C}test_eras.py::test_a_modern_server_that_starts_slowly_is_still_modern",
        ),
    ),
    "MOD-01": Row(
        "M",
        "modern",
        "protocolVersion and clientCapabilities are in every request.",
        (
            f"{C}test_handshake.py::test_every_modern_request_carries_revision_client_and_capabilities",
            f"{H}test_duties.py::test_over_http_the_headers_say_the_same",
        ),
    ),
    "MOD-02": Row(
        "S",
        "modern",
        "clientInfo is in every request.",
        (
            f"{C}test_handshake.py::test_every_modern_request_carries_revision_client_and_capabilities",
            f"{H}test_duties.py::test_over_http_the_headers_say_the_same",
        ),
    ),
    "MOD-12": Row(
        "N",
        "modern",
        "No answers are sent.",
        (
            f"{C}test_questions.py::test_a_modern_server_that_sends_requests_gets_no_answers",
            f"{C}test_messages.py::test_no_notification_is_ever_answered",
        ),
    ),
    "MOD-15": Row(
        "X",
        "modern",
        "serverInfo changes no behaviour.",
        (f"{C}test_messages.py::test_a_servers_name_changes_no_behaviour",),
    ),
    "DUAL-02": Row(
        "S",
        "modern",
        "A child is first asked server/discover.",
        (
            f"{C}test_handshake.py::test_nothing_is_sent_before_the_handshake_is_over",
            f"{C}test_eras.py::test_whatever_it_says_to_the_probe_the_handshake_follows",
            f"{C}test_eras.py::test_a_server_that_starts_slowly_is_connected",
        ),
    ),
    "DUAL-03": Row(
        "N",
        "modern",
        "The handshake follows whatever else is said to the probe, not one code.",
        (
            f"{C}test_eras.py::test_whatever_it_says_to_the_probe_the_handshake_follows",
            f"{H}test_finding_out.py::test_after_these_the_handshake_is_offered",
        ),
    ),
    "DUAL-04": Row(
        "N",
        "modern",
        "No handshake follows a refusal that only a modern server gives.",
        (
            f"{C}test_handshake.py::test_a_modern_refusal_leads_to_no_handshake",
            f"{H}test_duties.py::test_a_modern_refusal_in_the_body_of_a_400_leads_to_no_handshake",
            f"{C}test_handshake.py::test_a_modern_refusal_followed_by_an_answer_connects",
            f"{C}test_eras.py::test_unsupported_versions_without_end_are_refused_once",
        ),
    ),
    "DUAL-05": Row(
        "S",
        "modern",
        "The body of a 400 is read before falling back; the era is remembered.",
        (
            f"{H}test_duties.py::test_a_modern_refusal_in_the_body_of_a_400_leads_to_no_handshake",
            f"{H}test_finding_out.py::test_after_these_the_handshake_is_offered",
            f"{H}test_finding_out.py::test_these_refusals_say_nothing_about_the_transport",
            f"{C}test_eras.py::test_the_negotiated_era_is_remembered",
            f"{C}test_eras.py::test_a_server_that_was_exchanged_for_another_is_found_out_again",
        ),
    ),
    "STD-01": Row(
        "M",
        "all",
        "Newline framing; no message holds a newline.",
        (
            f"{C}test_messages.py::test_no_id_is_used_twice_and_every_line_is_one_message",
            f"{C}test_frames.py::test_one_byte_at_a_time",
            f"{C}test_frames.py::test_a_frame_at_the_limit",
        ),
    ),
    "STD-04": Row(
        "S",
        "all",
        "A child's input is closed, then it is asked to end, then it is ended.",
        (
            f"{C}test_child_processes.py::test_an_obedient_server_is_not_killed",
            f"{C}test_child_processes.py::test_a_server_gets_sigterm_before_sigkill",
            f"{C}test_child_processes.py::test_closing_ends_it_and_its_group",
        ),
    ),
    "STD-05": Row(
        "S",
        "modern",
        "A child that ended is started again, and what was listened to is listened to again.",
        (
            f"{C}test_child_processes.py::test_a_server_that_ended_between_calls_is_restarted",
            f"{C}test_child_processes.py::test_a_call_that_may_be_repeated_is_sent_once_more",
            f"{C}test_watch.py::test_a_lost_connection_is_made_anew_for_a_watch",
            f"{PEERS}test_python.py::test_a_child_that_is_killed_is_started_anew",
        ),
    ),
    "STD-06": Row(
        "X",
        "all",
        "No OAuth on stdio.",
        (f"{C}test_messages.py::test_a_child_is_not_signed_in_to",),
    ),
    "HTTP-03": Row(
        "M",
        "2025-03-26+",
        "Accept lists JSON and streams.",
        (
            f"{H}test_channel.py::test_a_modern_request_has_its_headers",
            f"{H}test_headers.py::test_the_protocol_s_headers_override_the_user_s",
        ),
    ),
    "HTTP-05": Row(
        "M",
        "2025-03-26+",
        "An answer may be JSON or a stream.",
        (
            f"{H}test_channel.py::test_a_stream_that_does_not_end_after_the_answer",
            f"{H}test_sessions.py::test_a_stream_as_response_to_initialized_is_not_awaited",
            f"{H}test_channel.py::test_a_response_that_is_no_answer_fails_the_request",
            f"{H}test_client.py::test_everything_once",
        ),
    ),
    "HTTP-11": Row(
        "M",
        "2025-03-26 to 2025-11-25",
        "The session's id is sent; after 404 there is another; the last word is DELETE.",
        (
            f"{H}test_channel.py::test_requests_of_a_session_carry_its_id",
            f"{H}test_channel.py::test_a_session_that_the_server_ended_is_replaced",
            f"{H}test_client.py::test_the_session_is_ended",
        ),
    ),
    "HTTP-12": Row(
        "M",
        "2025-06-18 to 2025-11-25",
        "MCP-Protocol-Version after the handshake.",
        (f"{H}test_channel.py::test_requests_of_a_session_carry_its_id",),
    ),
    "HTTP-16": Row(
        "M",
        "2025-11-25",
        "A stream that broke is taken up after its last event, when the server wishes.",
        (
            f"{H}test_channel.py::test_a_stream_is_resumed_after_its_last_event_with_the_server_s_delay",
            f"{H}test_streams.py::test_the_retry_of_the_server_is_used_within_bounds",
            f"{H}test_client.py::test_a_stream_that_the_server_closes_is_resumed",
        ),
    ),
    "HTTP-22": Row(
        "M",
        "modern",
        "A request that was lost is sent again under another id, where that does no harm.",
        (f"{H}test_channel.py::test_a_modern_stream_that_breaks_fails_the_request",),
    ),
    "HDR-01": Row(
        "M",
        "modern",
        "MCP-Protocol-Version and Mcp-Method on every request, Mcp-Name where there is a name.",
        (
            f"{H}test_channel.py::test_a_modern_request_has_its_headers",
            f"{H}test_channel.py::test_a_request_without_a_name_names_none",
            f"{H}test_duties.py::test_over_http_the_headers_say_the_same",
        ),
    ),
    "HDR-03": Row(
        "M",
        "modern",
        "Names of headers have no case, values do.",
        (
            f"{H}test_duties.py::test_the_names_of_headers_have_no_case_and_their_values_do",
            f"{H}test_duties.py::test_a_name_in_a_header_keeps_its_case",
        ),
    ),
    "HDR-04": Row(
        "M",
        "modern",
        "Marked arguments are repeated in headers, encoded; absent and null ones are not.",
        (
            f"{C}test_param_headers.py::test_arguments_go_into_headers_as_they_are_marked",
            f"{C}test_param_headers.py::test_marks_below_the_top",
        ),
    ),
    "HDR-07": Row(
        "M",
        "modern",
        "Over HTTP a tool whose marks are wrong is left out, and told of.",
        (f"{C}test_param_headers.py::test_a_tool_with_wrong_header_marks_is_left_out_and_reported",),
    ),
    "HDR-09": Row(
        "S",
        "modern",
        "After HeaderMismatch the tools are listed again and the call is made once more.",
        (
            f"{C}test_param_headers.py::test_a_call_that_is_refused_for_its_headers_is_made_once_more_with_the_tools_of_now",
            f"{C}test_param_headers.py::test_and_no_more_than_once",
        ),
    ),
    "TOOL-05": Row(
        "S",
        "2025-06-18+",
        "structuredContent is held to the tool's schema.",
        (
            f"{C}test_lists.py::test_a_result_that_breaks_the_tools_own_promise",
            f"{C}test_lists.py::test_a_promise_that_is_forgotten_or_can_not_be_read",
        ),
    ),
    "TOOL-09": Row(
        "M",
        "2025-03-26+",
        "Annotations are not trusted: they decide only whether a call that was lost is made again.",
        (
            f"{C}test_messages.py::test_tool_annotations_only_decide_about_resending",
            f"{C}test_child_processes.py::test_any_other_call_is_not",
        ),
    ),
    "RES-04": Row(
        "S",
        "modern",
        "-32002 is still taken for a missing resource.",
        (f"{C}test_messages.py::test_a_missing_resource_is_understood_by_either_code",),
    ),
    "PAG-01": Row(
        "M",
        "all",
        "Cursors go back as they came; an empty one is one, a missing one the end.",
        (
            f"{C}test_lists.py::test_all_pages_are_one_list",
            f"{C}test_lists.py::test_an_empty_cursor_is_a_cursor",
        ),
    ),
    "CACHE-03": Row(
        "N",
        "modern",
        "What is kept is one client's, by what was asked; never a call's result nor what took questions.",
        (
            f"{C}test_cache.py::test_the_cache_ignores_the_scope",
            f"{C}test_cache.py::test_a_cached_answer_is_not_requested_again",
            f"{C}test_cache.py::test_an_answer_after_questions_is_not_cached",
        ),
    ),
    "MRTR-06": Row(
        "M",
        "modern",
        "A requestState goes back as it came, under a new id, with its own request; without one there is none.",
        (
            f"{C}test_questions.py::test_answers_and_the_state_go_back_unchanged",
            f"{C}test_questions.py::test_each_round_has_a_state_and_an_id_of_its_own",
            f"{C}test_questions.py::test_a_state_that_is_not_sent_is_not_sent_back",
            f"{C}test_messages.py::test_the_state_of_one_call_is_not_that_of_another",
        ),
    ),
    "MRTR-07": Row(
        "M",
        "modern",
        "All questions are answered before the request is sent again.",
        (
            f"{C}test_questions.py::test_answers_and_the_state_go_back_unchanged",
            f"{C}test_questions.py::test_nonsense_fails_the_call_and_says_so",
        ),
    ),
    "SUB-05": Row(
        "M",
        "modern",
        "Changes are told to the subscription whose id they carry; after a restart it is made again.",
        (
            f"{C}test_watch.py::test_changes_under_another_id_are_not_ours",
            f"{C}test_watch.py::test_a_lost_connection_is_made_anew_for_a_watch",
        ),
    ),
    "PROG-01": Row(
        "M",
        "all",
        "A token is a call's own, and what comes after its answer is for nobody.",
        (
            f"{C}test_messages.py::test_progress_has_its_own_token_and_only_with_a_handler",
            f"{C}test_cancel.py::test_progress_after_the_answer_is_ignored",
        ),
    ),
    "CAN-01": Row(
        "M",
        "all",
        "Races are no fault; unknown ids are ignored.",
        (
            f"{C}test_cancel.py::test_an_answer_that_comes_too_late_is_nobodys_fault",
            f"{C}test_cancel.py::test_an_answer_in_the_same_turn_as_the_cancellation",
            f"{C}test_messages.py::test_no_notification_is_ever_answered",
        ),
    ),
    "CAN-02": Row(
        "S",
        "legacy",
        "A question that is taken back is dropped and not answered.",
        (f"{C}test_cancel.py::test_the_server_may_take_its_question_back",),
    ),
    "CAN-03": Row(
        "M",
        "modern",
        "A child is told by a notification; over HTTP the stream is closed.",
        (
            f"{C}test_cancel.py::test_a_cancellation_names_the_request_and_the_reason",
            f"{H}test_channel.py::test_cancelling_a_request_closes_its_stream",
            f"{H}test_client.py::test_cancelling_a_call_stops_the_handler",
        ),
    ),
    "SAMP-01": Row(
        "M",
        "all",
        "Sampling is declared where there is a model; what the server asks, maxTokens too, reaches it.",
        (
            f"{C}test_handshake.py::test_only_given_handlers_are_declared",
            f"{C}test_messages.py::test_a_question_that_wants_a_task_is_answered_as_any_other",
            f"{C}test_own_server.py::test_sampling",
        ),
    ),
    "ELI-01": Row(
        "M",
        "2025-06-18+",
        "Elicitation is declared where there is a person, with its modes.",
        (
            f"{C}test_handshake.py::test_only_given_handlers_are_declared",
            f"{C}test_own_server.py::test_elicitation",
            f"{C}test_own_server.py::test_a_question_without_a_handler_is_refused",
        ),
    ),
    "ELI-03": Row(
        "M",
        "2025-11-25+",
        "Without a mode it is a form; a page's whole address is shown, and nobody goes there unasked.",
        (
            f"{C}test_messages.py::test_nothing_that_a_server_names_is_fetched",
            f"{C}test_questions.py::test_pages_that_must_be_visited_first_are_offered_and_the_call_goes_on",
            f"{C}test_questions.py::test_pages_that_are_not_visited_fail_the_call",
            f"{CLI}test_client_terminal.py::test_a_page_is_shown_and_never_opened",
        ),
    ),
    "ROOT-01": Row(
        "M",
        "all",
        "Roots are file:// and declared where they are given; other ones are told in the handshake era.",
        (
            f"{C}test_questions.py::test_a_root_is_a_folder",
            f"{C}test_handshake.py::test_only_given_handlers_are_declared",
            f"{C}test_handshake.py::test_changed_roots_are_notified_in_the_handshake_era",
        ),
    ),
    "TASK-01": Row(
        "M",
        "2025-11-25",
        "Tasks are not declared, and a question that wants one is answered as any other.",
        (
            f"{C}test_messages.py::test_a_question_that_wants_a_task_is_answered_as_any_other",
            f"{C}test_handshake.py::test_only_given_handlers_are_declared",
        ),
    ),
    "EXT-01": Row(
        "M",
        "modern",
        "None is declared unless it is given, by an id with a prefix; a result of one not agreed on is refused.",
        (
            f"{C}test_result_types.py::test_an_extension_has_a_prefix",
            f"{C}test_handshake.py::test_only_given_handlers_are_declared",
            f"{C}test_questions.py::test_results_of_other_kinds_are_not_taken_for_results",
        ),
    ),
    "SCH-01": Row(
        "M",
        "2025-11-25+",
        "2020-12 is the default; a dialect that nobody knows binds nobody and costs no call.",
        (f"{C}test_schemas.py::test_a_schema_is_of_2020_12_unless_it_names_another_dialect",),
    ),
    "SCH-02": Row(
        "M",
        "2025-11-25+",
        "Keywords are passed on as they came.",
        (f"{C}test_schemas.py::test_every_keyword_of_a_schema_is_passed_on_unchanged",),
    ),
    "SCH-03": Row(
        "N",
        "modern",
        "No $ref is fetched.",
        (
            f"{C}test_lists.py::test_a_reference_in_a_schema_is_never_fetched",
            f"{C}test_messages.py::test_nothing_that_a_server_names_is_fetched",
        ),
    ),
    "SCH-04": Row(
        "S",
        "modern",
        "A schema's size, depth, patterns and references are bounded.",
        (
            f"{C}test_schemas.py::test_the_cost_of_an_output_schema_is_bounded",
            f"{C}test_schemas.py::test_a_schema_that_would_take_for_ever_is_not_checked_by",
        ),
    ),
    "AUTH-07": Row(
        "M",
        "all HTTP",
        "A token goes in the header of every request, and nowhere else.",
        (
            f"{H}test_duties.py::test_a_token_is_in_the_header_of_every_request_and_nowhere_else",
            f"{H}test_headers.py::test_credentials_win_over_a_header",
            f"{OAUTH}test_login.py::test_a_bearer_token_is_sent_and_not_shown",
            f"{OAUTH}test_login.py::test_no_server_sees_the_tokens_of_another",
        ),
    ),
    "AUTH-08": Row(
        "M",
        "2025-06-18+",
        "The resource is named to authorize and to get a token.",
        (
            f"{OAUTH}test_login.py::test_a_login_leads_to_a_call",
            f"{OAUTH}test_login.py::test_the_resource_is_named_as_the_metadata_does",
        ),
    ),
    "AUTH-09": Row(
        "M",
        "2025-03-26+",
        "PKCE with S256, and no login where the metadata does not promise it.",
        (
            f"{OAUTH}test_login.py::test_a_login_leads_to_a_call",
            f"{OAUTH}test_login.py::test_without_pkce_there_is_no_login",
        ),
    ),
    "AUTH-10": Row(
        "M",
        "2025-11-25+",
        "A server's metadata is found both ways, an issuer's in all its places in order.",
        (
            f"{OAUTH}test_discovery.py::test_the_metadata_url_of_the_challenge_comes_first",
            f"{OAUTH}test_discovery.py::test_the_metadata_url_at_the_root_comes_last",
            f"{OAUTH}test_discovery.py::test_metadata_urls_of_a_resource_are_requested_in_order",
            f"{OAUTH}test_discovery.py::test_metadata_urls_of_an_issuer_are_requested_in_order",
        ),
    ),
    "AUTH-11": Row(
        "M",
        "modern",
        "Metadata and answers are of the issuer; credentials are kept by issuer.",
        (
            f"{OAUTH}test_login.py::test_the_issuer_of_an_answer_is_checked",
            f"{OAUTH}test_login.py::test_metadata_of_another_issuer_end_the_authorization",
            f"{OAUTH}test_binding.py::test_stored_tokens_of_another_issuer_are_not_used",
            f"{OAUTH}test_renewal.py::test_a_server_that_changes_its_issuer_gets_a_new_login",
            f"{OAUTH}test_binding.py::test_a_second_server_does_not_get_a_persons_client",
        ),
    ),
    "AUTH-12": Row(
        "M",
        "modern",
        "A registration says its application_type.",
        (f"{OAUTH}test_login.py::test_a_registration_describes_the_client",),
    ),
    "AUTH-13": Row(
        "S",
        "2025-11-25+",
        "A document on the web comes before registering; scopes by the challenge; step-up asks for all and ends.",
        (
            f"{OAUTH}test_login.py::test_a_client_metadata_document_comes_before_registration",
            f"{OAUTH}test_login.py::test_the_error_without_registration_says_what_to_give",
            f"{OAUTH}test_renewal.py::test_scopes_come_from_the_challenge",
            f"{OAUTH}test_renewal.py::test_scopes_come_from_the_metadata",
            f"{OAUTH}test_renewal.py::test_a_step_up_requests_the_union_of_scopes",
            f"{OAUTH}test_renewal.py::test_endless_step_ups_are_an_error",
        ),
    ),
    "SEC-04": Row(
        "M",
        "all",
        "Only http(s) addresses are gone to, no shell is used, and no server leads us behind the wall.",
        (
            "tests/http_client/test_pool.py::test_a_malformed_url_is_refused",
            f"{H}test_channel.py::test_no_other_redirect_is_followed",
            f"{C}test_questions.py::test_undeclared_questions_are_refused",
            f"{C}test_starting.py::test_words_that_no_program_can_be_given",
            f"{OAUTH}test_oauth_http.py::test_no_connection_is_made_to_an_internal_address",
            f"{OAUTH}test_oauth_http.py::test_a_name_that_resolves_to_an_internal_address_is_refused",
            f"{OAUTH}test_discovery.py::test_internal_endpoints_in_metadata_end_the_authorization",
        ),
    ),
}

CLIENT_LEFT_OUT: dict[str, str] = {
    "BASE-09": "a client sends no errors in the modern era, for it sends no answers: see MOD-12",
    "BASE-10": "the same",
    "TEXT-06": "tasks are not followed: the extension is declared only by who gives it, and a task is then no result",
    "DEP-01": "only the HTTP+SSE of 2024 is noted; not so roots, on_sample, log_level and registering",
}

CLIENT_REQUIREMENTS: tuple[str, ...] = (
    *(f"BASE-{n:02}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14)),
    *(f"LEG-{n:02}" for n in (1, 3, 4, 5, 6)),
    *(f"MOD-{n:02}" for n in (1, 2, 12, 15)),
    *(f"DUAL-{n:02}" for n in (2, 3, 4, 5)),
    *(f"STD-{n:02}" for n in (1, 4, 5, 6)),
    *(f"HTTP-{n:02}" for n in (3, 5, 11, 12, 16, 22)),
    *(f"HDR-{n:02}" for n in (1, 3, 4, 7, 9)),
    *(f"TOOL-{n:02}" for n in (5, 9)),
    "RES-04",
    "PAG-01",
    "CACHE-03",
    *(f"MRTR-{n:02}" for n in (6, 7)),
    "SUB-05",
    "PROG-01",
    *(f"CAN-{n:02}" for n in (1, 2, 3)),
    "SAMP-01",
    *(f"ELI-{n:02}" for n in (1, 3)),
    "ROOT-01",
    "TASK-01",
    "TEXT-06",
    "EXT-01",
    *(f"SCH-{n:02}" for n in (1, 2, 3, 4)),
    *(f"AUTH-{n:02}" for n in range(7, 14)),
    "SEC-04",
    "DEP-01",
)
