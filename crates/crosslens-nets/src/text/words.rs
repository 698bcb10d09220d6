//! Words of a text by rule, and a text from its words.
//!
//! White space separates. Letters, digits and marks of any script make words, marks being what Unicode calls so and the joiners without
//! width; an apostrophe between two of them ends the word before it (`l'|homme`, `don'|t`), a hyphen begins the word after it (`est|-ce`), a
//! full stop or comma between digits stays inside (`3.5`). Every other sign stands alone, with the marks that follow it. Typographic
//! apostrophes become straight ones; case is kept or folded by whoever asks.
//!
//! A text from words: brackets, full stops and the like cling to the side they belong to. Straight quotes `"`, and apostrophes `'` that
//! stand alone, belong together in pairs, in their order: the first of a pair clings to the word after it, the second to the word before
//! it. One without a second clings to the word before it (`James' book`), or at the beginning of a text to the one after it (`'tis`). Two
//! final apostrophes in one text are therefore taken for quotes.

use std::iter::Peekable;

use unicode_properties::general_category::{GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// Signs that cling to the word before them in every language.
const CLOSING: &str = ".,)]}…’”";
/// Signs that French sets apart and English does not.
pub(super) const SPACED: &str = "?!:;»%";
/// Signs that cling to the word after them.
const OPENING: &str = "([{“¿¡";

/// The words of a text, in order.
pub fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for chunk in text.split_whitespace() {
        let mut letters = chunk.chars().map(straight).peekable();
        let mut before: Option<char> = None;
        let mut word = String::new();
        while let Some(letter) = letters.next() {
            let joins = before.is_some_and(is_word) && letters.peek().copied().is_some_and(is_word);
            match letter {
                _ if word.is_empty() && before.is_some() && is_mark(letter) => {
                    words.last_mut().expect("what stands before it ended a word").push(letter);
                }
                _ if is_word(letter) => word.push(letter),
                '\'' if joins => {
                    word.push(letter);
                    finish(&mut word, &mut words);
                }
                '-' if joins => {
                    finish(&mut word, &mut words);
                    word.push(letter);
                }
                '.' | ',' if is_between_digits(before, &mut letters) => word.push(letter),
                _ => {
                    finish(&mut word, &mut words);
                    words.push(letter.to_string());
                }
            }
            before = Some(letter);
        }
        finish(&mut word, &mut words);
    }
    words
}

fn straight(letter: char) -> char {
    if matches!(letter, '’' | 'ʼ') { '\'' } else { letter }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || is_mark(letter)
}

/// What changes or joins the letters beside it: accents, viramas, tones, and the joiners of Indic scripts and Persian.
fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{200c}' | '\u{200d}') || letter.general_category_group() == GeneralCategoryGroup::Mark
}

fn is_between_digits(before: Option<char>, after: &mut Peekable<impl Iterator<Item = char>>) -> bool {
    before.is_some_and(|letter| letter.is_ascii_digit()) && after.peek().is_some_and(char::is_ascii_digit)
}

fn finish(word: &mut String, words: &mut Vec<String>) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

/// Signs that open and close alike.
const QUOTES: [&str; 2] = ["\"", "'"];

/// A text from its words; with `spaced`, signs such as `?` stand apart, as in French.
pub fn join<'a>(words: impl IntoIterator<Item = &'a str>, spaced: bool) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    let opens = opening_quotes(&words);
    let mut text = String::new();
    let mut clings = true;
    for (&word, &opens) in words.iter().zip(&opens) {
        let is_one_of = |signs: &str| {
            let mut letters = word.chars();
            letters.next().is_some_and(|letter| signs.contains(letter)) && letters.next().is_none()
        };
        let is_quote = QUOTES.contains(&word);
        let clings_back =
            (is_quote && !opens) || is_one_of(CLOSING) || (!spaced && is_one_of(SPACED)) || (word.len() > 1 && word.starts_with('-'));
        if !(clings || clings_back) {
            text.push(' ');
        }
        text.push_str(word);
        clings = (is_quote && opens) || is_one_of(OPENING) || (word.chars().count() > 1 && word.ends_with('\''));
    }
    text
}

/// For each word whether it is a quote that opens.
fn opening_quotes(words: &[&str]) -> Vec<bool> {
    let mut opens = vec![false; words.len()];
    for quote in QUOTES {
        let places: Vec<usize> = (0..words.len()).filter(|&place| words[place] == quote).collect();
        for (number, &place) in places.iter().enumerate() {
            opens[place] = number % 2 == 0 && (number + 1 < places.len() || place == 0);
        }
    }
    opens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_the_rules_say() {
        for (text, words) in [
            ("The cat sat on the mat.", "The cat sat on the mat ."),
            ("Le chat s'est assis sur le tapis.", "Le chat s' est assis sur le tapis ."),
            ("Qu’est-ce que c’est ?", "Qu' est -ce que c' est ?"),
            ("I don't know, Tom!", "I don' t know , Tom !"),
            ("Il est 3,5 fois plus grand; 10.000 francs.", "Il est 3,5 fois plus grand ; 10.000 francs ."),
            ("  \u{a0}a  - b ", "a - b"),
            ("'tis (so)…", "' tis ( so ) …"),
            ("猫 が 好き。", "猫 が 好き 。"),
            ("बिल्ली चटाई पर बैठी, हिन्दी।", "बिल्ली चटाई पर बैठी , हिन्दी ।"),
            ("แมวนั่งอยู่บนเสื่อ", "แมวนั่งอยู่บนเสื่อ"),
            ("می\u{200c}روم", "می\u{200c}روم"),
            ("e\u{301}te\u{301} a\u{2764}\u{fe0f}b", "e\u{301}te\u{301} a \u{2764}\u{fe0f} b"),
            ("", ""),
        ] {
            assert_eq!(split(text).join(" "), words);
        }
    }

    #[test]
    fn a_text_survives_its_words() {
        for (text, spaced) in [
            ("Le chat s'est assis sur le tapis.", true),
            ("Qu'est-ce que c'est ?", true),
            ("Donne-le-moi, s'il te plaît !", true),
            ("I don't know (yet), Tom!", false),
            ("10.5 % ?", true),
            ("Il a dit \"oui\".", true),
            ("\"Yes\", he said, \"I don't (really) know.\"", false),
            ("James' book is here.", false),
            ("'tis James' book", false),
            ("'Yes', said Tom.", false),
            ("He said 'yes'!", false),
            ("क्या बिल्ली चटाई पर बैठी?", false),
            ("แมว นั่ง อยู่ บน เสื่อ!", false),
            ("I \u{2764}\u{fe0f} it", false),
        ] {
            assert_eq!(join(split(text).iter().map(String::as_str), spaced), text);
        }
        assert_eq!(join(["dogs", "'", "and", "cats", "'", "food"], false), "dogs 'and cats' food", "what the rule cannot tell");
        assert_eq!(join(["a", "\""], false), "a\"");
    }
}
