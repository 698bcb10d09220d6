"""Sums and fits against an independent NumPy program, and what may never be believed of arrays."""

from __future__ import annotations

import json
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosslens
from crosslens._arrays import floats, view

CASES = sorted((Path(__file__).parents[2] / "crosslens-analysis/tests/golden/cases").glob("*.safetensors"))


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays and scalars of a case; see crosslens-analysis/tests/golden/make_analysis.py."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    scalars = json.loads(header.pop("__metadata__")["scalars"])
    kinds = {"F64": np.float64, "I64": np.int64, "F32": np.float32}
    arrays = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        arrays[name] = np.frombuffer(data[8 + size + start : 8 + size + end], kinds[entry["dtype"]]).reshape(entry["shape"])
    return arrays, scalars


def padded(rows: Any, lengths: Any) -> Any:
    """Sentence after sentence to `[sentence, step, …]`."""
    made = np.zeros((len(lengths), int(lengths.max()), *rows.shape[1:]), dtype=rows.dtype)
    for sentence, (end, length) in enumerate(zip(np.cumsum(lengths), lengths, strict=True)):
        made[sentence, :length] = rows[end - length : end]
    return made


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
@pytest.mark.parametrize("side", ["key", "query"])
def test_fits_are_those_of_an_independent_program(path: Path, side: str) -> None:
    arrays, scalars = read(path)
    lengths = arrays[f"{scalars[f'{side}_side']}_lengths"]
    states = padded(arrays[f"{side}_states"], lengths).astype(np.float32)
    tokens = padded(arrays[f"{side}_tokens"], lengths)
    components = crosslens.Components(states.shape[2])
    for sentence in range(0, len(lengths), 3):
        part = slice(sentence, sentence + 3)
        components.add(states[part], tokens[part], lengths[part])
    for estimator in ("paper", "joint"):
        fit = components.fit(estimator=estimator)
        np.testing.assert_array_equal(fit.tokens, arrays[f"{side}.seen"])
        np.testing.assert_allclose(fit.temporal, arrays[f"{estimator}.{side}.temporal"], atol=1e-9)
        np.testing.assert_allclose(fit.input, arrays[f"{estimator}.{side}.input"], atol=1e-9)
        variance = arrays[f"{side}.variance"]
        found = [fit.variance.time, fit.variance.token, fit.variance.shared, fit.variance.rest]
        np.testing.assert_allclose(found, [*variance[:3], variance[3 if estimator == "paper" else 4]], atol=1e-9)
    residual = fit.residual(states, tokens)
    parts = fit.temporal[None, : states.shape[1]] + fit.input_of(tokens) + residual
    np.testing.assert_allclose(parts, states, atol=1e-12)


def some(seed: int = 0, n: int = 20, steps: int = 7, d: int = 5) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    states = random.normal(size=(n, steps, d)).astype(np.float32)
    return states, random.integers(0, 11, size=(n, steps)), random.integers(1, steps + 1, size=n)


def sums(states: Any, tokens: Any, lengths: Any) -> crosslens.Components:
    made = crosslens.Components(states.shape[2])
    made.add(states, tokens, lengths)
    return made


def test_the_paper_s_estimator_is_two_means() -> None:
    states, tokens, lengths = some()
    fit = sums(states, tokens, lengths).fit("paper")
    valid = np.arange(states.shape[1])[None] < lengths[:, None]
    mu = np.stack([states[valid[:, t], t].astype(np.float64).mean(0) for t in range(states.shape[1])])
    np.testing.assert_allclose(fit.temporal, mu, atol=1e-12)
    for token, chi in zip(fit.tokens, fit.input, strict=True):
        places = valid & (tokens == token)
        np.testing.assert_allclose(chi, (states.astype(np.float64) - mu)[places].mean(0), atol=1e-12)


def test_parts_of_a_corpus_add_up_to_the_whole(tmp_path: Path) -> None:
    states, tokens, lengths = some()
    whole = sums(states, tokens, lengths)
    parts = [sums(states[part], tokens[part], lengths[part]) for part in (slice(0, 7), slice(7, 13), slice(13, 20))]
    parts[1] = pickle.loads(pickle.dumps(parts[1]))
    parts[2].save(tmp_path / "part.stats.safetensors")
    parts[2] = crosslens.Components.load(tmp_path / "part.stats.safetensors")
    merged = parts[0] + parts[1] + parts[2]
    assert merged.n_states == whole.n_states == lengths.sum()
    assert parts[0].n_states == lengths[:7].sum(), "adding changes neither side"
    np.testing.assert_allclose(merged.fit("joint").temporal, whole.fit("joint").temporal, atol=1e-12)
    merged.merge(merged)
    assert merged.n_states == 2 * whole.n_states


def test_equal_sums_are_equal_and_survive_pickling() -> None:
    first, second = sums(*some()), sums(*some(seed=1))
    assert first == sums(*some()) and first != second
    assert pickle.loads(pickle.dumps(first)) == first


def test_arrays_are_not_copied() -> None:
    states, tokens, _ = some()
    assert view(states) is states and np.shares_memory(floats(states, "states", 3), states)

    class OfAnotherLibrary:
        def __dlpack__(self, **options: Any) -> Any:
            return states.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return states.__dlpack_device__()

    assert np.shares_memory(floats(OfAnotherLibrary(), "states", 3), states)
    a, b = crosslens.Components(5), crosslens.Components(5)
    a.add(OfAnotherLibrary(), tokens)
    b.add(states, tokens)
    assert a == b


@pytest.mark.parametrize("what", ["made", "unpickled"])
def test_python_runs_on_while_sums_are(what: str) -> None:
    # Sums of one token are soon read: there are many to unpickle.
    d, n_tokens = (512, 1) if what == "made" else (64, 40_000)
    states = np.ones((400, 100, d), dtype=np.float32)
    tokens = (np.arange(40_000, dtype=np.uint32) % n_tokens).reshape(400, 100)
    components = crosslens.Components(d)
    if what == "unpickled":
        components.add(states, tokens)
    pickled = pickle.dumps(components)
    ticks: list[float] = []

    def work() -> None:
        for _ in range(10):
            if what == "made":
                components.add(states, tokens)
            else:
                pickle.loads(pickled)

    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    started = ticks[0]
    assert components.n_states == (400_000 if what == "made" else 40_000)
    # Were Python held, there would be one tick for each call at most.
    assert len(ticks) > 20, (len(ticks), time.perf_counter() - started)


def test_threads_read_sums_that_others_add_to() -> None:
    states, tokens = np.ones((200, 50, 64), dtype=np.float32), np.zeros((200, 50), dtype=np.uint32)
    one, other = crosslens.Components(64), crosslens.Components(64)

    def add(components: crosslens.Components) -> None:
        for _ in range(20):
            components.add(states, tokens)

    workers = [threading.Thread(target=add, args=(components,)) for components in (one, other)]
    for worker in workers:
        worker.start()
    seen = []
    while any(worker.is_alive() for worker in workers):
        seen.append(one.n_states)
        assert (one + other).n_states >= seen[-1] and repr(one)
        assert pickle.loads(pickle.dumps(other)).d == 64
    for worker in workers:
        worker.join()
    assert seen == sorted(seen) and all(n_states % 10_000 == 0 for n_states in seen)
    assert one.n_states == other.n_states == 200_000 and one == other


@pytest.mark.parametrize(
    ("states", "tokens", "lengths", "what"),
    [
        (np.ones((2, 3, 4)), np.zeros((2, 3), int), None, "dimensions"),
        (np.ones((2, 3)), np.zeros((2, 3), int), None, "axes"),
        (np.ones((2, 3, 5)), np.zeros((3, 2), int), None, "tokens"),
        (np.ones((2, 3, 5)), -np.ones((2, 3), int), None, "from 0"),
        (np.ones((2, 3, 5)), np.full((2, 3), 2**32), None, "from 0"),
        (np.ones((2, 3, 5)), np.full((2, 3), 2**32 - 1), None, "token"),
        (np.ones((2, 3, 5)), np.zeros((2, 3), int), [3, 4], "lengths"),
        (np.ones((2, 3, 5)), np.zeros((2, 3), int), [3], "lengths"),
        (np.ones((2, 3, 5)), np.zeros((2, 3)), None, "whole numbers"),
        (np.full((2, 3, 5), np.nan), np.zeros((2, 3), int), None, "finite"),
        (np.array([["a"]]), np.zeros((2, 3), int), None, "axes"),
        ([[[1.0] * 5] * 3, [[1.0] * 5] * 2], np.zeros((2, 3), int), None, "`states` .*rows of one length"),
        (np.ones((2, 3, 5)), [[0, 1, 2], [0, 1]], None, "`tokens` .*rows of one length"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(states: Any, tokens: Any, lengths: Any, what: str) -> None:
    components = crosslens.Components(5)
    with pytest.raises(crosslens.ArrayError, match=what):
        components.add(states, tokens, lengths)
    assert components.n_states == 0


def test_states_that_no_residual_can_be_of_are_refused() -> None:
    states, tokens, lengths = some()
    fit = sums(states, tokens, lengths).fit()
    wrong: list[tuple[Any, Any, str]] = [
        (states[..., :4], tokens, r"`states` .*\[…, step, 5\]"),
        (states[0, 0], tokens[0, 0], r"`states` .*\[…, step, 5\]"),
        (states, tokens[:, :-1], "`tokens`"),
        (states, tokens[:3], "`tokens`"),
        ([[[1.0] * 5], [[1.0] * 5] * 2], tokens, "rows of one length"),
        (states, tokens.astype(float), "`tokens` .*whole numbers"),
        (np.full(states.shape, "a"), tokens, "`states` .*numbers"),
    ]
    for given, of_tokens, what in wrong:
        with pytest.raises(crosslens.ArrayError, match=what):
            fit.residual(given, of_tokens)
    with pytest.raises(crosslens.ArrayError, match="rows of one length"):
        fit.input_of([[1, 2], [3]])
    assert fit.residual(states[0], tokens[0]).shape == states[0].shape


def test_other_failures_have_their_own_exceptions(tmp_path: Path) -> None:
    components = crosslens.Components(5)
    with pytest.raises(crosslens.FitError, match="no states"):
        components.fit()
    with pytest.raises(crosslens.ConfigError, match="estimator"):
        components.fit("best")  # type: ignore[arg-type]
    with pytest.raises(crosslens.ConfigError, match="shrinkage"):
        components.fit(shrinkage="much")  # type: ignore[arg-type]
    with pytest.raises(crosslens.MergeError, match="dimensions"):
        components.merge(crosslens.Components(4))
    with pytest.raises(crosslens.ArrayError):
        crosslens.Components(0)
    with pytest.raises(crosslens.FileError, match="nothing"):
        crosslens.Components.load(tmp_path / "nothing.stats.safetensors")
    (tmp_path / "bad.stats.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(crosslens.FileError, match="bad"):
        crosslens.Components.load(tmp_path / "bad.stats.safetensors")
    kinds = [kind for name, kind in vars(crosslens).items() if name.endswith("Error")]
    assert len(kinds) == 11 and all(issubclass(kind, crosslens.CrosslensError) for kind in kinds)
    for kind in kinds:
        # From process to process each stays what it is.
        again = pickle.loads(pickle.dumps(kind("why")))
        assert type(again) is kind and again.args == ("why",) and getattr(crosslens, kind.__name__) is kind
