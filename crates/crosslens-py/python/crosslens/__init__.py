"""Shows how an encoder-decoder network attends, and why.

>>> import numpy as np, crosslens
>>> components = crosslens.Components(d=2)
>>> states = np.array([[[1.0, 0.0], [5.0, 0.0]], [[3.0, 0.0], [9.0, 9.0]]], dtype=np.float32)
>>> components.add(states, tokens=[[7, 8], [7, 0]], lengths=[2, 1])
>>> components.fit(estimator="paper").temporal.tolist()
[[2.0, 0.0], [5.0, 0.0]]
"""

from ._components import Components, Fit, Sums, Variance
from ._explanation import Explanation, Head, Part, Site
from ._model import Model, Translation, load
from ._native import (
    ArrayError,
    ConfigError,
    CrosslensError,
    ExplainError,
    FileError,
    FitError,
    MergeError,
    OpenError,
    ReproduceError,
    SentenceError,
    TrainError,
    __version__,
)
from ._training import Metrics, Trained, reproduce, train

__all__ = [
    "ArrayError",
    "Components",
    "ConfigError",
    "CrosslensError",
    "ExplainError",
    "Explanation",
    "FileError",
    "Fit",
    "FitError",
    "Head",
    "MergeError",
    "Metrics",
    "Model",
    "OpenError",
    "Part",
    "ReproduceError",
    "SentenceError",
    "Site",
    "Sums",
    "TrainError",
    "Trained",
    "Translation",
    "Variance",
    "__version__",
    "load",
    "reproduce",
    "train",
]
