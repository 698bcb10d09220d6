"""Writes quality.json: BLEU and chrF of sacreBLEU on sentences of our own.

    pip install sacrebleu==2.6.0
    python crates/crosslens-analysis/tests/golden/make_quality.py

Deterministic: the random edits come from a seed that is written into the file.
"""

import json
import logging
import platform
import random
from pathlib import Path

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

logging.getLogger("sacrebleu").setLevel(logging.ERROR)
SEED = 20

SENTENCES = [
    "The small cat sleeps on the red mat.",
    "Le petit chat dort sur le tapis rouge.",
    "L'été dernier, elle n'est pas venue à l'école.",
    "It cost 1,250.75 dollars (about 3.5% more than in 1999-2001).",
    "Der Zug fährt um 8:45 Uhr ab – oder nicht?",
    "Ich weiß, dass ÄÖÜ große Buchstaben sind.",
    "Στο σπίτι μας υπάρχει ένας ΜΕΓΑΛΟΣ σκύλος.",
    "Кошка сидит на окне и смотрит во двор.",
    "猫がマットの上に座っています。",
    "这只猫坐在垫子上,很安静。",
    "القطة تجلس على السجادة الحمراء.",
    "बिल्ली चटाई पर बैठी है।",
    "She said: &quot;wait &amp; see&quot; &lt;now&gt;.",
    "e-mail me at someone@example.org, or see http://example.org/a_b?c=1&d=2!",
    "Wait... what?! No -- really, no.",
    "Prices rose 3.,5 or .5 or 5. per day, 1990-1995-2000.",
    "l'homme\u00a0: «\u202foui\u202f» , dit-il ;\tnon",
    "It's 5 o'clock; don't be late!",
    "a b c d e f g h i j k l m n o p",
    "the the the the the the the",
    "İstanbul'da ILIK bir gün ẞ",
    "<skipped>text before-\nbroken line\nand more",
    "x\x1cy\x1dz\x85end",
    "🙂🙂 ok 👍🏽, fine",
    ".",
    "1-2-3 4.5,6 7,a b.8",
    "[one] {two} (three) \\four/ `five` ^six^ ~seven~ |eight|",
]


def edited(random_numbers, sentence):
    """A translation as a bad program would write it: words dropped, repeated, exchanged, cases changed."""
    words = sentence.split(" ")
    for _ in range(random_numbers.randint(0, 4)):
        if not words:
            break
        place = random_numbers.randrange(len(words))
        kind = random_numbers.randrange(5)
        if kind == 0:
            words.pop(place)
        elif kind == 1:
            words.insert(place, words[place])
        elif kind == 2:
            other = random_numbers.randrange(len(words))
            words[place], words[other] = words[other], words[place]
        elif kind == 3:
            words[place] = words[place].swapcase()
        else:
            words[place] = words[place][::-1]
    return " ".join(words)


def cases():
    numbers = random.Random(SEED)
    one = [(edited(numbers, text), [text]) for text in SENTENCES]
    yield "one reference", one
    yield "two references", [(edited(numbers, text), [edited(numbers, text), text]) for text in SENTENCES]
    several = [(edited(numbers, text), [edited(numbers, text) for _ in range(numbers.randint(1, 4))]) for text in SENTENCES]
    yield "a varying number of references", several
    yield "the references themselves", [(text, [text]) for text in SENTENCES]
    yield "nothing written", [("", [text]) for text in SENTENCES[:3]]
    yield "some sentences empty", [("" if n % 3 == 0 else text, [text]) for n, text in enumerate(SENTENCES)]
    yield "an empty reference", [("a cat", ["", "a cat sat"]), ("a dog", [""]), ("", [""])]
    yield "nothing in common", [("aa bb cc dd ee", ["xx yy zz ww vv"])]
    yield "too short for 4-grams", [("a b c", ["a b c"]), ("d", ["d e"])]
    yield "single words", [("chat", ["chat"]), ("chien", ["le chien"])]
    yield "equally near lengths", [("a b c d", ["a b c d e f", "a b"]), ("a b c d e", ["a b c", "a b c d e f g"])]
    yield "unigrams alone match", [("d c b a", ["a b c d"])]
    yield "other sentences", [(SENTENCES[n - 1], [text]) for n, text in enumerate(SENTENCES)]
    for length in (1, 5, 40):
        yield f"letters at random, {length} sentences", [
            (" ".join(numbers.choices("abcd,.", k=numbers.randint(0, 9))), [" ".join(numbers.choices("abcd,.", k=numbers.randint(1, 9))) for _ in range(2)])
            for _ in range(length)
        ]


def padded(sentences):
    """References as sacreBLEU wants them: the n-th of every sentence, None where there is none."""
    most = max(len(references) for _, references in sentences)
    return [[references[n] if n < len(references) else None for _, references in sentences] for n in range(most)]


def signature(metric):
    return str(metric.get_signature()).rsplit("|", 1)[0]


def bleu(sentences):
    written = [text for text, _ in sentences]
    for tokenize in ("13a", "none"):
        for lowercase in (False, True):
            for effective in (False, True):
                metric = BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=effective)
                score = metric.corpus_score(written, padded(sentences))
                yield {
                    "tokenize": tokenize, "lowercase": lowercase, "effective_order": effective, "score": score.score,
                    "precisions": score.precisions, "counts": score.counts, "totals": score.totals, "bp": score.bp,
                    "sys_len": score.sys_len, "ref_len": score.ref_len, "text": str(score), "signature": signature(metric),
                }


def chrf(sentences):
    written = [text for text, _ in sentences]
    for settings in (dict(), dict(lowercase=True), dict(word_order=2), dict(word_order=2, lowercase=True), dict(char_order=3, word_order=1, beta=1)):
        metric = CHRF(**settings)
        score = metric.corpus_score(written, padded(sentences))
        record = {
            "char_order": metric.char_order, "word_order": metric.word_order, "beta": metric.beta, "lowercase": metric.lowercase,
            "score": score.score, "metric": score.name, "signature": signature(metric),
        }
        record["sentences"] = [metric.sentence_score(text, references).score for text, references in sentences]
        yield record


def main():
    tokenize = Tokenizer13a()
    texts = SENTENCES + [edited(random.Random(n), text) for n, text in enumerate(SENTENCES)]
    numbers = random.Random(SEED)
    texts += ["".join(numbers.choices("a1.,-'\"&; \n<>/%é", k=numbers.randint(1, 25))) for _ in range(200)]
    out = {
        "made_by": f"make_quality.py with sacrebleu {sacrebleu.__version__}, Python {platform.python_version()}, seed {SEED}",
        "tokens": [{"sentence": text, "words": tokenize(text.rstrip())} for text in texts],
        "cases": [],
    }
    for name, sentences in cases():
        sentence_bleu = [sacrebleu.sentence_bleu(text, references).score for text, references in sentences]
        out["cases"].append({
            "name": name,
            "sentences": [{"written": text, "references": references} for text, references in sentences],
            "bleu": list(bleu(sentences)), "chrf": list(chrf(sentences)), "sentence_bleu": sentence_bleu,
        })
    path = Path(__file__).with_name("quality.json")
    path.write_text(json.dumps(out, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(path, path.stat().st_size, "bytes")


main()
