//! The words BLEU counts.

/// How a sentence is cut into words before n-grams are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BleuTokens {
    /// As `mteval-v13a` does: ASCII punctuation stands alone, but for apostrophes, dashes after letters, and periods and commas within
    /// numbers; `&quot;`, `&amp;`, `&lt;` and `&gt;` are undone. The default of sacreBLEU.
    #[default]
    V13a,
    /// What white space separates.
    None,
}

impl BleuTokens {
    /// Its name in signatures.
    pub fn name(self) -> &'static str {
        match self {
            Self::V13a => "13a",
            Self::None => "none",
        }
    }

    /// The words of a sentence.
    pub fn words(self, sentence: &str) -> Vec<String> {
        let sentence = sentence.trim_end_matches(is_space);
        match self {
            Self::V13a => words(&separated(sentence)).map(str::to_owned).collect(),
            Self::None => words(sentence).map(str::to_owned).collect(),
        }
    }
}

/// What white space separates, as Python sees it: the separators of ASCII count too.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

pub(super) fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// The sentence with blanks around what stands alone: the substitutions of `mteval-v13a` one after the other, since each sees what the one
/// before has written.
fn separated(sentence: &str) -> String {
    let mut line = sentence.replace("<skipped>", "").replace("-\n", "").replace('\n', " ");
    for (entity, letter) in [("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")] {
        line = line.replace(entity, letter);
    }
    let is_digit = |letter: char| letter.is_ascii_digit();
    let is_point = |letter: char| letter == '.' || letter == ',';

    let mut letters = vec![' '];
    for letter in line.chars() {
        if stands_alone(letter) { letters.extend([' ', letter, ' ']) } else { letters.push(letter) }
    }
    letters.push(' ');
    let letters =
        each_two(&letters, |first, second| (!is_digit(first) && is_point(second)).then_some([Some(first), None, Some(second), None]));
    let letters =
        each_two(&letters, |first, second| (is_point(first) && !is_digit(second)).then_some([None, Some(first), None, Some(second)]));
    let letters = each_two(&letters, |first, second| (is_digit(first) && second == '-').then_some([Some(first), None, Some(second), None]));
    letters.into_iter().collect()
}

/// `{`–`~`, `[`–`` ` ``, blank–`&`, `(`–`+`, `:`–`@` and `/`.
fn stands_alone(letter: char) -> bool {
    matches!(letter, '{'..='~' | '['..='`' | ' '..='&' | '('..='+' | ':'..='@' | '/')
}

/// Replaces neighbours for which there is a replacement, from left to right, none twice; `None` in it is a blank.
fn each_two(letters: &[char], replacement: impl Fn(char, char) -> Option<[Option<char>; 4]>) -> Vec<char> {
    let mut replaced = Vec::with_capacity(letters.len() + letters.len() / 4);
    let mut rest = letters;
    while let [first, others @ ..] = rest {
        match others.first().and_then(|&second| replacement(*first, second)) {
            Some(letters) => {
                replaced.extend(letters.map(|letter| letter.unwrap_or(' ')));
                rest = &others[1..];
            }
            None => {
                replaced.push(*first);
                rest = others;
            }
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_stands_alone_but_not_in_numbers() {
        let cut = |sentence: &str| BleuTokens::V13a.words(sentence).join("|");
        assert_eq!(cut("Hello, world!"), "Hello|,|world|!");
        assert_eq!(cut("1,000.5 costs 3.50$."), "1,000.5|costs|3.50|$|.");
        assert_eq!(cut("l'été 1990-1995 est-il fini ?"), "l'été|1990|-|1995|est-il|fini|?");
        assert_eq!(cut("&quot;a&quot; &lt;b&gt; &amp;amp; c"), "\"|a|\"|<|b|>|&|amp|;|c");
        assert_eq!(cut("a...b"), "a|.|.|.|b");
        assert_eq!(cut("x\u{a0}: y\u{1f}z "), "x|:|y|z");
        assert_eq!(cut(""), "");
        assert_eq!(BleuTokens::None.words("Hello,  world! ").join("|"), "Hello,|world!");
    }
}
