#!/usr/bin/env python3
"""PyTorch's side of the translation benchmark: a GRU encoder-decoder with Bahdanau's attention.

    translation_peers.py train|decode THREADS

512 units, embeddings of 512, 8,000 words on each side, batches of 64 sentences, 15 source and 15 target tokens. `train` makes Adam steps,
teacher-forced; `decode` writes 15 tokens for each sentence, the likeliest at every step. What can be computed for all steps at once is:
the encoder, the keys, the readout while training. A step is a batch, so words a second are 960 times the steps.

Protocol, shared with `crosslens-bench translation`: after warming up one JSON line {"ready": true, …}; then for every line `go SECONDS` on
standard input as many steps as fit, and one JSON line {"steps_per_second": x, "peak_rss_mb": y, "loss": z}.
"""
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

HIDDEN, EMBEDDING, WORDS, SENTENCES, STEPS, N_BATCHES = 512, 512, 8000, 64, 15, 8


class Bahdanau(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_source, self.embed_target = nn.Embedding(WORDS, EMBEDDING), nn.Embedding(WORDS + 1, EMBEDDING)
        self.encoder = nn.GRU(EMBEDDING, HIDDEN, bidirectional=True)
        self.bridge = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.query, self.key = nn.Linear(HIDDEN, HIDDEN, bias=False), nn.Linear(2 * HIDDEN, HIDDEN)
        self.vector = nn.Linear(HIDDEN, 1, bias=False)
        self.cell = nn.GRUCell(EMBEDDING + 2 * HIDDEN, HIDDEN)
        self.readout = nn.Linear(3 * HIDDEN, WORDS)

    def encode(self, source):
        encoded, last = self.encoder(self.embed_source(source))
        states = encoded.transpose(0, 1)
        return states, self.key(states), torch.tanh(self.bridge(last[1]))

    def step(self, embedded, state, states, keys):
        scores = self.vector(torch.tanh(self.query(state)[:, None] + keys)).squeeze(-1)
        context = torch.bmm(torch.softmax(scores, -1)[:, None], states).squeeze(1)
        state = self.cell(torch.cat([embedded, context], -1), state)
        return state, torch.cat([state, context], -1)

    def loss(self, source, target):
        states, keys, state = self.encode(source)
        start = torch.full((1, SENTENCES), WORDS)
        embedded = self.embed_target(torch.cat([start, target[:-1]]))
        outputs = []
        for row in embedded:
            state, output = self.step(row, state, states, keys)
            outputs.append(output)
        return F.cross_entropy(self.readout(torch.stack(outputs)).reshape(-1, WORDS), target.reshape(-1))

    def write(self, source):
        states, keys, state = self.encode(source)
        token, total = torch.full((SENTENCES,), WORDS), torch.zeros(SENTENCES)
        for _ in range(STEPS):
            state, output = self.step(self.embed_target(token), state, states, keys)
            highest, token = torch.log_softmax(self.readout(output), -1).max(-1)
            total = total + highest
        return total


def peak_rss_mb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def main():
    what, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = Bahdanau()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    generator = torch.Generator().manual_seed(0)
    draw = lambda: torch.randint(0, WORDS, (STEPS, SENTENCES), generator=generator)
    data = [(draw(), draw()) for _ in range(N_BATCHES)]

    def train(number):
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(*data[number % N_BATCHES])
        loss.backward()
        optimizer.step()
        return loss.item()

    @torch.inference_mode()
    def decode(number):
        return model.write(data[number % N_BATCHES][0])[0].item()

    step = {"train": train, "decode": decode}[what]
    losses = [step(number) for number in range(4)]
    print(json.dumps({"ready": True, "name": f"torch {torch.__version__}", "losses": losses}), flush=True)
    number = 4
    for line in sys.stdin:
        seconds = float(line.split()[1])
        for _ in range(2):
            step(number)
            number += 1
        n_steps, start = 0, time.perf_counter()
        while True:
            loss = step(number)
            number, n_steps = number + 1, n_steps + 1
            elapsed = time.perf_counter() - start
            if elapsed > seconds:
                break
        print(json.dumps({"steps_per_second": n_steps / elapsed, "peak_rss_mb": peak_rss_mb(), "loss": loss}), flush=True)


if __name__ == "__main__":
    main()
