//! What the documentation tells people to type can be typed.

use clap::Parser;

/// The command lines of the program: in blocks of shell, after the prompt of a shell, and in lines set in by four blanks.
fn commands(text: &str) -> Vec<&str> {
    let mut kind = None;
    let mut commands = Vec::new();
    for line in text.lines() {
        let typed = match (line.trim().strip_prefix("```"), kind) {
            (Some(opened), None) => {
                kind = Some(opened);
                None
            }
            (Some(_), Some(_)) => {
                kind = None;
                None
            }
            (None, Some("sh")) => Some(line),
            (None, Some(_)) => line.strip_prefix("$ "),
            (None, None) => line.strip_prefix("    "),
        };
        commands.extend(typed.filter(|typed| typed.starts_with("crosslens ")));
    }
    commands
}

/// As a shell cuts a line: at blanks outside quotes, up to a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#') if word.is_none() => break,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[test]
fn a_line_is_cut_as_a_shell_cuts_it() {
    assert_eq!(words("crosslens a \"b c\" 'd \"e' --f=g#h  # i"), ["crosslens", "a", "b c", "d \"e", "--f=g#h"]);
    let text = "crosslens no\n```sh\ncrosslens yes\ncargo no\n```\n```text\ncrosslens no\n$ crosslens asked\n```\n    crosslens set in";
    assert_eq!(commands(text), ["crosslens yes", "crosslens asked", "crosslens set in"]);
}

#[test]
fn every_documented_command_is_understood() {
    let pages = [
        ("README.md", include_str!("../../../README.md"), 30),
        ("docs/tutorial.md", include_str!("../../../docs/tutorial.md"), 25),
        ("docs/translation.md", include_str!("../../../docs/translation.md"), 8),
        ("docs/heads.md", include_str!("../../../docs/heads.md"), 2),
        ("docs/import.md", include_str!("../../../docs/import.md"), 5),
        ("docs/devices.md", include_str!("../../../docs/devices.md"), 1),
        ("docs/scale.md", include_str!("../../../docs/scale.md"), 5),
        ("docs/senses.md", include_str!("../../../docs/senses.md"), 10),
    ];
    for (page, text, at_least) in pages {
        let commands = commands(text);
        assert!(commands.len() >= at_least, "only {} commands in {page}", commands.len());
        for command in commands {
            if let Err(error) = crate::Arguments::try_parse_from(words(command)) {
                panic!("{page}: {command}\n{error}");
            }
        }
    }
}
