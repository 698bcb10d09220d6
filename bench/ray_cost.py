#!/usr/bin/env python3
"""What a pair of sentences costs in `crosslens.torch` and on a local Ray cluster.

    bench/ray_cost.py [PAIRS…]          256 and 1024 unless given; in an environment with the package, torch, transformers and ray

A T5 of random weights, 2 + 2 layers of 64 units and 4 heads, pairs of 25 + 25 tokens in batches of 16, on the CPU, PyTorch on one thread: small,
so that what is measured is what Crosslens and Ray add to a model and not the model. One line of JSON a size: seconds of the model alone, twice
over all batches; of `crosslens.torch.explain`; and of `crosslens.ray.explain` with two workers and blocks of 128 rows, starting them included.
The difference of two sizes leaves starting out, and is what docs/scale.md should quote.
"""
import json
import os
import sys
import time

import ray
import torch
import transformers

import crosslens.ray
import crosslens.torch

N_WORDS, LENGTH, BATCH, ROWS, WORKERS = 1000, 25, 16, 128, 2


def make():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    config = transformers.T5Config(
        vocab_size=N_WORDS, d_model=64, d_kv=16, d_ff=256, num_layers=2, num_heads=4, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1
    )
    return transformers.T5ForConditionalGeneration(config).eval()


def pairs(n):
    made = torch.Generator().manual_seed(2)
    return torch.randint(2, N_WORDS, (n, 2, LENGTH), generator=made)


def arguments(columns):
    source, target = (torch.tensor([list(row) for row in columns[name]]) for name in ("source", "target"))
    return {"input_ids": source, "attention_mask": torch.ones_like(source), "labels": target}


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(n):
    tokens, model = pairs(n), make()
    batches = [arguments({"source": part[:, 0].tolist(), "target": part[:, 1].tolist()}) for part in tokens.split(BATCH)]

    def alone():
        with torch.no_grad():
            for batch in batches * 2:
                model(**batch)

    dataset = ray.data.from_items([{"source": source, "target": target} for source, target in tokens.tolist()]).materialize()
    spread = {"arguments": arguments, "rows": ROWS, "batch_size": BATCH, "workers": WORKERS, "progress": False}
    return {
        "pairs": n,
        "model_twice_seconds": seconds(alone),
        "torch_explain_seconds": seconds(lambda: crosslens.torch.explain(model, batches, keep=0, n_threads=1, progress=False)),
        "ray_explain_seconds": seconds(lambda: crosslens.ray.explain(make, dataset, **spread)),
        "workers": WORKERS,
        "cores": os.cpu_count(),
    }


def main():
    torch.set_num_threads(1)
    ray.init(num_cpus=WORKERS + 2, include_dashboard=False, log_to_driver=False)
    for n in [int(argument) for argument in sys.argv[1:]] or [256, 1024]:
        print(json.dumps(measure(n)), flush=True)


if __name__ == "__main__":
    main()
