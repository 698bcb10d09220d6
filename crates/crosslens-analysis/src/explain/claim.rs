//! The average attention against position: one number for a model.

use crate::report::{ClaimReport, SiteReport};

/// Below this attention is uniform, and there is no way to go from there.
const UNIFORM: f64 = 1e-6;

/// Means over the heads from decoder to encoder that have both, and whose attention is not uniform; `None` without one.
pub(super) fn claim(sites: &[SiteReport]) -> Option<ClaimReport> {
    let ways: Vec<[f64; 2]> = sites.iter().filter(|site| site.kind == "cross").filter_map(ways).collect();
    let mean = |of: usize| ways.iter().map(|way| way[of]).sum::<f64>() / ways.len() as f64;
    (!ways.is_empty()).then(|| {
        let (average, temporal) = (mean(0), mean(1));
        ClaimReport { average, temporal, difference: average - temporal, heads: ways.len() }
    })
}

/// How much of the way from uniform to the true attention the average goes, and how much position alone.
fn ways(site: &SiteReport) -> Option<[f64; 2]> {
    let tv = |name: &str| site.rebuilt.get(name).map(|rebuilt| rebuilt.tv);
    let uniform = tv("uniform").filter(|&tv| tv > UNIFORM)?;
    let temporal = tv("temporal+bias").or_else(|| tv("temporal"))?;
    Some([1.0 - tv("average")? / uniform, 1.0 - temporal / uniform])
}
