//! What a report does not keep of single sentences: where each step looks, which words are right, how far attention leaves its average.

use std::collections::BTreeMap;

use crosslens_analysis::Description;
use crosslens_analysis::explain::{Sample, Samples};
use crosslens_nets::tasks::PERIOD_WORD;
use serde::{Deserialize, Serialize};

use super::numbers::{correlation, mean, softmax};

/// Pieces of a bilinear score made of steps and tokens alone: the query's part times three plus the key's.
const TEMPORAL: [usize; 1] = [0];
const TEMPORAL_AND_INPUT: [usize; 4] = [0, 1, 3, 4];

/// Counted over all sentences of an explanation, at the first head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Looks {
    /// Content steps by `key looked at − step`.
    pub forward: BTreeMap<i64, u64>,
    /// Content steps by `key looked at − (last content key − step)`.
    pub backward: BTreeMap<i64, u64>,
    /// By word of the target: how often it was right, how often it was due.
    pub words: BTreeMap<String, [u64; 2]>,
    /// Of the size of the temporal × temporal term where the score is highest: the share that is the same for every key, which softmax
    /// ignores. Null for additive scores.
    pub constant: Option<f64>,
    /// How far attention runs ahead of the step; null where the task names no source word for a target word.
    pub displacement: Option<Displacement>,
}

/// `place in the source − step`, over steps that every sentence has before its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Displacement {
    /// Of the word the grammar makes the target word from, by step, averaged over sentences.
    pub grammar: Vec<f64>,
    /// Of the centre of attention.
    pub attention: Vec<f64>,
    /// Of the centre of attention rebuilt from steps alone.
    pub temporal: Vec<f64>,
    /// Over single steps: correlation of what a sentence's grammar adds to the average displacement with what its attention adds to that
    /// rebuilt from steps alone.
    pub own: f64,
    /// The same with attention rebuilt from steps and tokens.
    pub own_of_input: f64,
}

impl Looks {
    /// Looks at every sentence kept.
    pub(super) fn of(description: &Description, samples: &Samples) -> Self {
        let mut looks = Self::default();
        let (mut constant, mut varying) = (0.0, 0.0);
        for sample in &samples.sentences {
            looks.count_words(description, sample);
            let Some(&(n_queries, n_keys)) = sample.shapes.first() else { continue };
            let (n_steps, n_places) = (content_steps(description, sample), content_places(description, sample));
            for query in 0..n_queries.min(n_steps) {
                let key = argmax(&sample.attention[0][query * n_keys..][..n_keys]) as i64;
                *looks.forward.entry(key - query as i64).or_default() += 1;
                *looks.backward.entry(key - (n_places as i64 - 1 - query as i64)).or_default() += 1;
                if let Some((same, other)) = constant_part(sample, query) {
                    (constant, varying) = (constant + same, varying + other);
                }
            }
        }
        looks.constant = (constant + varying > 0.0).then(|| constant / (constant + varying));
        looks.displacement = displacement(description, samples);
        looks
    }

    fn count_words(&mut self, description: &Description, sample: &Sample) {
        let Some(target) = &sample.sentence.target else { return };
        for (due, written) in target.iter().zip(&sample.sentence.predicted) {
            let [right, all] = self.words.entry(description.target.name(*due).to_string()).or_default();
            *all += 1;
            *right += u64::from(due == written);
        }
    }

    /// Share of content steps that look at most `reach` from the anti-diagonal.
    pub fn near_antidiagonal(&self, reach: i64) -> f64 {
        share_within(&self.backward, reach)
    }

    /// Share of content steps that look at most `reach` from the diagonal.
    pub fn near_diagonal(&self, reach: i64) -> f64 {
        share_within(&self.forward, reach)
    }

    /// Share of the places where a word was due at which it was written; `None` where it never was due.
    pub fn right(&self, word: &str) -> Option<f64> {
        self.words.get(word).map(|&[right, all]| right as f64 / all.max(1) as f64)
    }
}

fn share_within(offsets: &BTreeMap<i64, u64>, reach: i64) -> f64 {
    let near: u64 = offsets.iter().filter(|(offset, _)| offset.abs() <= reach).map(|(_, count)| count).sum();
    near as f64 / offsets.values().sum::<u64>().max(1) as f64
}

fn argmax(row: &[f32]) -> usize {
    (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a))).unwrap_or_default()
}

/// Steps before the end token.
fn content_steps(description: &Description, sample: &Sample) -> usize {
    let written = sample.sentence.target.as_ref().unwrap_or(&sample.sentence.predicted);
    written.iter().position(|&token| Some(token) == description.target.end).unwrap_or(written.len())
}

/// Source words before the end token.
fn content_places(description: &Description, sample: &Sample) -> usize {
    let source = &sample.sentence.source;
    source.iter().position(|&token| Some(token) == description.source.end).unwrap_or(source.len())
}

/// The scores of one step made of some pieces; `None` for additive scores, which have six pieces.
fn scores(sample: &Sample, query: usize, pieces: impl Iterator<Item = usize>) -> Option<Vec<f64>> {
    let (n_queries, n_keys) = sample.shapes[0];
    if sample.pieces[0].len() != 9 * n_queries * n_keys {
        return None;
    }
    let mut sum = vec![0.0; n_keys];
    for piece in pieces {
        let row = &sample.pieces[0][(piece * n_queries + query) * n_keys..][..n_keys];
        sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    Some(sum)
}

/// Sizes of what is constant along the keys and of what varies in the temporal × temporal term, at the highest score.
fn constant_part(sample: &Sample, query: usize) -> Option<(f64, f64)> {
    let score = scores(sample, query, 0..9)?;
    let temporal = scores(sample, query, TEMPORAL.into_iter())?;
    let top = (0..score.len()).max_by(|&a, &b| score[a].total_cmp(&score[b]))?;
    let same = mean(&temporal);
    Some((same.abs(), (temporal[top] - same).abs()))
}

/// Where the words of an eSCAN target come from; `None` for words whose actions cannot be told one by one.
///
/// ```text
/// run left and walk <.>   gives   LTURN(left) RUN(run) WALK(walk) <.>
/// ```
fn origins(words: &[&str]) -> Option<Vec<usize>> {
    let mut origins = Vec::new();
    for (place, &word) in words.iter().enumerate() {
        match word {
            "run" | "walk" | "look" | "jump" if words.get(place + 1) == Some(&"left") => origins.extend([place + 1, place]),
            "run" | "walk" | "look" | "jump" | PERIOD_WORD => origins.push(place),
            "left" | "and" => {}
            _ => return None,
        }
    }
    Some(origins)
}

fn displacement(description: &Description, samples: &Samples) -> Option<Displacement> {
    let mut sentences = Vec::new();
    for sample in &samples.sentences {
        let n_places = content_places(description, sample);
        let names: Vec<String> =
            sample.sentence.source[..n_places].iter().map(|&token| description.source.name(token).to_string()).collect();
        let origins = origins(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
        if origins.len() != content_steps(description, sample) || sample.shapes.is_empty() {
            return None;
        }
        sentences.push((sample, origins));
    }
    let n_steps = sentences.iter().map(|(_, origins)| origins.len()).min().filter(|&n| n > 1)?;
    let centre = |weights: &[f64]| weights.iter().enumerate().map(|(place, weight)| place as f64 * weight).sum::<f64>();
    // By step, then sentence.
    let (mut grammar, mut attention) = (vec![Vec::new(); n_steps], vec![Vec::new(); n_steps]);
    let (mut temporal, mut input) = (vec![Vec::new(); n_steps], vec![Vec::new(); n_steps]);
    for (sample, origins) in &sentences {
        for step in 0..n_steps {
            grammar[step].push(origins[step] as f64 - step as f64);
            for (pieces, centres) in [(&TEMPORAL[..], &mut temporal), (&TEMPORAL_AND_INPUT[..], &mut input)] {
                let weights = softmax(&scores(sample, step, pieces.iter().copied())?);
                centres[step].push(centre(&weights) - step as f64);
            }
            attention[step].push(centre(&softmax(&scores(sample, step, 0..9)?)) - step as f64);
        }
    }
    let means = |of: &[Vec<f64>]| of.iter().map(|step| mean(step)).collect::<Vec<f64>>();
    let average = means(&grammar);
    let beyond = |of: &[Vec<f64>]| -> Vec<f64> {
        of.iter().zip(&temporal).flat_map(|(step, temporal)| step.iter().zip(temporal).map(|(a, b)| a - b)).collect()
    };
    let own: Vec<f64> = grammar.iter().zip(&average).flat_map(|(step, average)| step.iter().map(move |x| x - average)).collect();
    Some(Displacement {
        own: correlation(&own, &beyond(&attention)),
        own_of_input: correlation(&own, &beyond(&input)),
        attention: means(&attention),
        temporal: means(&temporal),
        grammar: average,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `run left` is written LTURN RUN, `and` writes nothing.
    #[test]
    fn the_grammar_says_where_a_word_comes_from() {
        assert_eq!(origins(&["run", "left", "and", "walk", PERIOD_WORD]), Some(vec![1, 0, 3, 4]));
        assert_eq!(origins(&["run", "twice"]), None);
    }

    #[test]
    fn looks_are_counted_within_reach() {
        let looks = Looks { backward: BTreeMap::from([(0, 6), (1, 2), (-3, 2)]), ..Looks::default() };
        assert_eq!((looks.near_antidiagonal(0), looks.near_antidiagonal(1), looks.near_diagonal(5)), (0.6, 0.8, 0.0));
    }
}
