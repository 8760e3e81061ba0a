"""What the specification demands of a server on stdio, and which tests show that we do it.

Ids and wording follow the project's checklist of all five revisions; a row is one line of it that binds a server (or
both sides). Rows about HTTP, authorization and extensions come with those. Levels: M must, N must not, S should,
X should not, A may. A requirement that can't be shown yet, or does not apply, stands in LEFT_OUT with its reason.
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
QUESTIONS, INTEROP, HOSTILE, SCHEMA = "tests/questions/", "tests/interop/", "tests/hostile/", "tests/schema/"

ROWS: dict[str, Row] = {
    "BASE-01": Row(
        "M",
        "all",
        'Messages are UTF-8 JSON with jsonrpc "2.0"; params are an object.',
        (
            f"{WIRE}test_hostile_frames.py::test_a_hostile_frame_in_a_session_gets_its_one_answer",
            f"{WIRE}test_json_grammar.py::test_what_is_no_json_is_a_parse_error",
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
            f"{SERVER}test_exactly_once.py::test_a_storm_of_cancels_against_threads_that_are_just_ending_loses_and_doubles_nothing",
        ),
    ),
    "BASE-06": Row(
        "N",
        "all",
        "A notification is never answered.",
        (
            f"{HOSTILE}test_live.py::test_a_flood_of_ten_thousand_is_answered_and_not_kept",
            f"{T}methods_legacy.txt",
        ),
    ),
    "BASE-07": Row("M", "2025-03-26", "Batches are taken; initialize is not part of one.", (f"{T}batches.txt",)),
    "BASE-08": Row("M", "2025-06-18+", "One message a line; arrays are refused.", (f"{T}batches_elsewhere.txt",)),
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
            f"{PROCESS}test_limits.py::test_a_tool_is_stopped_after_its_own_timeout",
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
    "MOD-03": Row("M", "modern", "A missing envelope is -32602.", (f"{T}envelope.txt",)),
    "MOD-04": Row("M", "modern", "Requests without clientInfo are taken.", (f"{T}envelope.txt",)),
    "MOD-05": Row(
        "M", "modern", "An unsupported version is -32022 with supported and requested.", (f"{T}envelope.txt",)
    ),
    "MOD-06": Row(
        "M",
        "modern",
        "A needed but undeclared capability is -32021 with requiredCapabilities.",
        (
            f"{T}questions_without_capability.txt",
            f"{QUESTIONS}test_parameters.py::test_a_missing_capability_is_named_to_a_modern_client",
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
            f"{QUESTIONS}test_state.py::test_a_state_comes_back_on_another_connection_of_the_same_principal",
            f"{T}envelope.txt",
        ),
    ),
    "MOD-10": Row(
        "N",
        "modern",
        "Lists do not vary by connection or as a side effect.",
        (
            f"{APP}test_tool_options.py::test_tools_are_listed_in_the_order_in_which_they_were_declared",
            f"{SERVER}test_engine.py::test_two_links_with_the_same_ids_do_not_meet",
        ),
    ),
    "MOD-11": Row(
        "N",
        "modern",
        "The server never sends a request.",
        (f"{QUESTIONS}test_state.py::test_a_modern_client_is_never_sent_a_request",),
    ),
    "MOD-13": Row("M", "modern", "An unknown or removed method is -32601.", (f"{T}methods_modern.txt",)),
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
        "Both eras on one process: an envelope is modern, initialize is legacy.",
        (
            f"{T}envelope.txt",
            f"{INTEROP}test_tools.py::test_the_client_connects_and_learns_who_we_are",
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
            f"{PROCESS}test_stdout.py::test_what_a_tool_writes_to_stdout_goes_to_stderr",
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
            f"{REGISTRY}test_mistakes.py::test_a_second_tool_of_a_name_is_told_where_the_first_is",
        ),
    ),
    "TOOL-10": Row(
        "M",
        "all",
        "Inputs are validated, work is bounded, outputs are checked.",
        (
            f"{APP}test_raw.py::test_arguments_that_break_the_schema_never_reach_the_handler",
            f"{PROCESS}test_limits.py::test_so_many_run_so_many_wait_and_the_next_is_refused",
            f"{HOSTILE}test_live.py::test_what_an_exception_says_never_reaches_the_client",
        ),
    ),
    "TOOL-11": Row(
        "S",
        "all",
        "list_changed goes out when the list changes.",
        (
            f"{T}changes_legacy.txt",
            f"{APP}test_context.py::test_a_thread_adds_and_removes_tools_and_the_client_is_told",
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
        (f"{APP}test_resources.py::test_a_uri_that_names_nothing_is_not_found_and_reaches_nobody",),
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
            f"{APP}test_completions.py::test_at_most_a_hundred_values_go_out_and_the_total_is_told",
            f"{APP}test_completions.py::test_completion_is_declared_where_there_is_something_to_complete",
        ),
    ),
    "CMP-02": Row(
        "M",
        "all",
        "Completion requests are validated and bounded.",
        (f"{APP}test_completions.py::test_what_can_not_be_completed_is_an_invalid_parameter",),
    ),
    "LOG-01": Row("M", "all", "logging is declared where messages are sent.", (f"{T}logging.txt",)),
    "LOG-02": Row(
        "N",
        "modern",
        "No message without a logLevel in that request; none on a listen.",
        (
            f"{APP}test_context.py::test_the_modern_era_hears_what_each_request_asks_for",
            f"{T}logging.txt",
        ),
    ),
    "LOG-03": Row("S", "all", "An unknown level is -32602.", (f"{T}logging.txt",)),
    "LOG-04": Row(
        "N",
        "all",
        "No secrets in log messages of ours.",
        (f"{HOSTILE}test_live.py::test_what_an_exception_says_never_reaches_the_client",),
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
            f"{APP}test_resources.py::test_a_read_may_be_kept_for_max_age_in_the_modern_era",
        ),
    ),
    "CACHE-02": Row(
        "M",
        "modern",
        "All pages of a list have one cacheScope.",
        (f"{APP}test_pages.py::test_every_page_of_the_modern_era_carries_the_same_cache_scope",),
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
        (f"{QUESTIONS}test_state.py::test_a_round_says_what_it_is_and_who_asks",),
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
            f"{QUESTIONS}test_state.py::test_a_state_with_any_byte_changed_is_refused",
            f"{T}questions_modern.txt",
        ),
    ),
    "MRTR-05": Row(
        "S",
        "modern",
        "It is bound to principal, expiry and request; missing answers are asked again.",
        (
            f"{QUESTIONS}test_state.py::test_a_state_of_another_principal_is_refused",
            f"{QUESTIONS}test_state.py::test_a_state_of_other_arguments_is_refused",
            f"{QUESTIONS}test_state.py::test_a_state_lives_ten_minutes",
            f"{QUESTIONS}test_state.py::test_a_missing_answer_is_asked_for_again_and_the_others_are_kept",
            f"{QUESTIONS}test_state.py::test_answers_to_what_nobody_asked_are_ignored",
        ),
    ),
    "SUB-01": Row(
        "M",
        "modern",
        "A listen is acknowledged first, with what is honoured.",
        (
            f"{T}listen.txt",
            f"{T}listen_bare.txt",
        ),
    ),
    "SUB-02": Row(
        "M", "modern", "Every message of a listen carries its id.", (f"{T}listen.txt", f"{T}listen_updates.txt")
    ),
    "SUB-03": Row(
        "N",
        "modern",
        "No kinds that were not asked for.",
        (
            f"{T}listen.txt",
            f"{SERVER}test_engine.py::test_every_link_hears_of_a_changed_list_and_each_listen_once",
        ),
    ),
    "SUB-04": Row(
        "S",
        "modern",
        "A listen that we end gets its result first.",
        (
            f"{SERVER}test_engine.py::test_listens_that_we_end_get_their_result_and_then_a_cancel",
            f"{PROCESS}test_end_of_input.py::test_a_listen_gets_its_final_result",
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
            f"{QUESTIONS}test_waiting.py::test_answers_that_nobody_waits_for_are_ignored",
        ),
    ),
    "CAN-02": Row(
        "S",
        "legacy",
        "A cancelled call stops and is not answered.",
        (
            f"{T}cancellation.txt",
            f"{APP}test_context.py::test_a_cancelled_def_learns_of_it_and_nothing_is_sent",
            f"{INTEROP}test_features.py::test_a_cancelled_call_is_stopped_and_never_answered",
        ),
    ),
    "CAN-04": Row(
        "N",
        "modern",
        "We send cancelled only for listens.",
        (
            f"{SERVER}test_engine.py::test_listens_that_we_end_get_their_result_and_then_a_cancel",
            f"{QUESTIONS}test_state.py::test_a_modern_client_is_never_sent_a_request",
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
            f"{QUESTIONS}test_waiting.py::test_a_call_whose_client_goes_away_is_still_answered",
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
    "SEC-02": Row(
        "N",
        "modern",
        "A state is no authentication: it is signed and bound.",
        (
            f"{QUESTIONS}test_state.py::test_a_state_of_another_principal_is_refused",
            f"{QUESTIONS}test_state.py::test_a_state_of_another_server_is_refused",
        ),
    ),
    "DEP-01": Row(
        "S",
        "modern",
        "Use of what is deprecated is noted.",
        (f"{QUESTIONS}test_sampling.py::test_what_the_protocol_deprecates_is_noted_once_for_whoever_runs_the_server",),
    ),
}

LEFT_OUT: dict[str, str] = {
    "STD-06": "there is no OAuth on stdio; it has nothing to show",
    "ELI-04": "who opens a URL is known to the author's web page, not to us; docs/questions.md says what to check",
    "SEC-01": "sessions with ids come with HTTP; on stdio the process is the session",
    "SEC-03": "there is no proxy to another authorization server",
}

REQUIREMENTS: tuple[str, ...] = (
    *(f"BASE-{n:02}" for n in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 13, 14)),
    *(f"LEG-{n:02}" for n in (2, 3, 4, 5)),
    *(f"MOD-{n:02}" for n in (3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15)),
    "DUAL-01",
    *(f"STD-{n:02}" for n in (1, 2, 3, 6)),
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
    *(f"SEC-{n:02}" for n in (1, 2, 3)),
    "DEP-01",
)
