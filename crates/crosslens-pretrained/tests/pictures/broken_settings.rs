//! One test for each way the settings of a folder can be broken.

use serde_json::{Value, json};

use crate::fixtures::{chain, processor, processor_in};

/// Refused in words that hold these.
fn refused(config: &Value, words: &[&str]) {
    let error = chain(&processor(config).expect_err("broken settings"));
    for word in ["preprocessor_config.json"].iter().chain(words) {
        assert!(error.contains(word), "`{word}` is not in `{error}`");
    }
}

/// A good file with one field changed.
fn with(field: &str, value: Value) -> Value {
    let mut config = json!({"image_processor_type": "DeiTImageProcessor"});
    config[field] = value;
    processor(&json!({"image_processor_type": "DeiTImageProcessor"})).expect("good settings");
    config
}

#[test]
fn folder_without_settings() {
    let error = processor_in("config.json", "{}").expect_err("no settings");
    assert!(chain(&error).contains("has no preprocessor_config.json"), "{error}");
}

#[test]
fn processor_without_an_image_processor() {
    let error = processor_in("processor_config.json", "{\"processor_class\": \"TrOCRProcessor\"}").expect_err("no settings");
    assert!(chain(&error).contains("has no preprocessor_config.json"), "{error}");
}

#[test]
fn nested_image_processor_that_is_no_object() {
    let error = processor_in("processor_config.json", "{\"image_processor\": 3}").expect_err("no settings");
    assert!(chain(&error).contains("`image_processor` is 3"), "{error}");
}

#[test]
fn settings_that_are_no_json() {
    for content in ["", "{", "[]", "\u{0}"] {
        let error = processor_in("preprocessor_config.json", content).expect_err("no settings");
        assert!(chain(&error).contains("preprocessor_config.json"), "{error}");
    }
}

#[test]
fn unknown_kind() {
    let known = ["`DonutImageProcessor`, which is not known", "ViTImageProcessor", "DeiT", "Beit", "Blip", "CLIP"];
    refused(&json!({"image_processor_type": "DonutImageProcessor"}), &known);
    refused(&json!({"feature_extractor_type": "WhisperFeatureExtractor"}), &["`feature_extractor_type`", "not known"]);
    refused(&json!({"image_processor_type": "ViT"}), &["not known"]);
}

#[test]
fn kind_that_is_missing() {
    refused(&json!({"size": 224}), &["`image_processor_type` is missing", "ViTImageProcessor"]);
    refused(&json!({"image_processor_type": 5}), &["`image_processor_type` is 5"]);
}

#[test]
fn unknown_filter() {
    for value in [json!(6), json!(-1), json!("bicubic"), json!(2.5), json!(1_u64 << 40)] {
        refused(&with("resample", value), &["`resample`", "3 (bicubic)"]);
    }
}

#[test]
fn senseless_size() {
    for value in [json!(0), json!(-3), json!(4097), json!(1.5), json!("224"), json!([224, 224]), json!(u64::MAX), json!(true)] {
        refused(&with("size", value.clone()), &["`size`", "from 1 to 4096"]);
        refused(&with("crop_size", value), &["`crop_size`", "from 1 to 4096"]);
    }
    for value in [json!({}), json!({"height": 3}), json!({"longest_edge": 3}), json!({"shortest_edge": 3, "longest_edge": 9})] {
        refused(&with("size", value), &["`size`", "`shortest_edge`"]);
    }
    refused(&with("size", json!({"height": 0, "width": 3})), &["a side of 0"]);
    refused(&with("crop_size", json!({"shortest_edge": 3})), &["`crop_size`", "`height` and `width`"]);
}

#[test]
fn cut_to_no_size() {
    refused(&json!({"image_processor_type": "ViTImageProcessor", "do_center_crop": true}), &["`crop_size` is missing"]);
}

#[test]
fn senseless_normalisation() {
    for field in ["image_mean", "image_std"] {
        for value in [json!([0.5, 0.5]), json!([1, 1, 1, 1]), json!("0.5"), json!([1, 1, null]), json!([1, 1, 1e300])] {
            refused(&with(field, value), &[field, "three finite numbers"]);
        }
    }
    refused(&with("image_std", json!([1, 0, 1])), &["`image_std` has a 0"]);
    refused(&with("image_std", json!([1, 1e-300, 1])), &["`image_std` has a 0"]);
}

#[test]
fn steps_that_are_neither_on_nor_off() {
    for field in ["do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb", "do_pad"] {
        refused(&with(field, json!("yes")), &[field, "true or false"]);
    }
    refused(&with("rescale_factor", json!("1/255")), &["`rescale_factor`"]);
}

#[test]
fn steps_that_are_not_known() {
    refused(&with("do_pad", json!(true)), &["`do_pad` is true"]);
}
