#!/usr/bin/env python3
"""Tokens per second of the model of recipes/throughput.toml in plain PyTorch: the same shapes, optimiser, clipping and
precision, on random ids. Prints the median of the steps after the warm-up. bench/train_speed.sh compares.
"""
import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


class RmsNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        x32 = x.float()
        return x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Block(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.a = a
        self.norm, self.ffn_norm = RmsNorm(a.width), RmsNorm(a.width)
        self.q = nn.Linear(a.width, a.heads * a.head_dim, bias=False)
        self.k = nn.Linear(a.width, a.kv_heads * a.head_dim, bias=False)
        self.v = nn.Linear(a.width, a.kv_heads * a.head_dim, bias=False)
        self.o = nn.Linear(a.heads * a.head_dim, a.width, bias=False)
        self.q_norm, self.k_norm = RmsNorm(a.head_dim), RmsNorm(a.head_dim)
        self.gate, self.up = (nn.Linear(a.width, a.ffn_width, bias=False) for _ in range(2))
        self.down = nn.Linear(a.ffn_width, a.width, bias=False)

    def forward(self, x, cos, sin):
        a, (B, T, _) = self.a, x.shape
        y = self.norm(x)
        q = rotate(self.q_norm(self.q(y).view(B, T, a.heads, -1)).transpose(1, 2), cos, sin)
        k = rotate(self.k_norm(self.k(y).view(B, T, a.kv_heads, -1)).transpose(1, 2), cos, sin)
        v = self.v(y).view(B, T, a.kv_heads, -1).transpose(1, 2)
        k, v = (t.repeat_interleave(a.heads // a.kv_heads, 1).to(v.dtype) for t in (k, v))
        y = F.scaled_dot_product_attention(q.to(v.dtype), k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(B, T, -1))
        y = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embed = nn.Embedding(a.vocabulary, a.width)
        self.blocks = nn.ModuleList(Block(a) for _ in range(a.blocks))
        self.norm, self.head = RmsNorm(a.width), nn.Linear(a.width, a.vocabulary, bias=False)
        frequency = 1e4 ** (-torch.arange(0, a.head_dim, 2).double() / a.head_dim)
        angle = torch.arange(a.tokens).double()[:, None] * frequency
        self.register_buffer("cos", angle.cos().float())
        self.register_buffer("sin", angle.sin().float())

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.head(self.norm(x)).float()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    for name, value in dict(vocabulary=12288, width=768, blocks=12, heads=12, kv_heads=4, head_dim=64, ffn_width=2048,
                            tokens=1024, batch=16, steps=60, warmup=10, threads=0).items():
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--device", default="cuda")
    p.add_argument("--precision", choices=["bf16", "f32"], default="bf16")
    a = p.parse_args()
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high" if a.precision == "bf16" else "highest")
    model = Model(a).to(a.device)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    adam = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                             lr=3e-4, betas=(0.9, 0.95))
    ids = torch.randint(a.vocabulary, (a.steps, a.batch, a.tokens + 1))
    speeds = []
    for step in range(a.steps):
        start = time.perf_counter()
        rows = ids[step].to(a.device)
        adam.zero_grad(set_to_none=True)
        with torch.autocast(a.device.split(":")[0], torch.bfloat16, enabled=a.precision == "bf16"):
            logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        loss.item()
        if step >= a.warmup:
            speeds.append(a.batch * a.tokens / (time.perf_counter() - start))
    print(f"{statistics.median(speeds):.0f}")


if __name__ == "__main__":
    main()
