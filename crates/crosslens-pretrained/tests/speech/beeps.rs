//! A stand-in for a model that hears beeps exactly: whatever is doubled or lost, the windows did it.
//!
//! At most a word a second: from 0.6 to 1.2 seconds after each, all samples are `(word + 1)/1000`; silence between. Windows of 30 seconds cut the
//! word that spans 29.6 to 30.2, and so on.

use crosslens_analysis::Token;
use crosslens_pretrained::audio::{SAMPLE_RATE, Window};
use crosslens_pretrained::speech::{Heard, Hears, Passage, Passages, SpeechError, Spoken, TimestampRule};

const RATE: usize = SAMPLE_RATE as usize;
const RULE: TimestampRule = TimestampRule { first: 2000, end: 1998, latest_first: None };
/// What is made of a word that is cut in two.
const GARBLED: Token = 1000;

/// Another word every second.
fn count_to(n_words: usize) -> Vec<Option<Token>> {
    (0..n_words as Token).map(Some).collect()
}

/// Samples of the word of each second, where there is one, in pieces of a third of a second.
fn beeps(said: Vec<Option<Token>>) -> impl Iterator<Item = Vec<f32>> {
    let n_samples = (said.len() + 1) * RATE;
    let sample = move |at: usize| {
        let Some(since) = at.checked_sub(RATE * 6 / 10) else { return 0.0 };
        let word = said.get(since / RATE).copied().flatten().filter(|_| since % RATE < RATE * 6 / 10);
        word.map_or(0.0, |word| (word + 1) as f32 / 1000.0)
    };
    (0..n_samples).step_by(RATE / 3).map(move |from| (from..(from + RATE / 3).min(n_samples)).map(&sample).collect())
}

/// How times are told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Times {
    /// By timestamps.
    Written,
    /// By attention.
    LookedAt,
    Unknown,
}

/// Writes a word for each beep.
struct Exact {
    times: Times,
    offsets: Vec<u64>,
}

impl Hears for Exact {
    fn hear(&mut self, window: Window<'_>) -> Result<Heard, SpeechError> {
        self.offsets.push(window.offset);
        let sound = &window.samples[..window.n_real];
        let mut tokens = Vec::new();
        let time = |at: usize| RULE.first + (at as f64 / RATE as f64 / 0.02).round() as Token;
        let mut from = 0;
        for run in sound.chunk_by(|a, b| a == b) {
            let to = from + run.len();
            if run[0] > 0.0 {
                let is_whole = run.len() >= RATE * 6 / 10;
                let word = (run[0] * 1000.0).round() as Token - 1 + if is_whole { 0 } else { GARBLED };
                let is_open = to == sound.len();
                let secs = [from, to].map(|at| at as f64 / RATE as f64);
                let spoken = |token: Token, secs: Option<(f64, f64)>| Spoken { token, log_probability: -0.1, secs };
                match self.times {
                    Times::Written if is_open && !is_whole => tokens.extend([time(from), word].map(|token| spoken(token, None))),
                    Times::Written => tokens.extend([time(from), word, time(to)].map(|token| spoken(token, None))),
                    Times::LookedAt => tokens.push(spoken(word, Some(secs.into()))),
                    Times::Unknown => tokens.push(spoken(word, None)),
                }
            }
            from = to;
        }
        Ok(Heard { tokens, no_speech: Some(0.0) })
    }
}

/// What was heard, and where windows began, in seconds.
fn listen(said: Vec<Option<Token>>, times: Times) -> (Vec<Passage>, Vec<f64>) {
    let mut hears = Exact { times, offsets: Vec::new() };
    let rule = (times == Times::Written).then_some(RULE);
    let passages = Passages::over(beeps(said), &mut hears, rule).collect::<Result<_, _>>().expect("beeps are heard");
    (passages, hears.offsets.iter().map(|offset| *offset as f64 / RATE as f64).collect())
}

fn words(passages: &[Passage]) -> Vec<Token> {
    let tokens = passages.iter().flat_map(|passage| &passage.segments).flat_map(|segment| &segment.tokens);
    tokens.map(|spoken| spoken.token).filter(|token| *token < RULE.end).collect()
}

#[test]
fn no_word_of_a_long_sound_is_doubled_or_lost() {
    for n_words in [0, 1, 28, 29, 30, 31, 59, 94, 203] {
        assert_all_is_heard(&count_to(n_words));
    }
}

/// However times are told, each word that was said is heard once.
fn assert_all_is_heard(said: &[Option<Token>]) {
    let expected: Vec<Token> = said.iter().copied().flatten().collect();
    for times in [Times::Written, Times::LookedAt, Times::Unknown] {
        assert_eq!(words(&listen(said.to_vec(), times).0), expected, "{times:?}");
    }
}

/// Without timestamps the first windows are from 0 to 30, 20 to 50 and 40 to 70 seconds. Nobody speaks from 20 to 30: the first two have no
/// word in common. The same from 35 to 52: the second one and the third have none either.
#[test]
fn a_pause_over_an_overlap_loses_nothing() {
    for pauses in [[19..30, 0..0], [0..0, 35..52], [19..30, 35..52], [15..75, 0..0]] {
        let mut said = count_to(94);
        for pause in pauses {
            said[pause].fill(None);
        }
        assert_all_is_heard(&said);
    }
}

/// Two words that are said before and after the overlap, with a pause over it and without: they are not the same place.
#[test]
fn two_words_said_again_far_from_an_overlap_lose_nothing() {
    for (first, again) in [(5, 44), (5, 33), (12, 40)] {
        for pause in [19..30, 0..0] {
            let mut said = count_to(94);
            said[pause].fill(None);
            (said[again], said[again + 1]) = (said[first], said[first + 1]);
            assert_all_is_heard(&said);
        }
    }
}

/// Nobody speaks but in the second that the first window ends in.
#[test]
fn a_word_cut_off_after_silence_is_heard_again() {
    let said: Vec<_> = count_to(94).into_iter().enumerate().map(|(second, word)| word.filter(|_| second == 29 || second > 40)).collect();
    let (passages, offsets) = listen(said.clone(), Times::Written);
    assert!((offsets[1] - 29.6).abs() < 0.02, "{offsets:?}");
    assert_eq!(words(&passages), said.into_iter().flatten().collect::<Vec<_>>());
}

/// 94 words take 95 seconds. The first window ends within word 29, which spans 29.6 to 30.2; word 28 ended at 29.2.
#[test]
fn windows_go_on_where_the_last_whole_segment_ended() {
    let (passages, offsets) = listen(count_to(94), Times::Written);
    assert_eq!(offsets.len(), 4);
    assert!((offsets[1] - 29.2).abs() < 0.02, "{offsets:?}");
    let segments: Vec<_> = passages.iter().flat_map(|passage| &passage.segments).collect();
    for (word, segment) in segments.iter().enumerate() {
        assert!((segment.start - (word as f64 + 0.6)).abs() < 0.03 && (segment.end - (word as f64 + 1.2)).abs() < 0.03, "{segment:?}");
    }
    assert!(passages.is_sorted_by(|a, b| a.done_secs < b.done_secs));
    assert!((passages[passages.len() - 1].done_secs - 95.0).abs() < 1e-9);
}

#[test]
fn windows_without_timestamps_overlap_by_ten_seconds() {
    let (passages, offsets) = listen(count_to(94), Times::Unknown);
    assert_eq!(offsets, [0.0, 20.0, 40.0, 60.0, 80.0]);
    let segments: Vec<_> = passages.iter().flat_map(|passage| &passage.segments).collect();
    let times: Vec<(f64, f64)> = segments.iter().map(|segment| (segment.start, segment.end)).collect();
    assert_eq!(times, [(0.0, 25.0), (25.0, 45.0), (45.0, 65.0), (65.0, 85.0), (85.0, 95.0)]);
}

/// Whoever hears nothing likely in what may be silence hears nothing.
#[test]
fn silence_says_nothing() {
    struct Dreams;
    impl Hears for Dreams {
        fn hear(&mut self, _: Window<'_>) -> Result<Heard, SpeechError> {
            let tokens = vec![Spoken { token: 5, log_probability: -3.0, secs: None }];
            Ok(Heard { tokens, no_speech: Some(0.9) })
        }
    }
    for rule in [None, Some(RULE)] {
        let passages: Vec<Passage> = Passages::over(beeps(count_to(40)), Dreams, rule).collect::<Result<_, _>>().expect("silence");
        assert!(words(&passages).is_empty() && !passages.is_empty());
    }
}

/// Says 60 words in the window of this number and nothing in the others.
struct Once {
    speaks: usize,
    heard: usize,
}

impl Hears for Once {
    fn hear(&mut self, _: Window<'_>) -> Result<Heard, SpeechError> {
        let n_words = if self.heard == self.speaks { 60 } else { 0 };
        self.heard += 1;
        let spoken = (0..n_words).map(|token| Spoken { token, log_probability: -0.1, secs: None });
        Ok(Heard { tokens: spoken.collect(), no_speech: Some(0.0) })
    }
}

/// 45 seconds without timestamps are windows of 0 to 30 and 20 to 45: what one of them heard alone is said in that one.
#[test]
fn words_before_or_after_silence_are_not_lost() {
    for (speaks, times) in [(0, (0.0, 30.0)), (1, (20.0, 45.0))] {
        let passages: Vec<Passage> =
            Passages::over(beeps(count_to(44)), Once { speaks, heard: 0 }, None).collect::<Result<_, _>>().expect("words are heard");
        assert_eq!(words(&passages), (0..60).collect::<Vec<Token>>(), "spoken in window {speaks}");
        let segments: Vec<_> = passages.iter().flat_map(|passage| &passage.segments).collect();
        assert_eq!(segments.iter().map(|segment| (segment.start, segment.end)).collect::<Vec<_>>(), [times]);
    }
}

/// Timestamps that would have the same window heard for ever.
#[test]
fn a_segment_without_length_does_not_stop_the_walk() {
    struct Stuck(usize);
    impl Hears for Stuck {
        fn hear(&mut self, _: Window<'_>) -> Result<Heard, SpeechError> {
            self.0 += 1;
            assert!(self.0 < 100, "the window does not move");
            let tokens = [RULE.first, 7, RULE.first, RULE.first, 8].map(|token| Spoken { token, log_probability: -0.1, secs: None });
            Ok(Heard { tokens: tokens.to_vec(), no_speech: None })
        }
    }
    let passages: Vec<Passage> = Passages::over(beeps(count_to(94)), Stuck(0), Some(RULE)).collect::<Result<_, _>>().expect("it ends");
    assert_eq!(passages.len(), 4);
}
