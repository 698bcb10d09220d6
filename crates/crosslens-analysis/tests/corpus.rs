//! Corpora as users have them: whole files, what is kept of them and what is said about the rest.

use std::io::Write as _;

use crosslens_analysis::corpus::{BytesRead, CorpusError, CorpusReport, CorpusSpec, Filter, MAX_PLACES, Reason};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).expect("written");
        }
        Self(folder)
    }

    /// A corpus by the names of its files.
    fn spec(&self, names: &str) -> CorpusSpec {
        let paths: Vec<String> = names.split(',').map(|name| self.0.path().join(name).display().to_string()).collect();
        paths.join(",").parse().expect("it names a corpus")
    }

    fn read(&self, names: &str, filter: &Filter) -> Result<(Vec<String>, CorpusReport), CorpusError> {
        let mut corpus = self.spec(names).open(filter)?;
        let pairs = corpus.by_ref().map(|pair| pair.map(|pair| format!("{}={}@{}", pair.source, pair.target, pair.line)));
        let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
        Ok((pairs, corpus.into_report()))
    }
}

#[test]
fn bad_lines_are_counted_and_good_ones_kept() {
    let long = [b"x".repeat(100_000), b"\ty\n".to_vec()].concat();
    let text = [
        &b"\xef\xbb\xbfa cat\tun chat\r\n"[..],
        b"\n",
        b"no tab\n",
        b"\tun chat\n",
        &long,
        b"a\t\xff\n",
        b"a cat\tun chat\textra\n",
        b" a dog \tun  chien",
    ];
    let folder = Folder::new(&[("x.tsv", &text.concat())]);
    let (pairs, report) = folder.read("x.tsv", &Filter::default()).expect("two pairs");
    assert_eq!(pairs, ["a cat=un chat@1", "a dog=un chien@8"]);
    assert_eq!(
        report.to_string(),
        "2 pairs kept; 1 blank (line 2); 2 one-sided (lines 3, 4); 1 duplicate (line 7); 1 not UTF-8 (line 6); 1 over-long line (line 5)"
    );
    let (pairs, _) = folder.read("x.tsv", &Filter { dedupe: false, max_pairs: Some(2), ..Filter::default() }).expect("two pairs");
    assert_eq!(pairs, ["a cat=un chat@1", "a cat=un chat@7"]);
}

/// Pairs of 5 + 6 bytes: after two of them there are 22. What is dropped counts for nothing.
#[test]
fn reading_ends_after_as_many_bytes_as_are_wanted_and_says_so() {
    let text = &b"a cat\tun rat\nno tab\na dog\tun coq\na cow\tun boa\n"[..];
    let folder = Folder::new(&[("x.tsv", text)]);
    for (most, n_pairs, says) in [
        (1, 1, Some("reading ended after 1 pairs, whose texts have 11 bytes")),
        (12, 2, Some("reading ended after 2 pairs, whose texts have 22 bytes")),
        (34, 3, None),
    ] {
        let filter = Filter { max_total_bytes: Some(most), ..Filter::default() };
        let (pairs, report) = folder.read("x.tsv", &filter).expect("pairs");
        assert_eq!((pairs.len(), filter.ended(&report).as_deref()), (n_pairs, says));
        let fewer = Filter { max_pairs: Some(1), ..filter };
        assert_eq!(folder.read("x.tsv", &fewer).expect("a pair").0.len(), 1);
    }
}

#[test]
fn lone_returns_end_lines_and_are_counted() {
    let text = &b"a\tb\rno tab\rc\td\r"[..];
    let folder = Folder::new(&[("x.tsv", text), ("a.en", b"a\rb\r"), ("b.fr", b"c\nd\n")]);
    let (pairs, report) = folder.read("x.tsv", &Filter::default()).expect("two pairs");
    assert_eq!(pairs, ["a=b@1", "c=d@3"]);
    assert_eq!(report.to_string(), "2 pairs kept; 1 one-sided (line 2)");
    let (pairs, _) = folder.read("a.en,b.fr", &Filter::default()).expect("two pairs");
    assert_eq!(pairs, ["a=c@1", "b=d@2"], "each file has ends of its own");
}

/// Nothing is kept of the second half, and still it is heard of.
#[test]
fn how_far_reading_is_is_told_in_bytes() {
    let good: String = (0..1000).map(|number| format!("a {number}\tb {number}\n")).collect();
    let bad = "no tab\n".repeat(3000);
    let line = |number: usize| format!("{{\"source\": \"a {number}\", \"target\": \"b\"}}\n");
    let po: String = (0..1000).map(|number| format!("msgid \"a {number}\"\nmsgstr \"b\"\n\n")).collect();
    let files = [
        ("x.tsv", format!("{good}{bad}")),
        ("x.jsonl", (0..1000).map(line).collect()),
        ("x.po", po),
        ("a.en", "a\nb\n".repeat(2000)),
        ("b.fr", "c\nd\n".repeat(2000)),
    ];
    let folder = Folder::new(&files.each_ref().map(|(name, text)| (*name, text.as_bytes())));
    for names in ["x.tsv", "x.jsonl", "x.po", "a.en,b.fr"] {
        let total: u64 = files.iter().filter(|(name, _)| names.contains(name)).map(|(_, text)| text.len() as u64).sum();
        let mut told = Vec::new();
        let reader = folder.spec(names).open(&Filter::default()).expect("a corpus");
        let (pairs, report) = reader.read_all(&mut |bytes| told.push(bytes)).expect("it is read");
        assert_eq!(pairs.len() as u64, report.kept(), "{names}");
        assert!(told.len() >= 4 && told.windows(2).all(|two| two[0].done <= two[1].done), "{names}: {told:?}");
        assert_eq!(told.last(), Some(&BytesRead { done: total, total }), "{names}");
    }
    let error = folder.spec("x.tsv").open(&Filter { min_words: 9, ..Filter::default() }).expect("a corpus").read_all(&mut |_| ());
    assert!(matches!(error, Err(CorpusError::Empty { .. })), "nothing is kept");
}

/// 3 million empty lines in 3 kB, a line of 100 kB and one of 40 MB: all counted, and none of them kept.
#[test]
fn endless_lines_and_endless_emptiness_are_counted() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let line = |n_bytes: usize| [vec![b'x'; n_bytes], b"\ty\n".to_vec()].concat();
    for part in [vec![b'\n'; 3_000_000], line(100_000), line(40 << 20), b"a cat\tun chat\n".to_vec()] {
        packed.write_all(&part).expect("into memory");
    }
    let folder = Folder::new(&[("x.tsv.gz", &packed.finish().expect("into memory"))]);
    let (pairs, report) = folder.read("x.tsv.gz", &Filter::default()).expect("one pair");
    assert_eq!(pairs, ["a cat=un chat@3000003"]);
    assert_eq!((report.dropped(Reason::Blank).count, report.dropped(Reason::OverlongLine).count), (3_000_000, 2));
    assert_eq!(report.dropped(Reason::Blank).first.len(), MAX_PLACES);
}

#[test]
fn aligned_files_must_be_equally_long() {
    let folder = Folder::new(&[("a.en", b"one\ntwo\n\nfour\n"), ("b.fr", b"un\n\n\nquatre"), ("c.fr", b"un\n")]);
    let (pairs, report) = folder.read("a.en,b.fr", &Filter::default()).expect("two pairs");
    assert_eq!(pairs, ["one=un@1", "four=quatre@4"]);
    assert_eq!((report.dropped(Reason::OneSided).count, report.dropped(Reason::Blank).count), (1, 1));
    for (names, shorter) in [("a.en,c.fr", "c.fr"), ("c.fr,a.en", "c.fr")] {
        let error = folder.read(names, &Filter::default()).expect_err("one ends first");
        let CorpusError::UnequalLines { shorter: found, n_lines: 1, .. } = &error else { panic!("{error}") };
        assert!(found.ends_with(shorter), "{error}");
    }
}

#[test]
fn a_corpus_of_which_nothing_is_kept_says_why() {
    let folder = Folder::new(&[("x.tsv", b"a b c\td e f\n\n"), ("empty.tsv", b""), ("x.jsonl", b"{}\n")]);
    let error = folder.read("x.tsv", &Filter { max_words: Some(2), ..Filter::default() }).expect_err("it is too long").to_string();
    assert!(error.ends_with("holds no pair that is wanted: 0 pairs kept; 1 blank (line 2); 1 too long (line 1)"), "{error}");
    for name in ["empty.tsv", "x.jsonl"] {
        assert!(matches!(folder.read(name, &Filter::default()), Err(CorpusError::Empty { .. })), "{name}");
    }
    let mut corpus = folder.spec("empty.tsv").open(&Filter::default()).expect("a file");
    assert!(corpus.next().is_some_and(|item| item.is_err()) && corpus.next().is_none(), "an error ends it");
}

#[test]
fn every_format_is_found_by_its_name() {
    let folder = Folder::new(&[
        ("x.jsonl", b"{\"translation\": {\"en\": \"a cat\", \"fr\": \"un chat\"}}\n"),
        ("x.po", b"msgid \"a cat\"\nmsgstr \"un chat\"\n"),
        ("other", b"a cat\tun chat\n"),
    ]);
    for name in ["x.jsonl", "x.po", "other"] {
        assert_eq!(folder.read(name, &Filter::default()).expect("a pair").0, ["a cat=un chat@1"], "{name}");
    }
}

/// English and French of the machine, where it has them.
#[test]
fn installed_catalogues_are_a_corpus() {
    let spec: CorpusSpec = "gettext:fr".parse().expect("a language");
    let installed = std::fs::read_dir("/usr/share/locale/fr/LC_MESSAGES").into_iter().flatten().flatten();
    let has_some = installed.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|ending| ending == "mo"));
    match spec.open(&Filter { max_words: Some(12), ..Filter::default() }) {
        Ok(mut corpus) => {
            let n_pairs = corpus.by_ref().take(1000).filter(Result::is_ok).count();
            assert_eq!(n_pairs as u64, corpus.counts().kept());
            assert!(n_pairs > 0, "catalogues are installed, and none gives a pair: {}", corpus.counts());
        }
        Err(error) => assert!(matches!(error, CorpusError::NoCatalogue { .. }) && !has_some, "{error}"),
    }
    let none: CorpusSpec = "gettext:xx_NOWHERE".parse().expect("a language");
    assert!(matches!(none.open(&Filter::default()), Err(CorpusError::NoCatalogue { .. })));
}
