"""Golden values for imported models, made by the package e2k itself, without any code of crosslens-nets.

Run:     pip install e2k==0.8.1 && python make_e2k.py   (Python 3.11, numpy 2.4.6; a few seconds)
Writes:  imported/tiny.safetensors   a random model with the package's tensor names and metadata, half precision, a few kB
         imported/tiny.json          what the package makes of it on some words, with two heads and with four
         imported/e2k.json           the same for the package's own models; their weights are not copied

The package computes in the precision of its weights: they are given to it in float64, so what is written is right to the
last bits that single precision has. The same run in the package's usual float32 must write the same tokens; how far its
logits lie from those of float64 is kept as `float32_error`. At every step the likeliest token wins by more than 1e-3, so
rounding cannot flip one; the program fails otherwise.

JSON
  versions, seed          what made the file
  models[]                name, heads, most_steps; sha256 of the weights where they are the package's
  models[].float32_error  largest difference between the package's logits in float32 and float64
  models[].words[]        text       what is asked (for phonemes: separated by blanks)
                          source     token ids, start and end included
                          written    token ids, end included if it was reached
                          logits     [step][word]
                          attention  [head][step][source token]
"""

import hashlib
import json
import math
import platform
import struct
from importlib.metadata import version
from pathlib import Path

import numpy as np
from e2k import inference
from e2k.inference import MHA, S2S

SEED = 2021
FOLDER = Path(__file__).parent / "imported"
MARGIN = 1e-3

# Every width but those that the package's attention wants equal is different, so that none can stand for another.
WIDTH, D_SOURCE, D_TARGET, D_ENCODER, D_SECOND = 8, 5, 7, 6, 9
IN_TABLE = ["<pad>", "<sos>", "<eos>", *"abcdefghijklmnopqrstuvwxyz", " ", "'"]
OUT_TABLE = ["<pad>", "<sos>", "<eos>", *"アイウエオカキクケコンー"]
MAX_LEN = 16

TINY_WORDS = ["hello", "a", "", "rhythm", "it's", "New York"]
CHARACTER_WORDS = ["hello", "rhythm", "it's", "New York", "transformation"]
PHONEME_WORDS = ["HH AH0 L OW1", "K AH0 M P Y UW1 T ER0"]


# ---- a tiny model


def tiny_weights(rng):
    def normal(*shape, scale=None):
        scale = 1.5 / math.sqrt(shape[-1]) if scale is None else scale
        return (scale * rng.standard_normal(shape)).astype(np.float16)

    def gru(name, d_input, d_hidden, suffix=""):
        return {
            f"{name}.weight_ih_l0{suffix}": normal(3 * d_hidden, d_input),
            f"{name}.weight_hh_l0{suffix}": normal(3 * d_hidden, d_hidden),
            f"{name}.bias_ih_l0{suffix}": normal(3 * d_hidden, scale=0.5),
            f"{name}.bias_hh_l0{suffix}": normal(3 * d_hidden, scale=0.5),
        }

    weights = {
        "e_emb.weight": normal(len(IN_TABLE), D_SOURCE, scale=1.0),
        "k_emb.weight": normal(len(OUT_TABLE), D_TARGET, scale=1.0),
        "encoder_fc.0.weight": normal(WIDTH, 2 * D_ENCODER),
        "encoder_fc.0.bias": normal(WIDTH, scale=0.3),
        "attn.in_proj_weight": normal(3 * WIDTH, WIDTH, scale=1.0),
        "attn.in_proj_bias": normal(3 * WIDTH, scale=0.5),
        "attn.out_proj.weight": normal(WIDTH, WIDTH),
        "attn.out_proj.bias": normal(WIDTH, scale=0.3),
        "fc.weight": normal(len(OUT_TABLE), D_SECOND, scale=1.0),
        "fc.bias": normal(len(OUT_TABLE), scale=0.3),
    }
    weights["fc.bias"][OUT_TABLE.index("<eos>")] += 1.5  # so that some sentences end early
    weights |= gru("encoder", D_SOURCE, D_ENCODER) | gru("encoder", D_SOURCE, D_ENCODER, "_reverse")
    return weights | gru("pre_decoder", D_TARGET, WIDTH) | gru("post_decoder", 2 * WIDTH, D_SECOND)


def write_safetensors(path, weights, metadata):
    """The format by hand: header length, header in JSON, numbers."""
    header, offset = {"__metadata__": metadata}, 0
    for name, tensor in sorted(weights.items()):
        end = offset + tensor.nbytes
        header[name] = {"dtype": "F16", "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    numbers = b"".join(np.ascontiguousarray(tensor).tobytes() for _, tensor in sorted(weights.items()))
    path.write_bytes(struct.pack("<Q", len(text)) + text + numbers)


# ---- what the package does


class WatchedAttention(MHA):
    """The package's attention, which also keeps its weights; what they sum must be what the package gives."""

    def forward(self, q, memory):
        keys, values = memory
        scores = np.matmul(self.split_heads(self.q_proj.forward(q)), keys) / self.scale
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        given = super().forward(q, memory)
        summed = np.matmul(weights, values).transpose(1, 0, 2).reshape(q.shape[0], -1)
        assert np.allclose(self.o_proj.forward(summed), given, rtol=1e-5, atol=1e-5)
        self.seen.append(weights[:, 0, :])
        return given


def watched(weights, metadata, heads, dtype):
    weights = {name: tensor.astype(dtype) for name, tensor in weights.items()}
    model = S2S(weights, metadata, MAX_LEN)
    names = ["attn.in_proj_weight", "attn.in_proj_bias", "attn.out_proj.weight", "attn.out_proj.bias"]
    model.attn = WatchedAttention(*(weights[name] for name in names), heads)
    return model


def run(model, source):
    """Tokens written, logits by step, attention by head and step."""
    model.attn.seen, logits = [], []

    def choose(step_logits):
        second, first = np.sort(step_logits)[-2:]
        assert first - second > MARGIN, f"{source}: the winner is ahead by {first - second} only"
        logits.append(step_logits)
        return inference.greedy(step_logits)

    written = model.forward(np.array(source), choose)[1:]
    return [int(token) for token in written], np.array(logits), np.stack(model.attn.seen, axis=1)


def in_tokens(model, text):
    """As the package's own models turn what they are asked into tokens."""
    table = {word: token for token, word in enumerate(model.in_table)}
    is_phonemes = "HH" in table
    words = text.split() if is_phonemes else list(text.lower())
    assert all(word in table for word in words), text
    return [model.sos_idx, *(table[word] for word in words), model.eos_idx]


def golden(name, weights, metadata, heads, texts):
    exact, usual = (watched(weights, metadata, heads, dtype) for dtype in (np.float64, np.float32))
    words, error = [], 0.0
    for text in texts:
        source = in_tokens(exact, text)
        written, logits, attention = run(exact, source)
        in_single, single_logits, _ = run(usual, source)
        assert written == in_single, f"{name}: {text} is written differently in float32"
        error = max(error, float(np.abs(logits - single_logits).max()))
        rounded = [np.vectorize(lambda x: float(f"{x:.7g}"))(array).tolist() for array in (logits, attention)]
        words.append({"text": text, "source": source, "written": written, "logits": rounded[0], "attention": rounded[1]})
    return {"name": name, "heads": heads, "most_steps": MAX_LEN, "float32_error": error, "words": words}


def save(path, models):
    versions = {"python": platform.python_version(), "numpy": np.__version__, "e2k": package_version()}
    path.write_text(json.dumps({"versions": versions, "seed": SEED, "models": models}, ensure_ascii=False) + "\n")
    for model in models:
        text = ", ".join(f"{word['text']}:{len(word['written'])}" for word in model["words"])
        print(f"{model['name']}, {model['heads']} heads: float32 within {model['float32_error']:.1e}; steps {text}")


def package_version():
    return version("e2k")


def main():
    FOLDER.mkdir(exist_ok=True)
    weights = tiny_weights(np.random.default_rng(SEED))
    metadata = {"in_table": "\0".join(IN_TABLE), "out_table": "\0".join(OUT_TABLE), "sos_idx": "1", "eos_idx": "2"}
    write_safetensors(FOLDER / "tiny.safetensors", weights, metadata)
    read_back = inference.load_safetensors((FOLDER / "tiny.safetensors").read_bytes())
    assert all(np.array_equal(read_back[0][name], weights[name]) for name in weights) and read_back[1] == metadata
    save(FOLDER / "tiny.json", [golden("tiny", *read_back, heads, TINY_WORDS) for heads in (2, 4)])

    models = []
    for name, texts in [("model-c2k", CHARACTER_WORDS), ("model-c2k-turbo", CHARACTER_WORDS[:2]), ("model-p2k", PHONEME_WORDS)]:
        data = inference.read_asset(f"{name}.safetensors")
        model = golden(name, *inference.load_safetensors(data), 4, texts)
        models.append(model | {"sha256": hashlib.sha256(data).hexdigest()})
    own = inference.C2K()
    tables = own.out_table
    for word in models[0]["words"]:
        letters = "".join(tables[token] for token in word["written"] if token != own.s2s.eos_idx)
        assert letters == own(word["text"]), f"{word['text']}: {letters} is not what the package says"
    save(FOLDER / "e2k.json", models)


if __name__ == "__main__":
    main()
