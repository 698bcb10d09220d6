//! Sentences in files of others, for models that were not trained here.

use std::path::Path;

use crosslens_analysis::corpus::{CorpusError, CorpusReport, CorpusSpec, CorpusSpecError, Filter};
use crosslens_analysis::tsv::{TsvError, read_lines};

/// Most pairs that are held.
const MAX_PAIRS: usize = 1 << 22;

/// Why sentences cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListedError {
    /// A file of lines.
    #[error(transparent)]
    Lines(#[from] TsvError),
    /// A corpus in another form.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// What names no corpus.
    #[error(transparent)]
    Spec(#[from] CorpusSpecError),
}

/// What `parse` makes of each source and its target, from any corpus that networks are trained on. A line of a file of lines may be a source
/// alone, and its source may be empty; of other corpora an entry without both is refused, unless it is one of a catalogue.
pub(crate) fn read_listed<T>(corpus: &Path, mut parse: impl FnMut(&str, Option<&str>) -> Result<T, String>) -> Result<Vec<T>, ListedError> {
    match spec(corpus)? {
        CorpusSpec::Tsv(path) => Ok(read_lines(&path, |line| {
            let mut columns = line.split(if line.contains('\t') { "\t" } else { "|||" }).map(str::trim);
            let source = columns.next().unwrap_or_default();
            parse(source, columns.next().filter(|target| !target.is_empty()))
        })?),
        other => read_pairs(&other, parse),
    }
}

/// What a user named. A file that is there is one file, whatever its name looks like.
fn spec(corpus: &Path) -> Result<CorpusSpec, CorpusSpecError> {
    let Some(text) = corpus.to_str() else { return Ok(CorpusSpec::Tsv(corpus.to_owned())) };
    match text.parse()? {
        CorpusSpec::Aligned { .. } if corpus.exists() => Ok(CorpusSpec::Tsv(corpus.to_owned())),
        spec => Ok(spec),
    }
}

fn read_pairs<T>(spec: &CorpusSpec, mut parse: impl FnMut(&str, Option<&str>) -> Result<T, String>) -> Result<Vec<T>, ListedError> {
    let is_catalogue = matches!(spec, CorpusSpec::Po(_) | CorpusSpec::Mo(_) | CorpusSpec::Gettext { .. });
    let mut reader = spec.open(&Filter { dedupe: false, ..Filter::default() })?;
    let mut parsed = Vec::new();
    while let Some(pair) = reader.next() {
        let pair = pair?;
        let wrong = |what: String| TsvError::Line { path: spec.to_string().into(), line: pair.line, what };
        if !is_catalogue {
            refuse_dropped(reader.counts())?;
        }
        parsed.push(parse(&pair.source, Some(&pair.target)).map_err(wrong)?);
        if parsed.len() > MAX_PAIRS {
            return Err(wrong(format!("there are more than {MAX_PAIRS} pairs")).into());
        }
    }
    if !is_catalogue {
        refuse_dropped(reader.counts())?;
    }
    Ok(parsed)
}

/// Refuses a corpus of which a line gave no pair, by the first such line.
fn refuse_dropped(report: &CorpusReport) -> Result<(), TsvError> {
    let first = report.reasons().filter_map(|(reason, tally)| Some((tally.first.first()?, reason))).min_by_key(|(place, _)| place.line);
    let Some((place, reason)) = first else { return Ok(()) };
    Err(TsvError::Line { path: place.path.to_path_buf(), line: place.line, what: format!("it gives no pair: {}", reason.name()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(corpus: &Path) -> Result<Vec<(String, Option<String>)>, String> {
        let kept = |source: &str, target: Option<&str>| Ok((source.to_owned(), target.map(str::to_owned)));
        read_listed(corpus, kept).map_err(|error| error.to_string())
    }

    #[test]
    fn sources_alone_pairs_and_other_corpora_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let pair = |source: &str, target: &str| (source.to_owned(), Some(target.to_owned()));
        for (name, text) in [("x.txt", "a b\n\nc\td\te\nf ||| g\n"), ("a,b.tsv", "a b\nc\td\nf\tg\n")] {
            std::fs::write(at(name), text).expect("a file");
            assert_eq!(read(&at(name)).expect("lines"), [("a b".to_owned(), None), pair("c", "d"), pair("f", "g")], "{name}");
        }
        std::fs::write(at("x.en"), "a\nb\n").expect("a file");
        std::fs::write(at("x.fr"), "c\nd\n").expect("a file");
        std::fs::write(at("x.jsonl"), "{\"source\": \"a\", \"target\": \"c\"}\n{\"src\": \"b\", \"tgt\": \"d\"}\n").expect("a file");
        for name in [format!("{},{}", at("x.en").display(), at("x.fr").display()), at("x.jsonl").display().to_string()] {
            assert_eq!(read(Path::new(&name)).expect("pairs"), [pair("a", "c"), pair("b", "d")], "{name}");
        }
    }

    #[test]
    fn what_gives_no_sentence_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("x.jsonl"), "{\"source\": \"a\", \"target\": \"c\"}\n{\"source\": \"b\"}\n").expect("a file");
        let error = read(&at("x.jsonl")).expect_err("one side");
        assert!(error.contains("x.jsonl`, line 2: it gives no pair"), "{error}");
        assert!(read(&at("x.json")).expect_err("no lines").contains("jq -c"));
    }
}
