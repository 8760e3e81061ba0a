"""What Brooklyn's two documents say (S-1 to S-30, S-85 to S-121), and which tests show it.

Rows as in `manifest.py`. Levels: M must, S should, Y may, D is described so, X an example. Where a statement is the
origin of a HOUSE row in `standards.py`, that row's tests are named here too. `docs/seeds.md` has the reasons for the
others.
"""

from __future__ import annotations

from .manifest import Row
from .standards import STANDARD_ROWS

FOLDER = "tests/seeds/brooklyn"


def _row(level: str, says: str, *tests: str, house: str = "") -> Row:
    """The tests are named `file::test` below the folder of the documents, those of `test_document.py` without a file.

    `house` is the number of a HOUSE row, whose tests show the statement for every server.
    """
    named = (test if "::" in test else f"test_document.py::{test}" for test in tests)
    every = STANDARD_ROWS[f"HOUSE-{house}"].tests if house else ()
    return Row(level, "all", says, (*(f"{FOLDER}/{test}" for test in named), *every))


_S = "test_standards.py::"
_LAUNCH = "test_a_browser_is_launched_as_the_document_shows"
_PIPE = "test_the_piped_line_of_the_document_is_answered_and_logs_go_to_stderr"
_FAILED = "test_a_failed_tool_is_the_error_of_the_document"
_CONTENT = "test_each_kind_of_content_is_as_the_document_shows"
_SCREENSHOT = "test_a_screenshot_is_text_an_image_and_a_link_that_can_be_read"
_MESSAGES = "test_malformed_messages_have_the_codes_of_json_rpc"
_HANDSHAKE = "test_a_handshake_gets_mcp"
_BARE_POST = "test_http.py::test_a_bare_post_is_answered_in_the_form_of_the_document_and_begins_no_session"
_LENIENT = "test_http.py::test_headers_may_be_missing_where_nothing_depends_on_them"
_LISTS = "test_http.py::test_lists_have_the_key_of_the_document"
_REST = "test_http.py::test_the_rest_endpoint_shows_the_key_of_mcp"
_PROTOCOL = "test_commands.py::test_the_protocol_of_our_server_is_as_the_document_says"
_SCHEMAS = "test_commands.py::test_the_schemas_of_our_server_break_no_rule"
_MISTAKES = "test_commands.py::test_each_mistake_of_the_document_is_found_in_a_server_that_makes_it"
_BAD_SCHEMAS = "test_commands.py::test_each_bad_schema_is_found_in_a_server_that_lists_it"
_HOSTILE = "test_hostile.py::test_every_hostile_frame_gets_its_one_answer_and_the_process_lives"

_KEY = f"{_S}test_the_list_has_the_fields_of_a_tool_definition_with_the_key_of_the_wire"
_INSIDE = f"{_S}test_within_the_server_the_key_is_that_of_mcp"
_ROOT = f"{_S}test_a_combinator_at_the_root_is_an_error"
_ALTERNATIVES = f"{_S}test_the_alternatives_of_the_document_break_no_rule_at_error_level"
_EITHER = f"{_S}test_a_choice_that_is_not_made_is_refused_by_the_server_in_its_words"
_TIMEOUT = f"{_S}test_a_timeout_has_the_unit_default_and_bounds_of_the_document"
_DESCRIPTIONS = f"{_S}test_descriptions_are_held_to_the_examples_of_the_document"
_CONTEXT = f"{_S}test_a_parameter_without_context_is_reported"
_CATEGORIES = f"{_S}test_categories_are_held_to_the_examples_of_the_document"
_OURS = f"{_S}test_the_tools_have_the_standard_categories"
_TEST = f"{_S}test_the_test_of_the_document_passes_for_our_tools"

BROOKLYN_ROWS: dict[str, Row] = {
    "S-2": _row("M", "A call has a name, arguments and an id.", _LAUNCH),
    "S-3": _row("M", "A success has content, whose item is text with JSON in it.", _LAUNCH),
    "S-4": _row(
        "M", "The tool's object as the result is wrong.", "test_the_tools_own_object_is_never_the_result", _MISTAKES
    ),
    "S-5": _row("M", "Every response of a tool is wrapped in content.", _LAUNCH, _BARE_POST),
    "S-6": _row("M", "Every item of content has a type.", _LAUNCH, _CONTENT),
    "S-7": _row(
        "S",
        "An object becomes JSON in the text.",
        "test_an_object_becomes_the_content_that_the_documents_function_makes",
        _LAUNCH,
    ),
    "S-8": _row("D", "A text has type and text.", _CONTENT, _LAUNCH),
    "S-9": _row("D", "A resource link has uri, name, mimeType and description.", _CONTENT, _SCREENSHOT),
    "S-10": _row("D", "An image has base64 data and a mimeType.", _CONTENT, _SCREENSHOT),
    "S-11": _row(
        "M",
        "stdio has the exact form of MCP.",
        _MESSAGES,
        _HANDSHAKE,
        _HOSTILE,
        "test_a_notification_is_not_answered",
        "test_the_rest_of_mcp_is_there_without_a_handshake",
        "test_clients.py::test_the_official_client_calls_the_tools_by_both_names",
    ),
    "S-12": _row(
        "M",
        "Logs go to stderr, never to stdout.",
        _PIPE,
        "test_nothing_but_messages_goes_to_stdout_and_nothing_unasked",
        _MISTAKES,
    ),
    "S-13": _row(
        "M",
        "A message is a line.",
        "test_lines_may_come_in_pieces_and_several_at_once",
        "test_hostile.py::test_hostile_frames_may_all_come_at_once",
        "test_http.py::test_lines_are_answered_in_the_form_of_the_document",
    ),
    "S-14": _row("M", "stdio wraps results in content.", _LAUNCH),
    "S-15": _row("S", "HTTP has the same form.", _BARE_POST),
    "S-16": _row("Y", "HTTP may be more lenient.", _LENIENT),
    "S-17": _row(
        "M",
        "HTTP wraps results in content.",
        _BARE_POST,
        "test_http.py::test_the_failures_of_a_tool_are_the_error_of_the_document_over_http_too",
    ),
    "S-18": _row(
        "M",
        "One function makes content of what tools return.",
        "test_an_object_becomes_the_content_that_the_documents_function_makes",
    ),
    "S-19": _row(
        "M",
        "A failed tool is -32603 with toolName and error.",
        _FAILED,
        "test_every_failure_of_a_tool_that_ran_is_the_documents_error",
        "test_http.py::test_the_failures_of_a_tool_are_the_error_of_the_document_over_http_too",
        _MISTAKES,
    ),
    "S-20": _row("X", "A line piped into the command is answered, without initialize.", _PIPE),
    "S-21": _row(
        "D",
        "brooklyn mcp start, with --log-level.",
        _PIPE,
        "test_profile_and_command_are_one",
        "test_commands.py::test_mcp_start_reaches_stdio_without_the_library_of_the_command_line",
    ),
    "S-22": _row("S", "A check of the schemas exists.", _SCHEMAS, _BAD_SCHEMAS),
    "S-23": _row("S", "A check of the protocol exists, and looks at content.", _PROTOCOL, _MISTAKES),
    "S-24": _row("M", "A mistake: no content.", _LAUNCH, "test_the_tools_own_object_is_never_the_result", _MISTAKES),
    "S-25": _row("M", "A mistake: a text of another type.", _LAUNCH),
    "S-26": _row(
        "M", "A mistake: changing what has MCP's form.", "test_a_result_that_has_the_form_of_mcp_is_not_changed"
    ),
    "S-27": _row(
        "D",
        "Before 1.4.34 results were raw; since then both transports have content.",
        _LAUNCH,
        _BARE_POST,
        "test_pages.py::test_the_former_form_is_a_note_for_debugging",
    ),
    "S-29": _row("D", "stdio is strict, HTTP may forgive.", _MESSAGES, _HOSTILE, _LENIENT),
    "S-30": _row(
        "D",
        "launch_browser takes headless and browserType; brooklyn_status takes nothing.",
        _LAUNCH,
        _PIPE,
        "test_the_status_says_whether_the_server_works",
    ),
    "S-86": _row("M", "Within the server the key is inputSchema.", _INSIDE, _HANDSHAKE),
    "S-87": _row("M", "On the wire it is input_schema.", _KEY, _HANDSHAKE, _LISTS, house="03"),
    "S-88": _row("M", "HTTP changes it before it sends.", _LISTS),
    "S-89": _row("Y", "REST may show inputSchema, MCP not.", _REST),
    "S-90": _row("M", "Nothing within is renamed.", _INSIDE, _REST),
    "S-91": _row("M", "The key is changed at the border of the transport.", _INSIDE),
    "S-92": _row("S", "Tests of the wire assert input_schema.", _KEY, _LISTS),
    "S-93": _row("M", "No combinators at the root of an input schema.", _ROOT, _BAD_SCHEMAS, house="06"),
    "S-94": _row("S", "Instead: optional, described, checked by the server.", _ALTERNATIVES, _EITHER, house="07"),
    "S-95": _row("Y", "Within a property they are allowed.", _ALTERNATIVES, house="08"),
    "S-96": _row(
        "M", "A tool has a name, a category, a description and a schema; maybe examples and errors.", _KEY, house="09"
    ),
    "S-97": _row("S", "Examples are recommended.", house="10"),
    "S-98": _row(
        "S", "Where one of two is needed, the description says so and both are optional.", _EITHER, house="11"
    ),
    "S-99": _row(
        "S",
        "Browsers are chosen by browserId and target.",
        f"{_S}test_browsers_are_chosen_by_the_pattern_of_the_document",
        f"{_S}test_a_browser_id_that_is_unknown_is_resolved_by_the_target",
        house="12",
    ),
    "S-100": _row("S", "Descriptions begin with an action.", _DESCRIPTIONS, house="13"),
    "S-101": _row(
        "S", "Parameters say what for, the unit, the default and the bounds.", _TIMEOUT, _CONTEXT, house="14"
    ),
    "S-102": _row("M", "There are five standard categories.", _OURS, house="15"),
    "S-103": _row("M", "Categories are lower-case with hyphens.", _CATEGORIES, _OURS, house="16"),
    "S-104": _row("D", "take_screenshot is in content-capture.", _OURS),
    "S-105": _row("S", "Types are concrete.", f"{_S}test_a_type_that_is_none_is_an_error", house="18"),
    "S-106": _row(
        "S",
        "Closed sets are enums, such as browserType.",
        f"{_S}test_a_closed_set_is_the_enum_of_the_document",
        f"{_S}test_an_engine_that_is_not_there_is_refused_with_what_is",
        house="19",
    ),
    "S-107": _row("S", "Numbers have bounds.", f"{_S}test_a_number_has_the_bounds_of_the_document", house="20"),
    "S-108": _row(
        "S",
        "Objects list their properties with defaults.",
        f"{_S}test_an_object_lists_its_properties_with_the_defaults_of_the_document",
        house="21",
    ),
    "S-109": _row("M", "A test: no tool has a combinator at its root.", _TEST, house="22"),
    "S-110": _row("M", "A test: every schema is valid by the meta-schema.", _TEST, house="23"),
    "S-112": _row("M", "Tools are validated at build time: name, category, description, schema, examples.", house="25"),
    "S-113": _row("S", "How a schema with combinators moves on.", _EITHER, _ALTERNATIVES, house="26"),
    "S-114": _row("S", "Schemas have versions, and handlers for earlier ones.", house="27"),
    "S-115": _row(
        "M",
        "Root combinators, vague descriptions, parameters without context and mixed categories are reported.",
        _ROOT,
        _DESCRIPTIONS,
        _CONTEXT,
        _CATEGORIES,
        house="28",
    ),
    "S-116": _row("S", "Schemas are tested in CI.", _TEST, _SCHEMAS, house="29"),
    "S-117": _row("S", "What breaks callers is documented, with the way on.", house="30"),
    "S-118": _row("M", "input_schema on the wire, inputSchema within.", _KEY, _INSIDE),
    "S-119": _row("D", "Each mistake has its message and its solution.", _MISTAKES, _BAD_SCHEMAS, house="31"),
    "S-120": _row("M", "All tools keep the standard, enforced at build and in CI.", _SCHEMAS, _PROTOCOL, house="32"),
}
BROOKLYN_LEFT_OUT: dict[str, str] = {
    "S-1": "names MCP's specification as the authority; its own suite is run beside this dialect, too",
    "S-28": "names other servers as patterns",
    "S-85": "what the standards are for; each of them has its test",
    "S-111": "its first line builds Brooklyn with bun; those with claude are in tests/interop/test_claude_code.py",
    "S-121": "who reviews the document, and when",
}
BROOKLYN_REQUIREMENTS = [f"S-{n}" for n in (*range(1, 31), *range(85, 122))]
