"""The Transformer of docs/math.md in plain PyTorch: one sentence at a time, gradients by autograd.

Written from the equations and not from the Rust code, as networks.py is. Rows are steps, all numbers float64. A
network that runs freely is given one more of its own words at a time, from the start each time.
"""

from dataclasses import dataclass
from functools import partial
from math import cos, sin, sqrt

import torch
from torch.nn import functional

EPSILON = 1e-5


@dataclass
class Trace:
    """What one sentence leaves behind; weights are `[layer · head, query, key]`."""

    fed: list
    logits: torch.Tensor  # [S, V_target]
    attention: torch.Tensor
    encoder_self: torch.Tensor
    decoder_self: torch.Tensor
    encoder: torch.Tensor  # [T, d], what attention across asks
    decoder: torch.Tensor  # [S, d], what the readout reads


def decoder_layers(case):
    return case["transformer"].get("decoder_layers") or case["layers"]


def parameter_shapes(case):
    """Every trained parameter of the network: name -> shape."""
    d, own = case["hidden"], case["transformer"]
    d_inner = own.get("feed_forward") or 4 * d
    shapes = {"encoder.embedding": (case["source_words"], d), "decoder.embedding": (case["target_words"] + 1, d)}
    if own["positions"]["kind"] == "learned":
        shapes |= {f"{side}.positions": (own["positions"]["size"], d) for side in ("encoder", "decoder")}

    def norm(name):
        shapes[f"{name}.scale"] = shapes[f"{name}.shift"] = (d,)

    def attention(name):
        for part in ("query", "key", "value", "output"):
            shapes[f"{name}.{part}"], shapes[f"{name}.{part}_bias"] = (d, d), (d,)
        norm(f"{name}_norm")

    def feed_forward(name):
        shapes[f"{name}.inner"], shapes[f"{name}.inner_bias"] = (d, d_inner), (d_inner,)
        shapes[f"{name}.outer"], shapes[f"{name}.outer_bias"] = (d_inner, d), (d,)
        norm(f"{name}_norm")

    for layer in range(case["layers"]):
        attention(f"encoder.{layer}.attention")
        feed_forward(f"encoder.{layer}.feed_forward")
    for layer in range(decoder_layers(case)):
        attention(f"decoder.{layer}.attention")
        attention(f"decoder.{layer}.cross")
        feed_forward(f"decoder.{layer}.feed_forward")
    if own["norm"] == "pre":
        norm("encoder.norm")
        norm("decoder.norm")
    if not own["tied_readout"]:
        shapes["readout"] = (d, case["target_words"])
    if case["readout_bias"]:
        shapes["readout_bias"] = (case["target_words"],)
    return shapes


def embed(case, params, side, words):
    """`[step, d]`."""
    d, own = case["hidden"], case["transformer"]
    scale = own.get("embedding_scale") or sqrt(d)
    x = scale * params[f"{side}.embedding"][words]
    if own["positions"]["kind"] == "learned":
        return x + params[f"{side}.positions"][: len(words)]
    time_scale = own["positions"]["time_scale"]
    wave = torch.zeros(len(words), d, dtype=torch.float64)
    for step in range(len(words)):
        for column in range(d):
            angle = step / time_scale ** (2 * (column // 2) / d)
            wave[step, column] = sin(angle) if column % 2 == 0 else cos(angle)
    return x + wave


def norm(params, name, x):
    centred = x - x.mean(dim=1, keepdim=True)
    deviation = torch.sqrt((centred**2).mean(dim=1, keepdim=True) + EPSILON)
    return centred / deviation * params[f"{name}.scale"] + params[f"{name}.shift"]


def attend(case, params, name, queries, keys, is_causal=False):
    """What attention gives, `[query, d]`, and its weights `[head, query, key]`."""
    heads, d_head = case["heads"], case["hidden"] // case["heads"]

    def part(which, x):
        return x @ params[f"{name}.{which}"] + params[f"{name}.{which}_bias"]

    q, k, v = part("query", queries), part("key", keys), part("value", keys)
    contexts, weights = [], []
    for head in range(heads):
        columns = slice(head * d_head, (head + 1) * d_head)
        scores = q[:, columns] @ k[:, columns].T / sqrt(d_head)
        if is_causal:
            hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, -torch.inf)
        alpha = torch.softmax(scores, dim=1)
        contexts.append(alpha @ v[:, columns])
        weights.append(alpha)
    return part("output", torch.cat(contexts, dim=1)), torch.stack(weights)


def feed_forward(case, params, name, x):
    inner = x @ params[f"{name}.inner"] + params[f"{name}.inner_bias"]
    active = activation(case)(inner)
    return active @ params[f"{name}.outer"] + params[f"{name}.outer_bias"]


def activation(case):
    return {"relu": functional.relu, "gelu": partial(functional.gelu, approximate="tanh")}[case["transformer"]["activation"]]


def around(case, params, name, x, sublayer):
    """The sublayer with its norm and the way around it."""
    if case["transformer"]["norm"] == "pre":
        return x + sublayer(norm(params, f"{name}_norm", x))
    return norm(params, f"{name}_norm", x + sublayer(x))


def encode(case, params, x):
    """What the encoder gives, and its weights."""
    weights = []

    def ask(name, x):
        result, alpha = attend(case, params, name, x, x)
        weights.append(alpha)
        return result

    for layer in range(case["layers"]):
        name = f"encoder.{layer}.attention"
        x = around(case, params, name, x, partial(ask, name))
        name = f"encoder.{layer}.feed_forward"
        x = around(case, params, name, x, partial(feed_forward, case, params, name))
    if case["transformer"]["norm"] == "pre":
        x = norm(params, "encoder.norm", x)
    return x, torch.cat(weights)


def decode(case, params, x, memory):
    """What the readout reads, the weights across, and the decoder's own."""
    across, own = [], []

    def ask_itself(name, x):
        result, alpha = attend(case, params, name, x, x, is_causal=True)
        own.append(alpha)
        return result

    def ask_encoder(name, x):
        result, alpha = attend(case, params, name, x, memory)
        across.append(alpha)
        return result

    for layer in range(decoder_layers(case)):
        name = f"decoder.{layer}.attention"
        x = around(case, params, name, x, partial(ask_itself, name))
        name = f"decoder.{layer}.cross"
        x = around(case, params, name, x, partial(ask_encoder, name))
        name = f"decoder.{layer}.feed_forward"
        x = around(case, params, name, x, partial(feed_forward, case, params, name))
    if case["transformer"]["norm"] == "pre":
        x = norm(params, "decoder.norm", x)
    return x, torch.cat(across), torch.cat(own)


def read_out(case, params, x):
    readout = params["decoder.embedding"][: case["target_words"]].T if case["transformer"]["tied_readout"] else params["readout"]
    logits = x @ readout
    return logits + params["readout_bias"] if case["readout_bias"] else logits


def run_sentence(case, params, source, target, choose):
    """The whole network over one sentence; `choose` picks a word from logits where it runs freely."""
    memory, encoder_self = encode(case, params, embed(case, params, "encoder", source))
    fed = [case["target_words"]]
    while len(fed) < len(target):
        if case["feeding"] == "forced":
            fed.append(target[len(fed) - 1])
            continue
        states, _, _ = decode(case, params, embed(case, params, "decoder", fed), memory)
        fed.append(choose(read_out(case, params, states)[-1]))
    states, across, decoder_self = decode(case, params, embed(case, params, "decoder", fed), memory)
    return Trace(fed, read_out(case, params, states), across, encoder_self, decoder_self, memory, states)
