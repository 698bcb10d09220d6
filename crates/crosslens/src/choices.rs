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

/// Names that a message lists at most.
const LISTED: usize = 20;

/// The known names, those most like what was typed first, whatever their case.
pub(crate) fn near<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let typed = typed.to_lowercase();
    let mut names: Vec<(f64, &str)> = known.into_iter().map(|name| (strsim::jaro_winkler(&typed, &name.to_lowercase()), name)).collect();
    names.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    names.into_iter().map(|(_, name)| name).collect()
}

/// The first 20 names, and how many more there are.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let (shown, more) = names.split_at(names.len().min(LISTED));
    let shown = shown.join(", ");
    if more.is_empty() { shown } else { format!("{shown} and {} more", more.len()) }
}

#[cfg(test)]
mod tests {
    use super::{listed, near, nearest};

    #[test]
    fn near_languages_come_first_and_lists_end() {
        let known = ["zul_Latn", "fra_Latn", "deu_Latn", "eng_Latn"];
        assert_eq!(near("FRA", known)[0], "fra_Latn");
        assert_eq!(listed(near("english", known)[..2].iter().copied()).split(", ").next(), Some("eng_Latn"));
        assert_eq!(listed(["a"; 23]), format!("{} and 3 more", ["a"; 20].join(", ")));
    }

    #[test]
    fn a_typing_error_finds_its_word_and_nonsense_finds_none() {
        let known = ["one-to-one", "reverse", "escan", "scan", "sort"];
        assert_eq!(nearest("one-two-one", known), Some("one-to-one"));
        assert_eq!(nearest("escann", known), Some("escan"));
        assert_eq!(nearest("xylophone", known), None);
    }
}
