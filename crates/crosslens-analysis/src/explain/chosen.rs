//! Pieces of a score that somebody chose, to rebuild attention from.

use std::fmt;
use std::str::FromStr;

use crate::{N_PARTS, N_TERMS, Subset};

/// The parts of a state, as they are named in choices.
const PARTS: [&str; 3] = ["t", "i", "r"];
/// The bias of positions.
const BIAS: &str = "bias";

/// Some pieces of a score by name: terms of the query's part and the key's, `tt` to `rr`, or parts of an additive score, `qt` to `kr`
/// (`t` temporal, `i` input, `r` residual), and `bias` for that of positions.
///
/// ```
/// use crosslens_analysis::explain::Chosen;
///
/// let chosen: Chosen = "ti,tt".parse()?;
/// assert_eq!(chosen.to_string(), "tt,ti");
/// assert!("tt,qi".parse::<Chosen>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    subset: Subset,
    is_additive: bool,
}

impl Chosen {
    /// Whether it is of the parts of additive scores, not of the terms of the others.
    pub fn is_additive(self) -> bool {
        self.is_additive
    }

    /// The pieces.
    pub fn subset(self) -> Subset {
        self.subset
    }
}

/// What a piece is called.
fn name(piece: usize, is_additive: bool) -> String {
    let first = if is_additive { ["q", "k"][piece / 3] } else { PARTS[piece / 3] };
    format!("{first}{}", PARTS[piece % 3])
}

fn n_pieces(is_additive: bool) -> usize {
    if is_additive { N_PARTS } else { N_TERMS }
}

impl FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted: Vec<&str> = text.split(',').map(str::trim).collect();
        let has_bias = wanted.contains(&BIAS);
        let pieces: Vec<&str> = wanted.into_iter().filter(|piece| *piece != BIAS).collect();
        let mask = |is_additive: bool| -> Option<u16> {
            let place = |wanted: &str| (0..n_pieces(is_additive)).find(|&piece| name(piece, is_additive) == wanted);
            pieces.iter().try_fold(0u16, |mask, piece| Some(mask | 1u16 << place(piece)?))
        };
        if pieces.is_empty() {
            return Err("a subset has one piece at least".into());
        }
        let found = [false, true].into_iter().find_map(|is_additive| Some((mask(is_additive)?, is_additive)));
        let unknown = || "terms such as tt,ti (query part, key part) or parts such as qt,ki; t temporal, i input, r residual".to_owned();
        let (mask, is_additive) = found.ok_or_else(unknown)?;
        Ok(Self { subset: Subset::from_mask(mask, has_bias), is_additive })
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pieces = (0..n_pieces(self.is_additive)).filter(|&piece| self.subset.holds(piece));
        let names = pieces.map(|piece| name(piece, self.is_additive)).chain(self.subset.bias.then(|| BIAS.to_owned()));
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;

    #[test]
    fn names_say_the_query_part_first() {
        let chosen: Chosen = "tr".parse().expect("a term");
        assert_eq!(chosen.subset(), Subset::terms(|query, key| (query, key) == (Part::Temporal, Part::Residual)));
        let chosen: Chosen = "qi,ki".parse().expect("two parts");
        assert_eq!((chosen.subset(), chosen.is_additive()), (Subset::parts(|part| part == Part::Input), true));
    }

    #[test]
    fn a_name_is_the_same_whatever_the_order() {
        for (text, name) in [("rr, tt,tt", "tt,rr"), ("bias,ti", "ti,bias"), ("kr,qt", "qt,kr")] {
            assert_eq!(text.parse::<Chosen>().expect("pieces").to_string(), name);
        }
    }

    #[test]
    fn what_is_no_choice_is_refused() {
        for text in ["", "bias", "tx", "ttt", "tt,qt", "temporal", "tt,,ti"] {
            assert!(text.parse::<Chosen>().is_err(), "{text}");
        }
    }
}
