"""The networks of docs/math.md in plain PyTorch: one sentence at a time, one step at a time, gradients by autograd.

Written from the equations and not from the Rust code, which it is there to prove. Vectors are rows, all numbers
float64. A network is its `case`, the dict that make.py stores with each golden file; `params` maps a parameter's name
to its tensor. Read from the bottom: `run_sentence` is the whole network.
"""

from dataclasses import dataclass
from math import cos, sin, sqrt

import torch

import transformer

GATE_BLOCKS = {"vanilla": 1, "ugrnn": 2, "gru": 3, "gru-reset-after": 3, "lstm": 4}


@dataclass
class Trace:
    """What one sentence leaves behind; `attention` is `[head, S, T]`, None without attention."""

    fed: list
    logits: torch.Tensor  # [S, V_target]
    attention: torch.Tensor | None
    encoder: torch.Tensor  # [T, d_key], the keys
    decoder: torch.Tensor  # [S, n], the top states


def parameter_shapes(case):
    """Every trained parameter of the network: name -> shape."""
    if case["family"] == "transformer":
        return transformer.parameter_shapes(case)
    n, d, heads = case["hidden"], case["inputs"]["size"], case["heads"]
    family, score = case["family"], case["score"]
    n_gates = GATE_BLOCKS[case["cell"]] * n
    d_key = 2 * n if case["bidirectional"] else n
    d_context = n if score == "qkv" else d_key
    shapes = {}

    def cell(prefix, d_in):
        shapes[f"{prefix}.gates_from_input"] = (d_in, n_gates)
        shapes[f"{prefix}.gates_bias"] = (n_gates,)
        if family != "ao":
            shapes[f"{prefix}.gates_from_hidden"] = (n, n_gates)
        if case["cell"] == "gru-reset-after":
            shapes[f"{prefix}.candidate_bias"] = (n,)

    def initial(prefix):
        if family != "ao":
            shapes[f"{prefix}.initial"] = (n,)
            if case["cell"] == "lstm":
                shapes[f"{prefix}.initial_cell"] = (n,)

    if case["inputs"]["kind"] == "embedding":
        shapes["encoder.embedding"] = (case["source_words"], d)
        shapes["decoder.embedding"] = (case["target_words"] + 1, d)

    for layer in range(case["layers"]):
        directions = [f"encoder.{layer}"] + [f"encoder.{layer}.backward"] * case["bidirectional"]
        for prefix in directions:
            cell(prefix, d if layer == 0 else d_key)
            initial(prefix)
        cell(f"decoder.{layer}", d if layer == 0 else n)
        if case["bidirectional"]:
            shapes[f"decoder.{layer}.initial_from_backward"] = (n, n)

    if family == "bahdanau":
        shapes["decoder.0.gates_from_feed"] = (d_context, n_gates)
    if case["input_feeding"]:
        shapes["decoder.0.gates_from_feed"] = (n, n_gates)

    if score == "general":
        shapes["attention.query"] = (n, d_key)
    if score == "additive":
        shapes |= {"attention.query": (n, n), "attention.key": (d_key, n)}
        shapes |= {"attention.bias": (n,), "attention.vector": (n,)}
    if score == "qkv":
        shapes["attention.query"] = (n, heads * n)
        shapes["attention.key"] = (d_key, heads * n)
        shapes["attention.value"] = (d_key, heads * n)
        if heads > 1:
            shapes["attention.mix"] = (heads * n, n)
            if case["readout_bias"]:
                shapes["attention.mix_bias"] = (n,)

    if family == "luong":
        shapes["attentional"] = (d_context + n, n)
    d_readout = {"ved": n, "aed": n + d_context, "ao": d_context, "bahdanau": n + d_context, "luong": n}[family]
    shapes["readout"] = (d_readout, case["target_words"])
    if case["readout_bias"]:
        shapes["readout_bias"] = (case["target_words"],)
    return shapes


def input_vector(case, params, side, word, step):
    """What layer 0 of `side` ("encoder" or "decoder") reads for `word` at `step`."""
    d = case["inputs"]["size"]
    if case["inputs"]["kind"] == "embedding":
        x = params[f"{side}.embedding"][word]
    elif side == "decoder" and word == case["target_words"]:  # the start token
        x = torch.full((d,), 1 / d, dtype=torch.float64)
    else:
        x = torch.zeros(d, dtype=torch.float64)
        x[word] = 1.0

    if case["positions"] is not None:
        amplitude, time_scale = case["positions"]["amplitude"], case["positions"]["time_scale"]
        wave = torch.zeros(d, dtype=torch.float64)
        for column in range(d):
            pair = column // 2  # the `i` of the equation; with odd d the last sine has no cosine
            angle = step / time_scale ** (2 * pair / d)
            wave[column] = amplitude * (sin(angle) if column % 2 == 0 else cos(angle))
        x = x + wave @ params["positions.rotation"]
    return x


def cell_step(case, params, prefix, x, state, feed=None):
    """One step of one recurrent layer: `(h, cell)` -> the next `(h, cell)`; `cell` matters to the LSTM only."""
    n = case["hidden"]
    h, cell = state

    def block(k, recurrent):
        """Block `k` of the gates, with `recurrent` as the argument of `gates_from_hidden` (None: no such term)."""
        columns = slice(k * n, (k + 1) * n)
        g = x @ params[f"{prefix}.gates_from_input"][:, columns] + params[f"{prefix}.gates_bias"][columns]
        if feed is not None:
            g = g + feed @ params[f"{prefix}.gates_from_feed"][:, columns]
        if recurrent is not None and case["family"] != "ao":
            g = g + recurrent @ params[f"{prefix}.gates_from_hidden"][:, columns]
        return g

    match case["cell"]:
        case "vanilla":
            return torch.tanh(block(0, h)), cell
        case "ugrnn":
            u, c = torch.sigmoid(block(0, h)), block(1, h)
        case "gru":
            u, r = torch.sigmoid(block(0, h)), torch.sigmoid(block(1, h))
            c = block(2, r * h)
        case "gru-reset-after":
            u, r = torch.sigmoid(block(0, h)), torch.sigmoid(block(1, h))
            q = params[f"{prefix}.candidate_bias"]
            if case["family"] != "ao":
                q = q + h @ params[f"{prefix}.gates_from_hidden"][:, 2 * n :]
            c = block(2, None) + r * q
        case "lstm":
            f, i = torch.sigmoid(block(0, h) + 1), torch.sigmoid(block(1, h))
            o, c = torch.sigmoid(block(2, h)), block(3, h)
            cell = f * cell + i * torch.tanh(c)
            return o * torch.tanh(cell), cell
    return u * h + (1 - u) * torch.tanh(c), cell


def zero_state(case):
    zero = torch.zeros(case["hidden"], dtype=torch.float64)
    return zero, zero


def scan(case, params, prefix, inputs):
    """One direction of one encoder layer: the states after each input, `[(h, cell)]`."""
    h, cell = zero_state(case)
    state = params.get(f"{prefix}.initial", h), params.get(f"{prefix}.initial_cell", cell)
    states = []
    for x in inputs:
        if case["family"] == "ao":
            state = zero_state(case)
        state = cell_step(case, params, prefix, x, state)
        states.append(state)
    return states


def encode(case, params, inputs):
    """The keys, a list of `[d_key]`, and the decoder's start state of each layer."""
    starts = []
    for layer in range(case["layers"]):
        forward = scan(case, params, f"encoder.{layer}", inputs)
        outputs, start = [h for h, _ in forward], forward[-1]

        if case["bidirectional"]:
            backward = scan(case, params, f"encoder.{layer}.backward", inputs[::-1])[::-1]
            outputs = [torch.cat([h, h_back]) for h, (h_back, _) in zip(outputs, backward)]
            h_back, _ = backward[0]
            _, zero = zero_state(case)
            start = torch.tanh(h_back @ params[f"decoder.{layer}.initial_from_backward"]), zero

        starts.append(zero_state(case) if case["family"] == "ao" else start)
        inputs = outputs
    return inputs, starts


def attend(case, params, query, keys):
    """The context of one query, and its weights `[head, T]`."""
    n, heads, score = case["hidden"], case["heads"], case["score"]

    def columns(name, head):
        return params[f"attention.{name}"][:, head * n : (head + 1) * n]

    def score_and_value(head, h):
        match score:
            case "dot":
                return query @ h, h
            case "scaled-dot":
                return query @ h / sqrt(n), h
            case "general":
                return (query @ params["attention.query"]) @ h, h
            case "additive":
                both = query @ params["attention.query"] + h @ params["attention.key"] + params["attention.bias"]
                return torch.tanh(both) @ params["attention.vector"], h
            case "qkv":
                product = (query @ columns("query", head)) @ (h @ columns("key", head))
                return product / sqrt(n), h @ columns("value", head)

    contexts, weights = [], []
    for head in range(heads):
        scores, values = zip(*[score_and_value(head, h) for h in keys])
        alpha = torch.softmax(torch.stack(scores), dim=0)
        contexts.append(sum(a * value for a, value in zip(alpha, values)))
        weights.append(alpha)

    context = torch.cat(contexts)
    if heads > 1:
        context = context @ params["attention.mix"]
        if case["readout_bias"]:
            context = context + params["attention.mix_bias"]
    return context, torch.stack(weights)


def run_sentence(case, params, source, target):
    """Encoder, decoder, attention and readout over one sentence, `source` and `target` being lists of words."""
    if case["family"] == "transformer":
        return transformer.run_sentence(case, params, source, target, sure_argmax)
    family, n_layers = case["family"], case["layers"]
    words = [input_vector(case, params, "encoder", word, step) for step, word in enumerate(source)]
    keys, states = encode(case, params, words)

    fed, logits, weights, tops = [], [], [], []
    attentional = torch.zeros(case["hidden"], dtype=torch.float64)
    for step in range(len(target)):
        if step == 0:
            fed.append(case["target_words"])
        elif case["feeding"] == "forced":
            fed.append(target[step - 1])
        else:
            fed.append(sure_argmax(logits[-1]))

        feed = None
        if family == "bahdanau":
            query, _ = states[-1]
            context, alpha = attend(case, params, query, keys)
            feed = context
        if case["input_feeding"]:
            feed = attentional

        x = input_vector(case, params, "decoder", fed[-1], step)
        for layer in range(n_layers):
            before = zero_state(case) if family == "ao" else states[layer]
            states[layer] = cell_step(case, params, f"decoder.{layer}", x, before, feed if layer == 0 else None)
            x, _ = states[layer]
        z = x

        if family in ("aed", "ao", "luong"):
            context, alpha = attend(case, params, z, keys)
        match family:
            case "ved":
                readout_input = z
            case "aed" | "bahdanau":
                readout_input = torch.cat([z, context])
            case "ao":
                readout_input = context
            case "luong":
                attentional = torch.tanh(torch.cat([context, z]) @ params["attentional"])
                readout_input = attentional

        out = readout_input @ params["readout"]
        logits.append(out + params["readout_bias"] if case["readout_bias"] else out)
        tops.append(z)
        if family != "ved":
            weights.append(alpha)

    attention = torch.stack(weights, dim=1) if weights else None
    return Trace(fed, torch.stack(logits), attention, torch.stack(keys), torch.stack(tops))


def sure_argmax(logits):
    """The best word; refuses a near tie, which another order of summation could decide otherwise."""
    best, second = torch.topk(logits, 2).values
    assert best - second > 1e-6, "near tie in a free-running case: change the seed"
    return int(torch.argmax(logits))


def cross_entropy(logits_by_sentence, targets):
    """The mean over all valid target steps of the batch."""
    losses = []
    for logits, target in zip(logits_by_sentence, targets):
        for step, word in enumerate(target):
            losses.append(torch.logsumexp(logits[step], dim=0) - logits[step, word])
    return sum(losses) / len(losses)
