"""Golden values for the analysis of crosslens-analysis, made without any of its code.

Run:     python make_analysis.py   (Python 3.11, numpy 2.4.6, safetensors 0.8.0; a few seconds)
Writes:  cases/NAME.safetensors    one per case: a made-up recording, its score map, and what the analysis must find

The program follows the definitions alone and takes the slow way: states one by one instead of sums, least squares on the
full design matrix instead of an elimination, every row of every sentence in a loop. The same machine writes the same
bytes; another CPU may change last bits, so commit new files only when a definition or the case list changed.

Metadata
  case, seed, numpy, python   the case's name; what made the file
  scalars                     JSON: `map` (dot, scaled-dot, general, projected, additive), `scale`, `visible` (all, causal),
                              `query_side`, `key_side` (source, target), `n_source_tokens`, `n_target_tokens` (with special
                              ones), `end_source`, `end_target`, `start`, `init` (token ids, null where there is none),
                              `query_token` (fed, previous-fed), `lowest` (distance of the first position bias, or null),
                              `lambda` (shrinkage, or null), `key_components`, `query_components` (connected components of
                              the token × step graph), `word_variance_excludes` (key and query: token ids)

Inputs. Floats are float64 but hold float32 values; tokens and lengths are int64. Valid steps only: sentence after sentence,
step after step, without padding. rows_q and rows_k count such rows on the query's and the key's side.
  source_lengths, target_lengths   [sentence]      steps, the end step among them
  source, fed, predicted           [rows]          fed: start token, words; predicted: what is fed next, end last
  query_states, key_states         [rows_q, d_query], [rows_k, d_key]
  query_tokens, key_tokens         [rows_q], [rows_k]   the last token a state has consumed
  query_weights, query_bias        [d_query, d_score], [d_score]   rows multiply from the left: z W + b
  key_weights, key_bias            [d_key, d_score], [d_score]     (absent: identity, zero)
  vector                           [d_score]       additive: v
  position_bias_values             [distance]      projected: bias of key step − query step = lowest, lowest + 1, …
  score = scale (z W_Q + b_Q)·(h W_K + b_K), then the position bias; general: W = query_weights, score = (z W)·h
  additive: score = Σ_i v_i tanh(A_i), A = z query_weights + h key_weights + key_bias

Expected, for E = paper, joint (and joint_shrunk where lambda is given). Parts and their order: temporal, input, residual.
  key.seen, query.seen              [W]         tokens that occur, ascending
  E.key.temporal, E.query.temporal  [T, d]      in state space, without the map's biases
  E.key.input, E.query.input        [W, d]      rows as in `seen`
      paper: step means, then token means of what is left. joint: least squares for h ≈ μ[t] + χ[w], with Σ_w m[w] χ[w] = 0
      in every connected component. joint_shrunk: the minimum of Σ‖h − μ[t] − χ[w]‖² + λ Σ_w ‖χ[w]‖², which is unique
      (it has Σ_w χ[w] = 0 in every component) and is not moved to the other gauge.
  key.variance, query.variance      [5]         only time, only token, shared, rest of paper, rest of joint; over TSS
  key.word_variance, query.…        [2]         before and after subtracting paper's μ: mean over tokens seen at least twice
                                                of the trace of the ddof = 1 covariance; special tokens excluded
Cells run over sentence, query step, visible key step.
  scores, position_bias, attention  [cell]      score without the bias; the bias (where the map has one); softmax of both
  terms.E                           [cell, 3, 3]   query part, key part; biases belong to the temporal parts
  parts.E                           [cell, 6]   additive only: query t, i, d, key t, i, d; Σ_i v_i a_pi tanh(A_i)/A_i
Shares: means over all query rows with equal weight; `score` is the full one, position bias included.
  shares.E.top1, .top3              [3, 3]      |term| / Σ|terms|, mean over the min(k, visible) highest scores of the row
  shares.E.top1_signed              [3, 3]      term / Σ|terms|
  shares.E.top1_centred, .top3_centred  [3, 3]  after taking each term's mean along the visible keys off; places are still
                                                those of the score; rows whose Σ|terms| is 0 (one visible key) do not count
                                                with a position bias all of these, by_step too, are [10]: nine terms row by row, the bias;
                                                additive: [6], as parts.E
  shares.E.centred                  [3, 3]      Σ_rows cov_k(term, score) / Σ_rows var_k(score); both divide by the number of
                                                visible keys
  shares.E.centred_position_bias    []          the same for the position bias (0 if none)
  shares.E.query_mean               [3]         the same for (mean over query rows of μ_q, plus b_Q) × key part
  shares.E.parts                    [6]         additive only: centred shares of the six parts
                                                additive query_mean: [1], of Σ_i v_i m_i tanh(A_i)/A_i, m = μ̄_q W
  by_step.E.centred, .top1          [T_query, 3, 3]   over the rows at one query step; centred is 0 where no score varies
Attention rebuilt from parts of paper's estimator, each [mean total variation, mean KL(true‖rebuilt), argmax agreement]:
  rebuilt.temporal                  {tt}; additive: {q_t, k_t}
  rebuilt.temporal+input            {tt, ti, it, ii}; additive: {q_t, q_i, k_t, k_i}, each part as in the full score
  rebuilt.no-temporal               all but tt (not additive); without the position bias
  rebuilt.temporal+bias             {tt} and the position bias (where the map has one)
  rebuilt.uniform                   equal weights over the visible keys; among ties the lowest index is the argmax
  rebuilt.average                   mean attention of the cell (query step, key step) over the sentences that have it,
                                    renormalised over the row's visible keys
"""

import json
import platform
from itertools import count
from pathlib import Path
from zlib import crc32

import numpy as np
from safetensors.numpy import load

SEED = 2110
CASES_DIR = Path(__file__).parent / "cases"
TEMPORAL, INPUT, RESIDUAL = range(3)


# ---- cases


def case(map, **changes):
    """A cross-attention with words drawn at random, and what differs from it."""
    plain = {"map": map, "n_sentences": 14, "source_lengths": (3, 7), "target_lengths": (3, 7), "d_query": 4, "d_key": 4}
    plain |= {"d_score": 4, "scale": 1.0, "biases": False, "position_bias": False, "visible": "all"}
    plain |= {"query_side": "target", "key_side": "source", "query_token": "fed", "tokens": "entangled", "lambda": None}
    assert not changes.keys() - plain.keys(), changes
    return plain | changes


def all_cases():
    """Name -> case."""
    sides = {"d_query": 5, "d_key": 3}
    causal = {"key_side": "target", "visible": "causal", "position_bias": True}
    small = {"n_sentences": 12, "source_lengths": (2, 6), "target_lengths": (3, 6), "d_query": 3, "d_key": 3}
    return {
        "dot": case("dot", n_sentences=40, source_lengths=(1, 5), target_lengths=(1, 5)),
        "scaled-dot": case("scaled-dot", scale=0.5),
        "general": case("general", d_query=3, d_key=5, d_score=5),
        "projected": case("projected", **sides, scale=0.375, biases=True),
        "self-causal-position-bias": case(
            "projected", n_sentences=16, target_lengths=(2, 8), d_score=3, scale=0.5, biases=True, **causal
        ),
        "additive": case("additive", **sides, d_score=6),
        "previous-token": case("general", **sides, d_score=3, query_token="previous-fed"),
        "balanced": case("dot", n_sentences=16, tokens="balanced"),
        "two-components": case("dot", tokens="two-components", source_lengths=(2, 6), target_lengths=(2, 7)),
        "shrunk": case("dot", **small, **{"lambda": 0.75}),
    }


# ---- a made-up recording

N_SOURCE_WORDS, N_TARGET_WORDS = 10, 9
UNSEEN = {4, 8}  # never drawn, so that tokens and rows of a table differ


class Side:
    """One side: `states` [row, d] with their `steps` and `tokens`; `offsets` says where sentences begin."""

    def __init__(self, lengths, tokens, states):
        self.lengths, self.tokens, self.states = lengths, tokens, states
        self.steps = np.concatenate([np.arange(length) for length in lengths])
        self.offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        self.seen, self.token_rows = np.unique(tokens, return_inverse=True)
        self.by_step = np.equal.outer(self.steps, np.arange(max(lengths))).astype(float)
        self.by_token = np.equal.outer(tokens, self.seen).astype(float)


def as_f32(values):
    return np.asarray(values).astype(np.float32).astype(np.float64)


def draw_words(rng, n_words, lengths, affinity):
    """Words of a Zipf-like law that leans to other words at other steps."""
    words = np.array([word for word in range(n_words) if word not in UNSEEN])
    sentences = []
    for length in lengths:
        logits = affinity[words, :length].T - 1.3 * np.log1p(np.arange(len(words)))
        odds = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        sentences.append([int(rng.choice(words, p=row)) for row in odds])
    return sentences


def draw_parted_words(rng, lengths, shift):
    """Words 0 to 3 at even steps, 5 to 7 at odd ones (steps counted from `shift`)."""
    pools = [[0, 1, 2, 3], [5, 6, 7]]
    return [[int(rng.choice(pools[(step + shift) % 2])) for step in range(length)] for length in lengths]


def draw_balanced_words(rng, running):
    """Sentences of which `running[t]` have a step t; at each step half the words are 1, a quarter 3, a quarter 6."""
    columns = [rng.permutation([1, 1, 3, 6] * (n // 4)) for n in running]
    return [[int(column[i]) for column in columns if i < len(column)] for i in range(running[0])]


def draw_sentences(rng, config):
    """Words of each sentence, without special tokens, on the source's and on the target's side."""
    kind, n = config["tokens"], config["n_sentences"]
    if kind == "balanced":
        return draw_balanced_words(rng, [16, 16, 12, 8, 4]), draw_balanced_words(rng, [16, 12, 12, 4])

    (low, high), (low_target, high_target) = config["source_lengths"], config["target_lengths"]
    lengths, target_lengths = rng.integers(low, high + 1, n), rng.integers(low_target, high_target + 1, n)
    lengths[0], lengths[1], target_lengths[1], target_lengths[2] = low, high, low_target, high_target
    if kind == "two-components":
        lengths += lengths % 2  # the end always stands at an odd step
        return draw_parted_words(rng, lengths - 1, 0), draw_parted_words(rng, target_lengths - 1, 1)

    source = draw_words(rng, N_SOURCE_WORDS, lengths - 1, 1.2 * rng.standard_normal((N_SOURCE_WORDS, high)))
    target = draw_words(rng, N_TARGET_WORDS, target_lengths - 1, 1.2 * rng.standard_normal((N_TARGET_WORDS, high_target)))
    return source, target


def draw_states(rng, steps, tokens, d):
    """A mean, a path over the steps, a place per token, and noise."""
    path = np.cumsum(0.5 * rng.standard_normal((steps.max() + 1, d)), axis=0)
    places = 0.7 * rng.standard_normal((tokens.max() + 1, d))
    mean, noise = 0.5 * rng.standard_normal(d), 0.4 * rng.standard_normal((len(steps), d))
    return as_f32(mean + path[steps] + places[tokens] + noise)


def draw_map(rng, config, n_steps):
    """The arrays of the score map."""
    d_query, d_key, d = config["d_query"], config["d_key"], config["d_score"]
    arrays = {}
    if config["map"] in ("general", "projected", "additive"):
        arrays["query_weights"] = 0.6 * rng.standard_normal((d_query, d))
    if config["map"] in ("projected", "additive"):
        arrays["key_weights"] = 0.6 * rng.standard_normal((d_key, d))
    if config["biases"]:
        arrays["query_bias"] = 0.5 * rng.standard_normal(d)
    if config["biases"] or config["map"] == "additive":
        arrays["key_bias"] = 0.5 * rng.standard_normal(d)
    if config["map"] == "additive":
        arrays["vector"] = 1.5 * rng.standard_normal(d)
    if config["position_bias"]:
        arrays["position_bias_values"] = rng.standard_normal(n_steps)
    return {key: as_f32(value) for key, value in arrays.items()}


def draw(name, config, attempt):
    """Inputs, scalars and the two sides, from a stream that belongs to the case's name."""
    rng = np.random.default_rng([SEED, crc32(name.encode()), attempt])
    source_words, target_words = draw_sentences(rng, config)
    ends = config["tokens"] != "balanced"  # an end that is last everywhere cannot be balanced
    end_source, end_target, start = N_SOURCE_WORDS if ends else None, N_TARGET_WORDS, N_TARGET_WORDS + 1
    init = start + 1 if config["query_token"] == "previous-fed" else None

    sources = [words + [end_source] if ends else words for words in source_words]
    feds = [[start] + words for words in target_words]
    consumed = feds if init is None else [[init] + fed[:-1] for fed in feds]
    sentences = {"source": sources, "target": consumed}
    inputs = {
        "source_lengths": np.array([len(sentence) for sentence in sources]),
        "target_lengths": np.array([len(sentence) for sentence in feds]),
        "source": np.concatenate(sources),
        "fed": np.concatenate(feds),
        "predicted": np.concatenate([words + [end_target] for words in target_words]),
    }

    sides = {}
    for role in ("key", "query"):
        side = config[f"{role}_side"]
        if role == "query" and side == config["key_side"]:
            sides[role] = sides["key"]
        else:
            lengths, tokens = inputs[f"{side}_lengths"], np.concatenate(sentences[side])
            steps = np.concatenate([np.arange(length) for length in lengths])
            sides[role] = Side(lengths, tokens, draw_states(rng, steps, tokens, config[f"d_{role}"]))
        inputs |= {f"{role}_states": sides[role].states, f"{role}_tokens": sides[role].tokens}
    n_steps = max(sides["key"].lengths)
    maps = draw_map(rng, config, n_steps)

    special = {"source": [end_source], "target": [end_target, start, init]}
    excluded = {role: [token for token in special[config[f"{role}_side"]] if token is not None] for role in sides}
    scalars = {key: config[key] for key in ("map", "scale", "visible", "query_side", "key_side", "query_token", "lambda")}
    scalars |= {"n_source_tokens": N_SOURCE_WORDS + ends, "n_target_tokens": start + 1 + (init is not None)}
    scalars |= {"end_source": end_source, "end_target": end_target, "start": start, "init": init}
    scalars |= {"lowest": 1 - int(n_steps) if config["position_bias"] else None}
    scalars |= {f"{role}_components": int(components(side)[0].max()) + 1 for role, side in sides.items()}
    scalars |= {"word_variance_excludes": excluded}
    return inputs | maps, scalars, sides


def has_rare_tokens(side):
    return (side.by_token.sum(axis=0) == 1).any()


def draw_rich(name, config):
    """As `draw`; but every recording of entangled words should have tokens that occur once."""
    for attempt in count():
        drawn = draw(name, config, attempt)
        if config["tokens"] != "entangled" or all(map(has_rare_tokens, drawn[2].values())):
            return drawn


# ---- the parts of a state


def components(side):
    """The connected component of each step and of each seen token: labels spread until nothing changes."""
    linked = side.by_step.T @ side.by_token > 0
    step_labels, token_labels = np.arange(linked.shape[0]), np.full(linked.shape[1], -1)
    while True:
        new_tokens = np.array([step_labels[column].min() for column in linked.T])
        new_steps = np.array([new_tokens[row].min() for row in linked])
        if np.array_equal(new_tokens, token_labels) and np.array_equal(new_steps, step_labels):
            names = np.unique(step_labels)
            return np.searchsorted(names, step_labels), np.searchsorted(names, token_labels)
        token_labels, step_labels = new_tokens, new_steps


def least_squares(design, values):
    return np.linalg.lstsq(design, values, rcond=1e-12)[0]


def fit_paper(side, _):
    temporal = np.array([side.states[side.steps == step].mean(axis=0) for step in range(max(side.lengths))])
    rest = side.states - temporal[side.steps]
    return temporal, np.array([rest[side.tokens == token].mean(axis=0) for token in side.seen])


def fit_joint(side, _):
    n_steps = side.by_step.shape[1]
    solution = least_squares(np.hstack([side.by_step, side.by_token]), side.states)
    temporal, tokens = solution[:n_steps], solution[n_steps:]
    occurrences = side.by_token.sum(axis=0)
    step_labels, token_labels = components(side)
    for label in range(step_labels.max() + 1):
        inside = token_labels == label
        shift = np.average(tokens[inside], axis=0, weights=occurrences[inside])
        tokens[inside] -= shift
        temporal[step_labels == label] += shift
    return temporal, tokens


def fit_shrunk(side, strength):
    n_steps, n_tokens = side.by_step.shape[1], len(side.seen)
    penalty = np.hstack([np.zeros((n_tokens, n_steps)), np.sqrt(strength) * np.eye(n_tokens)])
    design = np.vstack([np.hstack([side.by_step, side.by_token]), penalty])
    values = np.vstack([side.states, np.zeros((n_tokens, side.states.shape[1]))])
    solution = least_squares(design, values)
    return solution[:n_steps], solution[n_steps:]


FITS = {"paper": fit_paper, "joint": fit_joint, "joint_shrunk": fit_shrunk}


def parts_of(side, fit):
    """[part, row, d]"""
    temporal, tokens = fit[0][side.steps], fit[1][side.token_rows]
    return np.stack([temporal, tokens, side.states - temporal - tokens])


def r_squared(design, states):
    rest = states - design @ least_squares(design, states)
    return 1 - (rest**2).sum() / ((states - states.mean(axis=0)) ** 2).sum()


def variance(side, paper):
    time, token = r_squared(side.by_step, side.states), r_squared(side.by_token, side.states)
    joint = r_squared(np.hstack([side.by_step, side.by_token]), side.states)
    spread = ((side.states - side.states.mean(axis=0)) ** 2).sum()
    rest_paper = (parts_of(side, paper)[RESIDUAL] ** 2).sum() / spread
    return np.array([joint - token, joint - time, time + token - joint, rest_paper, 1 - joint])


def word_variance(side, paper, excluded):
    pairs = []
    for token in side.seen:
        places = side.tokens == token
        if token not in excluded and places.sum() >= 2:
            before, after = side.states[places], (side.states - paper[0][side.steps])[places]
            pairs.append([values.var(axis=0, ddof=1).sum() for values in (before, after)])
    return np.mean(pairs, axis=0)


# ---- scores and their terms


class Row:
    """One query step of one sentence: the rows of the two sides it joins, and its `cells` in the flat arrays."""

    def __init__(self, step, query, keys, cells):
        self.step, self.query, self.keys, self.cells = step, query, keys, cells


def rows_of(scalars, sides):
    rows, n_cells = [], 0
    query, key = sides["query"], sides["key"]
    for sentence in range(len(query.lengths)):
        for step in range(query.lengths[sentence]):
            n_keys = step + 1 if scalars["visible"] == "causal" else key.lengths[sentence]
            keys = key.offsets[sentence] + np.arange(n_keys)
            rows.append(Row(step, query.offsets[sentence] + step, keys, slice(n_cells, n_cells + n_keys)))
            n_cells += n_keys
    return rows


def project(inputs, role, parts):
    """[part, row, d_score]: the weights apply to every part, the bias belongs to the temporal one."""
    weights = inputs.get(f"{role}_weights")
    projected = parts.copy() if weights is None else parts @ weights
    projected[TEMPORAL] += inputs.get(f"{role}_bias", 0.0)
    return projected


def true_scores(inputs, scalars, sides, rows):
    """From whole states, one cell at a time."""
    scores = []
    for row in rows:
        z = sides["query"].states[row.query] @ inputs.get("query_weights", np.eye(sides["query"].states.shape[1]))
        z = z + inputs.get("query_bias", 0.0)
        for k in row.keys:
            h = sides["key"].states[k] @ inputs.get("key_weights", np.eye(sides["key"].states.shape[1]))
            h = h + inputs.get("key_bias", 0.0)
            additive = scalars["map"] == "additive"
            scores.append(inputs["vector"] @ np.tanh(z + h) if additive else scalars["scale"] * (z @ h))
    return np.array(scores)


def position_bias_of(inputs, scalars, sides, rows):
    values, lowest = inputs["position_bias_values"], scalars["lowest"]
    return np.array([values[sides["key"].steps[k] - row.step - lowest] for row in rows for k in row.keys])


def nine_terms(inputs, scalars, parts, rows):
    """[cell, 3, 3]"""
    query, key = (project(inputs, role, parts[role]) for role in ("query", "key"))
    terms = [np.einsum("ad,bkd->kab", query[:, row.query], key[:, row.keys]) for row in rows]
    return scalars["scale"] * np.concatenate(terms)


def six_parts(inputs, parts, rows):
    """[cell, 6]"""
    query, key = (project(inputs, role, parts[role]) for role in ("query", "key"))
    values = []
    for row in rows:
        for k in row.keys:
            arguments = np.concatenate([query[:, row.query], key[:, k]])
            total = arguments.sum(axis=0)
            assert np.abs(total).min() > 1e-6, "tanh(A)/A is meant to be plain"
            values.append(arguments @ (inputs["vector"] * np.tanh(total) / total))
    return np.array(values)


def six_parts_mean(inputs, parts, side, fit, rows):
    """[cell, 1]: what the mean temporal part of the queries gets of each score."""
    query, key = (project(inputs, role, parts[role]).sum(axis=0) for role in ("query", "key"))
    mean = np.mean([fit[0][step] for step in side.steps], axis=0) @ inputs["query_weights"]
    totals = [query[row.query] + key[k] for row in rows for k in row.keys]
    return np.array([[(inputs["vector"] * mean * np.tanh(total) / total).sum()] for total in totals])


def softmax(values):
    exponentials = np.exp(values - values.max())
    return exponentials / exponentials.sum()


# ---- shares


def top_share(terms, score, k, signed=False):
    """Mean over the k highest scores of term / Σ|terms|; None where all terms are 0."""
    shares = []
    for place in np.argsort(-score, kind="stable")[:k]:
        total = np.abs(terms[place]).sum()
        if total == 0:
            return None
        shares.append((terms[place] if signed else np.abs(terms[place])) / total)
    return np.mean(shares, axis=0)


def mean_top_share(terms, full, rows, k, centre=False, signed=False):
    shares = []
    for row in rows:
        own = terms[row.cells]
        shares.append(top_share(own - own.mean(axis=0) if centre else own, full[row.cells], k, signed))
    return np.mean([share for share in shares if share is not None], axis=0)


def centred_share(terms, full, rows):
    """Σ cov(term, score) / Σ var(score); 0 where no score varies."""
    covariance, spread = np.zeros(terms.shape[1:]), 0.0
    for row in rows:
        score = full[row.cells] - full[row.cells].mean()
        own = terms[row.cells] - terms[row.cells].mean(axis=0)
        covariance += np.tensordot(score, own, axes=1) / len(score)
        spread += (score**2).mean()
    return covariance / spread if spread > 0 else covariance


def query_mean_terms(inputs, scalars, side, fit, key_parts, rows):
    """[cell, 3]: the terms if every query had the mean temporal part."""
    mean = np.mean([fit[0][step] for step in side.steps], axis=0)
    query = project(inputs, "query", mean[None, None])[0, 0]
    key = project(inputs, "key", key_parts)
    return scalars["scale"] * np.concatenate([(key[:, row.keys] @ query).T for row in rows])


def rows_by_step(rows):
    return [[row for row in rows if row.step == step] for step in range(max(row.step for row in rows) + 1)]


def top_shares(pieces, full, rows):
    return {
        "shares.{}.top1": mean_top_share(pieces, full, rows, 1),
        "shares.{}.top3": mean_top_share(pieces, full, rows, 3),
        "shares.{}.top1_signed": mean_top_share(pieces, full, rows, 1, signed=True),
        "shares.{}.top1_centred": mean_top_share(pieces, full, rows, 1, centre=True),
        "shares.{}.top3_centred": mean_top_share(pieces, full, rows, 3, centre=True),
    }


def top_share_by_step(pieces, full, rows):
    return {"by_step.{}.top1": np.array([mean_top_share(pieces, full, some, 1) for some in rows_by_step(rows)])}


def bilinear_shares(terms, full, bias, mean_terms, rows):
    # Where there is a position bias it is a tenth term.
    pieces = np.concatenate([terms.reshape(len(terms), 9), bias[:, None]], axis=1) if bias.any() else terms
    shares = top_shares(pieces, full, rows) | {
        "shares.{}.centred": centred_share(terms, full, rows),
        "shares.{}.centred_position_bias": centred_share(bias, full, rows),
        "shares.{}.query_mean": centred_share(mean_terms, full, rows),
        "by_step.{}.centred": np.array([centred_share(terms, full, some) for some in rows_by_step(rows)]),
    }
    return shares | top_share_by_step(pieces, full, rows)


# ---- rebuilt attention


def kept_terms(kind, terms, bias, has_bias):
    """Name -> score of the kept terms [cell]."""
    if kind == "additive":
        return {"temporal": terms[:, [0, 3]].sum(axis=1), "temporal+input": terms[:, [0, 1, 3, 4]].sum(axis=1)}
    temporal = terms[:, TEMPORAL, TEMPORAL]
    kept = {"temporal": temporal, "temporal+input": terms[:, : INPUT + 1, : INPUT + 1].sum(axis=(1, 2))}
    kept["no-temporal"] = terms.sum(axis=(1, 2)) - temporal
    return kept | ({"temporal+bias": temporal + bias} if has_bias else {})


def average_attention(attention, rows):
    """Mean weight of every cell (query step, key step), then renormalised in each row."""
    weights = {}
    for row in rows:
        for place, weight in enumerate(attention[row.cells]):
            weights.setdefault((row.step, place), []).append(weight)
    averages = [np.array([np.mean(weights[row.step, place]) for place in range(len(row.keys))]) for row in rows]
    return np.concatenate([average / average.sum() for average in averages])


def compare_attention(true, rebuilt, rows):
    """[mean total variation, mean KL(true‖rebuilt), argmax agreement]"""
    distances = []
    for row in rows:
        a, b = true[row.cells], rebuilt[row.cells]
        distances.append([np.abs(a - b).sum() / 2, (a * np.log(a / b)).sum(), np.argmax(a) == np.argmax(b)])
    return np.mean(np.array(distances, dtype=float), axis=0)


def rebuilt_attention(kind, terms, attention, bias, has_bias, rows):
    weights = {
        name: np.concatenate([softmax(kept[row.cells]) for row in rows])
        for name, kept in kept_terms(kind, terms, bias, has_bias).items()
    }
    weights["average"] = average_attention(attention, rows)
    for name, values in weights.items():
        check_no_near_ties(values, rows, 1, f"rebuilt from {name}")
    weights["uniform"] = np.concatenate([np.full(len(row.keys), 1 / len(row.keys)) for row in rows])
    return {f"rebuilt.{name}": compare_attention(attention, values, rows) for name, values in weights.items()}


# ---- one case


def make(name, config):
    """Every array of one golden file, and its scalars."""
    inputs, scalars, sides = draw_rich(name, config)
    rows = rows_of(scalars, sides)
    kind, has_bias = config["map"], config["position_bias"]
    scores = true_scores(inputs, scalars, sides, rows)
    bias = position_bias_of(inputs, scalars, sides, rows) if has_bias else np.zeros_like(scores)
    full = scores + bias
    attention = np.concatenate([softmax(full[row.cells]) for row in rows])
    check_no_near_ties(full, rows, 3, "scores")

    arrays = inputs | {f"{role}.seen": sides[role].seen for role in sides}
    fits = {
        estimator: {role: fit(side, config["lambda"]) for role, side in sides.items()}
        for estimator, fit in FITS.items()
        if estimator != "joint_shrunk" or config["lambda"] is not None
    }
    check_fits(config, scalars, sides, fits)
    for role, side in sides.items():
        arrays[f"{role}.variance"] = variance(side, fits["paper"][role])
        excluded = scalars["word_variance_excludes"][role]
        arrays[f"{role}.word_variance"] = word_variance(side, fits["paper"][role], excluded)
        for estimator, fit in fits.items():
            arrays |= {f"{estimator}.{role}.temporal": fit[role][0], f"{estimator}.{role}.input": fit[role][1]}

    arrays |= {"scores": scores, "attention": attention} | ({"position_bias": bias} if has_bias else {})
    for estimator, fit in fits.items():
        parts = {role: parts_of(side, fit[role]) for role, side in sides.items()}
        if kind == "additive":
            terms = six_parts(inputs, parts, rows)
            arrays |= {f"parts.{estimator}": terms, f"shares.{estimator}.parts": centred_share(terms, full, rows)}
            shares = top_shares(terms, full, rows) | top_share_by_step(terms, full, rows)
            arrays |= {key.format(estimator): value for key, value in shares.items()}
            mean_terms = six_parts_mean(inputs, parts, sides["query"], fit["query"], rows)
            arrays[f"shares.{estimator}.query_mean"] = centred_share(mean_terms, full, rows)
        else:
            terms = nine_terms(inputs, scalars, parts, rows)
            mean_terms = query_mean_terms(inputs, scalars, sides["query"], fit["query"], parts["key"], rows)
            shares = bilinear_shares(terms, full, bias, mean_terms, rows)
            arrays |= {f"terms.{estimator}": terms} | {key.format(estimator): value for key, value in shares.items()}
        check_split(estimator, sides, parts, terms, scores, arrays)
        if estimator == "paper":
            arrays |= rebuilt_attention(kind, terms, attention, bias, has_bias, rows)

    arrays = {key: np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value) for key, value in arrays.items()}
    assert all(np.isfinite(array).all() for array in arrays.values()), name
    return arrays, scalars


# ---- self-checks


def assert_close(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def check_no_near_ties(values, rows, k, what):
    """Rounding must not decide which places are the k highest, nor in which order."""
    for row in rows:
        ordered = np.sort(values[row.cells])[::-1][: k + 1]
        assert (ordered[:-1] - ordered[1:] > 1e-7).all(), f"a near tie among {what}"


def check_fits(config, scalars, sides, fits):
    for role, side in sides.items():
        paper, joint = (fits[estimator][role] for estimator in ("paper", "joint"))
        residual = parts_of(side, joint)[RESIDUAL]
        assert_close(side.by_step.T @ residual, 0, 1e-10)
        assert_close(side.by_token.T @ residual, 0, 1e-10)

        _, labels = components(side)
        occurrences = side.by_token.sum(axis=0)[:, None]
        for label in range(labels.max() + 1):
            assert_close((occurrences * joint[1])[labels == label].sum(axis=0), 0, 1e-10)
            if config["lambda"] is not None:
                assert_close(fits["joint_shrunk"][role][1][labels == label].sum(axis=0), 0, 1e-10)
        if config["lambda"] is not None:
            check_shrunk_is_stationary(side, fits["joint_shrunk"][role], config["lambda"])

        special = [scalars["start"], scalars["init"]] if config[f"{role}_side"] == "target" else []
        for token in [token for token in special if token is not None]:
            assert token in side.seen
            for fit in fits.values():
                assert_close(fit[role][1][side.seen == token], 0, 1e-12)

        counts = side.by_step.T @ side.by_token
        step_labels, token_labels = components(side)
        together = np.equal.outer(step_labels, token_labels)
        totals = np.array([(step_labels[side.steps] == label).sum() for label in step_labels])[:, None]
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) * together
        is_balanced = np.array_equal(counts * totals, expected)
        assert is_balanced == (config["tokens"] == "balanced")
        if is_balanced:
            assert_close(np.vstack(joint), np.vstack(paper), 1e-9)
        else:
            assert np.abs(np.vstack(joint) - np.vstack(paper)).max() > 1e-3, "joint and paper are meant to differ"

    if config["tokens"] == "balanced":
        assert (scalars["key_components"], scalars["query_components"]) == (1, 2)
    if config["tokens"] == "two-components":
        assert (scalars["key_components"], scalars["query_components"]) == (2, 3)


def check_shrunk_is_stationary(side, fit, strength):
    """The gradient of Σ‖h − μ[t] − χ[w]‖² + λ Σ‖χ[w]‖² is 0."""
    residual = parts_of(side, fit)[RESIDUAL]
    assert_close(side.by_step.T @ residual, 0, 1e-10)
    assert_close(side.by_token.T @ residual, strength * fit[1], 1e-10)


def check_split(estimator, sides, parts, terms, scores, arrays):
    for role, side in sides.items():
        assert_close(parts[role].sum(axis=0), side.states, 1e-12)
    assert_close(terms.reshape(len(terms), -1).sum(axis=1), scores, 1e-10)
    if terms.ndim == 2:
        assert_close(arrays[f"shares.{estimator}.parts"].sum(), 1, 1e-10)
    else:
        total = arrays[f"shares.{estimator}.centred"].sum() + arrays[f"shares.{estimator}.centred_position_bias"]
        assert_close(total, 1, 1e-10)
    for share in ("top1", "top3", "top1_centred", "top3_centred"):
        assert_close(arrays[f"shares.{estimator}.{share}"].sum(), 1, 1e-10)


# ---- files


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


def main():
    CASES_DIR.mkdir(exist_ok=True)
    for old in CASES_DIR.glob("*.safetensors"):
        old.unlink()
    total = 0
    for name, config in all_cases().items():
        arrays, scalars = make(name, config)
        metadata = {"case": name, "seed": str(SEED), "numpy": np.__version__, "python": platform.python_version()}
        content = safetensors_bytes(arrays, metadata | {"scalars": json.dumps(scalars)})
        assert all(np.array_equal(array, arrays[key]) for key, array in load(content).items())
        (CASES_DIR / f"{name}.safetensors").write_bytes(content)
        assert len(content) < 150_000
        total += len(content)
        print(f"{len(content):7} {name}: {len(arrays['scores'])} cells")
    print(f"{total:7} bytes in {len(all_cases())} cases")
    assert total < 1_000_000


if __name__ == "__main__":
    main()
