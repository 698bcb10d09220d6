//! Text as figures show it: tokens made safe to show, and how wide they will be.

use std::fmt::Write as _;

/// Most characters of a token that are shown.
const MAX_SHOWN: usize = 24;

/// A token as it is shown: long ones cut, what cannot be seen or would turn the text around written out.
pub(crate) fn shown(token: &str) -> String {
    let mut text = String::new();
    for (place, character) in token.chars().enumerate() {
        if place == MAX_SHOWN - 1 && token.chars().nth(MAX_SHOWN).is_some() {
            text.push('…');
            break;
        }
        match character {
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            _ if is_unseen(character) => write!(text, "\\u{{{:x}}}", u32::from(character)).expect("a string takes all"),
            _ => text.push(character),
        }
    }
    text
}

/// Controls, marks that turn text around, and what XML does not allow.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
        || u32::from(character) & 0xfffe == 0xfffe
}

/// About how wide a text is in the sans serif face, in the unit of `size`.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(em).sum::<f64>() * size
}

/// About how wide a character is, in ems.
fn em(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.27,
        ' ' => 0.26,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | '-' | '/' | '\\' => 0.39,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' | '…' => 0.9,
        '<' | '>' | '+' | '=' | '×' | '−' | '_' | '0'..='9' => 0.572,
        'A'..='Z' => 0.65,
        '\u{300}'..='\u{36f}' => 0.0,
        // Scripts written in squares: CJK, Kana, Hangul, full-width forms, pictures.
        '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' => 1.0,
        '\u{ff00}'..='\u{ff60}' | '\u{1f000}'..='\u{3ffff}' => 1.0,
        _ => 0.585,
    }
}

/// The widest of some texts.
pub(crate) fn widest<'a>(texts: impl IntoIterator<Item = &'a String>, size: f64) -> f64 {
    texts.into_iter().map(|text| width(text, size)).fold(0.0, f64::max)
}

/// A number with few digits: 0.25, 12, 1.5e-6.
pub(crate) fn few_digits(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    if value != 0.0 && !(1e-3..1e5).contains(&value.abs()) {
        return format!("{value:.1e}").replace('-', "−");
    }
    let digits = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 1.0 {
        2
    } else {
        3
    };
    trimmed(format!("{value:.digits$}")).replace('-', "−")
}

/// A share in percent, never `−0 %`.
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".into();
    }
    format!("{:.0} %", (100.0 * share).round() + 0.0).replace('-', "−")
}

/// Without zeros that say nothing.
pub(crate) fn trimmed(number: String) -> String {
    if !number.contains('.') {
        return if number == "-0" { "0".into() } else { number };
    }
    let short = number.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_their_script_and_lose_what_cannot_be_seen() {
        assert_eq!(shown("שלום"), "שלום");
        assert_eq!(shown("你好"), "你好");
        assert_eq!(shown("a\tb\n\u{1b}[0m"), "a\\tb\\n\\u{1b}[0m");
        assert_eq!(shown("x\u{202e}y\u{ffff}"), "x\\u{202e}y\\u{ffff}");
        assert_eq!(shown(&"a".repeat(24)), "a".repeat(24));
        assert_eq!(shown(&"a".repeat(25)), "a".repeat(23) + "…");
        assert_eq!(shown(&"好".repeat(1_000_000)).chars().count(), 24);
    }

    #[test]
    fn numbers_have_few_digits() {
        for (value, text) in
            [(0.0, "0"), (-0.0, "0"), (0.25, "0.25"), (12.0, "12"), (-1.5, "−1.5"), (1234.4, "1234"), (2e-6, "2.0e−6"), (f64::NAN, "–")]
        {
            assert_eq!(few_digits(value), text);
        }
        assert_eq!((percent(-0.001).as_str(), percent(0.456).as_str(), percent(-0.2).as_str()), ("0 %", "46 %", "−20 %"));
    }
}
