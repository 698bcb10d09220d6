//! Names on the command line that stand for values of the library, with suggestions for typing errors.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use crosslens_lab::network::{Cell, Family, Score};
use crosslens_lab::text::Units;

pub(crate) fn family() -> impl TypedValueParser<Value = Family> {
    PossibleValuesParser::new(Family::ALL.map(Family::name)).map(|name| pick(&Family::ALL, Family::name, &name))
}

pub(crate) fn cell() -> impl TypedValueParser<Value = Cell> {
    PossibleValuesParser::new(Cell::ALL.map(Cell::name)).map(|name| pick(&Cell::ALL, Cell::name, &name))
}

/// `concat`, Luong's name of the additive score, is accepted too.
pub(crate) fn score() -> impl TypedValueParser<Value = Score> {
    let values = Score::ALL.map(|score| match score {
        Score::Additive => PossibleValue::new(score.name()).alias("concat"),
        _ => PossibleValue::new(score.name()),
    });
    PossibleValuesParser::new(values).map(|name| if name == "concat" { Score::Additive } else { pick(&Score::ALL, Score::name, &name) })
}

pub(crate) fn units() -> impl TypedValueParser<Value = Units> {
    PossibleValuesParser::new(Units::ALL.map(Units::name)).map(|name| pick(&Units::ALL, Units::name, &name))
}

fn pick<T: Copy>(all: &[T], name_of: impl Fn(T) -> &'static str, name: &str) -> T {
    *all.iter().find(|&&value| name_of(value) == name).expect("the parser lets only known names through")
}

/// The known name most like what was typed, if one is near.
pub(crate) fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const NEAR: f64 = 0.7;
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(typed, name), name))
        .filter(|(likeness, _)| *likeness > NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typing_error_finds_its_word_and_nonsense_finds_none() {
        let known = ["one-to-one", "reverse", "escan", "scan", "sort"];
        assert_eq!(nearest("one-two-one", known), Some("one-to-one"));
        assert_eq!(nearest("escann", known), Some("escan"));
        assert_eq!(nearest("xylophone", known), None);
    }
}
