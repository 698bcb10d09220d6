"""Golden values for the tokenizers of crosslens-pretrained, made without any of its code.

Run:     python make_tokenizers.py [CASE …]   (without a case: all of them, from nothing; Python 3.11, sentencepiece 0.2.2, tokenizers 0.23.3, transformers 5.22.2; a minute)
Writes:  tokenizers/                 everything gzipped JSON or gzipped bytes, see below

All text is made up here, in many scripts, from a seed. SentencePiece trains small models on one part of it and encodes another;
transformers encodes the same lines with MarianTokenizer and, on the same models, with T5's tokenizer. The same versions write
the same bytes, but for unigram-suffix.model.gz, which came out in two ways in three runs, with the same cases.

  versions.json          what made the files
  lines.json.gz          [line]  the texts that are encoded
  RULE.charsmap.gz       the map of characters of a normaliser (nmt_nfkc, nfkc_cf); of its units first all lowest bytes, then all
                         second ones and so on, which takes a quarter less
  NAME.model.gz          a SentencePiece model without its map of characters, which adds 240 kB each time; the test puts the map
                         back: a message of the wire format may be appended to, and fields of its parts are merged
  NAME.json.gz           {"rule": RULE or null, "cases": one a line, "random": [ids, decoded] of ids that no text has;
                         unigram-suffix also replaces text after decoding}; a case is [ids, unknown, decoded]:
      ids                as SentencePieceProcessor.encode gives them
      unknown            the texts of the pieces whose id is the unknown one, in order; other pieces follow from their ids
      decoded            what .decode(ids) gives, or null if that is the plain way: pieces put together, ` ⁇ ` for unknown ones,
                         U+2581 as a space, one space at the beginning taken away
  marian.json.gz, marian-separate.json.gz   {"source_model", "target_model", "vocab", "target_vocab", "config", "cases"};
                         a case is [text, source ids, target ids, decoded target ids without special tokens]
  t5.json.gz             {"model", "config", "cases"}: a case is [text, ids, decoded], by SentencePiece and the tokenizer class of
                         transformers that is made for it, with T5's special tokens
  pegasus.json.gz, mbart.json.gz, mbart50.json.gz, nllb.json.gz, nllb-legacy.json.gz, xlm-roberta.json.gz    {"model", "files", "languages", "cases"}: files
                         beside the model by their names, [source, target] language or null; a case is [text, source ids, target ids,
                         decoded target ids without special tokens]. Cut by the tokenizer class of transformers that is made for
                         SentencePiece; ids of tokens and of what stands around them are those of the class of the same name
                         (PegasusTokenizer, MBartTokenizer, …), to which every token is shown. A target is what the decoder writes:
                         of mBART without the language, from which its decoder starts, of the others with the language first
  m2m100.json.gz, m2m100-wmt21.json.gz      the same by M2M100Tokenizer itself
  added-marian.json.gz, added-t5.json.gz, added-m2m100.json.gz    {"kind", "files", "languages", "cases"}: folders as transformers
                         before 4.34 saved them after tokens were added: files beside those of the case "kind", among them
                         added_tokens.json; opened by from_pretrained of MarianTokenizer, of the class that is made for SentencePiece
                         models and of M2M100Tokenizer. Cases as of marian.json.gz
  t5-tokenizer.json.gz, bart-tokenizer.json.gz, nllb-tokenizer.json.gz    {"rule", "tokenizer", "cases"}: a tokenizer.json
                         (in which the map of characters is the name of its rule) and cases [ids, decoded]: of every line, for T5 of
                         the texts of t5.json.gz
"""

import gzip
import io
import json
import platform
import random
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import sentencepiece as spm
import tokenizers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import M2M100Tokenizer, MarianTokenizer, MBart50Tokenizer, MBartTokenizer, NllbTokenizer, PegasusTokenizer, T5Tokenizer, XLMRobertaTokenizer
from transformers.tokenization_utils_sentencepiece import SentencePieceBackend

SEED = 5104
N_LINES = 1000
N_TRAINING_LINES = 3000
N_SENTINELS = 20
N_RANDOM = 80
N_FAMILY_LINES = 400
HERE = Path(__file__).parent / "tokenizers"
MARK = "\u2581"


# ---- text


def characters(*ranges):
    return [chr(code) for first, last in ranges for code in range(first, last + 1)]


# Syllables of each script, from which words are made.
SCRIPTS = {
    "latin": ["ba", "re", "mi", "to", "lu", "en", "st", "cha", "ing", "or", "qu", "é", "ü", "ñ", "ø", "ß", "ç", "ő", "ł", "x"],
    "upper": ["BA", "Re", "MI", "To", "É", "Ü", "ẞ", "İ", "Ĳ", "Ǆ"],
    "decomposed": ["e\u0301", "u\u0308", "n\u0303", "a\u030a", "o\u0328\u0304", "ba", "ti"],
    "greek": ["αλ", "θο", "κα", "ς", "σι", "ώ", "Ω", "ΰ", "με", "ἄ"],
    "cyrillic": ["пра", "во", "ни", "е", "й", "щу", "Ж", "ъ", "сто", "ё"],
    "arabic": ["كت", "اب", "ال", "مد", "رس", "ة", "َ", "ّ", "ﷺ", "لا"],
    "hebrew": ["של", "ום", "ים", "בי", "ת", "ָ", "שׁ"],
    "devanagari": ["न", "म", "स्", "ते", "हि", "न्", "दी", "क्ष", "ं", "ड़"],
    "han": ["語", "文", "学", "水", "火", "山", "川", "中", "国", "人", "﨑", "龍"],
    "kana": ["か", "な", "が", "ガ", "ッ", "ー", "ﾊ", "ﾊﾟ", "っ", "は\u3099", "ゟ"],
    "hangul": ["한", "국", "어", "말", "ㅎ", "\u1112\u1161\u11ab", "글"],
    "thai": ["ไท", "ย", "ำ", "ก็", "น้"],
    "emoji": ["😀", "👍🏽", "👩\u200d💻", "🇫🇷", "❤️", "☃", "1️⃣", "🧑🏿\u200d🚀"],
    "wide": ["Ａ", "ｂ", "１", "２", "！", "（", "）", "～", "ﾞ"],
    "digits": ["0", "1", "23", "456", "7.8", "9,0", "٣", "५", "Ⅷ", "½", "²", "①"],
    "signs": [".", ",", "!", "?", "…", "“", "”", "—", "-", "'", "’", "«", "»", "¿", "%", "&", "#", "@", "/", "\\", "(", ")"],
    "compatible": ["ﬁ", "ﬃ", "㎏", "㍿", "ª", "K", "Å", "Ω", "ſ", "ŉ", "℡", "㈱", "ﬀ", "Ǉ", "\u0344", "\u0958"],
}
ODD_SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2003", "\u200b", "\u2028", "\u0085", "\ufeff", "\u1680", "\u202f"]
ODD = ["\x00", "\x01", "\x07", "\x0b", "\x1f", "\x7f", "\u009f", "\u00ad", "\u200c", "\u200d", "\u200e", "\u2060", "\ufffd", "\u034f"]
ODD += ["\ue000", "\U000f0000", "\U0010fffd", "\u0378", "\ufdd0", "\u0301", "\u20dd", "\ufe0f", "𝔄", "𝒷", "\U0001d15e", "\u2126", "\u1e9b\u0323"]
LITERALS = [MARK, "<unk>", "</s>", "<s>", "<pad>", "<0x41>", "<0xE2>", "\u2047", "<sep>", "[NAME]", "<ctl>", ">>fra<<", "<extra_id_0>", "a" * 40, "\u0301" * 8]


class Text:
    """A stream of made-up text."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        # Words recur, so that there is something to learn.
        self.words = {name: [self.new_word(syllables) for _ in range(25)] for name, syllables in SCRIPTS.items()}

    def new_word(self, syllables):
        return "".join(self.random.choice(syllables) for _ in range(self.random.choice([1, 1, 2, 2, 3, 4])))

    def word(self, script):
        known = self.random.random() < 0.8
        return self.random.choice(self.words[script]) if known else self.new_word(SCRIPTS[script])

    def plain_line(self):
        """Words of one or two scripts, with a single space between them."""
        scripts = self.random.sample(sorted(SCRIPTS), self.random.choice([1, 1, 2]))
        if self.random.random() < 0.5:
            scripts.append("latin")
        return " ".join(self.word(self.random.choice(scripts)) for _ in range(self.random.randint(1, 7)))

    def odd_line(self):
        """Anything next to anything."""
        parts = []
        for _ in range(self.random.randint(1, 6)):
            kind = self.random.random()
            if kind < 0.45:
                parts.append(self.word(self.random.choice(sorted(SCRIPTS))))
            elif kind < 0.65:
                parts.append(self.random.choice(ODD_SPACES))
            elif kind < 0.8:
                parts.append(self.random.choice(ODD))
            elif kind < 0.9:
                parts.append(self.random.choice(LITERALS))
            else:
                parts.append(chr(self.random.choice([self.random.randint(0x20, 0x2FF), self.random.randint(0x300, 0xD7FF), self.random.randint(0xE000, 0x1FFFF)])))
        return "".join(parts)

    def line(self):
        return self.plain_line() if self.random.random() < 0.6 else self.odd_line()


def encoded_lines():
    text = Text(SEED)
    first = ["", " ", "   ", "\u3000", "a", " a ", MARK, MARK * 3, " " + MARK + " ", "\u200b", "\x00", "<unk>", "ab" * 300]
    return first + [text.line() for _ in range(N_LINES - len(first))]


def training_lines():
    text = Text(SEED)  # the same words,
    text.random = random.Random(SEED + 1)  # in other lines
    lines = []
    while len(lines) < N_TRAINING_LINES:
        line = text.plain_line()
        if "\0" not in line and "\n" not in line:
            lines.append(line)
    return lines


# ---- models


def train(lines, **options):
    """A model; "denormalized" are pairs of what decoding replaces, and by what."""
    buffer = io.BytesIO()
    pairs = options.pop("denormalized", [])
    plain = {"hard_vocab_limit": False, "num_threads": 1, "character_coverage": 0.99, "minloglevel": 2}
    spm.set_random_generator_seed(SEED)
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.writelines("\t".join(" ".join(f"{ord(one):X}" for one in text) for text in pair) + "\n" for pair in pairs)
        rules.flush()
        if pairs:
            options["denormalization_rule_tsv"] = rules.name
        spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=buffer, **(plain | options))
    return buffer.getvalue()


def all_models(lines, wanted=None):
    """Name -> (rule, model), of those that are wanted."""
    symbols = {"user_defined_symbols": ["<sep>", "[NAME]", "語文"], "control_symbols": ["<ctl>"]}
    t5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    recipes = {
        "unigram-nmt_nfkc": {"model_type": "unigram", "vocab_size": 600, "normalization_rule_name": "nmt_nfkc"} | t5,
        "unigram-nfkc_cf": {"model_type": "unigram", "vocab_size": 500, "normalization_rule_name": "nfkc_cf"} | symbols,
        "unigram-identity-spaces-kept": {"model_type": "unigram", "vocab_size": 450, "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
        "unigram-bytes": {"model_type": "unigram", "vocab_size": 600, "normalization_rule_name": "identity", "byte_fallback": True, "character_coverage": 0.98},
        "unigram-suffix": {"model_type": "unigram", "vocab_size": 450, "normalization_rule_name": "nmt_nfkc", "treat_whitespace_as_suffix": True, "denormalized": [("ba", "BA"), ("語", "語彙"), ("re", "")]},
        "bpe-identity": {"model_type": "bpe", "vocab_size": 500, "normalization_rule_name": "identity", "add_dummy_prefix": False} | symbols,
        "bpe-nmt_nfkc": {"model_type": "bpe", "vocab_size": 600, "normalization_rule_name": "nmt_nfkc"} | symbols,
        "bpe-bytes": {"model_type": "bpe", "vocab_size": 700, "normalization_rule_name": "nmt_nfkc", "byte_fallback": True, "split_by_whitespace": False, "remove_extra_whitespaces": False, "character_coverage": 0.98},
    }
    trained = {name: (recipe["normalization_rule_name"], train(lines, **recipe)) for name, recipe in recipes.items() if wanted is None or name in wanted}
    for name in ["unigram-nmt_nfkc", "bpe-nmt_nfkc"] if wanted is None else []:
        rule, model = trained[name]
        trained[name + "-unused"] = (rule, with_unused_pieces(model))
    return {name: (None if rule == "identity" else rule, model) for name, (rule, model) in trained.items()}


# ---- the wire format of protocol buffers


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def read_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def fields(message):
    """(number, wire type, payload) of each field; a payload is bytes, of numbers their bytes in the file."""
    at = 0
    while at < len(message):
        key, at = read_varint(message, at)
        start = at
        if key & 7 == 2:
            length, start = read_varint(message, at)
            at = start + length
        elif key & 7 == 0:
            _, at = read_varint(message, at)
        else:
            at += {5: 4, 1: 8}[key & 7]
        yield key >> 3, key & 7, message[start:at]


def field(number, wire_type, payload):
    return varint(number << 3 | wire_type) + (varint(len(payload)) if wire_type == 2 else b"") + payload


def without_map(model):
    """The model without its map of characters and without the name of the file of rules, and that map."""
    out, found = b"", b""
    for number, wire_type, payload in fields(model):
        if number == 3:
            inner = list(fields(payload))
            found = b"".join(value for key, _, value in inner if key == 2)
            payload = b"".join(field(*one) for one in inner if one[0] != 2)
        if number == 5:
            payload = b"".join(field(*one) for one in fields(payload) if one[0] != 6)
        out += field(number, wire_type, payload)
    return out, found


def with_unused_pieces(model):
    """Every third normal piece of several characters marked as unused."""
    out, count = b"", 0
    for number, wire_type, payload in fields(model):
        if number == 1:
            inner = {key: value for key, _, value in fields(payload)}
            if 3 not in inner and len(inner[1].decode().strip(MARK)) > 1:
                count += 1
                if count % 3 == 0:
                    payload += field(3, 0, b"\x05")
        out += field(number, wire_type, payload)
    return out


def by_bytes(charsmap):
    """The same map with the bytes of its units put in order of their significance."""
    end = 4 + int.from_bytes(charsmap[:4], "little")
    return charsmap[:4] + b"".join(charsmap[4 + place : end : 4] for place in range(4)) + charsmap[end:]


def load(model):
    return spm.SentencePieceProcessor(model_proto=model)


# ---- cases


def model_cases(processor, lines):
    cases = []
    for line in lines:
        pieces, ids = processor.encode(line, out_type=str), processor.encode(line, out_type=int)
        unknown = [piece for piece, id in zip(pieces, ids, strict=True) if id == processor.unk_id()]
        assert all(processor.id_to_piece(id) == piece for piece, id in zip(pieces, ids) if id != processor.unk_id())
        plain = "".join(" \u2047 " if id == processor.unk_id() else piece for piece, id in zip(pieces, ids)).replace(MARK, " ")
        if ids and ids[0] != processor.unk_id():
            plain = plain.removeprefix(" ")
        decoded = processor.decode(ids)
        cases.append([ids, unknown, None if decoded == plain else decoded])
    return cases


def random_cases(processor):
    """Ids in any order, a third of them bytes where the model has bytes: few make characters."""
    chooser = random.Random(SEED)
    n_pieces = processor.get_piece_size()
    bytes_ = [id for id in range(n_pieces) if processor.is_byte(id)] or range(n_pieces)
    lists = [[chooser.choice(chooser.choice([bytes_, range(n_pieces), range(6)])) for _ in range(chooser.randint(1, 9))] for _ in range(N_RANDOM)]
    return [[ids, processor.decode(ids)] for ids in lists]


def numbered(tokens):
    return {token: id for id, token in enumerate(tokens)}


def marian_case(models, lines, separate):
    source, target = "unigram-nmt_nfkc", "bpe-nmt_nfkc"
    pieces = {}
    for name in [source, target]:
        processor = load(models[name][1])
        for id in range(processor.get_piece_size()):
            pieces.setdefault(processor.id_to_piece(id), name)
    shuffler = random.Random(SEED)
    kept = [piece for piece in pieces if piece not in ["<unk>", "</s>", "<s>", "<pad>"] and shuffler.random() < 0.9]
    shuffler.shuffle(kept)
    codes = [">>fra<<", ">>deu<<"]
    if separate:  # special tokens have the same ids, since transformers looks them up in the source's vocabulary for both sides
        vocabulary = numbered(["</s>", "<unk>", "<pad>", *kept, *codes])
        target_vocabulary = numbered(["</s>", "<unk>", "<pad>", *reversed(kept)])
    else:
        vocabulary, target_vocabulary = numbered(["</s>", "<unk>", *kept, *codes, "<pad>"]), None
    config = {"separate_vocabs": True} if separate else {"source_lang": "eng", "target_lang": "fra"}

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "source.spm").write_bytes(models[source][1])
        (folder / "target.spm").write_bytes(models[target][1])
        (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        files = {"target_vocab_file": str(folder / "target_vocab.json")} if separate else {}
        if separate:
            (folder / "target_vocab.json").write_text(json.dumps(target_vocabulary), encoding="utf-8")
        tokenizer = MarianTokenizer(
            source_spm=str(folder / "source.spm"), target_spm=str(folder / "target.spm"), vocab=str(folder / "vocab.json"), separate_vocabs=separate, **files
        )
        cases = []
        chooser = random.Random(SEED)
        for line in lines[: 300 if separate else N_LINES]:
            text = chooser.choice(["", "", "", ">>fra<< ", ">>deu<<", ">>xyz<< ", ">>fra ", " >>fra<< "]) + line
            source_ids = tokenizer(text)["input_ids"]
            target_ids = tokenizer(text_target=text)["input_ids"]
            cases.append([text, source_ids, target_ids, tokenizer.decode(target_ids, skip_special_tokens=True)])
    names = {"source_model": source, "target_model": target, "vocab": vocabulary, "target_vocab": target_vocabulary}
    return names | {"config": config, "cases": cases}


def t5_lines(lines):
    chooser = random.Random(SEED)
    for line in lines:
        yield line.replace(" ", chooser.choice([" ", " ", " <extra_id_0> ", "<extra_id_19>", " </s>"]), 1)


def t5_case(models, lines):
    """T5's own special tokens around the class of transformers that is made for SentencePiece models."""
    name = "unigram-nmt_nfkc"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spiece.model"
        path.write_bytes(models[name][1])
        n_pieces = load(models[name][1]).get_piece_size()
        sentinels = {n_pieces + N_SENTINELS - 1 - i: AddedToken(f"<extra_id_{i}>", lstrip=True, rstrip=True, special=True, normalized=False) for i in range(N_SENTINELS)}
        tokenizer = SentencePieceBackend(
            vocab_file=str(path), unk_token="<unk>", eos_token="</s>", pad_token="<pad>", added_tokens_decoder=sentinels, legacy=True
        )
        special = set(sentinels) | {0, 1, 2}
        processor = load(models[name][1])
        cases = []
        for text in t5_lines(lines):
            ids = tokenizer.encode(text, add_special_tokens=False) + [1]
            kept = [tokenizer.convert_ids_to_tokens(id) for id in ids if id not in special]
            cases.append([text, ids, processor.decode_pieces(kept).strip()])
    return {"model": name, "config": {"extra_ids": N_SENTINELS}, "cases": cases}


def library_cases(tokenizer, lines):
    cases = []
    for line in lines:
        encoding = tokenizer.encode(line)
        cases.append([encoding.ids, tokenizer.decode(encoding.ids)])
    return cases


def library_file(tokenizer, rule):
    content = json.loads(tokenizer.to_str())

    def name_rule(part):
        if isinstance(part, dict) and part.get("type") == "Precompiled":
            part["precompiled_charsmap"] = rule
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else []:
            name_rule(inner)

    name_rule(content["normalizer"])
    return content


def t5_library(models, maps, lines):
    """T5Tokenizer as transformers builds it on the library of tokenizers, from the pieces and scores of the model."""
    rule, model = models["unigram-nmt_nfkc"]
    processor = load(model)
    vocabulary = [(processor.id_to_piece(id), processor.get_score(id)) for id in range(processor.get_piece_size())]
    vocabulary += [(f"<extra_id_{i}>", 0.0) for i in range(N_SENTINELS - 1, -1, -1)]
    tokenizer = T5Tokenizer(vocab=vocabulary, extra_ids=N_SENTINELS, _spm_precompiled_charsmap=maps[rule])
    backend = tokenizer.backend_tokenizer
    # What a saved file may carry along, and what must not change a text.
    backend.enable_truncation(5)
    backend.enable_padding(length=64)
    content = library_file(backend, rule)
    backend.no_truncation()
    backend.no_padding()
    lines = list(lines)
    assert all(tokenizer(line)["input_ids"] == backend.encode(line).ids for line in lines[:50])
    return {"rule": rule, "tokenizer": content, "cases": library_cases(backend, lines)}


def bart_library(training, lines):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(training, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return {"rule": None, "tokenizer": library_file(tokenizer, None), "cases": library_cases(tokenizer, lines)}


def nllb_library(maps, training, lines):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(maps["nmt_nfkc"]), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement=MARK, prepend_scheme="always")
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=special, limit_alphabet=250, show_progress=False)
    tokenizer.train_from_iterator(training, trainer)
    tokenizer.add_special_tokens(["eng_Latn", "fra_Latn"])
    code = tokenizer.token_to_id("eng_Latn")
    tokenizer.post_processor = processors.TemplateProcessing(single="eng_Latn $A </s>", special_tokens=[("eng_Latn", code), ("</s>", 2)])
    return {"rule": "nmt_nfkc", "tokenizer": library_file(tokenizer, "nmt_nfkc"), "cases": library_cases(tokenizer, lines)}


# ---- BART's relatives


def family_lines(lines, specials):
    """Lines with special tokens of the tokenizer in some of them."""
    chooser = random.Random(SEED)
    return [line.replace(" ", chooser.choice([" ", " ", " ", f" {chooser.choice(specials)} ", chooser.choice(specials)]), 1) for line in lines[:N_FAMILY_LINES]]


def family_case(models, lines, name):
    """A tokenizer of transformers that is made of a SentencePiece model by moving its ids."""
    model, cls, languages, own = {
        "pegasus": ("unigram-nmt_nfkc", PegasusTokenizer, None, {}),
        "xlm-roberta": ("unigram-nfkc_cf", XLMRobertaTokenizer, None, {}),
        "mbart": ("unigram-nfkc_cf", MBartTokenizer, ["fr_XX", "ro_RO"], {}),
        "mbart50": ("unigram-nfkc_cf", MBart50Tokenizer, ["fr_XX", "sl_SI"], {}),
        "nllb": ("bpe-nmt_nfkc", NllbTokenizer, ["fra_Latn", "zul_Latn"], {}),
        "nllb-legacy": ("bpe-nmt_nfkc", NllbTokenizer, ["ace_Arab", "fra_Latn"], {"legacy_behaviour": True}),
    }[name]
    rule, content = models[model]
    processor = load(content)
    pieces = [(processor.id_to_piece(id), processor.get_score(id)) for id in range(processor.get_piece_size())]
    fairseq = ["<s>", "<pad>", "</s>", "<unk>", *[piece for piece, _ in pieces[3:]]]
    if name == "pegasus":
        ids = numbered(["<pad>", "</s>", "<mask_1>", "<mask_2>", *[f"<unk_{i}>" for i in range(2, 103)], *[piece for piece, _ in pieces[2:]]])
        known = cls(vocab=[(token, 0.0) for token in ids])
        specials = ["<pad>", "</s>", "<unk>", "<mask_1>", "<mask_2>", "<unk_2>", "<unk_102>"]
        files = {"tokenizer_config.json": {"tokenizer_class": cls.__name__}}
    elif name == "xlm-roberta":
        ids = numbered([*fairseq, "<mask>"])
        known = cls(vocab=[(token, 0.0) for token in ids])
        specials = ["<pad>", "</s>", "<s>", "<unk>", "<mask>"]
        files = {"tokenizer_config.json": {"tokenizer_class": cls.__name__}}
    elif name.startswith("mbart"):
        codes = sys.modules[cls.__module__].FAIRSEQ_LANGUAGE_CODES
        ids = numbered([*fairseq, *codes, "<mask>"])
        known = cls(vocab=[(token, 0.0) for token in ids])
        specials = ["<pad>", "</s>", "<s>", "<unk>", "<mask>", "en_XX", codes[-1]]
        files = {"tokenizer_config.json": {"tokenizer_class": cls.__name__ + "Fast"}}
    else:
        codes = sys.modules[cls.__module__].FAIRSEQ_LANGUAGE_CODES
        if name == "nllb-legacy":  # a folder with languages of its own
            codes = ["fra_Latn", "ace_Arab", "eng_Latn"]
        ids = numbered([*fairseq, *codes, "<mask>"])
        known = cls(vocab=dict(ids), extra_special_tokens=codes, **own)
        specials = ["<pad>", "</s>", "<s>", "<unk>", "<mask>", "eng_Latn", codes[0]]
        files = {"config.json": {"model_type": "m2m_100"}, "tokenizer_config.json": own}
        if name == "nllb-legacy":
            files["special_tokens_map.json"] = {"additional_special_tokens": codes}
    assert all(known.convert_tokens_to_ids(token) == id for token, id in ids.items()), name

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spiece.model"
        path.write_bytes(content)
        added = {10_000 + i: AddedToken(token, lstrip=token == "<mask>", special=True, normalized=False) for i, token in enumerate(specials)}
        cutter = SentencePieceBackend(vocab_file=str(path), unk_token="<unk>", eos_token="</s>", pad_token="<pad>", added_tokens_decoder=added, legacy=True)
        source = target = ([ids["<s>"]] if name == "xlm-roberta" else [], [ids["</s>"]])
        if name == "xlm-roberta":  # what its class puts around a text
            assert known("").input_ids == source[0] + source[1]
        if languages:
            known.src_lang = languages[0]
            source = (known.prefix_tokens, known.suffix_tokens)
            code = ids[languages[1]]
            target = ([] if name == "mbart" else [code], [ids["</s>"]])
        cases, special_ids = [], {ids[token] for token in specials}
        for text in family_lines(lines, specials):
            tokens = cutter.tokenize(text)
            cut = [ids.get(token, ids["<unk>"]) for token in tokens]
            kept = [token for token, id in zip(tokens, cut, strict=True) if id not in special_ids]
            cases.append([text, source[0] + cut + source[1], target[0] + cut + target[1], processor.decode_pieces(kept).strip()])
    return {"model": model, "files": files, "languages": languages, "cases": cases}


def m2m100_case(models, lines, name):
    model, codes = "bpe-nmt_nfkc", "wmt21" if name.endswith("wmt21") else "m2m100"
    processor = load(models[model][1])
    shuffler = random.Random(SEED)
    kept = [processor.id_to_piece(id) for id in range(3, processor.get_piece_size()) if shuffler.random() < 0.95]
    shuffler.shuffle(kept)
    vocabulary = numbered(["<s>", "<pad>", "</s>", "<unk>", *kept])
    languages = ["de", "zh"] if codes == "wmt21" else ["fr", "zu"]
    tokens = [f"__{code}__" for code in sys.modules[M2M100Tokenizer.__module__].FAIRSEQ_LANGUAGE_CODES[codes]]
    with tempfile.TemporaryDirectory() as folder:
        vocab, spm_file = Path(folder) / "vocab.json", Path(folder) / "sentencepiece.bpe.model"
        vocab.write_text(json.dumps(vocabulary), encoding="utf-8")
        spm_file.write_bytes(models[model][1])
        tokenizer = M2M100Tokenizer(
            vocab_file=str(vocab), spm_file=str(spm_file), src_lang=languages[0], tgt_lang=languages[1], language_codes=codes, additional_special_tokens=list(tokens)
        )
        cases = []
        for text in family_lines(lines, ["<pad>", "</s>", "<s>", "<unk>", "__en__", tokens[-1]]):
            target = tokenizer(text_target=text)["input_ids"]
            cases.append([text, tokenizer(text)["input_ids"], target, tokenizer.decode(target, skip_special_tokens=True)])
    files = {"vocab.json": vocabulary, "tokenizer_config.json": {"tokenizer_class": "M2M100Tokenizer", "language_codes": codes, "num_madeup_words": 8}}
    return {"model": model, "files": files, "languages": languages, "cases": cases}


class T5Pieces(SentencePieceBackend):
    """T5's, from a folder. T5Tokenizer itself is built on the library of tokenizers, which normalises odd text in other ways."""

    vocab_files_names = {"vocab_file": "spiece.model"}


def added_case(models, lines, name):
    """A folder without added_tokens_decoder in tokenizer_config.json, whose added tokens stand in a file of their own."""
    kind = name.removeprefix("added-")
    special = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        if kind == "marian":
            content = marian_case(models, lines, separate=False)
            for side in ["source", "target"]:
                (folder / f"{side}.spm").write_bytes(models[content[f"{side}_model"]][1])
            (folder / "vocab.json").write_text(json.dumps(content["vocab"]), encoding="utf-8")
            config, first, opener = content["config"], len(content["vocab"]), MarianTokenizer
        elif kind == "t5":
            model = models["unigram-nmt_nfkc"][1]
            (folder / "spiece.model").write_bytes(model)
            config, first, opener = {"extra_ids": 0} | special, load(model).get_piece_size(), T5Pieces
        else:
            content = m2m100_case(models, lines, kind)
            (folder / "sentencepiece.bpe.model").write_bytes(models[content["model"]][1])
            (folder / "vocab.json").write_text(json.dumps(content["files"]["vocab.json"]), encoding="utf-8")
            codes = [f"__{code}__" for code in sys.modules[M2M100Tokenizer.__module__].FAIRSEQ_LANGUAGE_CODES["m2m100"]]
            config = content["files"]["tokenizer_config.json"] | {"src_lang": "fr", "tgt_lang": "zu"}
            first, opener = len(content["files"]["vocab.json"]) + len(codes) + config["num_madeup_words"], M2M100Tokenizer
        added = {"[NEW]": first, "<new2>": first + 1, "bare": first + 2}
        named = [*(codes if kind == "m2m100" else []), "<new2>"]
        files = {"tokenizer_config.json": config, "special_tokens_map.json": {"additional_special_tokens": named}, "added_tokens.json": added}
        for file, content in files.items():
            (folder / file).write_text(json.dumps(content), encoding="utf-8")
        tokenizer = opener.from_pretrained(folder)
        cases = []
        chooser = random.Random(SEED)
        for line in lines[:N_FAMILY_LINES]:
            token = chooser.choice(["", " [NEW] ", "[NEW]", " <new2> ", "<new2>", " bare ", "BARE", "[new]"])
            text = chooser.choice([token + line, line + token, line.replace(" ", token, 1), token + line + token])
            end = [1] if kind == "t5" else []
            source, target = tokenizer(text)["input_ids"] + end, tokenizer(text_target=text)["input_ids"] + end
            cases.append([text, source, target, tokenizer.decode(target, skip_special_tokens=True)])
    return {"kind": kind, "files": files, "languages": ["fr", "zu"] if kind == "m2m100" else None, "cases": cases}


ADDED = ["added-marian", "added-t5", "added-m2m100"]
FAMILY = ["pegasus", "mbart", "mbart50", "nllb", "nllb-legacy", "xlm-roberta"]
M2M100 = ["m2m100", "m2m100-wmt21"]


# ---- files


def write(name, content):
    if not isinstance(content, bytes):
        content = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    with open(HERE / name, "wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9, mtime=0) as packed:
        packed.write(content)


def main(names):
    lines, training = encoded_lines(), training_lines()
    if names:
        assert set(names) <= {*FAMILY, *M2M100, *ADDED}, "of the others all are made together"
        trained = all_models(training, ["unigram-nmt_nfkc", "unigram-nfkc_cf", "bpe-nmt_nfkc"])
        families(trained, lines, names)
        return
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    trained = all_models(training)
    write("lines.json.gz", lines)
    maps = {}
    for name, (rule, model) in trained.items():
        stripped, found = without_map(model)
        assert maps.setdefault(rule, found) == found
        write(name + ".model.gz", stripped)
        write(name + ".json.gz", {"rule": rule, "cases": model_cases(load(model), lines), "random": random_cases(load(model))})
    for rule in sorted(rule for rule in maps if rule):
        write(rule + ".charsmap.gz", by_bytes(maps[rule]))

    write("marian.json.gz", marian_case(trained, lines, separate=False))
    write("marian-separate.json.gz", marian_case(trained, lines, separate=True))
    write("t5.json.gz", t5_case(trained, lines))
    write("t5-tokenizer.json.gz", t5_library(trained, maps, t5_lines(lines)))
    write("bart-tokenizer.json.gz", bart_library(training, lines))
    write("nllb-tokenizer.json.gz", nllb_library(maps, training, lines))
    families(trained, lines, FAMILY + M2M100 + ADDED)
    names = ["sentencepiece", "tokenizers", "transformers"]
    versions = {"python": platform.python_version(), "seed": SEED} | {name: version(name) for name in names}
    (HERE / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


def families(trained, lines, names):
    for name in names:
        case = family_case if name in FAMILY else m2m100_case if name in M2M100 else added_case
        write(name + ".json.gz", case(trained, lines, name))


if __name__ == "__main__":
    main(sys.argv[1:])
