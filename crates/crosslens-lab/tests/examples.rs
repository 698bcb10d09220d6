//! The examples run and reach the numbers they name: each asserts its own.

use std::error::Error;

#[path = "../../../examples/attend_by_position.rs"]
mod attend_by_position;
#[path = "../../../examples/change_attention.rs"]
mod change_attention;
#[path = "../../../examples/explain_a_recording.rs"]
mod explain_a_recording;
#[path = "../../../examples/sum_in_parts.rs"]
mod sum_in_parts;
#[path = "../../../examples/watch_attention_form.rs"]
mod watch_attention_form;

type Outcome = Result<(), Box<dyn Error>>;

#[test]
fn a_network_attends_by_position() -> Outcome {
    attend_by_position::main()
}

#[test]
fn changed_attention_changes_words() -> Outcome {
    change_attention::main()
}

#[test]
fn a_recording_is_explained_without_its_model() -> Outcome {
    explain_a_recording::main()
}

#[test]
fn sums_of_parts_are_those_of_the_whole() -> Outcome {
    sum_in_parts::main()
}

#[test]
fn attention_is_watched_as_it_forms() -> Outcome {
    watch_attention_form::main()
}

/// Each is short, and its first line says what there is to see.
#[test]
fn examples_are_short_and_say_what_to_expect() {
    let files = [
        include_str!("../../../examples/attend_by_position.rs"),
        include_str!("../../../examples/change_attention.rs"),
        include_str!("../../../examples/explain_a_recording.rs"),
        include_str!("../../../examples/sum_in_parts.rs"),
        include_str!("../../../examples/watch_attention_form.rs"),
    ];
    for text in files {
        let first = text.lines().next().unwrap_or_default();
        assert!(text.lines().count() < 80, "{first}");
        assert!(first.starts_with("//! You will see") && first.chars().any(|letter| letter.is_ascii_digit()), "{first}");
    }
}
