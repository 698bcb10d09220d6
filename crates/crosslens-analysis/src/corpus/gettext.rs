//! What the entries of catalogues have in common, compiled or not.
//!
//! White space becomes one blank. A mark of a keyboard shortcut (`_File`, `&File`) is removed where each side has exactly one, before a letter
//! or digit, unless it stands inside the same word on both sides, as in `file_name`; in `ファイル(_F)` the brackets go with it. Placeholders
//! such as `%s` stay; an entry with no letter beside them is dropped.

use super::Reason;
use super::entry::{Texts, one_line};

/// The pair of an entry.
pub(super) fn texts(source: &str, target: &str) -> Texts {
    let (source, target) = (one_line(source), one_line(target));
    if source.is_empty() || target.is_empty() {
        return Err(Reason::OneSided);
    }
    if !has_words(&source) {
        return Err(Reason::NoWords);
    }
    Ok(match unmarked(&source, &target) {
        Some(pair) => pair,
        None => (source, target),
    })
}

/// Both sides without the mark of their shortcut, where they have one.
fn unmarked(source: &str, target: &str) -> Option<(String, String)> {
    ['_', '&'].into_iter().find_map(|mark| {
        let places = [only_mark(source, mark)?, only_mark(target, mark)?];
        let [source_word, target_word] = [word_around(source, places[0]), word_around(target, places[1])];
        let is_name = source_word == target_word && !source_word.starts_with(mark);
        (!is_name).then(|| (without_mark(source, places[0]), without_mark(target, places[1])))
    })
}

/// Where the mark stands, if it stands in one place only, before a letter or digit.
fn only_mark(text: &str, mark: char) -> Option<usize> {
    let place = text.find(mark)?;
    let is_only = text.rfind(mark) == Some(place);
    let is_before_letter = text[place + 1..].chars().next().is_some_and(char::is_alphanumeric);
    (is_only && is_before_letter).then_some(place)
}

fn word_around(text: &str, place: usize) -> &str {
    let begin = text[..place].rfind(' ').map_or(0, |blank| blank + 1);
    let end = text[place..].find(' ').map_or(text.len(), |blank| place + blank);
    &text[begin..end]
}

fn without_mark(text: &str, place: usize) -> String {
    let (before, after) = (&text[..place], &text[place + 1..]);
    let mut letters = after.chars();
    letters.next();
    match (before.strip_suffix('('), letters.as_str().strip_prefix(')')) {
        (Some(before), Some(after)) if !before.trim().is_empty() => format!("{}{after}", before.trim_end()),
        _ => format!("{before}{after}"),
    }
}

/// Whether there is a letter outside of placeholders: `%s`, `%-5.2f`, `%1$s`, `%(name)s`, `{0}`, `${name}`.
fn has_words(text: &str) -> bool {
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '%' => rest = after_directive(rest),
            '{' => rest = rest.split_once('}').map_or(rest, |(_, after)| after),
            _ if letter.is_alphabetic() => return true,
            _ => {}
        }
    }
    false
}

/// What follows a directive of printf, of which `%` is gone.
fn after_directive(text: &str) -> &str {
    let text = match text.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, after)) => after,
        None => text,
    };
    let text = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || "$-+#'.*".contains(letter));
    let text = text.trim_start_matches(['l', 'h', 'z', 'q', 'j']);
    let mut letters = text.chars();
    if letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '%') { letters.as_str() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_shortcuts_are_removed_and_names_are_not() {
        for (source, target, expected) in [
            ("_File", "_Fichier", ("File", "Fichier")),
            ("Save &As…", "En&registrer sous…", ("Save As…", "Enregistrer sous…")),
            ("_File", "ファイル(_F)", ("File", "ファイル")),
            ("_OK", "_OK", ("OK", "OK")),
            ("no file_name given", "pas de file_name", ("no file_name given", "pas de file_name")),
            ("_File", "Fichier", ("_File", "Fichier")),
            ("a & b", "a & b", ("a & b", "a & b")),
            ("__init__ it", "__init__ le", ("__init__ it", "__init__ le")),
        ] {
            assert_eq!(texts(source, target), Ok((expected.0.into(), expected.1.into())), "{source} / {target}");
        }
    }

    #[test]
    fn entries_without_words_are_dropped() {
        for source in ["%s: %d", "%-5.2f %%", "%(name)s", "{0} – {1:02}", "%1$s/%2$lu", "…", "42"] {
            assert_eq!(texts(source, "x"), Err(Reason::NoWords), "{source}");
        }
        for source in ["%s: no", "100% sure", "{open", "é"] {
            assert!(texts(source, "x").is_ok(), "{source}");
        }
        assert_eq!(texts("a", " \n"), Err(Reason::OneSided));
    }

    #[test]
    fn line_breaks_become_blanks_and_others_stay() {
        let (source, target) = texts(" two\n\tlines ", "deux\u{a0}: lignes").expect("a pair");
        assert_eq!((source.as_str(), target.as_str()), ("two lines", "deux\u{a0}: lignes"));
    }
}
