//! `maps.safetensors`: the weights that turn states into scores, values and logits.
//!
//! ```text
//! sites.{i}.query.weights  [d_query, d_head]   sites.{i}.query.bias  [d_head]
//! sites.{i}.key.weights    [d_key, d_head]     sites.{i}.key.bias    [d_head]
//! sites.{i}.value.weights  [d_key, d_value]    sites.{i}.value.bias  [d_value]
//! sites.{i}.vector         [d_head]            sites.{i}.position_bias  [distances], or the values of a grid
//! readout.weights          [d_in, words]       readout.bias          [words]
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use super::RecordingError;
use super::manifest::{Manifest, ReadoutEntry, SiteEntry};
use crate::storage::arrays::Arrays;
use crate::storage::dtype::Dtype;
use crate::storage::safetensors::{Tensor, Values};
use crate::{Description, GridBias, Linear, PositionBias, Readout, RelativeBias, ScoreMap, Site, Stream};

/// The arrays of one site.
pub(super) fn of_site(place: usize, site: &Site) -> Vec<Tensor<'_>> {
    let mut tensors = Vec::new();
    let prefix = format!("sites.{place}");
    match &site.map {
        ScoreMap::Dot { .. } => {}
        ScoreMap::Bilinear { query } => push(&mut tensors, &format!("{prefix}.query"), query),
        ScoreMap::Projected { query, key, position_bias, .. } => {
            push(&mut tensors, &format!("{prefix}.query"), query);
            push(&mut tensors, &format!("{prefix}.key"), key);
            tensors.extend(position_bias.iter().map(|bias| vector(format!("{prefix}.position_bias"), bias.values())));
        }
        ScoreMap::Additive { query, key, vector: v } => {
            push(&mut tensors, &format!("{prefix}.query"), query);
            push(&mut tensors, &format!("{prefix}.key"), key);
            tensors.push(vector(format!("{prefix}.vector"), v));
        }
    }
    if let Some(value) = &site.value {
        push(&mut tensors, &format!("{prefix}.value"), value);
    }
    tensors
}

/// The arrays of the readout.
pub(super) fn of_readout(readout: &Readout) -> Vec<Tensor<'_>> {
    let mut tensors = Vec::new();
    push(&mut tensors, "readout", &readout.map);
    tensors
}

fn push<'a>(tensors: &mut Vec<Tensor<'a>>, prefix: &str, map: &'a Linear) {
    let shape = vec![map.d_in as u64, map.d_out as u64];
    tensors.push(Tensor { name: format!("{prefix}.weights"), shape, values: Values::F32(&map.weights) });
    if !map.bias.is_empty() {
        tensors.push(vector(format!("{prefix}.bias"), &map.bias));
    }
}

fn vector(name: String, values: &[f32]) -> Tensor<'_> {
    Tensor { name, shape: vec![values.len() as u64], values: Values::F32(values) }
}

/// The manifest's lines for sites and readout.
pub(super) fn entries(description: &Description) -> (Vec<SiteEntry>, Option<ReadoutEntry>) {
    let names = |tensors: Vec<Tensor<'_>>| tensors.into_iter().map(|tensor| tensor.name).collect();
    let sites = description.sites.iter().enumerate().map(|(place, site)| SiteEntry {
        kind: site.kind,
        layer: site.layer,
        head: site.head,
        query: site.query,
        key: site.key,
        visible: site.visible,
        map: site.map.name().to_owned(),
        scale: match &site.map {
            ScoreMap::Dot { scale } | ScoreMap::Projected { scale, .. } => Some(*scale),
            ScoreMap::Bilinear { .. } | ScoreMap::Additive { .. } => None,
        },
        lowest: match site.map.position_bias() {
            Some(PositionBias::Distance(bias)) => Some(bias.lowest),
            _ => None,
        },
        grid: match site.map.position_bias() {
            Some(PositionBias::Grid(bias)) => Some([bias.rows, bias.columns]),
            _ => None,
        },
        tensors: names(of_site(place, site)),
    });
    let readout = description.readout.as_ref().map(|readout| ReadoutEntry {
        d_state: readout.d_state,
        d_context: readout.d_context,
        tensors: names(of_readout(readout)),
    });
    (sites.collect(), readout)
}

/// Puts a description together from the manifest at `path` and the arrays of `maps.safetensors`.
pub(super) fn describe(path: &Path, manifest: &Manifest, arrays: &Arrays) -> Result<Description, RecordingError> {
    let readout_tensors = manifest.readout.iter().flat_map(|readout| &readout.tensors);
    let listed = manifest.sites.iter().flat_map(|site| &site.tensors).chain(readout_tensors);
    let mut names = BTreeSet::new();
    if let Some(twice) = listed.into_iter().find(|name| !names.insert(name.as_str())) {
        return Err(RecordingError::Duplicate { path: path.to_owned(), name: twice.clone() });
    }
    arrays.refuse_unknown(|name| names.contains(name))?;

    let reader = Reader { path, arrays, names };
    let sites = manifest.sites.iter().enumerate().map(|(place, entry)| reader.site(place, entry));
    let description = Description {
        model: manifest.model.clone(),
        model_hash: manifest.model_hash.clone(),
        source: manifest.source.clone(),
        target: manifest.target.clone(),
        streams: manifest
            .streams
            .iter()
            .map(|entry| Stream { name: entry.name.clone(), side: entry.side, consumed: entry.consumed, d: entry.d })
            .collect(),
        sites: sites.collect::<Result<_, _>>()?,
        readout: manifest.readout.as_ref().map(|entry| reader.readout(entry)).transpose()?,
    };
    reader.refuse_unread(&description)?;
    Ok(description)
}

struct Reader<'a> {
    path: &'a Path,
    arrays: &'a Arrays,
    /// The arrays that the manifest lists.
    names: BTreeSet<&'a str>,
}

impl Reader<'_> {
    fn site(&self, place: usize, entry: &SiteEntry) -> Result<Site, RecordingError> {
        let damaged = |what: &str| RecordingError::Damaged { path: self.path.to_owned(), what: format!("site {place} {what}") };
        let prefix = format!("sites.{place}");
        let linear = |part: &str| self.linear(&format!("{prefix}.{part}"));
        let scale = || entry.scale.ok_or_else(|| damaged("has no `scale`"));
        let map = match entry.map.as_str() {
            "dot" | "scaled-dot" => ScoreMap::Dot { scale: scale()? },
            "general" => ScoreMap::Bilinear { query: linear("query")? },
            "projected" => {
                let values = || self.vector(&format!("{prefix}.position_bias"));
                let position_bias = match (entry.lowest, entry.grid) {
                    (None, None) => None,
                    (Some(lowest), None) => Some(RelativeBias { lowest, values: values()? }.into()),
                    (None, Some([rows, columns])) => Some(GridBias { rows, columns, values: values()? }.into()),
                    (Some(_), Some(_)) => return Err(damaged("has both `lowest` and `grid`")),
                };
                ScoreMap::Projected { query: linear("query")?, key: linear("key")?, scale: scale()?, position_bias }
            }
            "additive" => {
                ScoreMap::Additive { query: linear("query")?, key: linear("key")?, vector: self.vector(&format!("{prefix}.vector"))? }
            }
            other => return Err(damaged(&format!("has an unknown map `{other}`"))),
        };
        let has_value = self.names.contains(format!("{prefix}.value.weights").as_str());
        Ok(Site {
            kind: entry.kind,
            layer: entry.layer,
            head: entry.head,
            query: entry.query,
            key: entry.key,
            map,
            visible: entry.visible,
            value: if has_value { Some(linear("value")?) } else { None },
        })
    }

    fn readout(&self, entry: &ReadoutEntry) -> Result<Readout, RecordingError> {
        Ok(Readout { map: self.linear("readout")?, d_state: entry.d_state, d_context: entry.d_context })
    }

    fn linear(&self, prefix: &str) -> Result<Linear, RecordingError> {
        let (weights, bias) = (format!("{prefix}.weights"), format!("{prefix}.bias"));
        let [d_in, d_out] = self.arrays.shape(&weights, &[Dtype::F32])?;
        let has_bias = self.names.contains(bias.as_str());
        Ok(Linear {
            d_in: self.size(&weights, d_in)?,
            d_out: self.size(&weights, d_out)?,
            weights: self.arrays.all(&weights)?,
            bias: if has_bias { self.vector(&bias)? } else { Vec::new() },
        })
    }

    fn vector(&self, name: &str) -> Result<Vec<f32>, RecordingError> {
        let [_] = self.arrays.shape(name, &[Dtype::F32])?;
        self.arrays.all(name)
    }

    fn size(&self, name: &str, size: u64) -> Result<usize, RecordingError> {
        usize::try_from(size).map_err(|_| self.arrays.misshapen(name, &[size], "a size this machine can count"))
    }

    /// Fails where the manifest lists an array that no map of the description took.
    fn refuse_unread(&self, description: &Description) -> Result<(), RecordingError> {
        let sites = description.sites.iter().enumerate().flat_map(|(place, site)| of_site(place, site));
        let read: BTreeSet<String> = sites.chain(description.readout.iter().flat_map(of_readout)).map(|tensor| tensor.name).collect();
        match self.names.iter().find(|name| !read.contains(**name)) {
            Some(name) => Err(RecordingError::UnknownArray { path: self.path.to_owned(), name: (*name).to_owned() }),
            None => Ok(()),
        }
    }
}
