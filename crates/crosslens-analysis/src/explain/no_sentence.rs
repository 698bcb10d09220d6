//! What can be said of a model without a sentence: which heads it has.

use std::collections::BTreeMap;

use super::{Explained, Samples};
use crate::report::{
    AverageReport, ComponentsReport, CorpusReport, CountsReport, ErrorReport, ModelReport, REPORT_SCHEMA, Report, Sides, SiteReport,
    TaskReport, VarianceReport, Verdict,
};
use crate::{Description, Estimator, Site};

impl Explained {
    /// A report of no sentence: the heads without shares, so that sentences can be shown at them. `verdict` says why there is nothing more.
    pub fn of_no_sentence(description: &Description, verdict: &Verdict) -> Self {
        let site = |site: &Site| SiteReport {
            kind: site.kind.name().into(),
            layer: site.layer,
            head: site.head,
            map: site.map.name().into(),
            variance: Sides { key: VarianceReport::default(), query: VarianceReport::default() },
            counts: Sides { key: CountsReport::default(), query: CountsReport::default() },
            error: ErrorReport::default(),
            shares: None,
            rebuilt: BTreeMap::new(),
            control: None,
            by_step: None,
            intervals: None,
            average_attention: AverageReport::default(),
            entropy: 0.0,
            diagonal: None,
            monotone: None,
            verdict: verdict.clone(),
        };
        let report = Report {
            schema: REPORT_SCHEMA.into(),
            model: ModelReport { description: description.model.clone(), hash: description.model_hash.clone(), path: None },
            corpus: CorpusReport {
                pairs: 0,
                fitted_pairs: 0,
                held_out: Some(false),
                source: String::new(),
                control: None,
                codes: None,
                warnings: Vec::new(),
            },
            task: TaskReport { can_rerun: true, ..TaskReport::default() },
            components: ComponentsReport { estimator: Estimator::Paper.name().into(), shrunk: false },
            streams: Vec::new(),
            sites: description.sites.iter().map(site).collect(),
            claim: None,
            rerun: None,
            unchanged: None,
            values: None,
            readout: None,
            geometry: None,
            ranking: None,
            samples: None,
        };
        Self { report, samples: Samples::new(description, Vec::new(), Vec::new()), totals: None }
    }
}
