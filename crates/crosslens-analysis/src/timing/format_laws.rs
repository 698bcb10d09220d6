//! Files are read again by strict readers of their grammars.

use proptest::prelude::*;

use super::{Cues, Format, Segment, TimedWord, Transcript, WriteError};

/// From, to, lines of text.
type Shown = (u64, u64, Vec<String>);

fn word(text: &str, start: f64, end: f64) -> TimedWord {
    TimedWord { text: text.to_owned(), start, end, confidence: 0.5 }
}

fn segment(text: &str, start: f64, end: f64) -> Segment {
    Segment { start, end, text: text.to_owned(), confidence: 0.5, no_speech: None, words: Vec::new() }
}

fn transcript(segments: Vec<Segment>) -> Transcript {
    Transcript { language: Some("en".to_owned()), duration: 9.0, segments }
}

fn written(transcript: &Transcript, format: Format, cues: Cues) -> String {
    let mut out = Vec::new();
    transcript.write(&mut out, format, cues).expect("times are in order");
    String::from_utf8(out).expect("it is text")
}

/// `hh…:mm:ss.mmm` with exactly so many digits, in milliseconds.
fn read_clock(text: &str, point: char) -> Option<u64> {
    let (rest, milliseconds) = text.split_once(point)?;
    let [hours, minutes, seconds] = rest.split(':').collect::<Vec<_>>().try_into().ok()?;
    let digits = |text: &str, at_least: usize, at_most: usize| {
        let fits = (at_least..=at_most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| text.parse::<u64>().ok()).flatten()
    };
    let (minutes, seconds) = (digits(minutes, 2, 2)?, digits(seconds, 2, 2)?);
    let whole = (digits(hours, 2, 9)? * 60 + minutes) * 60 + seconds;
    (minutes < 60 && seconds < 60).then_some(whole * 1000 + digits(milliseconds, 3, 3)?)
}

/// A line of times; they are in order.
fn read_times(line: &str, point: char) -> Option<(u64, u64)> {
    let (start, end) = line.split_once(" --> ")?;
    let (start, end) = (read_clock(start, point)?, read_clock(end, point)?);
    (start < end).then_some((start, end))
}

/// Blocks of lines that are not empty, with exactly one empty line between them and a line end after the last.
fn blocks(text: &str) -> Option<Vec<Vec<&str>>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    if text.contains(['\r', '\0']) {
        return None;
    }
    let blocks: Vec<Vec<&str>> = text.strip_suffix('\n')?.split("\n\n").map(|block| block.split('\n').collect()).collect();
    blocks.iter().flatten().all(|line| !line.trim().is_empty()).then_some(blocks)
}

fn read_srt(text: &str) -> Option<Vec<Shown>> {
    let read = |(place, block): (usize, Vec<&str>)| {
        let [number, times, lines @ ..] = block.as_slice() else { return None };
        let (start, end) = read_times(times, ',')?;
        let fits = **number == (place + 1).to_string() && !lines.is_empty() && lines.iter().all(|line| !line.contains("-->"));
        fits.then(|| (start, end, lines.iter().map(|&line| line.to_owned()).collect()))
    };
    blocks(text)?.into_iter().enumerate().map(read).collect()
}

/// Text in which only three characters are escaped and none of them stands by itself.
fn unescaped(line: &str) -> Option<String> {
    if line.contains(['<', '>']) || line.contains("-->") {
        return None;
    }
    let mut pieces = line.split('&');
    let mut plain = pieces.next()?.to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once(';')?;
        plain.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            _ => return None,
        });
        plain.push_str(rest);
    }
    Some(plain)
}

fn read_vtt(text: &str) -> Option<Vec<Shown>> {
    let mut blocks = blocks(text)?.into_iter();
    if blocks.next()? != ["WEBVTT"] {
        return None;
    }
    let read = |block: Vec<&str>| {
        let [times, lines @ ..] = block.as_slice() else { return None };
        let (start, end) = read_times(times, '.')?;
        let lines: Vec<String> = lines.iter().map(|line| unescaped(line)).collect::<Option<_>>()?;
        (!lines.is_empty()).then_some((start, end, lines))
    };
    let cues: Vec<Shown> = blocks.map(read).collect::<Option<_>>()?;
    cues.is_sorted_by_key(|cue| cue.0).then_some(cues)
}

#[test]
fn a_transcript_looks_like_this() {
    let mut first = segment(" Tom & <Jerry>\n\n1\n00:00 --> ", 1.5, 2.25);
    first.words = vec![word("Tom", 1.5, 1.75), word("&", 1.75, 2.25)];
    let transcript = transcript(vec![first, segment("\ttab\there\r\n", 360_000.0, 360_000.000_4)]);

    let srt = "1\n00:00:01,500 --> 00:00:02,250\nTom & <Jerry>\n1\n00:00 →\n\n2\n100:00:00,000 --> 100:00:00,001\ntab here\n";
    assert_eq!(written(&transcript, Format::Srt, Cues::Segments), srt);
    let vtt = "WEBVTT\n\n00:00:01.500 --> 00:00:02.250\nTom &amp; &lt;Jerry&gt;\n1\n00:00 --&gt;\n\n\
               100:00:00.000 --> 100:00:00.001\ntab here\n";
    assert_eq!(written(&transcript, Format::Vtt, Cues::Segments), vtt);
    let by_word = "1\n00:00:01,500 --> 00:00:01,750\nTom\n\n2\n00:00:01,750 --> 00:00:02,250\n&\n\n\
                   3\n100:00:00,000 --> 100:00:00,001\ntab here\n";
    assert_eq!(written(&transcript, Format::Srt, Cues::Words), by_word, "a segment without words is whole");
    let tsv = "start\tend\ttext\n1500\t2250\tTom & <Jerry> 1 00:00 -->\n360000000\t360000000\ttab here\n";
    assert_eq!(written(&transcript, Format::Tsv, Cues::Segments), tsv);
    assert_eq!(written(&transcript, Format::Txt, Cues::Words), "Tom & <Jerry> 1 00:00 -->\ntab here\n");
    assert!(written(&transcript, Format::Json, Cues::Segments).starts_with("{\n  \"language\": \"en\",\n  \"duration\": 9.0,"));
}

#[test]
fn nothing_said_is_an_empty_file_of_each_kind() {
    let nothing = transcript(vec![segment(" \n\r\u{2028}\0 ", 1.0, 2.0)]);
    let found = Format::ALL.map(|format| written(&nothing, format, Cues::Words));
    assert_eq!(found[1..], ["", "WEBVTT\n", "start\tend\ttext\n1000\t2000\t\n", "\n"]);
}

#[test]
fn cues_are_shown_in_order() {
    let transcript = transcript(vec![segment("late", 5.0, 6.0), segment("early", 1.0, 7.0), segment("too", 1.0, 2.0)]);
    let cues = read_vtt(&written(&transcript, Format::Vtt, Cues::Segments)).expect("it is WebVTT");
    assert_eq!(cues.iter().map(|cue| cue.2[0].as_str()).collect::<Vec<_>>(), ["early", "too", "late"]);
}

#[test]
fn times_that_no_clock_shows_are_refused() {
    for (start, end) in [(-0.1, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::NAN), (0.0, f64::INFINITY), (0.0, 2e9)] {
        let mut with_word = segment("a", 0.0, 9.0);
        with_word.words = vec![word("a", start, end)];
        for segments in [vec![segment("a", 0.0, 1.0), segment("b", start, end)], vec![segment("a", 0.0, 1.0), with_word]] {
            for format in Format::ALL {
                let error = transcript(segments.clone()).write(&mut Vec::new(), format, Cues::Segments).expect_err("refused");
                assert!(matches!(error, WriteError::Time { segment: 1, .. }), "{error}");
            }
        }
    }
}

#[test]
fn a_full_disk_is_told() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let transcript = transcript(vec![segment("a", 0.0, 1.0)]);
    for format in Format::ALL {
        let error = transcript.write(&mut Full, format, Cues::Segments).expect_err("no room");
        assert!(matches!(&error, WriteError::Io(error) if error.kind() == std::io::ErrorKind::StorageFull), "{error:?}");
    }
}

#[test]
fn formats_have_names() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    let error = "doc".parse::<Format>().expect_err("no such format").to_string();
    assert_eq!(error, "there is no transcript format `doc`; there are json, srt, vtt, tsv and txt");
}

/// Texts made of what formats are made of.
fn texts() -> impl Strategy<Value = String> {
    let pieces =
        ["\n", "\r\n", "\r", "\u{2028}", "\0", "\t", " ", "-->", "--->", "-", ">", "<b>", "&amp;", "&", "7", "00:00:01,000", "WEBVTT"];
    let piece =
        prop_oneof![proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned), "\\PC{0,3}", any::<char>().prop_map(String::from)];
    proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

fn transcripts() -> impl Strategy<Value = Transcript> {
    let times = (0u32..500_000_000, 0u32..5000).prop_map(|(start, length)| (f64::from(start) / 1000.0, f64::from(start + length) / 1000.0));
    let words = proptest::collection::vec((texts(), times.clone()).prop_map(|(text, (start, end))| word(&text, start, end)), 0..4);
    let segment = (texts(), times, words).prop_map(|(text, (start, end), words)| Segment { words, ..segment(&text, start, end) });
    proptest::collection::vec(segment, 0..6).prop_map(transcript)
}

/// What should be read: the lines of every text that has some, by start.
fn expected(transcript: &Transcript, cues: Cues) -> Vec<Shown> {
    let mut all = Vec::new();
    for segment in &transcript.segments {
        if cues == Cues::Segments || segment.words.is_empty() {
            all.push((segment.start, segment.end, &segment.text));
        } else {
            all.extend(segment.words.iter().map(|word| (word.start, word.end, &word.text)));
        }
    }
    let shown = |(start, end, text): (f64, f64, &String)| {
        let plain: String = text.chars().map(|c| if "\r\u{b}\u{c}\u{85}\u{2028}\u{2029}".contains(c) { '\n' } else { c }).collect();
        let plain: String = plain.chars().map(|c| if c != '\n' && c.is_control() { ' ' } else { c }).collect();
        let lines: Vec<String> = plain.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
        let (start, end) = ((start * 1000.0).round() as u64, (end * 1000.0).round() as u64);
        (!lines.is_empty()).then_some((start, end.max(start + 1), lines))
    };
    let mut all: Vec<Shown> = all.into_iter().filter_map(shown).collect();
    all.sort_by_key(|cue| cue.0);
    all
}

proptest! {
    #[test]
    fn subtitles_are_read_again(transcript in transcripts(), by_word in any::<bool>()) {
        let cues = if by_word { Cues::Words } else { Cues::Segments };
        let mut expected = expected(&transcript, cues);
        let vtt = written(&transcript, Format::Vtt, cues);
        prop_assert_eq!(read_vtt(&vtt), Some(expected.clone()), "{}", vtt);
        expected.iter_mut().flat_map(|cue| &mut cue.2).for_each(|line| *line = line.replace("-->", "→"));
        let srt = written(&transcript, Format::Srt, cues);
        prop_assert_eq!(read_srt(&srt), Some(expected), "{}", srt);
    }

    #[test]
    fn tables_and_texts_have_a_line_for_each(transcript in transcripts()) {
        let n = transcript.segments.len();
        let tsv = written(&transcript, Format::Tsv, Cues::Segments);
        prop_assert_eq!(tsv.matches('\n').count(), n + 1);
        prop_assert!(tsv.lines().all(|line| line.matches('\t').count() == 2));
        let txt = written(&transcript, Format::Txt, Cues::Segments);
        prop_assert_eq!(txt.matches('\n').count(), n);
        let separators = ['\t', '\r', '\0', '\u{2028}'];
        prop_assert!(!txt.contains(separators));
    }

    #[test]
    fn json_is_read_again(transcript in transcripts()) {
        let text = written(&transcript, Format::Json, Cues::Segments);
        let again: Transcript = serde_json::from_str(&text).expect("it is JSON");
        prop_assert_eq!(again.segments.len(), transcript.segments.len());
        prop_assert_eq!(again, transcript);
    }
}
