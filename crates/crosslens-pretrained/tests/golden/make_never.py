"""Golden values of beam searches that go on as long as anything better can come (`early_stopping: "never"`), made by transformers.

Run:     python make_never.py   (after make_pretrained.py, whose models and sentences it takes; with the versions of requirements.txt)
Writes:  never.json: `versions`, and `searches`, a list of
           case              the folder of the model
           length_penalty    with 4 beams and 12 new tokens at most
           changes           whether a search with `early_stopping: false` finds something else
           tokens, scores    by sentence, as in make_pretrained.py

A search that finds something else when every score is moved a little is near a tie and left out.
"""

import json
import platform

import torch
import transformers
from safetensors.torch import load_file

from make_pretrained import FOLDER, N_BEAMS, Noise, all_cases, differs, open_saved, quietly, search

CASES = ["t5", "t5-v1_1", "bart", "marian", "marian-separate", "mbart", "mt5", "pegasus", "m2m_100", "umt5"]
PENALTIES = [3.0, 1.0, 0.5, 0.0, -0.5]


def batch_of(case):
    golden = load_file(FOLDER / case / "golden.safetensors")
    source = golden["source"]
    mask = (torch.arange(source.shape[1]) < golden["source_lengths"][:, None]).long()
    return {"source": source, "source_mask": mask}


def main():
    quietly()
    cases = all_cases()
    searches = []
    for case in CASES:
        model, batch = open_saved(FOLDER / case, cases[case]), batch_of(case)
        for penalty in PENALTIES:
            settings = {"num_beams": N_BEAMS, "length_penalty": penalty, "early_stopping": "never"}
            tokens, scores = search(model, batch, **settings)
            if any(differs(search(model, batch, [Noise(seed)], **settings)[0], tokens) for seed in range(3)):
                continue
            changes = differs(search(model, batch, **settings | {"early_stopping": False})[0], tokens)
            found = {"case": case, "length_penalty": penalty, "changes": changes}
            searches.append(found | {"tokens": tokens.tolist(), "scores": scores.tolist()})
    print(f"{len(searches)} searches, of which {sum(found['changes'] for found in searches)} differ")
    assert sum(found["changes"] for found in searches) >= 3
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, python {platform.python_version()}"
    lines = ",\n".join("    " + json.dumps(found) for found in searches)
    (FOLDER / "never.json").write_text(f'{{\n  "versions": {json.dumps(versions)},\n  "searches": [\n{lines}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
