"""Options that some ways of explaining do not have, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

from ._native import ConfigError

NOT_RECORDED = {
    "causal": "the model is not run again: Model.explain does that, of models that load() opens",
    "rerun": "the model is not run again: Model.explain does that, of models that load() opens",
    "samples": "keep= says how many sentences are shown in full",
}
"""Of a model that runs in PyTorch."""

NOT_SPREAD = {
    **NOT_RECORDED,
    "samples": "no sentence is kept in full",
    "keep": "no sentence is kept in full",
    "path": "no recording is written",
    "overwrite": "no recording is written",
    "rank": "sentences are not ranked",
    "geometry": "the moments of states are not carried between machines",
    "n_threads": "num_cpus= says how many a worker has",
}
"""Of a corpus over many machines."""


def refuse(options: Mapping[str, object], missing: Mapping[str, str], whose: str) -> None:
    """Refuses the first option that is not to be had."""
    for name, why in missing.items():
        if name in options:
            raise ConfigError(f"`{name}` is no option of {whose}: {why}")
