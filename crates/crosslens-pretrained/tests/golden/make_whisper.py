"""Golden values for models of speech, made by PyTorch and transformers.

Run:     python make_whisper.py [CASE …]   (with the versions of requirements.txt; some seconds a case)
Writes:  CASE/config.json, generation_config.json, model.safetensors, golden.safetensors

The models are tiny and random, and every parameter matters; see make_pretrained.py, whose tools are used here. Their tokens
lie as Whisper's do: text, the end, the start, languages, tasks, four more, and a timestamp for every step of the encoder.
English-only models have neither an own token for the end of what they read (all lie one lower) nor languages in their prompt.

Arrays beside those of make_pretrained.py (there is no `source`, and `source_lengths` are steps of the encoder):
  features [sentence, frame, mel]            what the encoder reads; transformers has the last two the other way round
  prompt [P]                                 read by the decoder before it writes: start, language, task, no timestamps
  greedy, beam, beam_lp2, nbest              begin with the prompt
  timestamps.prompt                          the same without the last
  timestamps.greedy, timestamps.beam,        written under the rule of timestamps
  timestamps.beam.scores
  languages [sentence, language]             probabilities, in the order of the tokens (not for English-only models)
"""

import json
import platform
import sys

import numpy as np
import torch
import transformers
from make_pretrained import (
    FOLDER,
    LEAST_EFFECT,
    NEAREST_TIE,
    N_BEAMS,
    N_NEW,
    N_SEEDS,
    Watch,
    differs,
    first_that_will_do,
    gain,
    is_scale_of_norm,
    quietly,
    require,
    safetensors_bytes,
)
from safetensors.numpy import load
from transformers import GenerationConfig, LogitsProcessorList, WhisperConfig, WhisperForConditionalGeneration

N_TEXT, LANGUAGES, N_STEPS, N_MELS = 100, ["en", "de", "fr"], 20, 8
LENGTHS = [5, 6, 8]
MAX_BYTES = 200_000


def tokens_of(is_multilingual):
    """The numbers of the special tokens, as a small imitation of Whisper's."""
    end = N_TEXT if is_multilingual else N_TEXT - 1
    names = ["end", "start", *LANGUAGES, "translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"]
    numbers = {name: end + place for place, name in enumerate(names)}
    return numbers | {"vocab_size": numbers["notimestamps"] + 1 + N_STEPS + 1}


def all_cases():
    """Name -> whether it knows languages, and changes of its configuration."""
    odd = {"encoder_layers": 1, "decoder_layers": 3, "decoder_attention_heads": 2, "scale_embedding": True}
    return {"whisper": (True, {}), "whisper-en": (False, odd)}


def configurations(is_multilingual, changes):
    tokens = tokens_of(is_multilingual)
    special = {"pad_token_id": tokens["end"], "bos_token_id": tokens["end"], "eos_token_id": tokens["end"]}
    special |= {"decoder_start_token_id": tokens["start"]}
    sizes = {"vocab_size": tokens["vocab_size"], "num_mel_bins": N_MELS, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2}
    sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
    sizes |= {"max_source_positions": N_STEPS, "max_target_positions": 40}
    config = WhisperConfig(**(special | sizes | changes), begin_suppress_tokens=None)
    writing = special | {"begin_suppress_tokens": [7, tokens["end"]], "max_length": 40, "return_timestamps": False}
    # Published ones forbid what names no text: here the start and what stands between tasks and timestamps.
    writing |= {"suppress_tokens": [3, 11, tokens["start"], *range(tokens["startoflm"], tokens["nospeech"] + 1)]}
    writing |= {"no_timestamps_token_id": tokens["notimestamps"], "is_multilingual": is_multilingual}
    writing |= {"max_initial_timestamp_index": 5, "alignment_heads": [[0, 1], [1, 0]]}
    if is_multilingual:
        writing |= {"lang_to_id": {f"<|{name}|>": tokens[name] for name in LANGUAGES}}
        writing |= {"task_to_id": {name: tokens[name] for name in ("transcribe", "translate")}}
    return config, GenerationConfig(**writing)


def draw(model, config, seed):
    """Draws every parameter anew but for the encoder's positions, which are sines."""
    random = np.random.default_rng(seed)

    def normal(shape, mean=0.0, spread=1.0):
        return torch.tensor(random.normal(mean, spread, shape), dtype=torch.float32)

    with torch.no_grad():
        for name, value in sorted(model.named_parameters()):
            if "encoder.embed_positions" in name:
                continue
            if value.ndim == 1:
                value.copy_(normal(value.shape, 1.0, 0.3) if is_scale_of_norm(name) else normal(value.shape, 0.0, 0.2))
            elif "embed_positions" in name:
                value.copy_(normal(value.shape, 0.0, 1.0))
            elif "embed_tokens" in name:
                value.copy_(normal(value.shape, 0.0, 0.25 if config.scale_embedding else 0.5))
                value[config.eos_token_id] *= 2.0
            elif "conv" in name:
                value.copy_(normal(value.shape, 0.0, 1.2 * (value.shape[1] * value.shape[2]) ** -0.5))
            else:
                value.copy_(normal(value.shape, 0.0, gain(name) * value.shape[1] ** -0.5))


def draw_batch(config, seed):
    random = np.random.default_rng([seed, 1])
    features = torch.tensor(random.normal(0.0, 1.0, (len(LENGTHS), N_MELS, 2 * N_STEPS)), dtype=torch.float32)
    target = torch.full((len(LENGTHS), max(LENGTHS)), config.pad_token_id)
    mask = torch.zeros_like(target)
    for sentence, length in enumerate(LENGTHS):
        words = random.choice(N_TEXT - 1, length).tolist()
        target[sentence, :length] = torch.tensor([config.decoder_start_token_id, *words[1:]])
        mask[sentence, :length] = 1
    return {"features": features, "target": target, "target_mask": mask}


@torch.no_grad()
def run(model, batch):
    return model(
        input_features=batch["features"].to(model.dtype),
        decoder_input_ids=batch["target"],
        decoder_attention_mask=batch["target_mask"],
        output_attentions=True,
        use_cache=False,
    )


def forward_arrays(model, batch):
    out = run(model, batch)
    target = batch["target_mask"].bool()
    arrays = {"features": batch["features"].transpose(1, 2), "source_lengths": torch.full((len(LENGTHS),), N_STEPS)}
    arrays |= {"target_in": batch["target"], "target_lengths": batch["target_mask"].sum(1)}
    arrays["logits"] = out.logits * target[:, :, None]
    for kind, layers in [("encoder", out.encoder_attentions), ("decoder", out.decoder_attentions), ("cross", out.cross_attentions)]:
        for layer, weights in enumerate(layers):
            arrays[f"{kind}.{layer}"] = weights if kind == "encoder" else weights * target[:, None, :, None]
    return arrays


@torch.no_grad()
def search(model, batch, processors=(), sentences=slice(None), **settings):
    prompt = {"language": "de", "task": "transcribe"} if model.generation_config.is_multilingual else {}
    out = model.generate(
        batch["features"][sentences],
        max_new_tokens=N_NEW,
        logits_processor=LogitsProcessorList(processors),
        return_dict_in_generate=True,
        output_scores=True,
        force_unique_generate_call=True,
        **prompt,
        **settings,
    )
    return out.sequences, getattr(out, "sequences_scores", None)


class Searches:
    """Searches of one model and batch, each of which must not hang on a hair."""

    def __init__(self, model, batch):
        self.model, self.batch = model, batch

    def __call__(self, **settings):
        watch = Watch()
        tokens, scores = search(self.model, self.batch, [watch], **settings)
        if scores is None:
            n_prompt = tokens.shape[1] - len(watch.margins)
            for step, margins in enumerate(watch.margins):
                running = ~(tokens[:, n_prompt : n_prompt + step] == self.model.config.eos_token_id).any(1)
                require(bool((margins[running] > NEAREST_TIE).all()), "near a tie")
        noise = torch.Generator().manual_seed(5)
        for _ in range(3):
            shaken = 1e-4 * torch.randn(self.batch["features"].shape, generator=noise)
            other, _ = search(self.model, {"features": self.batch["features"] + shaken}, **settings)
            require(not differs(other, tokens), "near a tie")
        return tokens, scores


def search_arrays(model, searches, n_prompt):
    arrays = {}
    arrays["greedy"], _ = searches()
    is_end = arrays["greedy"][:, n_prompt:] == model.config.eos_token_id
    require(is_end.any() and not is_end.any(1).all(), "all or none end")
    require(len({tuple(row) for row in arrays["greedy"].tolist()}) == len(LENGTHS), "greedy texts alike")
    require(max(len(set(row[n_prompt:])) for row in arrays["greedy"].tolist()) > 4, "dull")
    plain = {"num_beams": N_BEAMS, "length_penalty": 1.0, "early_stopping": False}
    eager = {"num_beams": N_BEAMS, "length_penalty": 2.0, "early_stopping": True}
    for name, settings in [("beam", plain), ("beam_lp2", eager)]:
        arrays[name], arrays[f"{name}.scores"] = searches(**settings)
    require(differs(arrays["beam"], arrays["greedy"]), "beams find what greedy search finds")
    arrays["nbest"], arrays["nbest.scores"] = searches(sentences=slice(0, 1), num_return_sequences=3, **plain)

    written, _ = searches(return_timestamps=True)
    first = model.generation_config.no_timestamps_token_id + 1
    is_time = written[:, n_prompt - 1 :] >= first
    require((is_time[:, 1:-1] & is_time[:, 2:]).any(), "no segment follows another")
    require(((~is_time) & (written[:, n_prompt - 1 :] < model.config.eos_token_id)).any(1).all(), "no text")
    require(len({tuple(row) for row in written.tolist()}) == len(LENGTHS), "timed texts alike")
    beam, scores = searches(return_timestamps=True, **plain)
    return arrays | {"timestamps.greedy": written, "timestamps.beam": beam, "timestamps.beam.scores": scores}


@torch.no_grad()
def check_everything_matters(model, batch):
    plain, mask = run(model, batch).logits, batch["target_mask"].bool()
    for name, value in model.named_parameters():
        kept = value.detach().clone()
        value.copy_(torch.full_like(kept, 1.0 if is_scale_of_norm(name) else 0.0))
        effect = (run(model, batch).logits - plain)[mask].abs().max()
        value.copy_(kept)
        require(effect > LEAST_EFFECT, f"{name} hardly matters: {effect}")


@torch.no_grad()
def languages(model, batch):
    start = torch.full((len(LENGTHS), 1), model.config.decoder_start_token_id)
    logits = model(input_features=batch["features"], decoder_input_ids=start).logits[:, 0]
    numbers = sorted(model.generation_config.lang_to_id.values())
    probabilities = logits[:, numbers].softmax(1)
    found = model.detect_language(batch["features"], num_segment_frames=2 * N_STEPS)
    assert torch.equal(found, torch.tensor(numbers)[probabilities.argmax(1)])
    require(len(found.unique()) > 1, "one language")
    best, second = probabilities.topk(2, dim=1).values.T
    require(bool((best - second > 0.05).all()), "near a tie")
    return probabilities


def make(folder, name, case, seed):
    """Fills the folder, or rejects the seed."""
    is_multilingual, changes = case
    config, writing = configurations(is_multilingual, changes)
    model = WhisperForConditionalGeneration(config)
    draw(model, config, seed)
    model.generation_config = writing
    model.save_pretrained(folder)
    model = WhisperForConditionalGeneration.from_pretrained(folder, attn_implementation="eager").eval()
    batch = draw_batch(config, seed)

    tokens = tokens_of(is_multilingual)
    prompt = [tokens["start"], *([tokens["de"], tokens["transcribe"]] if is_multilingual else []), tokens["notimestamps"]]
    arrays = {"prompt": torch.tensor(prompt), "timestamps.prompt": torch.tensor(prompt[:-1])}
    if is_multilingual:
        arrays["languages"] = languages(model, batch)
    arrays |= search_arrays(model, Searches(model, batch), len(prompt))
    assert arrays["greedy"][:, : len(prompt)].tolist() == len(LENGTHS) * [prompt]
    arrays |= forward_arrays(model, batch)
    check_everything_matters(model, batch)

    exact = forward_arrays(model.double(), batch)
    for key, array in exact.items():
        require((array - arrays[key]).abs().max() < 3e-5 * max(1.0, array.abs().max()), f"{key} is off in float32")
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, python {platform.python_version()}"
    metadata = {"case": name, "seed": str(seed), "versions": versions, "settings": json.dumps(tokens)}
    arrays = {key: np.ascontiguousarray(array.numpy()) for key, array in arrays.items()}
    content = safetensors_bytes(arrays, metadata)
    assert all(np.array_equal(array, arrays[key]) for key, array in load(content).items())
    (folder / "golden.safetensors").write_bytes(content)


def main(names):
    quietly()
    cases = all_cases()
    for name in names or cases:
        n_seeds = first_that_will_do(FOLDER / name, name, lambda folder, seed: make(folder, name, cases[name], seed), 5 * N_SEEDS)
        size = sum(path.stat().st_size for path in (FOLDER / name).iterdir())
        print(f"{size:7} bytes, {n_seeds:3} seeds tried: {name}")
        assert size <= MAX_BYTES


if __name__ == "__main__":
    main(sys.argv[1:])
