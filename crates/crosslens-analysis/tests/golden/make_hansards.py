"""Writes hansards.json: alignment error rates of three simple aligners on the published Hansards, counted apart from the Rust code.

    python crates/crosslens-analysis/tests/golden/make_hansards.py ../shared/data/alignments

Only counts are written, none of the data. Needs Python alone.
"""

import json
import platform
import sys
from fractions import Fraction
from pathlib import Path


def read(folder):
    """Words of both sides, and sure and possible links from 0; possible ones need not repeat the sure ones."""
    gold = (folder / "hansards-en-fr.gold").read_text(encoding="utf-8").splitlines()
    texts = (folder / "hansards-en-fr.src-tgt").read_text(encoding="utf-8").splitlines()
    assert len(gold) == len(texts)
    for line, text in zip(gold, texts):
        source, target = (side.split() for side in text.split("|||"))
        sure, possible = set(), set()
        for link in line.split():
            kind = "p" if "p" in link else "-"
            left, right = (int(place) - 1 for place in link.split(kind))
            assert 0 <= left < len(source) and 0 <= right < len(target), link
            (possible if kind == "p" else sure).add((left, right))
        yield source, target, sure, possible | sure


# What each aligner links; all in whole numbers, so that no rounding differs.
ALIGNERS = {
    "same place": lambda source, target: {(n, n) for n in range(min(len(source), len(target)))},
    "same relative place": lambda source, target: {(n * len(source) // len(target), n) for n in range(len(target))},
    "same word": lambda source, target: {(i, j) for i, one in enumerate(source) for j, other in enumerate(target) if one == other},
}


def main():
    pairs = list(read(Path(sys.argv[1])))
    out = {
        "made_by": f"make_hansards.py, Python {platform.python_version()}",
        "n_pairs": len(pairs),
        "n_sure": sum(len(sure) for *_, sure, _ in pairs),
        "n_possible": sum(len(possible) for *_, possible in pairs),
        "aligners": {},
    }
    for name, align in ALIGNERS.items():
        found = found_sure = found_possible = 0
        for source, target, sure, possible in pairs:
            links = align(source, target)
            found += len(links)
            found_sure += len(links & sure)
            found_possible += len(links & possible)
        out["aligners"][name] = {
            "found": found, "found_sure": found_sure, "found_possible": found_possible,
            "precision": float(Fraction(found_possible, found)), "recall": float(Fraction(found_sure, out["n_sure"])),
            "aer": float(1 - Fraction(found_sure + found_possible, found + out["n_sure"])),
        }
    Path(__file__).with_name("hansards.json").write_text(json.dumps(out, indent=1) + "\n")
    print(json.dumps(out, indent=1))


main()
