//! `preprocessor_config.json`, and what is nested in `processor_config.json`: what a folder says about its pictures.

use std::path::Path;

use serde_json::Value;

use super::process::{Normalisation, Processor, Target};
use super::resize::Filter;
use crate::PretrainedError;
use crate::fields::Fields;

/// No model is shown more on a side.
const MAX_SIDE: usize = 4096;

const STANDARD: Normalisation = Normalisation { mean: [0.5; 3], deviation: [0.5; 3] };
/// Of the pictures that OpenAI's CLIP was trained on.
const CLIP: Normalisation =
    Normalisation { mean: [0.481_454_66, 0.457_827_5, 0.408_210_73], deviation: [0.268_629_54, 0.261_302_6, 0.275_777_1] };

/// What image processors of one kind do where their file does not say. All resize, rescale by 1/255 and normalise.
struct Kind {
    name: &'static str,
    size: Target,
    filter: Filter,
    crop: Option<(usize, usize)>,
    is_cropping: bool,
    normalisation: Normalisation,
}

const fn square(side: usize) -> Target {
    Target::Exactly { height: side, width: side }
}

const KINDS: [Kind; 5] = [
    Kind { name: "ViT", size: square(224), filter: Filter::Bilinear, crop: None, is_cropping: false, normalisation: STANDARD },
    Kind { name: "DeiT", size: square(256), filter: Filter::Bicubic, crop: Some((224, 224)), is_cropping: true, normalisation: STANDARD },
    Kind { name: "Beit", size: square(224), filter: Filter::Bicubic, crop: Some((224, 224)), is_cropping: false, normalisation: STANDARD },
    Kind { name: "Blip", size: square(384), filter: Filter::Bicubic, crop: None, is_cropping: false, normalisation: CLIP },
    Kind {
        name: "CLIP",
        size: Target::ShortestEdge(224),
        filter: Filter::Bicubic,
        crop: Some((224, 224)),
        is_cropping: true,
        normalisation: CLIP,
    },
];

/// Reads what a folder says. A nested image processor counts before a file of its own, as in transformers.
pub(super) fn read(folder: &Path) -> Result<Processor, PretrainedError> {
    let (whole, own) = (folder.join("processor_config.json"), folder.join("preprocessor_config.json"));
    let nested = if whole.exists() { Fields::read(&whole)?.nested("image_processor")? } else { None };
    let fields = match nested {
        Some(fields) => fields,
        None if own.exists() => Fields::read(&own)?,
        None => {
            let what = "has no preprocessor_config.json, which says how pictures are prepared; copy it from where the model comes from";
            return Err(PretrainedError::NotAModel { path: folder.to_owned(), what });
        }
    };
    processor(&fields)
}

fn processor(fields: &Fields) -> Result<Processor, PretrainedError> {
    let kind = kind(fields)?;
    // Pictures are red, green and blue already, whatever this says.
    fields.flag("do_convert_rgb", true)?;
    if fields.flag("do_pad", false)? {
        return Err(fields.wrong("do_pad", "is true; padding is not known here"));
    }
    let resize = match fields.flag("do_resize", true)? {
        true => Some((size(fields, &kind.size)?.unwrap_or(kind.size), filter(fields, kind.filter)?)),
        false => None,
    };
    let crop = match fields.flag("do_center_crop", kind.is_cropping)? {
        true => Some(crop(fields, kind)?),
        false => None,
    };
    let rescale = match fields.flag("do_rescale", true)? {
        true => Some(fields.number("rescale_factor", 1.0 / 255.0)?),
        false => None,
    };
    let normalise = match fields.flag("do_normalize", true)? {
        true => Some(normalisation(fields, kind.normalisation)?),
        false => None,
    };
    Ok(Processor { resize, crop, rescale, normalise })
}

/// The kind by its name: `ViTImageProcessor`, `ViTImageProcessorFast` (which works with torchvision), or `ViTFeatureExtractor` of old files.
fn kind(fields: &Fields) -> Result<&'static Kind, PretrainedError> {
    let field = if fields.get("image_processor_type").is_none() && fields.get("feature_extractor_type").is_some() {
        "feature_extractor_type"
    } else {
        "image_processor_type"
    };
    let found = fields.text(field, "")?;
    let bare = found.strip_suffix("Fast").or_else(|| found.strip_suffix("Pil")).unwrap_or(found);
    let name = bare.strip_suffix("ImageProcessor").or_else(|| bare.strip_suffix("FeatureExtractor"));
    KINDS.iter().find(|kind| Some(kind.name) == name).ok_or_else(|| {
        let known: Vec<String> = KINDS.iter().map(|kind| format!("{}ImageProcessor", kind.name)).collect();
        let is = if found.is_empty() { "is missing".to_owned() } else { format!("is `{found}`, which is not known here") };
        fields.wrong(field, format!("{is}; known are {} (also with `Fast`, or `FeatureExtractor` for `ImageProcessor`)", known.join(", ")))
    })
}

/// The size to resize to: a number is the shortest edge for kinds that keep a picture's shape, and both sides for the others.
fn size(fields: &Fields, usual: &Target) -> Result<Option<Target>, PretrainedError> {
    const FIELD: &str = "size";
    match fields.get(FIELD) {
        None => Ok(None),
        Some(Value::Object(sides)) => match (sides.get("height"), sides.get("width"), sides.get("shortest_edge"), sides.len()) {
            (Some(height), Some(width), None, 2) => {
                Ok(Some(Target::Exactly { height: side(fields, FIELD, height)?, width: side(fields, FIELD, width)? }))
            }
            (None, None, Some(edge), 1) => Ok(Some(Target::ShortestEdge(side(fields, FIELD, edge)?))),
            _ => Err(fields.wrong(FIELD, "is an object of other fields than `height` and `width`, or `shortest_edge`")),
        },
        Some(number) => {
            let side = side(fields, FIELD, number)?;
            Ok(Some(if matches!(usual, Target::ShortestEdge(_)) { Target::ShortestEdge(side) } else { square(side) }))
        }
    }
}

/// Height and width to cut to.
fn crop(fields: &Fields, kind: &Kind) -> Result<(usize, usize), PretrainedError> {
    const FIELD: &str = "crop_size";
    match fields.get(FIELD) {
        None => kind.crop.ok_or_else(|| fields.wrong(FIELD, "is missing, though `do_center_crop` is true")),
        Some(Value::Object(sides)) => match (sides.get("height"), sides.get("width")) {
            (Some(height), Some(width)) => Ok((side(fields, FIELD, height)?, side(fields, FIELD, width)?)),
            _ => Err(fields.wrong(FIELD, "is an object without `height` and `width`")),
        },
        Some(number) => side(fields, FIELD, number).map(|side| (side, side)),
    }
}

fn side(fields: &Fields, field: &str, value: &Value) -> Result<usize, PretrainedError> {
    let side = value.as_u64().and_then(|side| usize::try_from(side).ok()).filter(|side| (1..=MAX_SIDE).contains(side));
    side.ok_or_else(|| fields.wrong(field, format!("has a side of {value}; a whole number from 1 to {MAX_SIDE} is meant")))
}

fn filter(fields: &Fields, usual: Filter) -> Result<Filter, PretrainedError> {
    const FIELD: &str = "resample";
    let Some(value) = fields.get(FIELD) else { return Ok(usual) };
    let filter = value.as_u64().and_then(|number| Filter::ALL.get(usize::try_from(number).ok()?).copied());
    let known = "0 (nearest), 1 (Lanczos), 2 (bilinear), 3 (bicubic), 4 (box) or 5 (Hamming) is meant";
    filter.ok_or_else(|| fields.wrong(FIELD, format!("is {value}; {known}")))
}

fn normalisation(fields: &Fields, usual: Normalisation) -> Result<Normalisation, PretrainedError> {
    let mean = channels(fields, "image_mean", usual.mean)?;
    let deviation = channels(fields, "image_std", usual.deviation)?;
    if deviation.contains(&0.0) {
        return Err(fields.wrong("image_std", "has a 0; it is what values are divided by"));
    }
    Ok(Normalisation { mean, deviation })
}

/// A number for each channel, or one for all.
fn channels(fields: &Fields, field: &str, usual: [f32; 3]) -> Result<[f32; 3], PretrainedError> {
    let Some(value) = fields.get(field) else { return Ok(usual) };
    let number = |value: &Value| value.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
    let numbers = match value {
        Value::Array(values) => values.iter().map(number).collect::<Option<Vec<f32>>>().and_then(|numbers| numbers.try_into().ok()),
        value => number(value).map(|number| [number; 3]),
    };
    numbers.ok_or_else(|| fields.wrong(field, format!("is {value}; three finite numbers are meant, for red, green and blue")))
}
