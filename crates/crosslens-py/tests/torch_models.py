"""Tiny random models for the tests: transformers' in folders with a tokenizer, and networks written by hand."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import nn

WORDS = [f"w{number}" for number in range(30)]
PAD, END, UNKNOWN, BEGIN = 0, 1, 2, 3


def tokenizer() -> Any:
    vocabulary = {word: place for place, word in enumerate(["<pad>", "</s>", "<unk>", "<s>", *WORDS])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", END)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", bos_token="<s>"
    )


def seq2seq(family: str) -> Any:
    """A model of a family whose attention is far from uniform."""
    torch.manual_seed({"t5": 1, "bart": 2, "marian": 3}[family])
    n_words = 4 + len(WORDS)
    special = {"pad_token_id": PAD, "eos_token_id": END, "bos_token_id": BEGIN}
    if family == "t5":
        config: Any = transformers.T5Config(
            vocab_size=n_words, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=PAD, **special
        )
        model: Any = transformers.T5ForConditionalGeneration(config)
    else:
        sizes = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
        heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
        start = END if family == "bart" else PAD
        kinds: Any = {
            "bart": (transformers.BartConfig, transformers.BartForConditionalGeneration),
            "marian": (transformers.MarianConfig, transformers.MarianMTModel),
        }
        make_config, make = kinds[family]
        config = make_config(vocab_size=n_words, decoder_start_token_id=start, forced_eos_token_id=None, **sizes, **heads, **special)
        model = make(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2 and "embed_positions" not in name:
                parameter.normal_(0, 0.4)
    return model.eval()


def whisper() -> Any:
    torch.manual_seed(4)
    config = transformers.WhisperConfig(
        vocab_size=40, num_mel_bins=8, d_model=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=12, max_target_positions=20, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    return transformers.WhisperForConditionalGeneration(config).eval()


def listening(folder: Path, n_sounds: int) -> tuple[Any, list[Path], Any]:
    """A Whisper in a folder, some sounds beside it, and what it hears of them. Its words come before its special tokens, as is the custom."""
    torch.manual_seed(13)
    end, begin = len(WORDS), len(WORDS) + 1
    made = Tokenizer(models.WordLevel({name: place for place, name in enumerate([*WORDS, "</s>", "<s>"])}, unk_token="w0"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    config = transformers.WhisperConfig(
        vocab_size=begin + 1, num_mel_bins=80, d_model=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=1500, max_target_positions=20,
        pad_token_id=end, bos_token_id=begin, eos_token_id=end, decoder_start_token_id=begin, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    model: Any = transformers.WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2 and "embed_positions" not in name:
                parameter.normal_(0, 0.4)
    model.save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", bos_token="<s>").save_pretrained(folder)

    paths, waves = [], []
    seconds = torch.arange(16_000 * 2) / 16_000
    for number in range(n_sounds):
        tones = [torch.sin(2 * torch.pi * pitch * (number + 1) * seconds) for pitch in (110, 290, 730)]
        samples = (8_000 * sum(tone * torch.sin((place + 1 + number) * seconds) for place, tone in enumerate(tones))).short().numpy()
        paths.append(folder.parent / f"{number}.wav")
        with wave.open(str(paths[-1]), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16_000)
            file.writeframes(samples.tobytes())
        waves.append(samples / 32_768)
    heard = transformers.WhisperFeatureExtractor()(waves, sampling_rate=16_000, return_tensors="pt").input_features
    return model, paths, heard


def joined(decoder: str) -> Any:
    """A BERT that reads and a BERT or GPT-2 that writes, which the native loader does not open."""
    torch.manual_seed(11)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 64}
    n_words = 4 + len(WORDS)
    cross = {"is_decoder": True, "add_cross_attention": True}
    reads = transformers.BertModel(transformers.BertConfig(vocab_size=n_words, pad_token_id=PAD, **sizes))
    writes: Any
    if decoder == "bert":
        writes = transformers.BertLMHeadModel(transformers.BertConfig(vocab_size=n_words, pad_token_id=PAD, **sizes, **cross))
    else:
        config = transformers.GPT2Config(vocab_size=n_words, n_embd=16, n_layer=2, n_head=2, n_positions=64, **cross)
        writes = transformers.GPT2LMHeadModel(config)
    model: Any = transformers.EncoderDecoderModel(encoder=reads, decoder=writes)
    model.config.decoder_start_token_id, model.config.pad_token_id, model.config.eos_token_id = BEGIN, PAD, END
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2 and "embeddings" not in name and "wpe" not in name:
                parameter.normal_(0, 0.4)
    return model.eval()


def prophet() -> Any:
    """A model whose decoder carries more streams than it has tokens."""
    config = transformers.ProphetNetConfig(
        vocab_size=40, hidden_size=16, encoder_ffn_dim=32, num_encoder_layers=1, num_encoder_attention_heads=2, decoder_ffn_dim=32,
        num_decoder_layers=1, num_decoder_attention_heads=2, max_position_embeddings=64, ngram=2, num_buckets=8, pad_token_id=0,
    )  # fmt: skip
    return transformers.ProphetNetForConditionalGeneration(config).eval()


def long_t5(attention: str) -> Any:
    """A T5 whose encoder looks at blocks of tokens: `local`, or `transient-global` with summaries of all blocks among the keys."""
    torch.manual_seed(12)
    config = transformers.LongT5Config(
        vocab_size=4 + len(WORDS), d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, local_radius=3, global_block_size=4,
        encoder_attention_type=attention, decoder_start_token_id=PAD, pad_token_id=PAD, eos_token_id=END,
    )  # fmt: skip
    return transformers.LongT5ForConditionalGeneration(config).eval()


def save(model: Any, folder: Path) -> None:
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def sentences(n: int) -> tuple[list[str], list[str]]:
    """Sources and targets of different lengths."""
    made = torch.Generator().manual_seed(7)

    def text() -> str:
        length = int(torch.randint(3, 9, (1,), generator=made))
        return " ".join(WORDS[int(word)] for word in torch.randint(0, len(WORDS), (length,), generator=made))

    return [text() for _ in range(n)], [text() for _ in range(n)]


def batches(sources: list[str], targets: list[str], size: int, padding_side: str = "right") -> list[dict[str, Any]]:
    made = []
    for first in range(0, len(sources), size):
        given, wanted = tokenizer(), tokenizer()
        given.padding_side = padding_side
        batch = dict(given(sources[first : first + size], return_tensors="pt", padding=True, return_token_type_ids=False))
        labels = wanted(targets[first : first + size], return_tensors="pt", padding=True)["input_ids"]
        batch["labels"] = labels.masked_fill(labels == PAD, -100)
        made.append(batch)
    return made


class HandWritten(nn.Module):
    """Two recurrent layers and `nn.MultiheadAttention` between them; time first, as PyTorch has it by default."""

    def __init__(self, n_words: int = 20, d: int = 12, n_heads: int = 3) -> None:
        super().__init__()
        self.words = nn.Embedding(n_words, d)
        self.reads, self.writes = nn.GRU(d, d), nn.GRU(d, d)
        self.attention = nn.MultiheadAttention(d, n_heads)
        self.readout = nn.Linear(2 * d, n_words)

    def forward(self, source: torch.Tensor, target: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states, last = self.reads(self.words(source.t()))
        queries, _ = self.writes(self.words(target.t()), last)
        padding = torch.arange(source.shape[1])[None] >= lengths[:, None]
        context, _ = self.attention(queries, states, states, key_padding_mask=padding)
        made: torch.Tensor = self.readout(torch.cat([queries, context], -1)).transpose(0, 1)
        return made


class Leaning(HandWritten):
    """Attention that leans to what is near, by a mask of numbers that `nn.MultiheadAttention` adds to its scores; padding is not masked."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, source: torch.Tensor, target: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states, last = self.reads(self.words(source.t()))
        queries, _ = self.writes(self.words(target.t()), last)
        distances = (torch.arange(target.shape[1])[:, None] - torch.arange(source.shape[1])[None]).abs().float()
        made: torch.Tensor = self.attention(queries, states, states, attn_mask=-self.by * distances)[0]
        return made


class Apart(HandWritten):
    """Values of other states than the keys', of `d_value` dimensions."""

    def __init__(self, d_value: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(12, 3, kdim=12, vdim=d_value)
        self.d_value = d_value
        self.weights = torch.zeros(0)
        """What it looked at, `[sentence, query, key]`: the mean of its heads."""

    def forward(self, source: torch.Tensor, target: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states, last = self.reads(self.words(source.t()))
        queries, _ = self.writes(self.words(target.t()), last)
        made: torch.Tensor
        made, self.weights = self.attention(queries, states, self.words(source.t())[..., : self.d_value])
        return made


class Transformer(nn.Module):
    """`nn.Transformer` with learned positions."""

    def __init__(self, n_words: int = 20, d: int = 16) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(n_words, d), nn.Embedding(32, d)
        self.transformer = nn.Transformer(d, 2, 2, 2, 32, batch_first=True)

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = 3 * self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        return made

    def forward(self, source: torch.Tensor, target: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        padding = torch.arange(source.shape[1])[None] >= lengths[:, None]
        mask = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        made: torch.Tensor = self.transformer(
            self.embed(source), self.embed(target), tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding
        )
        return made


class Turning(HandWritten):
    """Attention that turns its queries by their position before it compares them, or, for comparison, does not; padding is not masked."""

    class Attention(nn.Module):
        def __init__(self, d: int, turns: bool) -> None:
            super().__init__()
            self.num_heads, self.turns = 1, turns
            self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

        def forward(self, queries: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
            by = torch.cos(torch.arange(queries.shape[1]))[None, :, None] if self.turns else 1.0
            made: torch.Tensor = self.o((self.q(queries) * by @ self.k(states).transpose(1, 2)).softmax(-1) @ self.v(states))
            return made

    def __init__(self, turns: bool, n_calls: int = 1) -> None:
        super().__init__()
        self.attention = Turning.Attention(12, turns)
        self.n_calls = n_calls

    def forward(self, source: torch.Tensor, target: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.words(target)
        for _ in range(self.n_calls):
            made = self.attention(made, self.words(source))
        return made


class Rotary(Turning):
    """Attention whose queries and keys are both turned by their positions, two dimensions at a time, as RoFormer has it."""

    class Attention(Turning.Attention):
        def forward(self, queries: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
            scores = turned(self.q(queries)) @ turned(self.k(states)).transpose(1, 2)
            made: torch.Tensor = self.o(scores.softmax(-1) @ self.v(states))
            return made

    def __init__(self) -> None:
        super().__init__(True)
        self.attention = Rotary.Attention(12, True)


def turned(states: torch.Tensor) -> torch.Tensor:
    """`[sentence, step, d]`, dimensions `i` and `i + d/2` turned by `step / 10000^(2i/d)`."""
    half = states.shape[-1] // 2
    angles = torch.arange(states.shape[1])[:, None] / 10_000 ** (torch.arange(half) / half)[None]
    a, b = states[..., :half], states[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)
