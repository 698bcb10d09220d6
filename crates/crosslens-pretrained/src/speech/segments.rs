//! Segments by the timestamps that a model wrote, and how far it understood a window.

use super::spoken::{Spoken, SpokenSegment};
use super::timestamps::{STEP_SECS, TimestampRule};
use crate::audio::{SAMPLE_RATE, WINDOW};

/// Seconds of a whole window.
const WINDOW_SECS: f64 = WINDOW as f64 / SAMPLE_RATE as f64;

/// What a window gave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cut {
    /// Seconds count from the beginning of the window.
    pub(crate) segments: Vec<SpokenSegment>,
    /// Steps of 0.02 s after which to go on; nothing where all of the window was understood.
    pub(crate) seek: Option<usize>,
}

/// Cuts what was heard in a window of `secs` seconds of sound at its timestamps.
///
/// ```text
/// <0.0> text <2.0> <2.0> more <4.5>           two segments; all was heard, silence to the end
/// <0.0> text <2.0> <2.0> more                 one segment; what follows was cut off: go on at 2.0
/// <0.0> text <2.0>, <0.0> text                one segment to the last timestamp or the end; go on after the window
/// <29.6> te                                   none; what follows was cut off: go on at 29.6
/// ```
/// as transformers and the program that Whisper came with do, all but the last: they keep the beginning of what was cut off after silence,
/// and write the rest of it for the next window. Only what begins in the second half of a whole window is heard again, so that no window
/// goes on by less than 15 seconds, whatever a model writes; there it begins at 0, and is kept.
pub(crate) fn cut(tokens: Vec<Spoken>, rule: &TimestampRule, secs: f64) -> Cut {
    let is_time: Vec<bool> = tokens.iter().map(|spoken| rule.is_time(spoken.token)).collect();
    let ends_with_time = matches!(is_time[..], [.., false, true]);
    let mut ends: Vec<usize> = (1..tokens.len()).filter(|&place| is_time[place - 1] && is_time[place]).collect();
    let time = |place: usize| rule.secs(tokens[place].token);
    let segment = |start: f64, end: f64, tokens: &[Spoken]| {
        let end = end.min(secs).max(0.0);
        SpokenSegment { start: start.min(end), end, tokens: tokens.to_vec(), no_speech: None }
    };
    if ends.is_empty() {
        let last = (0..tokens.len()).rev().find(|&place| is_time[place]).map(time).filter(|time| *time > 0.0);
        let first = tokens.first().filter(|_| is_time.first() == Some(&true)).map_or(0.0, |spoken| rule.secs(spoken.token));
        // The only timestamp may be the first: then it says nothing of the end.
        let closed = last.filter(|last| *last > first);
        if closed.is_none() && tokens.len() > 1 && secs >= WINDOW_SECS && (WINDOW_SECS / 2.0..WINDOW_SECS).contains(&first) {
            return Cut { segments: Vec::new(), seek: Some(steps(first)) };
        }
        return Cut { segments: vec![segment(first, closed.unwrap_or(secs), &tokens)], seek: None };
    }
    let seek = if ends_with_time {
        ends.push(tokens.len());
        None
    } else {
        ends.last().map(|&place| steps(time(place - 1)))
    };
    let mut segments = Vec::with_capacity(ends.len());
    let mut from = 0;
    for to in ends {
        segments.push(segment(time(from), time(to - 1), &tokens[from..to]));
        from = to;
    }
    Cut { segments, seek }
}

fn steps(secs: f64) -> usize {
    (secs / STEP_SECS).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text below 100, timestamps from 100 on.
    const RULE: TimestampRule = TimestampRule { first: 100, end: 98, latest_first: None };

    fn cut_of(tokens: &[u32]) -> (Vec<(f64, f64, usize)>, Option<usize>) {
        let spoken = tokens.iter().map(|&token| Spoken { token, log_probability: -0.5, secs: None }).collect();
        let Cut { segments, seek } = cut(spoken, &RULE, 1.5);
        (segments.iter().map(|segment| (segment.start, segment.end, segment.tokens.len())).collect(), seek)
    }

    #[test]
    fn a_window_is_cut_at_its_timestamps() {
        assert_eq!(cut_of(&[100, 1, 2, 110, 110, 3, 150]), (vec![(0.0, 0.2, 4), (0.2, 1.0, 3)], None));
        assert_eq!(cut_of(&[100, 1, 2, 110, 115, 3]), (vec![(0.0, 0.2, 4)], Some(10)), "what was cut off is heard again");
        assert_eq!(cut_of(&[105, 1, 110, 110]), (vec![(0.1, 0.2, 3)], Some(10)));
        assert_eq!(cut_of(&[100, 1, 110]), (vec![(0.0, 0.2, 3)], None));
        assert_eq!(cut_of(&[110, 1]), (vec![(0.2, 1.5, 2)], None), "an unknown end is the window's");
        assert_eq!(cut_of(&[]), (vec![(0.0, 1.5, 0)], None));
    }

    /// Of a whole window: 0.6 s, 16 s and 29.6 s are the timestamps 130, 900 and 1580.
    #[test]
    fn what_begins_late_in_a_window_and_never_ends_is_heard_again() {
        let seek_of = |tokens: &[u32], secs: f64| {
            let spoken = tokens.iter().map(|&token| Spoken { token, log_probability: -0.5, secs: None }).collect();
            let Cut { segments, seek } = cut(spoken, &RULE, secs);
            (segments.len(), seek)
        };
        assert_eq!(seek_of(&[1580, 1], 30.0), (0, Some(1480)));
        assert_eq!(seek_of(&[900, 1, 2], 30.0), (0, Some(800)));
        assert_eq!(seek_of(&[130, 1, 2], 30.0), (1, None), "hardly any further: it might go on so for every 0.6 s");
        assert_eq!(seek_of(&[1580, 1], 29.9), (1, None), "the end of the sound");
        assert_eq!(seek_of(&[900, 1, 1580], 30.0), (1, None), "it is closed");
        assert_eq!(seek_of(&[1580], 30.0), (1, None), "nothing was said");
        assert_eq!(seek_of(&[1600, 1], 30.0), (1, None), "the end of the window");
    }

    #[test]
    fn no_segment_ends_after_the_sound() {
        assert_eq!(cut_of(&[190, 1, 199]), (vec![(1.5, 1.5, 3)], None));
    }
}
