//! Components kept ready, so that single sentences are explained at once.

use super::causal::Replaced;
use super::samples::{Sample, Samples};
use crate::{Breakdown, Components, Description, Intervene, Recorded, Site, SiteSplit, SplitError, Subset};

/// Every site of a model with its components carried through its score map.
pub struct Ready<'a> {
    description: &'a Description,
    /// By site.
    splits: Vec<SiteSplit<'a, f32>>,
}

impl<'a> Ready<'a> {
    /// Prepares all sites; `components` are by stream.
    pub fn new(description: &'a Description, components: &'a [Components<f32>]) -> Result<Self, SplitError> {
        let prepare = |site: &'a Site| SiteSplit::new(description, site, &components[site.query], &components[site.key]);
        Ok(Self { description, splits: description.sites.iter().map(prepare).collect::<Result<_, _>>()? })
    }

    /// One sentence at these sites, in their order; without averages, since it stands alone. Panics if there is no such site.
    pub fn explain(&self, sentence: &Recorded, sites: &[usize]) -> Samples {
        let splits = sites.iter().map(|&site| (site, &self.splits[site]));
        Samples::new(self.description, vec![Sample::at(self.description, splits, sentence)], Vec::new())
    }

    /// What replaces the attention of one site, in a run of this sentence alone, by the softmax of some pieces of its scores:
    ///
    /// ```text
    /// α[i,j] = softmax_j( Σ of the pieces kept of score[i,j] )
    /// ```
    ///
    /// The pieces are those of the sentence as it was recorded, whatever the decoder reads in the new run. Panics if there is no such site.
    pub fn keeping(&self, sentence: &Recorded, site: usize, kept: Subset) -> impl Intervene + use<> {
        let mut breakdown = Breakdown::default();
        self.splits[site].split(sentence, &mut breakdown);
        let row = |query| {
            let mut row = Vec::new();
            breakdown.sum(kept, query, &mut row);
            crosslens_kernels::softmax(&mut row);
            row
        };
        Replaced { site, rows: vec![(0..breakdown.n_queries()).map(row).collect()] }
    }
}
