"""Golden values for models of pictures, made by PyTorch and transformers.

Run:     python make_vision.py [CASE …]   (with the versions of requirements.txt; a few seconds a case)
Writes:  vision/CASE/config.json, model.safetensors, generation_config.json, golden.safetensors

Tiny random models in which every parameter matters, chosen as in make_pretrained.py, whose searches, checks and files these
are; metadata and searches are described there. Arrays that differ:
  pixels [picture, 3, height, width]                   what the encoder reads
  target_in [picture, T], target_lengths [picture]     what is fed to the decoder, its start token first
  encoder_states [picture, S, d]                       as the decoder asks them: after enc_to_dec_proj where there is one
  encoder.L [picture, head, S, S], cross.L [picture, head, T, S], decoder.L [picture, head, T, T]

`vit-gpt2` has no generation_config.json: the start token stands in its config.json, the others in that of its decoder.
`blip` names an end token that is none: captions end with `sep_token_id`.
"""

import json
import platform
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from make_pretrained import LEAST_EFFECT, N_BEAMS, N_NEW, N_SEEDS, NEAREST_TIE, Noise, Watch, differs
from make_pretrained import first_that_will_do, quietly, require, safetensors_bytes
from transformers import BlipConfig, BlipForConditionalGeneration, GenerationConfig, LogitsProcessorList
from transformers import VisionEncoderDecoderConfig, VisionEncoderDecoderModel
from transformers.models.trocr.modeling_trocr import TrOCRSinusoidalPositionalEmbedding
from transformers.pytorch_utils import Conv1D

FOLDER = Path(__file__).parent / "vision"
MAX_BYTES = 200_000
MOST_ROUNDING = 2e-5
N_PICTURES = 3
LENGTHS = [5, 6, 8]
PAD, START, END = 1, 0, 2

# ---- cases

SEEN = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24, "patch_size": 8}
SQUARE, WIDE = {"image_size": 24}, {"image_size": [16, 24]}
IDS = {"pad_token_id": PAD, "bos_token_id": START, "eos_token_id": END, "decoder_start_token_id": START}
TROCR = {"model_type": "trocr", "vocab_size": 48, "d_model": 16, "decoder_layers": 2, "decoder_attention_heads": 2}
TROCR |= {"decoder_ffn_dim": 20, "max_position_embeddings": 20, "is_decoder": True, "add_cross_attention": True} | IDS
SINES = {"use_learned_position_embeddings": False, "layernorm_embedding": False, "scale_embedding": True}
GPT2 = {"model_type": "gpt2", "vocab_size": 48, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 20, "n_inner": 24}
GPT2 |= {"is_decoder": True, "add_cross_attention": True, "bos_token_id": START, "eos_token_id": END, "pad_token_id": PAD}
BERT = {"model_type": "bert", "vocab_size": 48, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
BERT |= {"intermediate_size": 20, "max_position_embeddings": 20, "is_decoder": True, "add_cross_attention": True} | IDS
BEIT = {"model_type": "beit", "layer_scale_init_value": 0.1} | SEEN | SQUARE
SHARED = {"use_shared_relative_position_bias": True, "use_absolute_position_embeddings": True, "use_mean_pooling": False}
BLIP_TEXT = {"vocab_size": 48, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2}
BLIP_TEXT |= {"max_position_embeddings": 20, "bos_token_id": START, "eos_token_id": 7, "sep_token_id": END, "pad_token_id": PAD}


def all_cases():
    """Name -> configurations of encoder and decoder."""
    vit, deit = {"model_type": "vit"} | SEEN, {"model_type": "deit"} | SEEN
    narrow = {"hidden_size": 12, "num_attention_heads": 3}
    return {
        "vit-trocr": (vit | WIDE | narrow | {"qkv_bias": False}, TROCR | {"cross_attention_hidden_size": 12}),
        "deit-trocr": (deit | SQUARE, TROCR | SINES | {"activation_function": "relu"}),
        "beit-trocr": (BEIT | {"use_relative_position_bias": True}, TROCR | {"cross_attention_hidden_size": 16}),
        "beit-shared": (BEIT | SHARED, TROCR),
        "vit-gpt2": (vit | SQUARE, GPT2),
        "vit-gpt2-projected": (vit | WIDE | narrow, GPT2),
        "vit-bert": (vit | SQUARE, BERT),
        "vit-roberta": (vit | SQUARE, BERT | {"model_type": "roberta", "hidden_act": "relu"}),
        "blip": (SEEN | SQUARE, BLIP_TEXT),
    }


def build(name, encoder, decoder):
    if name == "blip":
        return BlipForConditionalGeneration(BlipConfig(vision_config=encoder, text_config=decoder))
    return VisionEncoderDecoderModel(VisionEncoderDecoderConfig(encoder=encoder, decoder=decoder))


# ---- a model in which everything matters


def is_scale(name):
    lower = name.lower()
    return ("norm" in lower or ".ln_" in lower) and name.endswith("weight") or ".lambda_" in lower


def gain(name):
    """See make_pretrained.py: attention is sharp, and what crosses over outweighs the rest."""
    if name.endswith(("q_proj.weight", "k_proj.weight", "query.weight", "key.weight", "q_attn.weight")):
        return 2.5
    if name.endswith((".qkv.weight", ".c_attn.weight")):
        return 2.0
    if "crossattention" in name or "encoder_attn" in name or "enc_to_dec" in name:
        return 3.0
    return 1.2


def draw(model, seed):
    random = np.random.default_rng(seed)

    def normal(shape, mean=0.0, spread=1.0):
        return torch.tensor(random.normal(mean, spread, shape), dtype=torch.float32)

    turned = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, Conv1D)}
    with torch.no_grad():
        for name, value in sorted(model.named_parameters()):
            if value.ndim == 1:
                value.copy_(normal(value.shape, 1.0, 0.3) if is_scale(name) else normal(value.shape, 0.0, 0.2))
                if name.endswith(("predictions.bias", "lm_head.bias")):
                    value[END] += 0.7
            elif name.endswith(("embed_tokens.weight", "wte.weight", "word_embeddings.weight")):
                value.copy_(normal(value.shape, 0.0, 0.5))
                value[END] *= 2.0  # so that some captions end
            elif "position" in name or "wpe" in name or "token" in name or "class_embedding" in name:
                value.copy_(normal(value.shape, 0.0, 0.7))
            else:
                n_inputs = value.shape[0] if name in turned else value[0].numel()
                value.copy_(normal(value.shape, 0.0, gain(name) * n_inputs**-0.5))


def save(folder, name, model):
    model.generation_config = GenerationConfig(**IDS)
    model.save_pretrained(folder)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    if name == "vit-gpt2":
        (folder / "generation_config.json").unlink()
        config["decoder_start_token_id"] = START
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def open_saved(folder, name):
    kind = BlipForConditionalGeneration if name == "blip" else VisionEncoderDecoderModel
    model, report = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not report[problem], report
    for module in model.modules():
        if isinstance(module, TrOCRSinusoidalPositionalEmbedding):  # 5.22 opens it without its numbers
            module.weights = module.get_embedding(*module.weights.shape, module.padding_idx)
    return model.eval()


# ---- what is recorded


def draw_batch(model, encoder, n_words, seed):
    random = np.random.default_rng([seed, 1])
    size = encoder["image_size"] if isinstance(encoder["image_size"], list) else [encoder["image_size"]] * 2
    pixels = torch.tensor(random.normal(0.0, 1.0, (N_PICTURES, 3, *size)), dtype=torch.float32)
    tokens = torch.full((N_PICTURES, max(LENGTHS)), PAD)
    mask = torch.zeros_like(tokens)
    for picture, length in enumerate(LENGTHS):
        tokens[picture, :length] = torch.tensor([START, *random.integers(3, n_words, length - 1).tolist()])
        mask[picture, :length] = 1
    return {"pixels": pixels, "target": tokens, "mask": mask}


@torch.no_grad()
def run(model, batch):
    """Logits, encoder states and the attention of each kind."""
    pixels = batch["pixels"].to(model.dtype)
    if isinstance(model, BlipForConditionalGeneration):
        seen = model.vision_model(pixel_values=pixels, output_attentions=True)
        states = seen.last_hidden_state
        out = model.text_decoder(
            input_ids=batch["target"],
            attention_mask=batch["mask"],
            encoder_hidden_states=states,
            output_attentions=True,
            use_cache=False,
        )
        whole = model(pixel_values=pixels, input_ids=batch["target"], attention_mask=batch["mask"]).logits
        torch.testing.assert_close(whole, out.logits, rtol=0, atol=1e-4)
        return out.logits, states, (seen.attentions, out.attentions, out.cross_attentions)
    out = model(
        pixel_values=pixels,
        decoder_input_ids=batch["target"],
        decoder_attention_mask=batch["mask"],
        output_attentions=True,
        use_cache=False,
    )
    states = out.encoder_last_hidden_state
    if hasattr(model, "enc_to_dec_proj"):
        states = model.enc_to_dec_proj(states)
    return out.logits, states, (out.encoder_attentions, out.decoder_attentions, out.cross_attentions)


def forward_arrays(model, batch):
    logits, states, (encoder, decoder, cross) = run(model, batch)
    mask = batch["mask"].bool()
    arrays = {"pixels": batch["pixels"], "target_in": batch["target"], "target_lengths": batch["mask"].sum(1)}
    arrays |= {"logits": logits * mask[:, :, None], "encoder_states": states}
    arrays |= {f"encoder.{layer}": weights for layer, weights in enumerate(encoder)}
    for kind, layers in [("decoder", decoder), ("cross", cross)]:
        arrays |= {f"{kind}.{layer}": weights * mask[:, None, :, None] for layer, weights in enumerate(layers)}
    return arrays


@torch.no_grad()
def search(model, batch, processors=(), pictures=slice(None), **settings):
    out = model.generate(
        pixel_values=batch["pixels"][pictures],
        max_new_tokens=N_NEW,
        do_sample=False,
        logits_processor=LogitsProcessorList(processors),
        return_dict_in_generate=True,
        output_scores=True,
        **settings,
    )
    tokens = out.sequences
    is_end = tokens == END
    is_end[:, 0] = False
    is_over = is_end.cumsum(1) - is_end.long() > 0
    n_columns = int((~is_over).sum(1).max())
    return tokens.masked_fill(is_over, PAD)[:, :n_columns], getattr(out, "sequences_scores", None)


def search_arrays(model, batch):
    kept, arrays = [], {}

    def keep(name, **settings):
        watch = Watch()
        tokens, scores = search(model, batch, [watch], **settings)
        require(bool((tokens[:, 0] == START).all()), "another start")
        if scores is None:
            for step, margins in enumerate(watch.margins):
                running = ~(tokens[:, 1 : step + 1] == END).any(1)
                require(bool((margins[running] > NEAREST_TIE).all()), "near a tie")
        else:
            arrays[f"{name}.scores"] = scores
        for row in tokens.tolist():
            words = row[1 : row.index(END, 1)] if END in row[1:] else row[1:]
            require(PAD not in words, "a pad token among the words")
        arrays[name] = tokens
        kept.append((settings, tokens))

    keep("greedy", num_beams=1)
    greedy = arrays["greedy"]
    require(len({tuple(row) for row in greedy.tolist()}) == len(greedy), "captions alike")
    require(bool((greedy[:, 1:N_NEW] == END).any()), "no caption ends")
    require(max(len(set(row)) for row in greedy.tolist()) > 4, "dull")
    plain = {"num_beams": N_BEAMS, "length_penalty": 1.0, "early_stopping": False}
    keep("beam", **plain)
    keep("beam_lp2", num_beams=N_BEAMS, length_penalty=2.0, early_stopping=True)
    require(differs(arrays["beam"], greedy), "beams find what greedy search finds")
    for settings, tokens in kept:
        for seed in range(3):
            require(not differs(search(model, batch, [Noise(seed)], **settings)[0], tokens), "near a tie")
    return arrays


# ---- self-checks


@torch.no_grad()
def check_everything_matters(model, batch):
    """Leaves out one parameter after the other; biases of keys add the same to every score of a row."""
    plain, mask = run(model, batch)[0], batch["mask"].bool()
    for name, value in model.named_parameters():
        if name.endswith(("k_proj.bias", "key.bias")) or "pooler" in name:
            continue
        kept = value.detach().clone()
        value.copy_(torch.full_like(kept, 1.0 if is_scale(name) else 0.0))
        effect = (run(model, batch)[0] - plain)[mask].abs().max()
        value.copy_(kept)
        require(effect > LEAST_EFFECT, f"{name} hardly matters: {effect}")


@torch.no_grad()
def check_rounding(model, batch, arrays):
    """Where rounding itself moves the logits, agreement to 1e-4 would be luck."""
    exact = forward_arrays(model.double(), batch)
    for name, array in exact.items():
        off = (array - arrays[name]).abs().max().item()
        require(off < MOST_ROUNDING, f"{name} is off by {off} in float32")
    model.float()


# ---- files


def make(folder, name, halves, seed):
    """Fills the folder, or rejects the seed."""
    encoder, decoder = halves
    model = build(name, dict(encoder), dict(decoder))
    draw(model, seed)
    save(folder, name, model)
    model = open_saved(folder, name)
    batch = draw_batch(model, encoder, decoder["vocab_size"], seed)
    arrays = forward_arrays(model, batch)
    arrays |= search_arrays(model, batch)
    check_everything_matters(model, batch)
    check_rounding(model, batch, forward_arrays(model, batch))
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, python {platform.python_version()}"
    settings = {"n_new": N_NEW, "n_beams": N_BEAMS, "decoder_start": START, "pad": PAD, "eos": END}
    metadata = {"case": name, "seed": str(seed), "versions": versions, "settings": json.dumps(settings)}
    arrays = {key: np.ascontiguousarray(array.numpy()) for key, array in arrays.items()}
    (folder / "golden.safetensors").write_bytes(safetensors_bytes(arrays, metadata))


def main(names):
    quietly()
    cases = all_cases()
    for name in names or cases:
        n_seeds = first_that_will_do(FOLDER / name, name, lambda folder, seed: make(folder, name, cases[name], seed), 3 * N_SEEDS)
        sizes = {path.name: path.stat().st_size for path in sorted((FOLDER / name).iterdir())}
        assert max(sizes.values()) <= MAX_BYTES, sizes
        print(f"{sum(sizes.values()):7} bytes, {n_seeds:3} seeds tried: {name}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
