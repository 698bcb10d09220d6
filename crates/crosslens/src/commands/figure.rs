use std::path::{Path, PathBuf};

use clap::ValueEnum;
use crosslens_lab::analysis::figure::{Choice, Figure, Kind, SampleName, SavedReport, SiteName, Style, Theme, draw, training};
use crosslens_lab::analysis::replace_file;
use crosslens_lab::analysis::timeline::{Timeline, TimelinePoint, TrainingPoint};
use crosslens_lab::train::RunFolder;
use crosslens_lab::{curves, run_of_report};
use serde_json::json;

use crate::failure::Failure;
use crate::output;

/// Where a run keeps its report, unless told otherwise.
const REPORT: &str = "report.json";

/// Draws a report, or a run's training, for a paper: SVG, PDF or PNG.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A report saved by `crosslens explain --save`, or the folder of a run (with its `report.json`, if it has one).
    #[arg(value_name = "REPORT|DIR")]
    from: PathBuf,
    /// What to draw.
    #[arg(value_enum)]
    kind: KindName,
    /// The file; its extension says how it is written.
    #[arg(short, long, value_name = "x.svg|x.pdf|x.png")]
    out: PathBuf,
    /// The head: its number in the report, or its layer and head. Default: the first of cross-attention; for `shares` all.
    #[arg(long, value_name = "N|LAYER.HEAD")]
    site: Option<SiteName>,
    /// The sentence, counted from 0, or `average`, which `attention` draws.
    #[arg(long, value_name = "N|average", default_value = "0")]
    sample: Sample,
    /// Width in millimetres. Default: a column (85) or a page (170), less where less will do.
    #[arg(long, value_name = "MM")]
    width: Option<f64>,
    /// Dots per inch of a PNG file.
    #[arg(long, value_name = "N", default_value_t = 300)]
    dpi: u32,
    /// Light on dark.
    #[arg(long)]
    dark: bool,
    /// What was written, as JSON on standard output.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindName {
    /// One sentence's attention, or the average.
    Attention,
    /// One sentence's attention and the terms its scores are made of.
    Terms,
    /// All heads: what drives them, and how much of their attention that keeps.
    Atlas,
    /// Temporal paths, input components and readouts along two principal axes.
    Components,
    /// What each term contributes, with intervals and control.
    Shares,
    /// Loss and accuracy of a run, and shares where they were recorded.
    Training,
}

impl KindName {
    /// Its name, and what it draws of a report; nothing for training, which is a run's.
    fn meant(self) -> Option<Kind> {
        match self {
            Self::Attention => Some(Kind::Attention),
            Self::Terms => Some(Kind::Terms),
            Self::Atlas => Some(Kind::Atlas),
            Self::Components => Some(Kind::Components),
            Self::Shares => Some(Kind::Shares),
            Self::Training => None,
        }
    }
}

/// [`SampleName`] with the words it is shown by in the help.
#[derive(Clone, Copy)]
struct Sample(SampleName);

impl std::str::FromStr for Sample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

/// How a file is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Svg,
    Pdf,
    Png,
}

impl Format {
    fn of(path: &Path) -> Result<Self, Failure> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("pdf") => Ok(Self::Pdf),
            Some("png") => Ok(Self::Png),
            _ => Err(Failure::usage(format!("`{}` ends in none of .svg, .pdf and .png", path.display()))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Pdf => "pdf",
            Self::Png => "png",
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let format = Format::of(&arguments.out)?;
    let style = Style { width_mm: arguments.width, theme: if arguments.dark { Theme::Dark } else { Theme::Light } };
    let figure = match arguments.kind.meant() {
        Some(kind) => {
            let choice = Choice { site: arguments.site, sample: arguments.sample.0 };
            draw(&report(&arguments.from)?, kind, &choice, &style)?
        }
        None => {
            let (metrics, recorded) = course(&arguments.from)?;
            training(&metrics, &recorded, arguments.site, &style)?
        }
    };
    let (bytes, missing) = encoded(&figure, format, arguments.dpi)?;
    let cannot = |error: std::io::Error| {
        Failure::refused(format!("cannot write `{}`: {error}", arguments.out.display()))
            .hint("-o in a folder that is there and may be written to")
    };
    replace_file(&arguments.out, |file| file.write_all(&bytes)).map_err(cannot)?;
    if let Some(missing) = &missing {
        output::note(&format!("warning: no font here has {missing}; they are drawn as boxes"));
        output::note("  hint: install a font of these scripts, such as fonts-noto-core and fonts-noto-cjk, or use .svg");
    }
    let [width_mm, height_mm] = [figure.width_mm, figure.height_mm].map(|mm| (mm * 100.0).round() / 100.0);
    if arguments.json {
        let out = arguments.out.to_string_lossy();
        let written = json!({
            "path": out, "format": format.name(), "width_mm": width_mm, "height_mm": height_mm, "bytes": bytes.len(), "missing": missing,
        });
        output::result(&written.to_string());
    } else {
        output::note(&format!("{} is {width_mm:.0} × {height_mm:.0} mm", arguments.out.display()));
    }
    Ok(())
}

/// The file's bytes, and the characters that no font has.
#[cfg(feature = "pictures")]
fn encoded(figure: &Figure, format: Format, dpi: u32) -> Result<(Vec<u8>, Option<String>), Failure> {
    let picture = match format {
        Format::Svg => return Ok((figure.svg.clone().into_bytes(), None)),
        Format::Pdf => figure.to_pdf()?,
        Format::Png => figure.to_png(dpi)?,
    };
    let missing = (!picture.missing.is_empty()).then(|| picture.missing.text());
    Ok((picture.bytes, missing))
}

#[cfg(not(feature = "pictures"))]
fn encoded(figure: &Figure, format: Format, _dpi: u32) -> Result<(Vec<u8>, Option<String>), Failure> {
    match format {
        Format::Svg => Ok((figure.svg.clone().into_bytes(), None)),
        Format::Pdf | Format::Png => Err(without_pictures(format)),
    }
}

/// What a program says that was built without PDF and PNG.
#[cfg(any(test, not(feature = "pictures")))]
fn without_pictures(format: Format) -> Failure {
    let message = format!("this program was built without .{}: the feature `pictures` is missing", format.name());
    Failure::refused(message).hint("-o x.svg, or build it with `cargo build --release -p crosslens --features pictures`")
}

fn report(from: &Path) -> Result<SavedReport, Failure> {
    if !from.is_dir() {
        return Ok(SavedReport::open(from)?);
    }
    let path = from.join(REPORT);
    if path.exists() {
        return Ok(SavedReport::open(&path)?);
    }
    let hint = format!("crosslens explain {} --geometry --save {}", from.display(), path.display());
    Err(Failure::refused(format!("`{}` holds no {REPORT}", from.display())).hint(hint))
}

/// The metrics of a run and what was recorded along it, given by its folder or by a report on it.
fn course(from: &Path) -> Result<(Vec<TrainingPoint>, Vec<TimelinePoint>), Failure> {
    let folder = if from.is_dir() {
        from.to_owned()
    } else {
        let no_run = || Failure::refused(format!("the run that `{}` explains is not where it was", from.display()));
        let run = run_of_report(from, &SavedReport::open(from)?.report);
        run.ok_or_else(|| no_run().hint("crosslens figure DIR training -o …, with the folder of the run"))?
    };
    let run = RunFolder::at(&folder);
    let points = curves(&run)?;
    if points.is_empty() {
        let message = format!("`{}` holds no metrics.jsonl with a line in it", folder.display());
        return Err(Failure::refused(message).hint("the folder of a run made by `crosslens train`"));
    }
    Ok((points, Timeline::load(&run.timeline_file())?.points))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo xtask test` builds the program without pictures and does not run it, so this is looked at here.
    #[test]
    fn a_program_without_pictures_names_what_is_missing_and_the_cure() {
        let said = format!("{:?}", without_pictures(Format::Pdf));
        for words in ["without .pdf", "`pictures`", "-o x.svg", "cargo build --release -p crosslens --features pictures"] {
            assert!(said.contains(words), "{said}");
        }
    }

    /// Whichever way it was built.
    #[test]
    fn pdf_is_written_or_refused_as_the_program_was_built() {
        let style = Style { width_mm: None, theme: Theme::Light };
        let point = |step| TrainingPoint { step, train_loss: Some(1.0), loss: Some(1.0), word_accuracy: None, phrase_accuracy: None };
        let figure = training(&[point(1), point(2)], &[], None, &style).expect("a figure");
        assert!(encoded(&figure, Format::Svg, 300).is_ok_and(|(bytes, _)| bytes.starts_with(b"<svg")));
        match encoded(&figure, Format::Pdf, 300) {
            Ok((bytes, _)) => assert!(cfg!(feature = "pictures") && bytes.starts_with(b"%PDF")),
            Err(failure) => assert!(!cfg!(feature = "pictures") && format!("{failure:?}").contains("built without .pdf")),
        }
    }
}
