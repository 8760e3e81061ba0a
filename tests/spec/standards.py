"""What was promised about the schemas of tools, and which tests show it.

Two texts stand behind the rows: a house standard for tools that every client accepts (HOUSE), and what the linter, the
views of clients, the forms of schemas, validation and evolution were to do. Rows as in `manifest.py`; `revisions` is
"all" where MCP is not what decides. A rule that a row names is also in the table of all rules, where its good and its
bad example are tried. What is only partly so says so.
"""

from __future__ import annotations

from .manifest import Row

SCHEMA, CLI, REGISTRY = "tests/schema/", "tests/cli/", "tests/registry/"
RULES, BROOKLYN = f"{SCHEMA}lint/test_rules.py", f"{SCHEMA}lint/test_brooklyn.py"
WORDS, SEEN, INFERRED = (f"{SCHEMA}lint/test_{name}.py" for name in ("texts", "view", "inferred"))
LINT, SIGHTS, EVOLVE = f"{CLI}test_lint.py", f"{CLI}test_client_view.py", f"{CLI}test_schema.py"
DECLARED, CHECKED = f"{REGISTRY}test_tool_lint.py", f"{REGISTRY}test_lint_cache.py"
THIRD_PARTY, DISCOVERY = "tests/interop/lint/test_third_party.py", "tests/toolsets/test_discovery.py"
EXPLAIN, VALIDATE = f"{SCHEMA}test_repair.py", f"{SCHEMA}test_validate.py"
RAW, OWN = f"{REGISTRY}test_raw_arguments.py", f"{SCHEMA}lint/test_builtin_server.py"
FORMS = "tests/app/test_forms.py"
INFER, LOWERING = f"{SCHEMA}test_infer.py", f"{SCHEMA}test_client_forms.py"
BAD = f"{RULES}::test_the_bad_example_breaks_the_rule_with_a_short_message"
EDGES = f"{RULES}::test_a_rule_reports_exactly_these_paths_and_levels"
GOOD = f"{RULES}::test_the_good_example_keeps_the_rule_and_every_error_rule_of_its_profiles"
OURS = f"{LINT}::test_the_built_in_server_breaks_no_rule_at_any_level"


def _row(level: str, says: str, *tests: str) -> Row:
    return Row(level, "all", says, tests)


STANDARD_ROWS: dict[str, Row] = {
    # -- the house standard
    "HOUSE-01": _row(
        "M",
        "Tools work with every client, Claude Code first.",
        f"{INFERRED}::test_an_inferred_schema_breaks_no_rule_at_error_level_and_accepts_what_the_types_accept",
        OURS,
    ),
    "HOUSE-03": _row(
        "A",
        "On the wire the field is input_schema. MCP says inputSchema, so both are sent, and only to who asks for it.",
        f"{LOWERING}::test_brooklyn_has_the_schema_under_both_keys",
        f"{FORMS}::test_tools_are_listed_in_the_form_that_was_asked_for",
    ),
    "HOUSE-06": _row(
        "N",
        "No anyOf, oneOf or allOf at the root of an input schema (E04).",
        BAD,
        EDGES,
        f"{SEEN}::test_a_client_loses_a_tool_a_list_or_a_request",
        f"{DECLARED}::test_an_error_is_logged_by_default",
    ),
    "HOUSE-07": _row(
        "S",
        "Instead: optional parameters, the relation in words, checked by the server.",
        GOOD,
        f"{LOWERING}::test_lowering_only_loosens",
    ),
    "HOUSE-08": _row("A", "Inside of a parameter they are fine.", GOOD, EDGES),
    "HOUSE-09": _row(
        "M",
        "A tool has a name, a category, a description and a schema; examples and errors if it likes (B61).",
        f"{BROOKLYN}::test_a_tool_has_a_name_a_description_and_a_category",
        "tests/cli/test_describe.py::test_a_declaration_is_what_the_author_declared",
    ),
    "HOUSE-10": _row(
        "S",
        "A tool with many parameters has examples (B58).",
        f"{BROOKLYN}::test_a_tool_with_many_parameters_has_valid_examples",
    ),
    "HOUSE-11": _row(
        "S",
        "Where one of two parameters is needed, the tool says so and both are optional (B53).",
        f"{BROOKLYN}::test_a_choice_of_two_parameters_is_in_the_description_and_neither_is_required",
        f"{BROOKLYN}::test_the_fix_has_the_sentence_to_write",
    ),
    "HOUSE-12": _row(
        "S",
        "A tool for one of several browsers takes browserId and target (B54).",
        f"{BROOKLYN}::test_a_browser_tool_takes_browser_id_and_target",
    ),
    "HOUSE-13": _row(
        "S",
        "A description begins with an action; vague ones are told (B51).",
        f"{BROOKLYN}::test_a_description_that_begins_with_an_action_is_accepted",
        f"{BROOKLYN}::test_a_description_that_does_not_is_reported_with_the_reason",
    ),
    "HOUSE-14": _row(
        "S",
        "A parameter says what it is for, its unit, its default, its bounds and whether it may be left out (B52, W25).",
        f"{BROOKLYN}::test_a_parameter_says_more_than_its_name_and_its_unit_and_that_it_is_optional",
        f"{WORDS}::test_constraints_that_codex_drops_and_no_description_says_are_reported_and_mended",
    ),
    "HOUSE-15": _row(
        "M",
        "A category is one of those that the server declares (I40).",
        f"{BROOKLYN}::test_a_category_is_kebab_case_and_declared",
        f"{DECLARED}::test_a_server_with_categories_requires_them_of_its_tools",
    ),
    "HOUSE-16": _row(
        "M",
        "Categories are lower-case-with-hyphens, no abbreviations (I40).",
        f"{BROOKLYN}::test_a_category_is_kebab_case_and_declared",
    ),
    "HOUSE-17": _row(
        "D",
        "A screenshot is content-capture.",
        "tests/seeds/brooklyn/test_standards.py::test_the_tools_have_the_standard_categories",
    ),
    "HOUSE-18": _row(
        "S",
        "Types are concrete; any is none (E10, B60).",
        BAD,
        f"{BROOKLYN}::test_an_object_without_properties_and_a_parameter_without_type_are_reported",
    ),
    "HOUSE-19": _row("S", "Closed sets are enums (B55).", f"{BROOKLYN}::test_values_listed_in_words_become_an_enum"),
    "HOUSE-20": _row(
        "S", "Numbers have a minimum and a maximum (B56).", f"{BROOKLYN}::test_a_number_without_bounds_is_reported"
    ),
    "HOUSE-21": _row(
        "S",
        "Objects list their properties (B57).",
        f"{BROOKLYN}::test_an_object_without_properties_and_a_parameter_without_type_are_reported",
    ),
    "HOUSE-22": _row("M", "A test: no tool of ours has a combinator at its root.", OURS),
    "HOUSE-23": _row(
        "M",
        "A test: every schema of ours is a schema by the meta-schema (E13).",
        OURS,
        BAD,
        f"{DECLARED}::test_a_tool_that_mcp_forbids_is_refused_under_warn_and_refuse",
    ),
    "HOUSE-25": _row(
        "M",
        "Definitions are checked at build time, and what is missing is told with the tool's name.",
        f"{BROOKLYN}::test_a_tool_has_a_name_a_description_and_a_category",
        f"{LINT}::test_a_loaded_server_reports_every_refused_tool",
        f"{DECLARED}::test_an_example_that_the_tool_would_refuse_is_refused",
    ),
    "HOUSE-26": _row(
        "S",
        "A schema with combinators moves on: parameters optional, the relation described, checked by the server.",
        f"{LOWERING}::test_relations_are_loosened_but_for_what_only_some_alternatives_describe",
    ),
    "HOUSE-27": _row(
        "S",
        "Input has versions, with functions that bring earlier ones up to date.",
        f"{REGISTRY}test_migrations.py::test_earlier_arguments_are_translated_and_noted",
    ),
    "HOUSE-28": _row(
        "M",
        "Told as mistakes: root combinators, vague descriptions, parameters without context, mixed categories.",
        BAD,
        f"{BROOKLYN}::test_a_description_that_does_not_is_reported_with_the_reason",
        f"{BROOKLYN}::test_a_parameter_says_more_than_its_name_and_its_unit_and_that_it_is_optional",
        f"{BROOKLYN}::test_a_category_is_kebab_case_and_declared",
    ),
    "HOUSE-29": _row(
        "S",
        "Schemas are held against clients in CI.",
        OURS,
        f"{SEEN}::test_each_effect_of_a_client_is_a_finding_of_its_profile",
    ),
    "HOUSE-30": _row(
        "S",
        "What breaks callers is told, and how to move on.",
        f"{EVOLVE}::test_diff_exits_with_1_only_for_a_breaking_change",
    ),
    "HOUSE-31": _row(
        "M",
        "Each mistake has its message and its fix: a combinator, a broken schema, an unknown tool, wrong arguments.",
        BAD,
        f"{DISCOVERY}::test_help_for_an_unknown_tool_names_the_nearest",
        f"{EXPLAIN}::test_every_failure_is_one_precise_line",
    ),
    "HOUSE-32": _row("M", "All tools of ours keep the standard, by a check that fails the build.", OURS),
    # -- the rules
    "RULE-01": _row(
        "M",
        "A rule is data: id, level, profiles, why, evidence, fix, a good and a bad example.",
        f"{RULES}::test_a_rule_has_all_its_texts",
        f"{RULES}::test_no_two_rules_have_one_id",
        f"{SCHEMA}lint/test_page.py::test_the_page_is_what_the_rules_say",
    ),
    "RULE-02": _row(
        "M",
        "Rules of mcp, claude, openai, openai-strict, gemini, vscode, cursor and brooklyn can be chosen apart.",
        f"{RULES}::test_only_findings_of_the_given_profiles_are_reported",
        f"{SCHEMA}lint/test_strict.py::test_strict_mode_gives_the_exact_reason",
    ),
    "RULE-03": _row(
        "M",
        "All rules that were proposed are there.",
        f"{RULES}::test_the_documented_rules_exist",
        BAD,
        GOOD,
    ),
    "RULE-04": _row(
        "M",
        "What is mended keeps the rule and means the same.",
        f"{RULES}::test_a_mended_tool_keeps_the_rule",
        f"{RULES}::test_a_mended_tool_accepts_the_same_values",
        f"{LINT}::test_fix_prints_mended_tools_and_changes_no_file",
    ),
    "RULE-05": _row(
        "M",
        "Examples are held against the tool's own schema (B58).",
        f"{BROOKLYN}::test_a_tool_with_many_parameters_has_valid_examples",
        f"{DECLARED}::test_an_example_that_the_tool_would_refuse_is_refused",
    ),
    "RULE-06": _row(
        "S", "Common errors are declared (B59).", f"{BROOKLYN}::test_a_tool_with_required_parameters_declares_errors"
    ),
    "RULE-07": _row(
        "M",
        "Whatever a server lists can be looked at, and is told shortly.",
        f"{SCHEMA}lint/test_any_input.py::test_linting_and_mending_any_json_value_raises_nothing",
        f"{RULES}::test_findings_in_a_hostile_schema_are_short_and_few",
        f"{RULES}::test_one_rule_reports_at_most_a_limited_number_of_places_of_a_tool",
    ),
    # -- where they hold
    "RUN-01": _row(
        "M",
        "At registration what MCP or Python forbids is refused, with file, line and fix.",
        f"{DECLARED}::test_a_tool_that_mcp_forbids_is_refused_under_warn_and_refuse",
        "tests/process/test_standards.py::test_a_refusal_ends_the_start_each_time_and_names_the_line",
    ),
    "RUN-02": _row(
        "M",
        "What only some client can't take is told in a user's server, and refused in ours.",
        f"{DECLARED}::test_an_error_is_logged_by_default",
        f"{DECLARED}::test_an_error_is_refused_with_place_and_fix_under_refuse",
        f"{OWN}::test_the_built_in_server_refuses_tools_that_break_a_rule",
    ),
    "RUN-03": _row(
        "M",
        "A waiver names the rule and the reason.",
        f"{DECLARED}::test_a_waived_rule_is_not_logged",
        f"{DECLARED}::test_a_waiver_of_an_unknown_rule_or_without_a_reason_is_refused",
        f"{LINT}::test_sarif_has_rules_results_places_and_suppressions",
    ),
    "RUN-04": _row(
        "M",
        "`longshore lint path/to/server.py` tells all that is wrong with a server in Python.",
        f"{LINT}::test_a_loaded_server_reports_every_refused_tool",
        f"{CLI}test_lint_page.py::test_the_page_shows_the_real_output",
    ),
    "RUN-05": _row("M", "`longshore lint` alone checks the built-in server.", OURS),
    "RUN-06": _row(
        "M",
        "`longshore lint -- COMMAND` asks anybody's server.",
        f"{LINT}::test_a_command_is_started_and_its_list_linted_as_it_came",
        f"{THIRD_PARTY}::test_the_command_finds_the_same",
    ),
    "RUN-07": _row("M", "`longshore lint http://…` too.", f"{LINT}::test_a_url_is_linted"),
    "RUN-08": _row(
        "M",
        "It tells as text, JSON, SARIF or Markdown.",
        f"{LINT}::test_text_is_grouped_by_tool_with_the_worst_first",
        f"{LINT}::test_a_terminal_gets_colours_and_lines_of_its_width",
        f"{LINT}::test_json_has_everything",
        f"{LINT}::test_sarif_has_rules_results_places_and_suppressions",
        f"{LINT}::test_markdown_escapes_markup_in_findings",
    ),
    "RUN-09": _row(
        "M",
        "It exits with 0 if clean, 1 for findings at error level, 2 if it could not run.",
        f"{LINT}::test_the_exit_code_follows_level_strict_and_waivers",
        f"{LINT}::test_a_target_that_cant_be_linted_exits_with_2",
    ),
    "RUN-10": _row(
        "M",
        "Mounted servers are linted too.",
        f"{LINT}::test_mounted_servers_are_linted_and_absent_ones_named",
    ),
    "RUN-11": _row("M", "`--explain E04` tells about a rule.", f"{LINT}::test_every_rule_explains_itself"),
    "RUN-12": _row("M", "Our own surface passes at the strictest level.", OURS),
    # -- as each client sees it
    "SEE-01": _row(
        "M",
        "`--as` prints the list as a client hands it to its model.",
        f"{LINT}::test_as_prints_the_list_as_a_client_passes_it",
        f"{SIGHTS}::test_the_text_form_shows_names_effects_and_losses",
        f"{SIGHTS}::test_the_json_form_has_the_list_of_the_request",
        f"{SIGHTS}::test_the_page_shows_what_is_printed",
        f"{OWN}::test_the_built_in_server_keeps_every_rule",
    ),
    "SEE-02": _row(
        "M",
        "Names are those after prefixing, replacing and cutting.",
        f"{SEEN}::test_the_name_that_the_model_calls",
        f"{SEEN}::test_codex_cuts_a_name_and_appends_a_hash",
    ),
    "SEE-03": _row("M", "Descriptions and instructions are cut as the client cuts.", f"{SEEN}::test_claude_cuts_texts"),
    "SEE-04": _row(
        "M",
        "Keywords that a client drops or changes are dropped or changed.",
        f"{SEEN}::test_a_client_changes_a_schema",
        f"{SEEN}::test_codex_passes_a_combinator_at_the_root",
    ),
    "SEE-05": _row(
        "M",
        "What is lost is told with its reason.",
        f"{SEEN}::test_a_client_loses_a_tool_a_list_or_a_request",
        f"{SEEN}::test_tools_beyond_the_limit_are_lost_or_refused",
        f"{SEEN}::test_the_first_of_two_tools_with_one_name_wins",
    ),
    "SEE-06": _row("M", "The list has a token count.", f"{SEEN}::test_a_token_is_four_characters_of_the_json"),
    "SEE-07": _row(
        "M",
        "The rules and the views say the same.",
        f"{SEEN}::test_each_effect_of_a_client_is_a_finding_of_its_profile",
        f"{SEEN}::test_a_tool_that_breaks_an_error_rule_of_a_client_is_lost_there",
    ),
    # -- the form of schemas
    "LOW-01": _row(
        "M", "What is inferred has no needless title.", f"{INFER}::test_the_whole_schema_of_an_ordinary_tool"
    ),
    "LOW-02": _row(
        "M", "References are inlined unless they recur.", f"{INFER}::test_only_recursive_models_are_referenced"
    ),
    "LOW-03": _row("M", "Anything is {}, never true.", f"{INFER}::test_the_schema_of_a_type"),
    "LOW-04": _row(
        "M",
        "What may be None is a plain type that may be left out.",
        f"{INFER}::test_optional_with_default_none_is_a_plain_type_that_may_be_left_out",
        f"{INFER}::test_optional_without_a_default_keeps_its_null",
    ),
    "LOW-05": _row(
        "M",
        "An author's schema goes out unchanged.",
        f"{FORMS}::test_an_authors_schema_goes_out_as_it_was_written",
    ),
    "LOW-06": _row(
        "M",
        "The operator can choose a form for one kind of client, for both.",
        f"{FORMS}::test_tools_are_listed_in_the_form_that_was_asked_for",
        f"{LOWERING}::test_the_configuration_knows_the_same_forms",
        f"{LOWERING}::test_claude_gets_no_relations_at_the_root_and_no_booleans",
        f"{LOWERING}::test_openai_gets_items_and_properties",
        f"{LOWERING}::test_gemini_gets_one_type_and_nothing_that_it_has_no_field_for",
        f"{LOWERING}::test_strict_mode_requires_all_and_takes_null_for_what_may_be_left_out",
        f"{LOWERING}::test_each_form_keeps_the_rules_of_its_own_client",
    ),
    "LOW-07": _row(
        "N",
        "No form is guessed from what a client calls itself.",
        "tests/app/test_who_asks.py::test_the_name_of_a_client_changes_no_list",
    ),
    "LOW-08": _row(
        "M",
        "The server always validates against the author's own.",
        f"{FORMS}::test_arguments_are_checked_against_the_authors_schema",
    ),
    # -- validation
    "VAL-01": _row(
        "M",
        "Typed tools are checked by their types.",
        f"{SCHEMA}test_properties.py::test_schema_and_decoder_agree_on_random_json",
    ),
    "VAL-02": _row(
        "M",
        "An author's schema is one of 2020-12, or of draft 7 where it says so.",
        f"{VALIDATE}::test_known_dialects_are_honoured",
        f"{RAW}::test_an_invalid_value_always_has_a_line",
    ),
    "VAL-03": _row(
        "M",
        "Size, depth and time have budgets.",
        f"{VALIDATE}::test_size_is_limited_at_its_edge",
        f"{VALIDATE}::test_depth_is_limited_at_its_edge",
        f"{VALIDATE}::test_evil_patterns_end",
        f"{SCHEMA}test_patterns.py::test_a_text_that_re_would_never_end_on_is_refused_wherever_it_stands",
        f"{RAW}::test_a_schema_that_would_take_for_ever_is_refused_unless_that_is_waived",
        f"{DECLARED}::test_an_unbounded_schema_is_refused_at_registration",
        f"{CLI}test_arguments.py::test_a_schema_that_is_too_costly_is_not_checked",
        f"{RAW}::test_all_violations_of_an_ordinary_value_are_listed_and_one_of_a_large_one",
    ),
    "VAL-04": _row(
        "N",
        "Nothing is fetched.",
        f"{VALIDATE}::test_no_reference_is_ever_fetched",
        f"{VALIDATE}::test_a_metaschema_is_not_fetched_either",
    ),
    "VAL-05": _row(
        "M",
        "A problem is one line: where, what was expected, what came, the nearest value that is allowed.",
        f"{EXPLAIN}::test_every_failure_is_one_precise_line",
        f"{EXPLAIN}::test_the_nearest_name_is_suggested",
        f"{VALIDATE}::test_each_failure_is_one_plain_line",
        f"{RAW}::test_typed_and_raw_tools_list_the_same_violations",
    ),
    "VAL-06": _row("M", "All problems are told at once.", f"{EXPLAIN}::test_all_violations_are_listed_at_once"),
    "VAL-07": _row(
        "M",
        "JSON in a string is read where an object or an array is wanted, and that is noted.",
        f"{EXPLAIN}::test_json_inside_a_string_is_taken_where_no_string_can_be_meant",
        f"{RAW}::test_other_violations_are_listed_at_once_one_line_each",
    ),
    "VAL-08": _row(
        "N",
        "Not where a string is allowed.",
        f"{EXPLAIN}::test_json_inside_a_string_is_taken_where_no_string_can_be_meant",
        f"{RAW}::test_arguments_with_a_plain_meaning_are_repaired_and_noted",
        f"{RAW}::test_repairs_are_in_the_result_and_in_the_log",
    ),
    # -- evolution
    "EVO-01": _row(
        "M",
        "A tool declares earlier versions of its input with a function that brings them up to date.",
        f"{REGISTRY}test_migrations.py::test_earlier_arguments_are_translated_and_noted",
        f"{REGISTRY}test_migrations.py::test_a_migration_must_return_valid_arguments",
        f"{REGISTRY}test_migrations.py::test_an_exception_of_a_migration_is_masked_as_the_tools_own",
        f"{RAW}::test_a_repair_accepts_nothing_that_the_schema_forbids",
    ),
    "EVO-02": _row(
        "M",
        "A renamed tool answers to the names that it had, and no list shows them.",
        f"{REGISTRY}test_aliases.py::test_the_old_name_can_be_called_and_the_result_says_the_new_one",
        f"{REGISTRY}test_aliases.py::test_names_that_two_tools_would_answer_to_are_refused",
        f"{REGISTRY}test_migrations.py::test_no_list_shows_an_old_name",
    ),
    "EVO-03": _row(
        "M",
        "So does a renamed parameter.",
        f"{REGISTRY}test_migrations.py::test_an_old_name_is_taken_for_the_new_one_and_noted",
    ),
    "EVO-04": _row(
        "M",
        "`longshore schema diff OLD NEW` says which changes break callers.",
        f"{EVOLVE}::test_diff_exits_with_1_only_for_a_breaking_change",
        f"{SCHEMA}diff/test_compatibility.py::test_without_a_reported_change_every_old_value_is_still_valid",
    ),
    "EVO-05": _row(
        "M",
        "`longshore schema snapshot --check` pins the surface.",
        f"{EVOLVE}::test_a_snapshot_is_checked",
        f"{EVOLVE}::test_any_change_fails_a_check_even_a_harmless_one",
        "tests/toolsets/test_reference.py::test_the_surface_is_the_one_that_is_kept",
    ),
    # -- help
    "HELP-01": _row(
        "M",
        "`tool_help` serves long help, examples, errors and category, and no list does.",
        f"{DISCOVERY}::test_the_long_help_is_in_tool_help_only",
        f"{DISCOVERY}::test_the_help_of_a_tool_says_what_it_takes_gives_and_how_it_fails",
    ),
    "HELP-02": _row(
        "M",
        "`list_tools` serves categories, and stays short.",
        f"{DISCOVERY}::test_the_list_has_a_line_for_each_tool_with_its_category_and_first_sentence",
        f"{DISCOVERY}::test_the_list_of_the_built_in_tools_costs_few_tokens",
    ),
    # -- figures, and what shows all this
    "FIG-02": _row(
        "M",
        "A server whose tools were checked before loads nothing of the linter.",
        "tests/process/test_standards.py::test_each_start_logs_and_the_second_imports_no_rule",
        f"{CHECKED}::test_a_cached_result_is_returned_without_linting",
        f"{CHECKED}::test_a_different_tool_or_server_is_linted",
    ),
    "FIG-05": _row(
        "M",
        "The required cases of the JSON Schema Test Suite, 2020-12, pass through our own way to validate.",
        f"{SCHEMA}test_suite.py::test_every_required_case_passes",
    ),
    "SHOW-01": _row(
        "M", "A table test for each rule: good, bad, mended.", BAD, GOOD, f"{RULES}::test_a_mended_tool_keeps_the_rule"
    ),
    "SHOW-02": _row(
        "M",
        "The linter over the real lists of four servers of others, its findings kept and explained.",
        f"{THIRD_PARTY}::test_a_server_lists_the_recorded_tools",
        f"{THIRD_PARTY}::test_the_findings_are_the_recorded_ones",
        f"{THIRD_PARTY}::test_every_finding_is_explained",
    ),
    "SHOW-03": _row(
        "M",
        "Whatever is inferred passes every rule at error level, and takes what the types take.",
        f"{INFERRED}::test_an_inferred_schema_breaks_no_rule_at_error_level_and_accepts_what_the_types_accept",
        f"{SCHEMA}test_properties.py::test_an_encoded_value_decodes_again_and_matches_the_schema",
    ),
}

STANDARD_LEFT_OUT: dict[str, str] = {
    "HOUSE-02": "in our code the field is Python's input_schema, on the wire MCP's inputSchema; one place knows both",
    "HOUSE-04": "the form of a list is the same over every transport, so there is nothing to rewrite for one of them",
    "HOUSE-05": "tests and pages assert the name that MCP has, for input_schema alone would be found by no client",
    "HOUSE-24": "a check by hand with a client; what the client does was measured, and `--as claude` shows it",
    "FIG-01": "a ratio of times, measured by benchmarks/registration.py; no test asserts times",
    "FIG-03": "a ratio of times, measured by benchmarks/validation.py; no test asserts times",
    "FIG-04": "the same",
    "HOUSE-33": "who owns the standard, and when it is reviewed, is no behaviour",
}
STATEMENTS = {"HOUSE": 33, "RULE": 7, "RUN": 12, "SEE": 7, "LOW": 8, "VAL": 8, "EVO": 5, "HELP": 2, "FIG": 5, "SHOW": 3}
"""How many statements there are on each subject."""
STANDARD_REQUIREMENTS = [f"{subject}-{n:02}" for subject, most in STATEMENTS.items() for n in range(1, most + 1)]
