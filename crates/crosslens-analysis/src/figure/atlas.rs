//! All heads at a glance, as the page shows them: colour says what drives a head, the disc how much of the scores that part makes, the ring
//! how often it alone looks at the same token.

use std::collections::BTreeMap;

use super::colours::Colour;
use super::svg::{Stroke, Svg, Text};
use super::text::{shown, width};
use super::{COLUMN_MM, Figure, FigureError, Style};
use crate::Part;
use crate::report::{Report, SiteReport};

const MARGIN: f64 = 6.0;
const LETTERS: f64 = 6.5;
/// Largest place of a head, unless a width is asked for.
const LARGEST: f64 = 17.0;
/// For those who do not see it.
const TITLE: &str = "What drives each attention head: colours by the part, discs by its share of the scores, rings by how often it alone looks \
                     at the same token";
/// Most heads that are drawn.
const MAX_SITES: usize = 10_000;

/// What drives a head.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Driver {
    part: Part,
    /// Its share of what makes a row's scores differ.
    share: f64,
    /// Share of steps at which attention rebuilt from that part alone looks at the same key, where it was rebuilt.
    kept: Option<f64>,
}

impl Driver {
    /// The part with the largest share of the score's variance, the bias of positions counted as temporal and mixtures as the rest; `None`
    /// without shares.
    fn of(site: &SiteReport) -> Option<Self> {
        let shares = site.shares.as_ref()?;
        let ([temporal, input, _], _) = shares.totals();
        let temporal = temporal + shares.position_bias;
        let totals = [temporal, input, 1.0 - temporal - input];
        // The first of equals, as in the page.
        let largest = (0..3).rev().max_by(|&a, &b| totals[a].total_cmp(&totals[b]))?;
        let part = Part::ALL[largest];
        let with_bias = if part == Part::Temporal { site.rebuilt.get("temporal+bias") } else { None };
        let rebuilt = with_bias.or_else(|| site.rebuilt.get(part.name()));
        Some(Self { part, share: totals[largest], kept: rebuilt.map(|rebuilt| rebuilt.argmax) })
    }
}

/// Draws every head of a report: layers as rows, heads as columns, one block for each kind of attention.
pub(super) fn atlas(report: &Report, style: &Style) -> Result<Figure, FigureError> {
    if report.sites.is_empty() {
        return Err(FigureError::Missing("attention: its network has none"));
    }
    if report.sites.len() > MAX_SITES {
        return Err(FigureError::TooManySites { n_sites: report.sites.len(), most: MAX_SITES });
    }
    let mut blocks: BTreeMap<(usize, &str), Vec<&SiteReport>> = BTreeMap::new();
    for site in &report.sites {
        let order = ["encoder-self", "decoder-self", "cross"].iter().position(|kind| *kind == site.kind).unwrap_or(3);
        blocks.entry((order, site.kind.as_str())).or_default().push(site);
    }
    let width_pt = style.width(COLUMN_MM)?;
    let mut svg = style.svg();
    let left = MARGIN + 30.0;
    let n_heads = blocks.values().map(|sites| places(sites, |site| site.head).len()).max().unwrap_or(1);
    let mut cell = (width_pt - left - MARGIN) / n_heads as f64;
    if style.width_mm.is_none() {
        cell = cell.min(LARGEST);
    }
    let mut y = MARGIN;
    for ((_, kind), sites) in &blocks {
        y = draw_block(&mut svg, [left, y], cell, kind, sites) + 8.0;
    }
    let [right, bottom] = draw_legend(&mut svg, [MARGIN, y + 2.0], cell.min(LARGEST));
    let needed = (left + cell * n_heads as f64).max(right) + MARGIN;
    let width_pt = if style.width_mm.is_some() { width_pt } else { needed };
    Ok(Figure::new(svg, [width_pt, bottom + MARGIN], TITLE))
}

/// The numbers that occur, in order.
fn places(sites: &[&SiteReport], of: impl Fn(&SiteReport) -> usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = sites.iter().map(|site| of(site)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// One kind of attention; gives where it ends.
fn draw_block(svg: &mut Svg, [left, top]: [f64; 2], cell: f64, kind: &str, sites: &[&SiteReport]) -> f64 {
    let colours = svg.colours();
    let (layers, heads) = (places(sites, |site| site.layer), places(sites, |site| site.head));
    let title = match kind {
        "cross" => "Cross-attention".to_owned(),
        "encoder-self" => "Self-attention of the encoder".to_owned(),
        "decoder-self" => "Self-attention of the decoder".to_owned(),
        other => shown(other),
    };
    svg.text([MARGIN, top + 8.0], &title, Text::new(7.5).bold());
    let small = Text::new(LETTERS).colour(colours.muted());
    let (first, grid) = (top + 12.0 + LETTERS, top + 16.0 + LETTERS);
    let row_height = cell.min(LARGEST);
    let is_named = |place: usize, n: usize| cell >= 7.0 || place == 0 || place + 1 == n || place.is_multiple_of(5);
    for (column, head) in heads.iter().enumerate().filter(|(column, _)| is_named(*column, heads.len())) {
        let says = if column == 0 { format!("head {head}") } else { head.to_string() };
        let x = left + (column as f64 + 0.5) * cell;
        match column {
            0 if heads.len() > 1 => svg.text([x + 0.3 * LETTERS, first], &says, small.end()),
            _ => svg.text([x, first], &says, small.middle()),
        }
    }
    for (row, layer) in layers.iter().enumerate().filter(|(row, _)| is_named(*row, layers.len())) {
        let y = grid + (row as f64 + 0.5) * row_height + 0.35 * LETTERS;
        let says = if row == 0 { format!("layer {layer}") } else { layer.to_string() };
        svg.text([left - 4.0, y], &says, small.end());
    }
    for row in 0..layers.len() {
        let y = grid + (row as f64 + 0.5) * row_height;
        svg.line([left, y], [left + cell * heads.len() as f64, y], Stroke::new(colours.faint(), 0.4));
    }
    for site in sites {
        let column = heads.iter().position(|&head| head == site.head).unwrap_or(0);
        let row = layers.iter().position(|&layer| layer == site.layer).unwrap_or(0);
        let middle = [left + (column as f64 + 0.5) * cell, grid + (row as f64 + 0.5) * row_height];
        draw_head(svg, middle, row_height.min(cell), Driver::of(site), site.verdict.label == "unused");
    }
    grid + layers.len() as f64 * row_height
}

/// Sizes of a head within its place, those of the page: see `disc` of viewer/atlas.js, 46 pixels and 4 to the next.
struct Sizes {
    ring: f64,
    ring_width: f64,
    smallest_disc: f64,
    disc_growth: f64,
}

impl Sizes {
    fn within(cell: f64) -> Self {
        let [ring, ring_width, smallest_disc, disc_growth] = [20.0, 4.0, 4.0, 11.0].map(|size| size / 50.0 * cell);
        Self { ring, ring_width, smallest_disc, disc_growth }
    }

    fn disc(&self, share: f64) -> f64 {
        self.smallest_disc + self.disc_growth * share.clamp(0.0, 1.0).sqrt()
    }
}

/// One head: a disc as large as the share, in a ring as full as what is kept. The disc of a head that is not needed is hollow.
fn draw_head(svg: &mut Svg, middle: [f64; 2], cell: f64, driver: Option<Driver>, is_unused: bool) {
    let colours = svg.colours();
    let sizes = Sizes::within(cell);
    let Some(driver) = driver else {
        let (reach, stroke) = (sizes.ring * 0.5, Stroke::new(colours.muted(), 0.6));
        svg.line([middle[0] - reach, middle[1] - reach], [middle[0] + reach, middle[1] + reach], stroke);
        svg.line([middle[0] - reach, middle[1] + reach], [middle[0] + reach, middle[1] - reach], stroke);
        return;
    };
    let colour = colours.part(driver.part);
    draw_ring(svg, middle, &sizes, driver.kept.unwrap_or(0.0), colour);
    let radius = sizes.disc(driver.share);
    if is_unused {
        svg.circle(middle, (radius - 0.4).max(0.4), Some(colours.paper()), Some(Stroke::new(colour, 0.8)));
    } else {
        svg.circle(middle, radius, Some(colour), None);
    }
}

/// A ring, so much of it in a colour.
fn draw_ring(svg: &mut Svg, middle: [f64; 2], sizes: &Sizes, share: f64, colour: Colour) {
    let faint = svg.colours().faint();
    svg.circle(middle, sizes.ring, Some(svg.colours().paper()), Some(Stroke::new(faint, sizes.ring_width)));
    svg.arc(middle, sizes.ring, share, Stroke::new(colour, sizes.ring_width));
}

/// What colours and sizes mean; gives its right and lower edge.
fn draw_legend(svg: &mut Svg, [left, top]: [f64; 2], cell: f64) -> [f64; 2] {
    let colours = svg.colours();
    let look = Text::new(LETTERS);
    let y = top + 5.0;
    let mut x = left;
    svg.text([x, y + 0.35 * LETTERS], "driven by", look.colour(colours.muted()));
    x += width("driven by", LETTERS) + 6.0;
    for (part, name) in [(Part::Temporal, "temporal"), (Part::Input, "input"), (Part::Residual, "the rest")] {
        svg.circle([x + 3.0, y], 3.0, Some(colours.part(part)), None);
        svg.text([x + 8.0, y + 0.35 * LETTERS], name, look);
        x += 8.0 + width(name, LETTERS) + 8.0;
    }
    svg.circle([x + 3.0, y], 2.6, None, Some(Stroke::new(colours.muted(), 0.8)));
    svg.text([x + 8.0, y + 0.35 * LETTERS], "not needed", look);
    let first = x + 8.0 + width("not needed", LETTERS);
    let mut right = first;
    let (names, sizes) = (["disc: its share of the scores", "ring: same token by it alone"], Sizes::within(cell));
    let start = left + names.iter().fold(0.0_f64, |most, name| most.max(width(name, LETTERS))) + 8.0;
    for (row, name) in names.into_iter().enumerate() {
        let y = y + 6.0 + cell * (row as f64 + 0.5);
        svg.text([left, y + 0.35 * LETTERS], name, look.colour(colours.muted()));
        let mut x = start;
        for share in [0.25, 0.5, 1.0] {
            let middle = [x + 0.5 * cell, y];
            match row {
                0 => svg.circle(middle, sizes.disc(share), Some(colours.muted()), None),
                _ => draw_ring(svg, middle, &sizes, share, colours.muted()),
            }
            let says = format!("{:.0} %", 100.0 * share);
            svg.text([x + cell + 2.0, y + 0.35 * LETTERS], &says, look);
            x += cell + 2.0 + width("100 %", LETTERS) + 5.0;
        }
        right = right.max(x - 5.0);
    }
    [right, y + 6.0 + 2.0 * cell]
}
