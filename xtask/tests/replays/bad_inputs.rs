//! All known bad inputs by number, and the tests for their handling.
//!
//! No data is lost, nothing hangs, access control holds, and the error message contains the
//! location and the remedy. A new bad input needs a row and a test. A renamed test must be renamed
//! here too.

use super::known::tests;

/// Number, input, tests. Tests are Rust function names or browser test titles.
const ROWS: &[(u32, &str, &[&str])] = &[
    (
        1,
        "empty files",
        &["invalid_length_files_are_rejected_and_not_stored", "invalid_traces_are_rejected_and_not_stored"],
    ),
    (
        2,
        "a picture named .json",
        &["invalid_length_files_are_rejected_and_not_stored", "non_logs_are_rejected_by_name"],
    ),
    (
        3,
        "gzip that breaks off",
        &["truncated_gzip_stream_retains_its_start", "a_file_that_breaks_off_is_read_as_far_as_it_goes"],
    ),
    (4, "gzip bombs", &["a_budget_holds", "uploads_have_a_size", "files_are_read_in_turn"]),
    (5, "archives with paths", &["invalid_traces_are_rejected_and_not_stored"]),
    (6, "JSON nested 100,000 deep", &["deep_nesting_is_an_error_and_not_a_crash", "nesting_is_limited"]),
    (7, "NaN and infinities in JSON", &["unquoted_text_is_quoted_and_strings_are_unchanged", "trainer_state"]),
    (8, "control characters in JSON strings", &["names_are_repaired_and_bounded"]),
    (9, "invalid UTF-8, lone surrogates", &["names_are_repaired_and_bounded", "common_syntax_mistakes_are_repaired"]),
    (10, "byte order marks, UTF-16", &["non_logs_are_rejected_by_name", "invalid_traces_are_rejected_and_not_stored"]),
    (11, "bare and unclosed arrays of events", &["arrays_may_be_bare_unclosed_and_badly_separated"]),
    (12, "traceEvents missing or no list", &["invalid_traces_are_rejected_and_not_stored"]),
    (13, "times as strings with nanoseconds", &["microseconds_keep_their_nanoseconds"]),
    (14, "times that are none", &["times_that_are_none_cost_their_event_only"]),
    (15, "durations that are none", &["odd_events_are_repaired_or_counted"]),
    (16, "overlapping slices of a thread", &["overlapping_slices_get_lanes_and_identical_ones_stay"]),
    (17, "beginnings without ends", &["beginnings_and_ends_find_each_other"]),
    (18, "arrows without an end", &["arrows_go_from_the_last_start_before_their_end"]),
    (
        19,
        "processes and threads called anything",
        &["threads_may_be_called_anything", "every_process_and_thread_has_its_rows"],
    ),
    (20, "a million events", &["counts_are_exact_at_every_zoom_with_few_reads"]),
    (21, "identical events", &["overlapping_slices_get_lanes_and_identical_ones_stay"]),
    (22, "names that are markup", &["names_are_text", "a trace is uploaded and listed, its name shown as it is"]),
    (23, "names that are formulas of spreadsheets", &["files_hold_every_point_and_no_formula", "formulas_are_text"]),
    (24, "file names that are paths", &["labels_are_safe_to_show"]),
    (25, "file names that end a script", &["a file name is shown, never run"]),
    (26, "pictures with scripts", &["uploads_are_never_served_as_pages"]),
    (27, "a line without loss", &["unstated_values_are_missing"]),
    (28, "seconds and milliseconds in one log", &["megatron_prints_milliseconds_and_bloom_seconds"]),
    (29, "a step back", &["a_step_back_opens_a_segment"]),
    (30, "a step twice", &["repeated_line_is_a_single_point", "sending_again_changes_nothing"]),
    (31, "torn lines", &["torn_lines_are_counted_and_stored"]),
    (32, "colours and carriage returns", &["colours_returns_and_long_lines"]),
    (33, "a line without an end", &["a_line_without_an_end_is_counted_and_costs_no_memory"]),
    (
        34,
        "numbers as nobody should print them",
        &["numbers_as_they_are_printed", "a_number_beyond_reason_is_a_line_left_out"],
    ),
    (35, "an iteration beyond 64 bits", &["a_number_beyond_reason_is_a_line_left_out"]),
    (36, "no iterations in all", &["progress_divides_by_no_zero"]),
    (37, "clocks that go backwards", &["clock_times"]),
    (38, "tfevents: wrong checksum of a length", &["wrong_checksums"]),
    (39, "tfevents: wrong checksum of data", &["wrong_checksums"]),
    (40, "tfevents: a length beyond memory", &["excessive_length_is_rejected_before_allocation"]),
    (41, "tfevents: half a record", &["half_a_record_waits_at_every_byte"]),
    (42, "tfevents: odd scalars", &["both_scalar_forms_are_read", "halves"]),
    (43, "a Megatron index with a size that overflows", &["invalid_indices_are_reported"]),
    (44, "other broken Megatron indices", &["invalid_indices_are_reported", "any_bytes_are_read_or_rejected"]),
    (45, "NumPy files of objects and lying headers", &["invalid_arrays_are_reported", "numbers_in_every_type"]),
    (46, "pickles", &["invalid_traces_are_rejected_and_not_stored", "non_length_files_are_rejected_with_a_reason"]),
    (47, "Parquet footers and bombs", &["any_footer_is_read_or_rejected", "all_column_types"]),
    (48, "odd histograms", &["histogram_is_preserved", "non_length_files_are_rejected_with_a_reason"]),
    (
        49,
        "lengths of zero and of a billion",
        &["invalid_length_is_reported_by_location", "invalid_length_files_are_rejected_and_not_stored"],
    ),
    (50, "questions that cannot be", &["every_wrong_field_is_named_and_nothing_is_stored"]),
    (
        51,
        "the same planned fifty times, cancelled, too much of it",
        &[
            "the_same_scenario_is_never_planned_twice",
            "cancelling_ends_waiting_and_running_jobs_and_leaves_finished_ones",
            "a_full_queue_says_when_to_come_back",
        ],
    ),
    (52, "two who edit the same scenario", &["equivalent_scenarios_are_stored_once"]),
    (
        53,
        "links to scenarios",
        &["prefix_lookup_is_unique_or_explains_why_not", "an_ambiguous_link_names_its_candidates"],
    ),
    (54, "views that cannot be read", &["unreadable parts of a view in a link are ignored with a notice"]),
    (
        55,
        "self-contained links that are bombs or broken",
        &["compression_bombs_and_long_scenarios_are_rejected", "invalid self-contained links have an error message"],
    ),
    (56, "documents of the future", &["invalid_links_report_the_error", "newer_database_is_unchanged"]),
    (57, "changes from other sites", &["changes_require_the_same_origin"]),
    (58, "other names", &["other_names_are_not_ours"]),
    (59, "other tokens", &["log_upload_needs_the_run_token", "every_request_needs_a_token"]),
    (
        60,
        "bytes of logs that do not follow",
        &["gaps_and_conflicts_are_rejected_and_a_second_file_continues", "those_who_write_at_once_wait_for_each_other"],
    ),
    (
        61,
        "bodies that drip",
        &[
            "slow_body_is_ended_and_fast_body_is_not",
            "idle_request_ends_and_received_bytes_remain",
            "a_connection_that_asks_for_nothing_is_ended",
            "a_head_that_drips_is_ended",
            "a_stream_and_a_slow_upload_are_not_ended",
        ],
    ),
    (62, "a server that is killed", &["nothing_acknowledged_is_lost_when_servers_are_killed_under_load"]),
    (
        63,
        "a disk that is full, a database that cannot be written",
        &[
            "full_disk_is_reported_and_reads_continue",
            "full_disk_is_reported_and_recovers",
            "read_only_database_is_reported_and_reads_continue",
        ],
    ),
    (64, "readers who do not read", &["lagging_reader_receives_a_gap", "there_are_not_more_streams_than_places"]),
    (65, "queries of a megabyte", &["a query of a megabyte is refused, languages and unknown words in it are ignored"]),
    (66, "addresses to fetch", &["the_server_fetches_nothing_that_users_name"]),
    (67, "broken Chakra files", &["chakra_errors_have_a_location", "broken_messages_end"]),
    (68, "tables of schedules", &["every_fault_is_reported_with_its_cell", "deadlocks_are_reported_as_a_cell_cycle"]),
    (
        69,
        "browsers that do less",
        &[
            "usable at 320 px",
            "the charts are reachable by keyboard",
            "a selection is announced, the actions are available as a table, and ? opens the help",
        ],
    ),
    (70, "exports opened again", &["exports_and_traces_round_trip"]),
    (
        71,
        "a column whose meaning is unknown",
        &[
            "number_with_unknown_meaning_is_offered_and_not_selected",
            "an_unclear_column_is_a_problem_with_candidates",
            "a column of unknown meaning is chosen by the user, with sample values and histograms",
        ],
    ),
    (72, "an invalid tokenizer", &["an invalid tokenizer file is rejected at its field"]),
    (73, "encrypted, cut or damaged Parquet", &["invalid_files_are_rejected", "any_footer_is_read_or_rejected"]),
    (74, "Parquet whose bytes change at random", &["any_change_is_read_or_rejected"]),
    (
        75,
        "shards of different quantities",
        &[
            "different_quantities_are_rejected_by_name",
            "shards become one dataset, and a shard of other columns is named",
        ],
    ),
    (76, "hostile patterns in a table of log lines", &["hostile_patterns_are_rejected_or_cheap"]),
    (77, "a preview that is never stored", &["a_preview_is_removed_after_fifteen_minutes"]),
    (
        78,
        "a journal without its database",
        &["orphaned_journal_is_rejected_by_every_command_and_preserved", "empty_database_with_a_journal_is_rejected"],
    ),
    (
        79,
        "a database with two names",
        &["database_with_several_names_is_rejected_by_every_command", "tenant_lock_ignores_the_name"],
    ),
    (
        80,
        "a database deleted or replaced under a server",
        &[
            "nothing_is_stored_in_a_database_that_was_deleted_or_replaced",
            "deleted_database_is_reported_and_can_be_copied_during_operation",
        ],
    ),
    (81, "changed bits in a database", &["changed_bits_are_found_with_their_location"]),
    (
        82,
        "scenarios and sweeps that fill the memory",
        &[
            "oversized_scenario_is_rejected_everywhere",
            "a_point_that_ends_every_server_is_given_up_and_the_sweep_goes_on",
        ],
    ),
    (
        83,
        "connections that do not read, and heads without an end",
        &[
            "readers_that_do_not_read_are_ended_and_health_is_answered_meanwhile",
            "health_responds_despite_incomplete_requests",
            "events_that_nobody_reads_are_ended",
        ],
    ),
    (84, "documents of millions of values", &["document_with_too_many_values_is_rejected_before_parsing"]),
    (85, "bodies that are silent at their end", &["bodies_that_are_silent_at_their_end_hold_no_memory_for_long"]),
    (86, "sweeps of wrong values", &["sweep_with_invalid_values_is_rejected_after_a_hundred_errors"]),
    (
        87,
        "one client that takes all places",
        &["third_upload_replaces_the_first", "single_client_leaves_streams_to_others"],
    ),
    (88, "guessed tokens", &["wrong_tokens_are_slowed_down", "many_guesses_at_once_are_not_looked_at"]),
];

#[test]
fn every_bad_input_has_its_tests() {
    let names = tests();
    let mut missing = Vec::new();
    for ((number, input, tests), expected) in ROWS.iter().zip(1..) {
        assert_eq!(*number, expected, "rows stand in their order");
        assert!(!tests.is_empty(), "{number}: {input}");
        missing.extend(
            tests.iter().filter(|test| !names.contains(**test)).map(|test| format!("{number}, {input}: {test}")),
        );
    }
    assert!(missing.is_empty(), "tests that are not there:\n{}", missing.join("\n"));
}
