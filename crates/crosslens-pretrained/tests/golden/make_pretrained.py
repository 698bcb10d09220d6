"""Golden values for the models of crosslens-pretrained, made by PyTorch and transformers.

Run:     python make_pretrained.py [CASE | searches | drawing …]   (with the versions of requirements.txt; a few seconds each)
Writes:  CASE/config.json, model.safetensors (or shards with their index, or pytorch_model.bin, or shards of that)
         CASE/generation_config.json          not with pytorch_model.bin: old folders keep those settings in config.json
         CASE/generation_config.NAME.json     settings of the array NAME (forced, limited)
         CASE/golden.safetensors              what transformers computes from the folder as it lies there
         searches.json                        what it writes with other settings in the files of these folders
         drawing.json                         from which tokens it draws

Every model is tiny and random, and every parameter matters: matrices are drawn so that attention is far from uniform,
norms lie around 1, biases are not 0. The program checks that leaving any parameter out moves a logit by more than 0.01
(key biases aside: they add the same to every score of a row), and that no choice of a search is near a tie. The first
seed that passes is taken. The same machine writes the same bytes; another CPU may change last bits, so commit new files
only when the case list changed.

Metadata of golden.safetensors
  case, seed, versions   the case's name, the seed it was drawn with, what made the file
  settings               JSON: `n_new` (new tokens at most, in every search), `n_beams`, `decoder_start`, `pad`, `eos`,
                         `scaled_output` (whether the last decoder state is multiplied by 1/√d before the output matrix),
                         `separate_output` (whether the output matrix is one of its own)

Arrays: float32 and int64. S and T are the longest source and target of the batch; rows of padding are zero and say nothing.
  source [sentence, S], source_lengths [sentence]      tokens with the end token, right-padded
  target_in [sentence, T], target_lengths [sentence]   what is fed to the decoder, its start token first
  logits [sentence, T, V]                              of the fed targets, with final_logits_bias where the model has one
  encoder_states [sentence, S, d]                      after the encoder's last norm
  cross.L [sentence, head, T, S]                       attention weights of layer L; 0 at padded keys
  encoder.L [sentence, head, S, S], decoder.L [sentence, head, T, T]
Searches. Every row begins with the start token and is padded with the pad token after the end.
  greedy [sentence, G]
  beam [sentence, G], beam.scores [sentence]           4 beams, length penalty 1
  beam_lp2, beam_lp2.scores                            4 beams, length penalty 2, early stopping
  nbest [3, G], nbest.scores [3]                       as beam, the three best of sentence 0
  forced                                               greedy under generation_config.forced.json (some cases)
  limited, limited.scores                              under generation_config.limited.json, beams included (some cases)

searches.json: `searches`, a list of
  case, about                        the folder, and what is shown: limit, files, ends, prefix
  generation, config                 generation_config.json, or null for none; what is changed in config.json
  prefix                             what is written already, without the start token
  tokens, scores                     by sentence, without the start token; scores of beams alone
drawing.json: `draws`, a list of
  logits                             null for one that is forbidden
  temperature, top_k, top_p          settings that draw; top_k 0 for all
  kept, probabilities                the tokens that are left, in their order, and how likely each is

Where transformers 5.22 and published folders disagree, the folder is as published and wins:
- The configurations of T5 force `tie_word_embeddings`, although T5 v1.1, mT5 and UMT5 have an output matrix of their own.
  Loading does not tie what is stored twice with different values, so `lm_head.weight` in the file is used. config.json
  says `tie_word_embeddings: false` as the published ones do; `t5-v1_1-resaved` is what transformers 5.22 writes itself:
  `tie_word_embeddings: true`, `scale_decoder_outputs: false` and yet a separate `lm_head.weight`.
- UMT5 multiplies the last state by 1/√d where its configuration ties. Published ones do not tie, and transformers up to 4
  did not multiply; 5.22, forcing the tie, does, against the code the models were trained with. `umt5` is computed without
  the factor, `umt5-tied` with it. mT5 never multiplies.
"""

import io
import json
import pickle
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from zlib import crc32

import numpy as np
import torch
import transformers
from safetensors.numpy import load
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForSeq2SeqLM, GenerationConfig, LogitsProcessor, LogitsProcessorList
from transformers.models.t5.modeling_t5 import T5Attention

FOLDER = Path(__file__).parent
N_NEW, N_BEAMS = 12, 4
N_SEEDS = 200
MAX_MODEL_BYTES, MAX_TOTAL_BYTES = 300_000, 3_000_000  # of one file, of all cases
NEAREST_TIE = 1e-3
LEAST_EFFECT = 1e-2
LENGTHS = {"source": [7, 9, 4], "target": [5, 6, 8]}  # neither sorted, nor in the same order
LONG = {"source": [33, 40, 21], "target": [10, 14, 12]}


# ---- cases

T5 = {"vocab_size": 64, "d_model": 16, "d_kv": 4, "num_heads": 4, "d_ff": 24, "num_layers": 2, "decoder_start_token_id": 0}
T5 |= {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 16}
STALE = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"  # in the published T5 of 2019
SEPARATE = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}

BART = {"vocab_size": 64, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 40}
BART |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
BART |= {"forced_eos_token_id": None}

PAD = 63
MARIAN = BART | {"activation_function": "swish", "scale_embedding": True, "bos_token_id": 0, "eos_token_id": 0}
MARIAN |= {"pad_token_id": PAD, "decoder_start_token_id": PAD}
LIMITS = {"min_length": 8, "no_repeat_ngram_size": 2}
NEW_LIMITS = {"min_new_tokens": 8, "no_repeat_ngram_size": 3}
NO_PAD = {"bad_words_ids": [[PAD]]}  # the pad token's logit is its bias: published models forbid it

MBART = BART | {"scale_embedding": True, "decoder_start_token_id": 2}
PEGASUS = BART | {"activation_function": "relu", "scale_embedding": True, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
M2M100 = {name: value for name, value in BART.items() if name != "forced_eos_token_id"}


def case(model_type, base, changes=None, *, lengths=LENGTHS, saved="safetensors", **more):
    """One case: the model, and how its folder differs from one of a single float32 file.

    Further keys: `published` (changes of config.json after saving, None: take out), `separate_output`, `dtype`,
    `generation` (more settings of generation_config.json), `forced` (whether to make that array), `limited` (by which limits to
    make those), `stale` (a tensor of the file that no model reads), `versions` (whether fairseq's `version` tensors lie beside the others, as in
    facebook/bart-large), `pad_inside` (whether the first source holds the pad token among its words:
    M2M100 gives it no position and does not count it), `copies` (side -> whether that side's own copy of the shared words
    lies in the file too and differs from them: what is stored twice with different values is not tied).
    """
    plain = {"published": {}, "separate_output": False, "dtype": torch.float32, "generation": {}}
    plain |= {"forced": False, "limited": {}, "stale": None, "versions": False, "pad_inside": False, "copies": {}}
    assert not more.keys() - plain.keys(), more
    config = base | (changes or {})
    return plain | {"model_type": model_type, "config": config, "lengths": lengths, "saved": saved} | more


def all_cases():
    """Name -> case.

    transformers alone is asked. candle-transformers 0.11.1 gives T5's decoder the buckets of both directions, where its own are one-sided
    (`t5-long` reaches all of them), and inseq 0.7.1 with transformers 5.22 scales the embeddings of Marian's decoder twice.
    """
    untied = {"separate_output": True, "published": {"tie_word_embeddings": False, "scale_decoder_outputs": None}}
    silu = {"feed_forward_proj": "gated-silu", "num_decoder_layers": 3, "num_layers": 1, "d_kv": 5, "num_heads": 3}
    odd = {"vocab_size": 67, "d_model": 18, "encoder_layers": 1, "decoder_layers": 3, "encoder_ffn_dim": 29}
    odd |= {"decoder_ffn_dim": 23, "encoder_attention_heads": 3, "decoder_attention_heads": 2, "scale_embedding": True}
    odd |= {"activation_function": "relu"}
    odd_m2m = {"vocab_size": 67, "d_model": 15, "encoder_attention_heads": 3, "decoder_attention_heads": 5, "pad_token_id": 3}
    odd_m2m |= {"scale_embedding": False, "activation_function": "gelu", "encoder_layers": 1}
    # Of 15 numbers 8 are sines and 7 cosines.
    odd_marian = {"vocab_size": 71, "d_model": 15, "encoder_attention_heads": 5, "decoder_attention_heads": 3, "encoder_layers": 1}
    odd_marian |= {"decoder_layers": 3, "encoder_ffn_dim": 29, "decoder_ffn_dim": 23, "scale_embedding": False}
    odd_t5 = {"vocab_size": 67, "d_model": 15, "d_kv": 5, "num_heads": 3, "d_ff": 29, "num_layers": 3, "num_decoder_layers": 1}
    odd_t5 |= {"feed_forward_proj": "gated-gelu"}
    two = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 73}
    old = {"bad_words_ids": [[PAD]], "num_beams": 6, "max_length": 512}
    few_buckets = {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 8, "num_heads": 2}
    return {
        "t5": case("t5", T5, forced=True, stale=STALE),
        "t5-v1_1": case("t5", T5, SEPARATE, forced=True, **untied),
        "t5-v1_1-resaved": case("t5", T5, SEPARATE, separate_output=True),
        "t5-gated-silu": case("t5", T5, silu),
        "t5-long": case("t5", T5, few_buckets, lengths=LONG),
        "t5-float16": case("t5", T5, SEPARATE, dtype=torch.float16, **untied),
        "mt5": case("mt5", T5, SEPARATE, **untied),
        "mt5-odd": case("mt5", T5, odd_t5),
        "umt5": case("umt5", T5, SEPARATE, **untied),
        "umt5-tied": case("umt5", T5, {"d_kv": 3, "num_decoder_layers": 1}),
        "bart": case("bart", BART, forced=True, limited=LIMITS),
        "bart-scaled": case("bart", BART, odd),
        "bart-sharded": case("bart", BART, {"forced_eos_token_id": 2}, saved="shards", generation={"forced_eos_token_id": 2}),
        "marian": case("marian", MARIAN, forced=True, generation=NO_PAD),
        "marian-separate": case("marian", MARIAN, two, generation=NO_PAD),
        "marian-odd": case("marian", MARIAN, odd_marian, forced=True, generation=NO_PAD | {"renormalize_logits": True}),
        "marian-bfloat16": case(
            "marian", MARIAN, two | {"tie_word_embeddings": False}, dtype=torch.bfloat16, separate_output=True, generation=NO_PAD
        ),
        "mbart": case("mbart", MBART, forced=True, limited=LIMITS),
        "mbart-unscaled": case("mbart", MBART, odd | {"scale_embedding": False}, separate_output=True),
        "pegasus": case("pegasus", PEGASUS),
        "pegasus-odd": case("pegasus", PEGASUS, odd | {"activation_function": "gelu", "scale_embedding": False}),
        "m2m_100": case("m2m_100", M2M100, forced=True, limited=LIMITS),
        "m2m_100-odd": case("m2m_100", M2M100, odd_m2m, pad_inside=True),
        "marian-bin": case("marian", MARIAN, {"forced_eos_token_id": 0}, saved="bin", published=old),
        "marian-bin-sharded": case("marian", MARIAN, {"forced_eos_token_id": 0}, saved="bin shards", published=old),
        "t5-apart": case("t5", T5, copies={"encoder": False, "decoder": True}),
        "bart-apart": case("bart", BART, copies={"encoder": True, "decoder": False}, limited=NEW_LIMITS),
        "bart-legacy": case("bart", BART, {"forced_eos_token_id": 2}, saved="legacy bin", versions=True),
    }


# ---- a model in which everything matters


def draw(model, config, separate_output, seed):
    """Draws every parameter and stored buffer anew; see the head of this file."""
    random = np.random.default_rng(seed)

    def normal(shape, mean=0.0, spread=1.0):
        return torch.tensor(random.normal(mean, spread, shape), dtype=torch.float32)

    if separate_output:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    d = config.d_model
    t5 = "t5" in config.model_type
    embedding_spread = 1.0 if t5 else (1.0 * d**-0.5 if config.scale_embedding else 0.5)
    with torch.no_grad():
        for name, value in sorted(model.named_parameters()):
            if value.ndim == 1:
                value.copy_(normal(value.shape, 1.0, 0.3) if is_scale_of_norm(name) else normal(value.shape, 0.0, 0.2))
            elif "relative_attention_bias" in name:
                value.copy_(normal(value.shape))
            elif "embed_positions" in name:
                if value.requires_grad and config.model_type in ("bart", "mbart"):  # the others' are sines, stored or not
                    value.copy_(normal(value.shape, 0.0, 1.0))
            elif "shared" in name or "embed_tokens" in name:
                value.copy_(normal(value.shape, 0.0, embedding_spread))
                value[config.eos_token_id] *= 2.0  # so that some sentences end
                if config.model_type == "marian":
                    value[config.pad_token_id] = 0.0
            elif name == "lm_head.weight":
                value.copy_(normal(value.shape, 0.0, 2.0 * d**-0.5))
                value[config.eos_token_id] *= 2.0
            else:
                value.copy_(normal(value.shape, 0.0, gain(name) * value.shape[1] ** -0.5))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.copy_(normal(model.final_logits_bias.shape, 0.0, 0.4))
            model.final_logits_bias[0, config.eos_token_id] += 0.7
            if config.model_type == "marian":
                model.final_logits_bias[0, config.pad_token_id] = 0.0


def is_scale_of_norm(name):
    return "norm" in name and name.endswith(".weight")


def gain(name):
    """Spread of a matrix's outputs for inputs of spread 1: attention is sharp, and what crosses over outweighs the rest.

    Otherwise a tied network repeats its last word for ever, whatever the source.
    """
    if name.endswith((".q_proj.weight", ".k_proj.weight")):
        return 2.5
    if name.endswith((".q.weight", ".k.weight")):
        return 1.5  # not divided by √d_kv
    if "EncDecAttention" in name or "encoder_attn" in name:
        return 3.0
    return 1.2


def save(folder, model, config, case):
    """Writes the folder as a reader will find it."""
    model.to(case["dtype"])
    kept = {"pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"}
    generation = {name: getattr(config, name, None) for name in sorted(kept)} | case["generation"]
    model.generation_config = GenerationConfig(**generation)
    limit = "20KB" if case["saved"] == "shards" else "5GB"
    model.save_pretrained(folder, max_shard_size=limit)

    if case["stale"]:
        path = folder / "model.safetensors"
        tensors = load_file(path) | {case["stale"]: torch.ones(8, config.num_heads)}
        save_file(tensors, path, {"format": "pt"})
    if case["copies"]:
        path = folder / "model.safetensors"
        tensors = load_file(path)
        shared = next(name for name in tensors if name.endswith("shared.weight"))
        for number, (side, differs) in enumerate(case["copies"].items()):
            noise = np.random.default_rng(number).normal(0.0, 0.3, tensors[shared].shape) if differs else 0.0
            copy = tensors[shared] + torch.tensor(noise, dtype=torch.float32)
            tensors[shared.replace("shared", f"{side}.embed_tokens")] = copy.contiguous()
        save_file(tensors, path, {"format": "pt"})
    if "bin" in case["saved"]:
        (folder / "model.safetensors").unlink()
        (folder / "generation_config.json").unlink()
        save_pickled(folder, model.state_dict(), case)
    if case["saved"] == "shards":
        assert len(list(folder.glob("model-*.safetensors"))) > 2
    path = folder / "config.json"
    text = json.loads(path.read_text()) | case["published"]
    text = {name: value for name, value in text.items() if not (name in case["published"] and value is None)}
    path.write_text(json.dumps(text, indent=2, sort_keys=True) + "\n")


def save_pickled(folder, tensors, case):
    """The weights as PyTorch pickles them: in an archive, in several with their index, or as it did before version 1.6."""
    if case["versions"]:
        tensors |= {f"model.{side}.version": torch.tensor([3.0]) for side in ("encoder", "decoder")}
    if case["saved"] == "bin":
        torch.save(tensors, folder / "pytorch_model.bin")
    elif case["saved"] == "legacy bin":
        path = folder / "pytorch_model.bin"
        torch.save(tensors, path, _use_new_zipfile_serialization=False)
        path.write_bytes(with_numbered_storages(path.read_bytes()))
    else:
        files = {name: f"pytorch_model-0000{1 + number % 2}-of-00002.bin" for number, name in enumerate(tensors)}
        for file in set(files.values()):
            torch.save({name: tensor for name, tensor in tensors.items() if files[name] == file}, folder / file)
        index = {"metadata": {}, "weight_map": files}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def with_numbered_storages(content):
    """The same file with storages named and ordered by where they are first used, where PyTorch takes addresses."""
    storages = {}

    class Reader(pickle.Unpickler):
        def persistent_load(self, storage):
            assert storage[1] is torch.FloatStorage
            storages[storage[2]] = 8 + 4 * storage[4]  # a count and so many numbers

        def find_class(self, module, name):
            return (lambda *_: None) if name == "_rebuild_tensor_v2" else super().find_class(module, name)

    file = io.BytesIO(content)
    for _ in range(3):  # the magic number, the protocol, the system
        pickle.load(file)
    Reader(file).load()
    head, blocks = content[: file.tell()], {}
    for name in pickle.load(file):
        blocks[name] = file.read(storages[name])
    assert not file.read()
    numbers = {name: str(number).zfill(len(name)) for number, name in enumerate(storages)}
    for name, number in numbers.items():
        head = head.replace(name.encode(), number.encode())
    return head + pickle.dumps(list(numbers.values()), 2) + b"".join(blocks[name] for name in storages)


def open_saved(folder, case):
    """The model of a folder in float32; see the head of this file on UMT5."""
    model, report = AutoModelForSeq2SeqLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not report[problem], report
    if case["model_type"] == "umt5" and case["separate_output"]:
        model.config.tie_word_embeddings = False
    if getattr(model.config, "num_decoder_layers", 0) > model.config.num_hidden_layers:
        model.generation_config.use_cache = False  # the cache of 5.22 has as many layers as the encoder
    embedding = model.get_input_embeddings() if case["copies"] else model.get_decoder().embed_tokens
    is_separate = not torch.equal(model.lm_head.weight, embedding.weight)
    assert is_separate == case["separate_output"]
    return model.eval()


# ---- what is recorded


class Rejected(Exception):
    """This seed does not show what the case is to show."""


def require(holds, what):
    if not holds:
        raise Rejected(what)


def draw_batch(config, lengths, seed, pad_inside=False):
    """Right-padded tokens and masks of both sides; no special token among the words, but for one that is asked for."""
    random = np.random.default_rng([seed, 1])
    special = {config.pad_token_id, config.eos_token_id, config.decoder_start_token_id, getattr(config, "bos_token_id", None)}
    n_target_tokens = getattr(config, "decoder_vocab_size", None) or config.vocab_size
    words = {"source": [w for w in range(config.vocab_size) if w not in special]}
    words |= {"target": [w for w in range(n_target_tokens) if w not in special]}
    batch = {}
    for side in ("source", "target"):
        longest = max(lengths[side])
        tokens = torch.full((len(lengths[side]), longest), config.pad_token_id)
        mask = torch.zeros_like(tokens)
        for sentence, length in enumerate(lengths[side]):
            drawn = random.choice(words[side], length).tolist()
            if side == "source":
                if pad_inside and sentence == 0:
                    drawn[2] = config.pad_token_id
                drawn[-1] = config.eos_token_id
            else:
                drawn[0] = config.decoder_start_token_id
            tokens[sentence, :length] = torch.tensor(drawn)
            mask[sentence, :length] = 1
        batch[side], batch[f"{side}_mask"] = tokens, mask
    return batch


@torch.no_grad()
def run(model, batch):
    return model(
        input_ids=batch["source"],
        attention_mask=batch["source_mask"],
        decoder_input_ids=batch["target"],
        decoder_attention_mask=batch["target_mask"],
        output_attentions=True,
        use_cache=False,
    )


def forward_arrays(model, batch):
    out = run(model, batch)
    source, target = batch["source_mask"].bool(), batch["target_mask"].bool()
    arrays = {"source": batch["source"], "source_lengths": batch["source_mask"].sum(1)}
    arrays |= {"target_in": batch["target"], "target_lengths": batch["target_mask"].sum(1)}
    arrays["logits"] = out.logits * target[:, :, None]
    arrays["encoder_states"] = out.encoder_last_hidden_state * source[:, :, None]
    for kind, layers, queries, keys in [
        ("encoder", out.encoder_attentions, source, source),
        ("decoder", out.decoder_attentions, target, target),
        ("cross", out.cross_attentions, target, source),
    ]:
        for layer, weights in enumerate(layers):
            weights = weights * queries[:, None, :, None]
            assert weights[~keys[:, None, None, :].expand_as(weights)].abs().max() == 0
            torch.testing.assert_close(weights.sum(3), queries[:, None].expand(weights.shape[:3]).to(weights.dtype))
            arrays[f"{kind}.{layer}"] = weights
    return arrays


class Noise(LogitsProcessor):
    """Moves every score a little: a search that then finds something else was near a tie."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, tokens, scores):
        return scores + (torch.rand(scores.shape, generator=self.generator) - 0.5) * NEAREST_TIE


class Watch(LogitsProcessor):
    """Remembers by how much the best token wins where it matters: `margins` [step][sentence]."""

    def __init__(self):
        self.margins = []

    def __call__(self, tokens, scores):
        best, second = scores.topk(2, dim=1).values.T
        self.margins.append(best - second)
        return scores


@torch.no_grad()
def search(model, batch, processors=(), sentences=slice(None), **settings):
    out = model.generate(
        input_ids=batch["source"][sentences],
        attention_mask=batch["source_mask"][sentences],
        max_new_tokens=N_NEW,
        do_sample=False,
        logits_processor=LogitsProcessorList(processors),
        return_dict_in_generate=True,
        output_scores=True,
        **settings,
    )
    return padded(model, out.sequences), getattr(out, "sequences_scores", None)


def padded(model, tokens):
    """Pad tokens after the end (where the pad token is 0, beam search repeats the end token), no column of these alone."""
    eos, pad = model.config.eos_token_id, model.config.pad_token_id
    is_end = tokens == eos
    is_end[:, 0] = False
    is_over = is_end.cumsum(1) - is_end.long() > 0
    n_columns = int((~is_over).sum(1).max())
    return tokens.masked_fill(is_over, pad)[:, :n_columns]


class Searches:
    """Searches of one model and batch. Whether a result hangs on a hair is asked at the end, since it takes long."""

    def __init__(self, model, batch):
        self.model, self.batch, self.kept = model, batch, []

    def __call__(self, **settings):
        watch = Watch()
        tokens, scores = search(self.model, self.batch, [watch], **settings)
        if scores is None:
            for step, margins in enumerate(watch.margins):
                running = ~(tokens[:, 1 : step + 1] == self.model.config.eos_token_id).any(1)
                require(bool((margins[running] > NEAREST_TIE).all()), "near a tie")
        self.kept.append((settings, tokens))
        return tokens, scores

    def check_steadiness(self):
        for settings, tokens in self.kept:
            for seed in range(3):
                shaken, _ = search(self.model, self.batch, [Noise(seed)], **settings)
                require(not differs(shaken, tokens), "near a tie")


def ends(model, tokens):
    """Which sentences found their end token before the last step. A pad token before it would be ambiguous."""
    eos, pad = model.config.eos_token_id, model.config.pad_token_id
    for row in tokens.tolist():
        words = row[1 : row.index(eos, 1)] if eos in row[1:] else row[1:]
        require(pad not in words and eos not in words, "a pad token among the words")
    return (tokens[:, 1:N_NEW] == eos).any(1)


def search_arrays(model, searches):
    arrays = {}
    greedy, _ = searches(num_beams=1)
    require(len({tuple(row) for row in greedy.tolist()}) == len(greedy), "greedy sentences alike")
    require(ends(model, greedy).any(), "no greedy sentence ends")
    require(max(len(set(row)) for row in greedy.tolist()) > 4, "dull")
    arrays["greedy"] = greedy

    plain = {"num_beams": N_BEAMS, "length_penalty": 1.0, "early_stopping": False}
    eager = {"num_beams": N_BEAMS, "length_penalty": 2.0, "early_stopping": True}
    for name, settings in [("beam", plain), ("beam_lp2", eager)]:
        arrays[name], arrays[f"{name}.scores"] = searches(**settings)
        require(ends(model, arrays[name]).any(), "no beam ends")
    beam, beam_lp2 = arrays["beam"], arrays["beam_lp2"]
    require(differs(beam, greedy) and differs(beam, beam_lp2), "beams find what greedy search finds")
    nbest = searches(sentences=slice(0, 1), num_return_sequences=3, **plain)
    arrays["nbest"], arrays["nbest.scores"] = nbest
    ends(model, arrays["nbest"])
    return arrays


def differs(one, other):
    return one.shape != other.shape or not torch.equal(one, other)


def words_of(model, tokens, forced):
    """Generated tokens that are neither special nor forced, the most frequent first."""
    special = {model.config.pad_token_id, model.config.eos_token_id, model.config.decoder_start_token_id, forced}
    words, counts = np.unique([w for w in tokens[:, 2:].flatten().tolist() if w not in special], return_counts=True)
    return [int(word) for word in words[np.argsort(-counts, kind="stable")]]


def forced_search(model, batch, searches, greedy):
    """Adds one setting after the other, each chosen so that it changes the result. Returns settings and tokens."""
    settings = {name: value for name, value in model.generation_config.to_diff_dict().items() if "version" not in name}
    forbidden = settings.pop("bad_words_ids", [])
    tokens = greedy

    def add(name, value):
        nonlocal tokens
        settings[name] = value
        found, _ = search(model, batch, generation_config=generation(settings))
        require(differs(found, tokens), f"{name} changes nothing")
        tokens = found

    first = next(w for w in range(20, 60) if w not in greedy[:, 1])
    add("forced_bos_token_id", first)
    add("forced_eos_token_id", model.config.eos_token_id)
    add("suppress_tokens", words_of(model, tokens, first)[:2])
    forbidden = forbidden + [words_of(model, tokens, first)[:1]]
    add("bad_words_ids", forbidden)
    pair = next((row[2:4] for row in tokens.tolist() if not {row[2], row[3]} & set(tokens[:, -1].tolist())), None)
    require(pair is not None, "no pair of words to forbid")
    add("bad_words_ids", forbidden + [pair])
    tokens, _ = searches(generation_config=generation(settings))
    return settings, tokens


def limited_search(model, batch, searches, limits):
    """Settings as of published summarisers, each of which changes the result. Returns settings, tokens and scores."""
    settings = {name: value for name, value in model.generation_config.to_diff_dict().items() if "version" not in name}
    settings |= {"num_beams": N_BEAMS, "length_penalty": 2.0, "early_stopping": True}
    found = searches(generation_config=generation(settings | limits))
    for name in limits:
        rest = {other: limit for other, limit in limits.items() if other != name}
        without, _ = search(model, batch, generation_config=generation(settings | rest))
        require(differs(without, found[0]), f"{name} changes nothing")
    return settings | limits, *found


def generation(settings):
    return GenerationConfig(**settings)


# ---- searches by the settings of files, on models as they lie there

IDS = {"bos_token_id": 0, "decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1}  # of bart, mbart and m2m_100
MARIAN_IDS = {"bos_token_id": 0, "decoder_start_token_id": PAD, "eos_token_id": 0, "pad_token_id": PAD} | NO_PAD
T5_IDS = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
BEGUN = [9, 31, 9]
WIDE = {"num_beams": N_BEAMS, "length_penalty": 2.0}


def file_searches():
    """(about, case, generation_config.json, changes of config.json, prefix, what else would be found with).

    The last are changes of generation_config.json each of which must change what is found; None: without that file.
    """
    forced = {"forced_eos_token_id": 2}
    short, new = {"max_length": 9}, {"max_new_tokens": 6}
    longer = [{"max_length": 12}]
    for more in ({}, WIDE):
        yield "limit", "bart", IDS | forced | short | more, {}, BEGUN, longer
        yield "limit", "m2m_100", IDS | forced | short | more, {}, BEGUN[:2], [{"max_length": 11}]
        yield "limit", "bart", IDS | forced | short | new | more, {}, BEGUN, [{"max_new_tokens": 5}]
        yield "limit", "m2m_100", IDS | forced | new | more, {}, BEGUN, [{"max_new_tokens": 3}]
        yield "limit", "bart", IDS | forced | short | more, {}, [], [{"max_length": 10}]

    # Beside generation_config.json no setting of config.json counts, and without it all do.
    old = WIDE | {"no_repeat_ngram_size": 2, "min_length": 7, "max_length": 11, "forced_bos_token_id": 33, "bad_words_ids": [[35]]}
    yield "files", "bart", IDS | {"max_new_tokens": 8}, old | forced, [], [None]
    yield "files", "t5", T5_IDS | {"max_new_tokens": 8}, old, [], [None]
    yield "files", "bart", None, old | forced, [], []
    yield "files", "marian", None, old | {"bad_words_ids": [[PAD], [3]]}, [], []
    yield "files", "bart", None, {"force_bos_token_to_be_generated": True, "max_length": 9}, [], []
    yield "files", "bart", IDS | {"max_length": 9}, {"force_bos_token_to_be_generated": True}, [], [None]
    yield "files", "bart", IDS | {"max_length": 9, "force_bos_token_to_be_generated": True}, {}, [], [{"forced_bos_token_id": 0}]
    # What neither a class nor config.json says does not end a text.
    yield "files", "t5", {"decoder_start_token_id": 0, "max_length": 11}, {}, [], [{"eos_token_id": 1}]
    yield "files", "m2m_100", {"bos_token_id": 0, "max_length": 11}, {}, [], [{"decoder_start_token_id": 2}]

    # Of the long lists many are likely at once: what goes on is found behind all of them.
    several = [("bart", IDS, [2, 6]), ("bart", IDS, [62, 2, 23, 36, 50, 19, 58, 61, 13]), ("t5", T5_IDS, [56, 1, 36])]
    several += [("m2m_100", IDS, [2, 11, 56]), ("m2m_100", IDS, [9, 10, 11, 4, 15, 56, 2, 52, 51])]
    several += [("marian", MARIAN_IDS, [3, 0]), ("marian", MARIAN_IDS, [30, 45, 13, 3, 20, 22, 16, 0, 33])]
    for case, ids, ends in several:
        patience = {"early_stopping": "never", "length_penalty": 3.0} if len(ends) > 3 else {}
        ids = ids | {"max_new_tokens": N_NEW} | patience
        one = [{"eos_token_id": ids["eos_token_id"]}]
        for n_beams in (1, 2, 3, 4):
            yield "ends", case, ids | {"eos_token_id": ends, "num_beams": n_beams}, {}, [], one
            # A beam finds several forced ends equally likely, and torch.topk takes any of what is equal.
            last = {"forced_eos_token_id": ends if n_beams == 1 else ends[0], "max_new_tokens": 5}
            least = {"min_length": 5}
            yield "ends", case, ids | {"eos_token_id": ends, "num_beams": n_beams} | last | least, {}, [], [{"min_length": 0}]

    begun = [("bart", IDS, 62), ("mbart", IDS, 56), ("m2m_100", IDS, 11), ("t5", T5_IDS, 40), ("marian", MARIAN_IDS, 33)]
    for case, ids, often in begun:
        rules = ids | {"forced_bos_token_id": 33, "forced_eos_token_id": ids["eos_token_id"], "no_repeat_ngram_size": 2, "min_length": 9}
        stops = {"early_stopping": True, "num_beams": 3}
        for more in ({}, WIDE, WIDE | stops, WIDE | {"early_stopping": "never", "length_penalty": 0.5}):
            repeats = [{"no_repeat_ngram_size": 0}]
            yield "prefix", case, rules | {"max_length": 12} | more, {}, BEGUN, repeats
            yield "prefix", case, rules | {"max_length": 10, "no_repeat_ngram_size": 3} | more, {}, [often] * 3, repeats
            yield "prefix", case, rules | {"max_new_tokens": 8, "min_new_tokens": 6} | more, {}, [often] * 2, repeats
            # Half of all words may not come first, where the model writes first.
            first = {"max_length": 11, "begin_suppress_tokens": list(range(4, 62, 2))}
            yield "prefix", case, rules | first | more, {}, BEGUN, [{"begin_suppress_tokens": []}]


@torch.no_grad()
def search_by_files(folder, case, batch, settings, changes, prefix, seed=None):
    """What is written for each sentence alone by a copy of the folder with these settings in its files."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / case["model_type"]
        shutil.copytree(folder, copy)
        (copy / "generation_config.json").unlink(missing_ok=True)
        if settings is not None:
            (copy / "generation_config.json").write_text(json.dumps(settings))
        path = copy / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))
        model = open_saved(copy, case)
    tokens, scores = [], []
    for source, mask in zip(batch["source"], batch["source_mask"], strict=True):
        begun = {"decoder_input_ids": torch.tensor([[model.config.decoder_start_token_id, *prefix]])} if prefix else {}
        out = model.generate(
            input_ids=source[mask.bool()][None],
            logits_processor=LogitsProcessorList([] if seed is None else [Noise(seed)]),
            return_dict_in_generate=True,
            output_scores=True,
            **begun,
        )
        tokens.append(out.sequences[0, 1:].tolist())
        scores += out.sequences_scores.tolist() if "sequences_scores" in out else []
    return tokens, scores


def make_searches():
    cases, found = all_cases(), []
    counts = {}
    for about, name, settings, changes, prefix, others in file_searches():
        case, golden = cases[name], load_file(FOLDER / name / "golden.safetensors")
        mask = (torch.arange(golden["source"].shape[1]) < golden["source_lengths"][:, None]).long()
        batch = {"source": golden["source"], "source_mask": mask}

        def run(settings, seed=None):
            return search_by_files(FOLDER / name, case, batch, settings, changes, prefix, seed)

        tokens, scores = run(settings)
        of_kind = counts.setdefault(about, [0, 0])
        of_kind[0] += 1
        if any(run(settings, seed)[0] != tokens for seed in range(3)):
            continue  # near a tie
        if any(run(None if other is None else settings | other)[0] == tokens for other in others):
            continue  # shows nothing
        of_kind[1] += 1
        search = {"about": about, "case": name, "generation": settings, "config": changes, "prefix": prefix}
        found.append(search | {"tokens": tokens, "scores": scores})
    print(", ".join(f"{about}: {n_kept} searches of {n}" for about, (n, n_kept) in counts.items()))
    write_list("searches.json", "searches", found)


# ---- what is drawn from


def make_drawing():
    random = np.random.default_rng(7)
    halves = np.log([0.5, 0.25, 0.125, 0.125])
    ties = np.log([0.1, 0.1, 0.3, 0.3, 0.2])
    some = random.normal(0, 2, 64)
    forbidden = np.where(random.random(64) < 0.5, -np.inf, some)
    alike = random.integers(-2, 3, 16).astype(float)
    settings = [
        (halves, [(1, 0, 0.5), (1, 0, 0.75), (1, 0, 0.875), (1, 0, 0.76), (1, 0, 0.0), (1, 0, 1), (1, 2, 0.6), (1, 2, 0.7), (1, 3, 1)]),
        (ties, [(1, 1, 1), (1, 2, 1), (1, 3, 1), (1, 4, 1), (1, 0, 0.29), (1, 0, 0.31), (1, 0, 0.95), (0.5, 4, 0.9)]),
        (alike, [(1, 1, 1), (1, 5, 1), (1, 0, 0.5), (2.0, 9, 0.7)]),
        (np.zeros(8), [(1, 1, 1), (1, 0, 0.5), (0.7, 3, 0.3)]),
        (some, [(1, 50, 1), (0.7, 0, 0.9), (1.6, 20, 0.95), (1e-3, 0, 1), (50.0, 200, 0.5), (0.3, 5, 0.8), (1, 0, 0.01), (1, 64, 0.999)]),
        (forbidden, [(1, 50, 1), (0.7, 0, 0.9), (1.6, 5, 0.95), (1, 1, 0.5)]),
    ]
    model, draws = AutoModelForSeq2SeqLM.from_pretrained(FOLDER / "bart"), []
    for logits, ways in settings:
        row = torch.tensor(logits, dtype=torch.float32)[None]
        for temperature, top_k, top_p in ways:
            how = generation({"do_sample": True, "temperature": float(temperature), "top_k": top_k, "top_p": float(top_p)})
            left = model._get_logits_processor(how, input_ids_seq_length=1)(None, row).softmax(1)[0]
            kept = left.nonzero()[:, 0].tolist()
            draw = {"logits": [None if value == -np.inf else value for value in row[0].tolist()]}
            draw |= {"temperature": temperature, "top_k": top_k, "top_p": top_p}
            draws.append(draw | {"kept": kept, "probabilities": left[kept].tolist()})
    print(f"{len(draws)} draws")
    write_list("drawing.json", "draws", draws)


def write_list(file, name, entries):
    lines = ",\n".join("    " + json.dumps(entry) for entry in entries)
    (FOLDER / file).write_text(f'{{\n  "versions": {json.dumps(versions())},\n  "{name}": [\n{lines}\n  ]\n}}\n')


# ---- self-checks


@torch.no_grad()
def check_everything_matters(model, batch):
    """Leaves out one parameter after the other."""
    plain = run(model, batch).logits
    mask = batch["target_mask"].bool()
    values = dict(model.named_parameters()) | {name: value for name, value in model.named_buffers() if "bias" in name}
    for name, value in values.items():
        if name.endswith("k_proj.bias"):
            continue
        kept = value.detach().clone()
        value.copy_(torch.full_like(kept, 1.0 if is_scale_of_norm(name) else 0.0))
        effect = (run(model, batch).logits - plain)[mask].abs().max()
        value.copy_(kept)
        require(effect > LEAST_EFFECT, f"{name} hardly matters: {effect}")
    assert torch.equal(run(model, batch).logits, plain)


def check_buckets(model, lengths):
    """Every relative position bias is looked up."""
    config = model.config
    for n_steps, bidirectional in [(max(lengths["source"]), True), (max(lengths["target"]), False)]:
        steps = torch.arange(n_steps)
        distances = steps[None, :] - steps[:, None]
        if not bidirectional:
            distances = distances[distances <= 0]
        n_buckets, furthest = config.relative_attention_num_buckets, config.relative_attention_max_distance
        used = T5Attention._relative_position_bucket(distances, bidirectional, n_buckets, furthest)
        # Nothing lies 0 steps ahead: the first bucket of that side is never used.
        n_usable = n_buckets - 1 if bidirectional else n_buckets
        assert len(used.unique()) == n_usable, used.unique()


@torch.no_grad()
def check_rounding(model, batch, arrays):
    """float32 is near enough to float64 that 1e-4 separates rounding from mistakes."""
    exact = forward_arrays(model.double(), batch)
    for name, array in exact.items():
        off = (array - arrays[name]).abs().max().item()
        require(off < 3e-5 * max(1.0, array.abs().max().item()), f"{name} is off by {off} in float32")
    model.float()


# ---- files


def safetensors_bytes(arrays, metadata):
    """The file, always the same bytes; the safetensors library writes the metadata in a random order."""
    header, data = {"__metadata__": metadata}, b""
    for name, array in arrays.items():
        content = array.tobytes()
        dtype = {"float32": "F32", "int64": "I64"}[str(array.dtype)]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def make(folder, name, case, seed):
    """Fills the folder, or rejects the seed."""
    config = AutoConfig.for_model(case["model_type"], **case["config"])
    model = AutoModelForSeq2SeqLM.from_config(config)
    draw(model, config, case["separate_output"], seed)
    save(folder, model, config, case)
    model = open_saved(folder, case)
    batch = draw_batch(model.config, case["lengths"], seed, case["pad_inside"])

    arrays = forward_arrays(model, batch)
    searches = Searches(model, batch)
    arrays |= search_arrays(model, searches)
    further = {}
    if case["forced"]:
        further["forced"], arrays["forced"] = forced_search(model, batch, searches, arrays["greedy"])
    if case["limited"]:
        further["limited"], arrays["limited"], arrays["limited.scores"] = limited_search(model, batch, searches, case["limited"])
    searches.check_steadiness()
    check_everything_matters(model, batch)
    check_rounding(model, batch, forward_arrays(model, batch))
    if name == "t5-long":
        check_buckets(model, case["lengths"])

    scaled = {"t5": getattr(model.config, "scale_decoder_outputs", None), "umt5": model.config.tie_word_embeddings}
    settings = {"n_new": N_NEW, "n_beams": N_BEAMS, "decoder_start": model.config.decoder_start_token_id}
    settings |= {"pad": model.config.pad_token_id, "eos": model.config.eos_token_id}
    settings |= {"scaled_output": scaled.get(case["model_type"], False), "separate_output": case["separate_output"]}
    metadata = {"case": name, "seed": str(seed), "versions": versions(), "settings": json.dumps(settings)}
    arrays = {key: np.ascontiguousarray(array.numpy()) for key, array in arrays.items()}
    content = safetensors_bytes(arrays, metadata)
    assert all(np.array_equal(array, arrays[key]) for key, array in load(content).items())
    (folder / "golden.safetensors").write_bytes(content)
    for kind, chosen in further.items():
        (folder / f"generation_config.{kind}.json").write_text(json.dumps(chosen, indent=2, sort_keys=True) + "\n")


def versions():
    return f"torch {torch.__version__}, transformers {transformers.__version__}, python {platform.python_version()}"


def first_that_will_do(target, name, make, n_seeds=N_SEEDS):
    """Lets `make(folder, seed)` fill the target's folder with the first seed it does not reject; says how many were tried."""
    first = crc32(name.encode()) % 1_000_000
    reasons = {}
    for seed in range(first, first + n_seeds):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / name
            try:
                make(folder, seed)
            except Rejected as reason:
                why = str(reason).split(":")[0]
                reasons[why] = reasons.get(why, 0) + 1
                continue
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target)
        return seed - first + 1
    raise SystemExit(f"{name}: no seed will do: {reasons}")


def quietly():
    """One thread, and no word of the libraries."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def main(names):
    quietly()
    cases, others = all_cases(), {"searches": make_searches, "drawing": make_drawing}
    for name in names or [*cases, *others]:
        if name in others:
            others[name]()
            continue
        n_seeds = first_that_will_do(FOLDER / name, name, lambda folder, seed: make(folder, name, cases[name], seed))
        sizes = {path.name: path.stat().st_size for path in sorted((FOLDER / name).iterdir())}
        assert max(sizes.values()) <= MAX_MODEL_BYTES
        print(f"{sum(sizes.values()):7} bytes, {n_seeds:3} seeds tried: {name}")
    total = sum(path.stat().st_size for name in cases for path in (FOLDER / name).iterdir())
    print(f"{total:7} bytes in all cases")
    assert total <= MAX_TOTAL_BYTES


if __name__ == "__main__":
    main(sys.argv[1:])
