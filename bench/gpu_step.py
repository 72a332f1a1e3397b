# SPDX-License-Identifier: GPL-2.0-or-later
"""What live mode adds to a step on a GPU, for bench/gpu: one worker, DistributedDataParallel over
NCCL, a Transformer in bfloat16.

    gpu_step.py GPUS

In turns of TURN steps it trains without live mode, with it, and without it again. Prints the
median of the quotients of neighbouring turns, and their spread:

    plain SECONDS live RATIO [LEAST-MOST] again RATIO [LEAST-MOST]
"""

import statistics
import sys
import time

gpus = int(sys.argv[1])

import torch  # noqa: E402
from slurm_elastic import live  # noqa: E402

ROUNDS, TURN = (12, 20) if gpus else (2, 2)
LAYERS, WIDTH, LENGTH, BATCH = (12, 768, 512, 32) if gpus else (2, 64, 32, 4)

device = "cuda" if gpus else "cpu"
layer = torch.nn.TransformerEncoderLayer(WIDTH, WIDTH // 64, 4 * WIDTH, 0.0, batch_first=True)
model = torch.nn.TransformerEncoder(layer, LAYERS).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=bool(gpus))
x = torch.randn(BATCH, LENGTH, WIDTH, device=device)
state = live.State(model, optimizer)


def backward(model):
    with torch.autocast(device, torch.bfloat16):
        loss = model(x).square().mean()
    loss.backward()


def plain(state):
    backward(state.ddp)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def elastic(state):
    backward(state.ddp)
    state.step()


def seconds(step, state):
    """Of a step, in a turn of them."""
    stepping = state._progress._stepping
    confirm = stepping.confirm
    if step is plain:
        stepping.confirm = None
    begun = time.perf_counter()
    for _ in range(TURN):
        step(state)
        stepping.begin()
    if gpus:
        torch.cuda.synchronize()
    stepping.confirm = confirm
    return (time.perf_counter() - begun) / TURN


def spread(ratios):
    return f"{statistics.median(ratios):.4f} [{min(ratios):.4f}-{max(ratios):.4f}]"


def train(state):
    for step in (plain, elastic):
        seconds(step, state)  # warm
    turns = [[seconds(step, state) for step in (plain, elastic, plain)] for _ in range(ROUNDS)]
    live_ratios = [2 * live / (before + after) for before, live, after in turns]
    again_ratios = [after / before for before, _, after in turns]
    typical = statistics.median(turn[0] for turn in turns)
    print(
        f"plain {typical:.5f} live {spread(live_ratios)} again {spread(again_ratios)}", flush=True
    )


live.run(train, state)
