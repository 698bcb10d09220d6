"""Golden values for the networks of crosslens-nets, made without any of its code.

Run:     python make.py            (with the versions of requirements.txt; about half a minute)
Writes:  cases/NAME.safetensors    one per case: network and optimiser in the metadata, then batch, parameters,
                                   activations, loss, gradients and the parameters after some optimiser steps.
README.md lists the tensors. networks.py and transformer.py hold the networks; this file the cases, the optimiser and the self-checks.
"""

import json
import platform
from itertools import count
from pathlib import Path
from zlib import crc32

import numpy as np
import torch
from safetensors.numpy import load

import networks
import transformer
from networks import GATE_BLOCKS

SEED = 2021
N_STEPS = 5
CASES_DIR = Path(__file__).parent / "cases"
SOURCE_LENGTHS, TARGET_LENGTHS = [3, 5, 4], [4, 3, 5]  # neither sorted, nor in the same order


# ---- cases


def optimizer(**changes):
    plain = {"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    return plain | {"decay": 0.0, "l2": 0.0, "clip": None} | changes


PLAIN = optimizer()
PAPER = optimizer(learning_rate=0.1, beta2=0.99, epsilon=0.1, l2=1e-5, clip=1.0)
ADAMW = optimizer(learning_rate=0.01, decay=0.01)
# The gradient of a key's bias is zero: softmax drops it. A small epsilon would make steps of its rounding errors.
CALM = optimizer(learning_rate=0.01, epsilon=1e-5, decay=0.01)
BITING = optimizer(learning_rate=0.01, epsilon=0.001, l2=0.001, clip=0.05)
EVERYTHING = optimizer(learning_rate=0.05, beta1=0.8, beta2=0.95, epsilon=0.01, decay=0.1, l2=0.01, clip=0.3)

ONE_HOT = {"kind": "one-hot", "size": 6}
EMBEDDING = {"kind": "embedding", "size": 3}
POSITIONS = {"amplitude": 1.0, "time_scale": 100.0}


def network(family, optimizer, **changes):
    """One case: an `aed`-like default of one GRU layer with dot attention, and what differs from it."""
    plain = {"family": family, "cell": "gru", "layers": 1, "hidden": 4, "bidirectional": False}
    plain |= {"score": "dot", "heads": 1, "inputs": ONE_HOT, "input_feeding": False, "readout_bias": True}
    plain |= {"positions": None, "source_words": 4, "target_words": 5, "feeding": "forced", "optimizer": optimizer}
    assert not changes.keys() - plain.keys(), changes
    return plain | changes


def all_cases():
    """Name -> case."""
    cases = {}
    for cell, adam in zip(GATE_BLOCKS, [PLAIN, PAPER, ADAMW, BITING, EVERYTHING]):
        cases[f"aed-dot-{cell}"] = network("aed", adam, cell=cell, hidden=5, inputs={"kind": "one-hot", "size": 7})
    for cell, adam in zip(GATE_BLOCKS, [PAPER, BITING, PLAIN, ADAMW, PAPER]):
        size = 7 if cell == "gru" else 6  # odd once: the last sine has no cosine
        inputs = {"kind": "one-hot", "size": size}
        cases[f"ao-positions-{cell}"] = network("ao", adam, cell=cell, inputs=inputs, positions=POSITIONS)
    strong = {"amplitude": 2.5, "time_scale": 10.0}
    cases["ao-positions-embedding-2-layers-qkv-2-heads"] = network(
        "ao", ADAMW, layers=2, score="qkv", heads=2, inputs={"kind": "embedding", "size": 4}, positions=strong
    )
    cases["ao-without-positions"] = network("ao", PLAIN, score="general")

    cases["ved-gru"] = network("ved", PAPER, score=None)
    cases["ved-gru-2-layers"] = network("ved", PLAIN, score=None, layers=2)
    cases["ved-bidirectional-gru"] = network("ved", EVERYTHING, score=None, bidirectional=True)
    cases["ved-bidirectional-lstm"] = network("ved", ADAMW, score=None, bidirectional=True, cell="lstm")

    cases["aed-scaled-dot"] = network("aed", BITING, score="scaled-dot")
    cases["aed-general"] = network("aed", PLAIN, score="general")
    cases["aed-additive"] = network("aed", PAPER, score="additive")
    for heads, name in [(1, "1-head"), (2, "2-heads")]:
        cases[f"aed-qkv-{name}"] = network("aed", ADAMW, score="qkv", heads=heads)
        cases[f"aed-qkv-{name}-no-readout-bias"] = network("aed", PAPER, score="qkv", heads=heads, readout_bias=False)
    cases["aed-bidirectional-general"] = network("aed", BITING, score="general", bidirectional=True)
    cases["aed-bidirectional-qkv-2-heads"] = network("aed", PLAIN, score="qkv", heads=2, bidirectional=True)
    cases["aed-lstm-2-layers"] = network("aed", PAPER, cell="lstm", layers=2)
    cases["aed-bidirectional-gru-2-layers-additive"] = network(
        "aed", ADAMW, layers=2, score="additive", bidirectional=True
    )
    cases["aed-sentences-of-one-step"] = network("aed", PLAIN)

    both_ways = {"score": "additive", "bidirectional": True}
    cases["bahdanau-gru"] = network("bahdanau", PLAIN, **both_ways)
    cases["bahdanau-lstm"] = network("bahdanau", PAPER, cell="lstm", **both_ways)
    cases["bahdanau-gru-reset-after-2-layers"] = network(
        "bahdanau", BITING, cell="gru-reset-after", layers=2, **both_ways
    )
    cases["bahdanau-unidirectional-dot"] = network("bahdanau", ADAMW)
    cases["bahdanau-unidirectional-dot-vanilla"] = network("bahdanau", EVERYTHING, cell="vanilla")
    cases["bahdanau-embedding"] = network("bahdanau", PAPER, inputs=EMBEDDING, **both_ways)

    for score, adam in [("dot", PLAIN), ("general", PAPER), ("additive", ADAMW)]:
        cases[f"luong-{score}"] = network("luong", adam, score=score)
        cases[f"luong-{score}-input-feeding"] = network("luong", adam, score=score, input_feeding=True)
    cases["luong-dot-input-feeding-ugrnn"] = network("luong", EVERYTHING, cell="ugrnn", input_feeding=True)
    cases["luong-lstm-2-layers-input-feeding-qkv-2-heads"] = network(
        "luong", BITING, cell="lstm", layers=2, score="qkv", heads=2, input_feeding=True
    )
    cases["luong-embedding"] = network("luong", ADAMW, inputs=EMBEDDING)

    cases["free-running-aed"] = network("aed", PAPER, feeding="free")
    cases["free-running-ao"] = network("ao", ADAMW, positions=POSITIONS, feeding="free")
    cases["free-running-bahdanau"] = network("bahdanau", ADAMW, feeding="free", **both_ways)
    cases["free-running-luong-input-feeding"] = network("luong", EVERYTHING, input_feeding=True, feeding="free")

    learned = {"kind": "learned", "size": 6}
    cases["transformer-pre-norm"] = a_transformer(PLAIN)
    cases["transformer-post-norm"] = a_transformer(CALM, norm="post")
    cases["transformer-gelu"] = a_transformer(BITING, activation="gelu")
    cases["transformer-learned-positions"] = a_transformer(PAPER, positions=learned)
    cases["transformer-tied"] = a_transformer(PLAIN, tied_readout=True, embedding_scale=1.5)
    cases["transformer-everything"] = a_transformer(
        EVERYTHING, norm="post", activation="gelu", positions=learned, tied_readout=True, decoder_layers=1, feed_forward=5
    ) | {"readout_bias": False}
    cases["transformer-2-layers"] = a_transformer(CALM, decoder_layers=3) | {"layers": 2}
    cases["transformer-1-head-odd-width"] = a_transformer(PLAIN, feed_forward=3) | {"heads": 1, "hidden": 5}
    cases["transformer-sentences-of-one-step"] = a_transformer(PLAIN)
    cases["free-running-transformer"] = a_transformer(CALM) | {"feeding": "free"}
    cases["free-running-transformer-post-norm"] = a_transformer(PAPER, norm="post", positions=learned) | {"feeding": "free"}
    return cases


def a_transformer(optimizer, **changes):
    """One case: a pre-norm Transformer of one layer and two heads, and what differs from it."""
    own = {"feed_forward": 6, "norm": "pre", "activation": "relu", "tied_readout": False}
    own |= {"positions": {"kind": "sinusoidal", "time_scale": 100.0}} | changes
    case = {"family": "transformer", "layers": 1, "hidden": 4, "heads": 2, "readout_bias": True, "positions": None}
    return case | {"source_words": 4, "target_words": 5, "feeding": "forced", "optimizer": optimizer, "transformer": own}


# ---- one case


def draw(name, case, attempt=0):
    """Parameters (trained ones, then the constants) and the batch, from a stream that belongs to the case's name."""
    rng = np.random.default_rng([SEED, crc32(name.encode()), attempt])
    trained = {
        key: torch.tensor(0.5 * rng.standard_normal(shape))
        for key, shape in sorted(networks.parameter_shapes(case).items())
    }
    constants = {}
    if case["positions"] is not None:
        d = case["inputs"]["size"]
        rotation, _ = np.linalg.qr(rng.standard_normal((d, d)))
        rotation[:, 0] *= np.sign(np.linalg.det(rotation))
        assert np.isclose(np.linalg.det(rotation), 1)
        constants["positions.rotation"] = torch.tensor(rotation)

    lengths = ([1, 4, 2], [3, 1, 2]) if "one-step" in name else (SOURCE_LENGTHS, TARGET_LENGTHS)
    sources = [rng.integers(case["source_words"], size=length).tolist() for length in lengths[0]]
    targets = [rng.integers(case["target_words"], size=length).tolist() for length in lengths[1]]
    return trained, constants, sources, targets


def run_batch(case, params, sources, targets):
    """A trace per sentence, and the loss without L2."""
    traces = [networks.run_sentence(case, params, source, target) for source, target in zip(sources, targets)]
    return traces, networks.cross_entropy([trace.logits for trace in traces], targets)


def gradients(loss, params):
    """Name -> gradient, zero where the loss does not depend on the parameter."""
    values = torch.autograd.grad(loss, list(params.values()), materialize_grads=True, allow_unused=True)
    return dict(zip(params, values))


def train(case, trained, constants, sources, targets):
    """The parameters after each of `N_STEPS` optimiser steps, by the equations of docs/math.md."""
    rule = case["optimizer"]
    beta1, beta2, rate = rule["beta1"], rule["beta2"], rule["learning_rate"]
    m = {name: torch.zeros_like(value) for name, value in trained.items()}
    v = {name: torch.zeros_like(value) for name, value in trained.items()}
    theta, history = trained, []
    for k in range(1, N_STEPS + 1):
        theta = {name: value.detach().requires_grad_() for name, value in theta.items()}
        _, loss = run_batch(case, theta | constants, sources, targets)
        gradient = gradients(loss + rule["l2"] * sum((value**2).sum() for value in theta.values()), theta)

        norm = torch.sqrt(sum((g**2).sum() for g in gradient.values()))
        scale = 1.0 if rule["clip"] is None else min(1.0, rule["clip"] / norm.item())
        assert rule is not BITING or scale < 1.0, "the clip of this case is meant to bite"

        after = {}
        for name, value in theta.items():
            g = gradient[name] * scale
            m[name] = beta1 * m[name] + (1 - beta1) * g
            v[name] = beta2 * v[name] + (1 - beta2) * g**2
            step = (m[name] / (1 - beta1**k)) / (torch.sqrt(v[name] / (1 - beta2**k)) + rule["epsilon"])
            after[name] = value.detach() - rate * step - rate * rule["decay"] * value.detach()
        theta = after
        history.append(after)
    return history


def draw_lively(name, case):
    """As `draw`; but a free-running case should feed several words, and other ones once it has trained."""
    for attempt in count():
        trained, constants, sources, targets = drawn = draw(name, case, attempt)
        if case["feeding"] == "forced":
            return drawn
        after = train(case, *drawn)[-2]
        first, last = (
            [trace.fed for trace in run_batch(case, params | constants, sources, targets)[0]]
            for params in (trained, after)
        )
        if len(set(sum(first, []))) >= 4 and first != last:
            return drawn


def padded(rows, width):
    return np.array([row + [-1] * (width - len(row)) for row in rows], dtype=np.int64)


def make(name, case, steps_kept):
    """Every tensor of one golden file."""
    trained, constants, sources, targets = draw_lively(name, case)
    trained = {key: value.requires_grad_() for key, value in trained.items()}
    traces, loss = run_batch(case, trained | constants, sources, targets)
    history = train(case, trained, constants, sources, targets)
    check_adam_against_torch(case, trained, constants, sources, targets, history)

    width = max(map(len, targets))
    tensors = {"source": padded(sources, max(map(len, sources))), "target": padded(targets, width)}
    tensors |= {"fed": padded([trace.fed for trace in traces], width), "loss": loss}
    tensors |= {f"param/{key}": value for key, value in (trained | constants).items()}
    tensors |= {f"grad/{key}": value for key, value in gradients(loss, trained).items()}
    for k in steps_kept:
        tensors |= {f"after/{k}/{key}": value for key, value in history[k - 1].items()}
    for i, trace in enumerate(traces):
        tensors |= {f"logits/{i}": trace.logits, f"encoder/{i}": trace.encoder, f"decoder/{i}": trace.decoder}
        if trace.attention is not None:
            tensors[f"attention/{i}"] = trace.attention
        if case["family"] == "transformer":
            tensors |= {f"encoder_self/{i}": trace.encoder_self, f"decoder_self/{i}": trace.decoder_self}

    arrays = {key: value if isinstance(value, np.ndarray) else value.detach().numpy() for key, value in tensors.items()}
    assert all(np.isfinite(array).all() for array in arrays.values()), name
    return arrays


def safetensors_bytes(arrays, metadata):
    """The file, always the same bytes; the safetensors library writes the metadata in a random order."""
    header, data = {"__metadata__": metadata}, b""
    for name, array in arrays.items():
        content = array.tobytes()
        dtype = {"float64": "F64", "int64": "I64"}[str(array.dtype)]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


# ---- self-checks


def check_adam_against_torch(case, trained, constants, sources, targets, history):
    """torch.optim knows neither our L2 nor our clipping (its own adds 1e-6 to the norm), so only cases without."""
    rule = case["optimizer"]
    if rule["l2"] > 0 or rule["clip"] is not None:
        return
    theta = {name: value.detach().clone().requires_grad_() for name, value in trained.items()}
    options = {"lr": rule["learning_rate"], "betas": (rule["beta1"], rule["beta2"]), "eps": rule["epsilon"]}
    if rule["decay"] > 0:
        adam = torch.optim.AdamW(theta.values(), weight_decay=rule["decay"], **options)
    else:
        adam = torch.optim.Adam(theta.values(), **options)

    for after in history:
        _, loss = run_batch(case, theta | constants, sources, targets)
        for name, gradient in gradients(loss, theta).items():
            theta[name].grad = gradient
        adam.step()
        for name, value in theta.items():
            torch.testing.assert_close(after[name], value.detach(), rtol=1e-10, atol=1e-12)


def check_cells_against_torch(cell):
    """A bidirectional encoder of two layers equals torch.nn.GRU or torch.nn.LSTM, once the weights are rearranged."""
    case = network("aed", PLAIN, cell=cell, layers=2, bidirectional=True, score="general")
    params, _, _, _ = draw(f"check-{cell}", case)
    n, d = case["hidden"], case["inputs"]["size"]
    # Our blocks u,r,c and f,i,o,c in PyTorch's order r,z,n and i,f,g,o.
    blocks = [1, 0, 2] if cell == "gru-reset-after" else [1, 0, 3, 2]
    order = torch.cat([torch.arange(k * n, (k + 1) * n) for k in blocks])
    kind = torch.nn.GRU if cell == "gru-reset-after" else torch.nn.LSTM
    theirs = kind(d, n, num_layers=2, bidirectional=True, dtype=torch.float64)

    prefixes = [f"encoder.{layer}{direction}" for layer in range(2) for direction in ("", ".backward")]
    for prefix, (w_input, w_hidden, b_input, b_hidden) in zip(prefixes, theirs.all_weights):
        bias, hidden_bias = params[f"{prefix}.gates_bias"].clone(), torch.zeros_like(b_hidden)
        if cell == "lstm":
            bias[:n] += 1
        else:
            hidden_bias[2 * n :] = params[f"{prefix}.candidate_bias"]
        with torch.no_grad():
            w_input.copy_(params[f"{prefix}.gates_from_input"][:, order].T)
            w_hidden.copy_(params[f"{prefix}.gates_from_hidden"][:, order].T)
            b_input.copy_(bias[order])
            b_hidden.copy_(hidden_bias)

    start = torch.stack([params[f"{prefix}.initial"] for prefix in prefixes])
    if cell == "lstm":
        start = start, torch.stack([params[f"{prefix}.initial_cell"] for prefix in prefixes])
    words = [networks.input_vector(case, params, "encoder", word, step) for step, word in enumerate([2, 0, 3, 1, 2])]
    keys, _ = networks.encode(case, params, words)
    expected, _ = theirs(torch.stack(words), start)
    torch.testing.assert_close(torch.stack(keys), expected.detach(), rtol=1e-12, atol=1e-14)


def check_transformer_against_torch(norm, activation):
    """Both stacks equal those of torch.nn, once the weights are put into its layers."""
    case = a_transformer(PLAIN, norm=norm, activation=activation) | {"layers": 2}
    params, _, _, _ = draw(f"check-transformer-{norm}-{activation}", case)
    options = {"dim_feedforward": 6, "dropout": 0.0, "activation": transformer.activation(case)}
    options |= {"batch_first": True, "norm_first": norm == "pre", "dtype": torch.float64}
    source, target = (transformer.embed(case, params, side, [2, 0, 3, 1]) for side in ("encoder", "decoder"))

    def linear(layer, name):
        layer.weight.data, layer.bias.data = params[name].T.contiguous(), params[f"{name}_bias"]

    def attention(layer, name):
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        layer.in_proj_weight.data = torch.cat([params[part].T for part in parts])
        layer.in_proj_bias.data = torch.cat([params[f"{part}_bias"] for part in parts])
        linear(layer.out_proj, f"{name}.output")

    def layer_of(kind, side, number):
        layer, name = kind(case["hidden"], case["heads"], **options), f"{side}.{number}"
        norms = ["attention_norm", "feed_forward_norm"] if side == "encoder" else ["attention_norm", "cross_norm", "feed_forward_norm"]
        for place, part in enumerate(norms, 1):
            its_norm = getattr(layer, f"norm{place}")
            its_norm.weight.data, its_norm.bias.data = params[f"{name}.{part}.scale"], params[f"{name}.{part}.shift"]
        attention(layer.self_attn, f"{name}.attention")
        if side == "decoder":
            attention(layer.multihead_attn, f"{name}.cross")
        linear(layer.linear1, f"{name}.feed_forward.inner")
        linear(layer.linear2, f"{name}.feed_forward.outer")
        return layer

    def at_the_end(side, x):
        if norm == "post":
            return x
        scale, shift = params[f"{side}.norm.scale"], params[f"{side}.norm.shift"]
        return torch.nn.functional.layer_norm(x, (case["hidden"],), scale, shift)

    memory, x = source, target
    for number in range(2):
        memory = layer_of(torch.nn.TransformerEncoderLayer, "encoder", number)(memory[None])[0]
    memory = at_the_end("encoder", memory)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(len(target), dtype=torch.float64)
    for number in range(2):
        x = layer_of(torch.nn.TransformerDecoderLayer, "decoder", number)(x[None], memory[None], tgt_mask=mask)[0]
    ours, _ = transformer.encode(case, params, source)
    torch.testing.assert_close(ours, memory.detach(), rtol=1e-12, atol=1e-13)
    ours, _, _ = transformer.decode(case, params, target, ours)
    torch.testing.assert_close(ours, at_the_end("decoder", x).detach(), rtol=1e-12, atol=1e-13)


def main():
    torch.set_num_threads(1)
    for norm in ("pre", "post"):
        for activation in ("relu", "gelu"):
            check_transformer_against_torch(norm, activation)
    for cell in ("gru-reset-after", "lstm"):
        check_cells_against_torch(cell)

    CASES_DIR.mkdir(exist_ok=True)
    for old in CASES_DIR.glob("*.safetensors"):
        old.unlink()
    versions = f"torch {torch.__version__}, numpy {np.__version__}, python {platform.python_version()}"
    total = 0
    for name, case in all_cases().items():
        steps_kept = range(1, N_STEPS + 1) if name.startswith("aed-dot-") else [1, N_STEPS]
        metadata = {"case": json.dumps(case), "seed": str(SEED), "versions": versions}
        arrays = make(name, case, steps_kept)
        content = safetensors_bytes(arrays, metadata)
        assert all(np.array_equal(array, arrays[key]) for key, array in load(content).items())
        (CASES_DIR / f"{name}.safetensors").write_bytes(content)
        total += len(content)
        print(f"{len(content):7} {name}")
    print(f"{total:7} bytes in {len(all_cases())} cases")
    assert total < 2_000_000


if __name__ == "__main__":
    main()
