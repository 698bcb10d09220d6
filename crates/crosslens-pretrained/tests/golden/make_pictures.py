"""Golden values for the pictures of crosslens-pretrained, made by Pillow and transformers.

Run:     python make_pictures.py   (with the versions of requirements.txt; a few seconds)
Writes:  pictures/NAME.png, .jpg, .webp   generated pictures, in every form that is read
         pictures/golden.safetensors      what Pillow and transformers make of them

All pictures are drawn here from a seed. The same versions write the same bytes. transformers runs its PIL image processors
(`backend="pil"`): they alone are defined by Pillow's resizing of bytes. Left to itself it takes torchvision where that is
installed, whose resizing of tensors rounds differently. Pillow from 13 on makes columns shorter before rows where that saves work (see
src/picture/resize.rs), older ones never: they write other bytes of `tall.png` and of tall pictures alike.

Metadata of golden.safetensors
  versions               what made the files
  cases                  JSON: {NAME: {"file": the configuration's file, "config": its content, "picture": the file looked at}}

Arrays
  rgb.FILE [height, width, 3]                  uint8: Image.open(FILE).convert("RGB")
  resize.FILE.FILTER.HEIGHTxWIDTH [height, width, 3]   uint8: Image.resize of the same; FILTER is Pillow's number
  pixels.NAME [3, height, width]               float32: what the case's processor gives
"""

import json
import platform
import shutil
import struct
import tempfile
import zlib
from importlib.metadata import version
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, features
from safetensors.numpy import save_file
from transformers import AutoImageProcessor

SEED = 7001
FOLDER = Path(__file__).parent / "pictures"
MAX_TOTAL_BYTES = 300_000
FILTERS = [0, 1, 2, 3, 4, 5]  # nearest, lanczos, bilinear, bicubic, box, hamming
TARGETS = {  # smaller, larger, one side only
    "noise.png": [(13, 11), (38, 54), (37, 10), (8, 53)],
    "strokes.png": [(9, 31), (25, 13)],
    "tall.png": [(13, 11), (7, 24), (31, 5)],
}


# ---- pictures


def gradient(height, width):
    """Smooth in every channel, each in another direction."""
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    channels = [255 * x, 255 * (1 - y), 127.5 * (1 + np.sin(9 * x + 5 * y))]
    return np.clip(np.stack(channels, -1), 0, 255).round().astype(np.uint8)


def noise(random, height, width, channels=3):
    return random.integers(0, 256, (height, width, channels), dtype=np.uint8)


def strokes(random, height, width):
    """Dark strokes on paper, as of writing: hard edges, which filters with negative weights ring at."""
    picture = np.full((height, width, 3), (250, 246, 235), np.uint8)
    for _ in range(max(3, height * width // 100)):
        y, x = random.integers(0, height), random.integers(0, width)
        tall, wide = [(7, 1), (1, 6), (2, 2)][random.integers(0, 3)]
        picture[y : y + tall, x : x + wide] = random.integers(0, 90, 3)
    return picture


# ---- files


def png(rows, kind, depth):
    """A PNG file of rows of bytes, of kinds that Pillow reads and does not write."""

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    height, n_samples = rows.shape[0], rows.shape[1]
    width = n_samples // {0: 1, 2: 3, 4: 2, 6: 4}[kind]
    content = b"".join(b"\0" + row.astype(">u2").tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(content, 9)) + chunk(b"IEND", b"")


def write_files(random):
    def save(name, picture, **options):
        picture.save(FOLDER / name, **options)

    for name, picture in {
        "gradient.png": gradient(37, 53),
        "noise.png": noise(random, 37, 53),
        "strokes.png": strokes(random, 20, 640),
        "tall.png": np.maximum(gradient(300, 7), noise(random, 300, 7) // 4),
        "dot.png": np.array([[[17, 130, 250]]], np.uint8),
    }.items():
        save(name, Image.fromarray(picture), optimize=True)

    height, width = 17, 24
    smooth, rough = gradient(height, width), noise(random, height, width, 4)
    grey = Image.fromarray(smooth).convert("L")
    save("grey.png", grey)
    save("grey-1-bit.png", grey.convert("1"))
    save("palette.png", Image.fromarray(smooth).quantize(30))
    save("palette-transparent.png", Image.fromarray(smooth).quantize(13), transparency=bytes([0, 128, 255]))
    save("colour-transparent.png", Image.fromarray(smooth), transparency=tuple(int(value) for value in smooth[3, 4]))
    save("grey-alpha.png", Image.fromarray(rough[..., :2].copy(), "LA"))
    save("alpha.png", Image.fromarray(rough))
    # Values from 256 on, which are most, become 255 in Pillow.
    deep = random.integers(0, 1 << 16, (height, width)) >> random.integers(0, 12, (height, width))
    save("grey-16-bit.png", Image.fromarray(deep.astype(np.uint16)))
    for name, kind, channels in [("colour-16-bit.png", 2, 3), ("alpha-16-bit.png", 6, 4), ("grey-alpha-16-bit.png", 4, 2)]:
        (FOLDER / name).write_bytes(png(random.integers(0, 1 << 16, (height, width * channels)), kind, 16))
    for bits in [2, 4]:
        save(f"palette-{bits}-bit.png", Image.fromarray(smooth).quantize(1 << bits), bits=bits)

    photo = Image.fromarray(np.maximum(gradient(37, 53), strokes(random, 37, 53) // 2))
    save("photo.jpg", photo, quality=90, subsampling=0)
    save("photo-420.jpg", photo, quality=85, subsampling=2)
    save("photo-422.jpg", photo, quality=85, subsampling=1)
    save("photo-progressive.jpg", photo, quality=85, progressive=True)
    save("photo-grey.jpg", photo.convert("L"), quality=85)
    inks = np.concatenate([gradient(37, 53), 60 + gradient(53, 37).transpose(1, 0, 2)[..., :1] // 2], -1)
    save("inks.jpg", Image.fromarray(inks, "CMYK"), quality=90)
    turned = Image.Exif()
    turned[0x0112] = 6
    save("turned.jpg", photo, quality=85, exif=turned)

    save("lossless.webp", photo, lossless=True)
    save("lossless-alpha.webp", Image.fromarray(rough), lossless=True, exact=True)
    save("lossy.webp", photo, quality=80)
    save("lossy-alpha.webp", Image.fromarray(np.dstack([gradient(37, 53), gradient(37, 53)[..., 2]])), quality=80)


# ---- cases

HALF = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
OLD_TROCR = {"do_normalize": True, "do_resize": True, "feature_extractor_type": "ViTFeatureExtractor", "resample": 2, "size": 18} | HALF


def small(kind, **fields):
    return {"image_processor_type": kind, "size": {"height": 14, "width": 17}} | fields


CASES = {
    "vit": (small("ViTImageProcessor"), "gradient.png"),
    "vit-noise": (small("ViTImageProcessor"), "noise.png"),
    "vit-fast": (small("ViTImageProcessorFast", do_convert_rgb=None, **IMAGENET), "strokes.png"),
    "vit-enlarged": (small("ViTImageProcessor"), "dot.png"),
    "vit-tall": (small("ViTImageProcessor"), "tall.png"),
    "trocr": (OLD_TROCR | {"processor_class": "TrOCRProcessor"}, "strokes.png"),
    "deit": ({"feature_extractor_type": "DeiTFeatureExtractor", "size": 20, "crop_size": 15, "do_center_crop": True} | IMAGENET, "noise.png"),
    "deit-fast": (small("DeiTImageProcessorFast", crop_size={"height": 13, "width": 10}), "gradient.png"),
    "deit-padded": (small("DeiTImageProcessor", crop_size={"height": 21, "width": 17}), "gradient.png"),
    "beit": (small("BeitImageProcessor", do_center_crop=False), "noise.png"),
    "beit-cropped": ({"feature_extractor_type": "BeitFeatureExtractor", "size": 16, "do_center_crop": True, "crop_size": 12}, "strokes.png"),
    "blip": (small("BlipImageProcessor", processor_class="BlipProcessor", do_convert_rgb=True), "noise.png"),
    "clip": ({"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 16}, "crop_size": 14}, "noise.png"),
    "clip-number": ({"image_processor_type": "CLIPImageProcessor", "size": 9, "crop_size": {"height": 9, "width": 16}}, "strokes.png"),
    "clip-tall": ({"feature_extractor_type": "CLIPFeatureExtractor", "size": 3, "do_center_crop": False}, "tall.png"),
    "clip-padded": ({"image_processor_type": "CLIPImageProcessorFast", "size": 6, "crop_size": 11}, "noise.png"),
    "nearest": (small("ViTImageProcessor", resample=0), "noise.png"),
    "lanczos": (small("ViTImageProcessor", resample=1), "noise.png"),
    "box": (small("ViTImageProcessor", resample=4), "noise.png"),
    "hamming": (small("ViTImageProcessor", resample=5), "noise.png"),
    "as-it-is": (small("ViTImageProcessor", do_resize=False, do_center_crop=True, crop_size=14), "gradient.png"),
    "other-scale": (small("ViTImageProcessor", rescale_factor=0.00784313725490196, image_mean=1.0, image_std=[1.0, 0.5, 2.0]), "noise.png"),
    "not-normalised": (small("ViTImageProcessor", do_normalize=False), "noise.png"),
    "not-rescaled": (small("ViTImageProcessor", do_rescale=False), "noise.png"),
    "bytes": (small("ViTImageProcessor", do_rescale=False, do_normalize=False), "noise.png"),
}
NESTED = {"nested": ({"image_processor": small("BlipImageProcessor"), "processor_class": "BlipProcessor"}, "noise.png")}


def pixels(file, config, picture):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / file).write_text(json.dumps(config))
        processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    assert processor.backend == "pil", processor
    values = processor(Image.open(FOLDER / picture).convert("RGB"), return_tensors="np")["pixel_values"]
    return values[0].astype(np.float32)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    write_files(np.random.default_rng(SEED))

    arrays = {}
    for path in sorted(FOLDER.iterdir()):
        if path.name == "strokes.png":
            continue  # large, and known by what it is resized to
        # Upright, as load_image of transformers has them.
        arrays[f"rgb.{path.name}"] = np.array(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))
    for name, targets in TARGETS.items():
        picture = Image.open(FOLDER / name).convert("RGB")
        for filter in FILTERS:
            for height, width in targets:
                arrays[f"resize.{name}.{filter}.{height}x{width}"] = np.array(picture.resize((width, height), filter))

    cases = {}
    for file, some in [("preprocessor_config.json", CASES), ("processor_config.json", NESTED)]:
        for name, (config, picture) in some.items():
            arrays[f"pixels.{name}"] = pixels(file, config, picture)
            cases[name] = {"file": file, "config": config, "picture": picture}

    packages = {name: version(name) for name in ["numpy", "pillow", "transformers"]}
    libraries = {name: features.version(name) for name in ["jpg", "webp", "zlib"]}
    versions = {"python": platform.python_version(), "seed": SEED} | packages | libraries
    metadata = {"versions": json.dumps(versions), "cases": json.dumps(cases)}
    arrays = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
    save_file(arrays, FOLDER / "golden.safetensors", metadata=metadata)

    total = sum(path.stat().st_size for path in FOLDER.iterdir())
    assert total < MAX_TOTAL_BYTES, total
    print(f"{len(list(FOLDER.iterdir()))} files, {total} bytes")


if __name__ == "__main__":
    main()
