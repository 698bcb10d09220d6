"""Golden values for the symmetrisation of word alignments in crosslens-analysis, made without any of its code.

Run:     python make_align.py   (Python 3.11, nothing else; a second)
Writes:  align.json             what made it, and cases: links of two directions and what every way of joining them must give

The program follows the definitions alone and takes the slow way: a table of booleans, every cell looked at in every pass.

  intersection, union   as the words say
  grow-diag             Begin with the intersection. Pass over the table, source words outside, target words inside. A link of the union
                        that is not there yet is added at once if its source word or its target word has no link so far, and one of the
                        eight cells around it is a link. Pass again until a pass adds nothing.
  grow-diag-final       Then pass once over the first direction and once over the second: add links of which the source word or the
                        target word has no link so far.
  grow-diag-final-and   The same, if neither word has a link.

Words and tables are small and links dense enough that links compete for words; some pairs are functions, one source word for each
target word and the other way round, as aligners write them.
"""

import json
import platform
import random
from pathlib import Path

SEED = 447
N_CASES = 120


def has_link(table, source=None, target=None):
    if source is not None:
        return any(table[source])
    return any(row[target] for row in table)


def touches_a_link(table, source, target):
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            i, j = source + down, target + right
            if (down, right) != (0, 0) and 0 <= i < len(table) and 0 <= j < len(table[0]) and table[i][j]:
                return True
    return False


def cells(table):
    return [(i, j) for i in range(len(table)) for j in range(len(table[0]))]


def grow_diag(one, other):
    table = [[a and b for a, b in zip(*rows)] for rows in zip(one, other)]
    added = True
    while added:
        added = False
        for i, j in cells(table):
            if table[i][j] or not (one[i][j] or other[i][j]):
                continue
            both_linked = has_link(table, source=i) and has_link(table, target=j)
            if not both_linked and touches_a_link(table, i, j):
                table[i][j] = added = True
    return table


def finish(table, direction, all_of_them):
    for i, j in cells(table):
        if direction[i][j] and not table[i][j]:
            free = [not has_link(table, source=i), not has_link(table, target=j)]
            if all(free) if all_of_them else any(free):
                table[i][j] = True


def join(kind, one, other):
    if kind == "intersection":
        return [[a and b for a, b in zip(*rows)] for rows in zip(one, other)]
    if kind == "union":
        return [[a or b for a, b in zip(*rows)] for rows in zip(one, other)]
    table = grow_diag(one, other)
    if kind != "grow-diag":
        finish(table, one, kind == "grow-diag-final-and")
        finish(table, other, kind == "grow-diag-final-and")
    return table


KINDS = ["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"]


def draw(rng, n_source, n_target, density):
    return [[rng.random() < density for _ in range(n_target)] for _ in range(n_source)]


def draw_functions(rng, n_source, n_target):
    """Each target word has a source word near the diagonal, or none; and the other way round."""
    forward = [[False] * n_target for _ in range(n_source)]
    backward = [[False] * n_target for _ in range(n_source)]
    for j in range(n_target):
        i = round(j * (n_source - 1) / max(n_target - 1, 1)) + rng.choice([-2, -1, 0, 0, 0, 1, 2])
        if 0 <= i < n_source:
            forward[i][j] = True
    for i in range(n_source):
        j = round(i * (n_target - 1) / max(n_source - 1, 1)) + rng.choice([-2, -1, 0, 0, 0, 1, 2])
        if 0 <= j < n_target:
            backward[i][j] = True
    return forward, backward


def pharaoh(table):
    return " ".join(f"{i}-{j}" for i, j in cells(table) if table[i][j])


def main():
    rng = random.Random(SEED)
    cases = []
    for number in range(N_CASES):
        n_source, n_target = rng.randint(1, 9), rng.randint(1, 9)
        if number % 2:
            one, other = draw_functions(rng, n_source, n_target)
        else:
            density = rng.choice([0.1, 0.25, 0.4])
            one, other = draw(rng, n_source, n_target, density), draw(rng, n_source, n_target, density)
        joined = {kind: pharaoh(join(kind, one, other)) for kind in KINDS}
        cases.append({"forward": pharaoh(one), "backward": pharaoh(other)} | joined)

    # Every way must matter, and so must the order of the words and of the directions.
    for kind, next_kind in [("intersection", "grow-diag"), ("grow-diag", "grow-diag-final-and"), ("grow-diag-final-and", "grow-diag-final")]:
        assert sum(case[kind] != case[next_kind] for case in cases) > 10, (kind, next_kind)
    assert sum(case["grow-diag-final"] != case["union"] for case in cases) > 10
    swapped = [join("grow-diag-final", table(case["backward"]), table(case["forward"])) for case in cases]
    assert sum(pharaoh(found) != case["grow-diag-final"] for found, case in zip(swapped, cases)) > 5
    turned = [turn(join("grow-diag", turn(table(case["forward"])), turn(table(case["backward"])))) for case in cases]
    assert sum(pharaoh(found) != case["grow-diag"] for found, case in zip(turned, cases)) > 1

    head = {"made_by": "make_align.py", "python": platform.python_version(), "seed": SEED}
    lines = ",\n".join(json.dumps(case) for case in cases)
    text = json.dumps(head)[:-1] + ', "cases": [\n' + lines + "\n]}\n"
    assert json.loads(text)["cases"] == cases
    (Path(__file__).parent / "align.json").write_text(text)
    print(len(text), "bytes")


def table(links, size=10):
    found = [[False] * size for _ in range(size)]
    for link in links.split():
        i, j = map(int, link.split("-"))
        found[i][j] = True
    return found


def turn(links):
    return [list(column) for column in zip(*links)]


if __name__ == "__main__":
    main()
