#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
# %% [markdown]
"""A small T5 learns by a relative bias, with attn_implementation="attn" and "eager".

The task is to name the token that stands three places before each token. T5 knows nothing
of positions but its table of biases, a number for each head and distance that is added to
the scores: without gradients of the table the loss stays near log(32) = 3.47. Both
implementations begin with the same weights and see the same tokens; their losses go into
a table and a plot, and have to agree.

    train_relative_bias.py                       ten seconds of one core
    train_relative_bias.py --device cuda --dtype bfloat16 --length 512 --plot losses.png

It wants torch and transformers; the plot is drawn by matplotlib where that is installed,
else it has to be an SVG file. The cells (# %%) run in an editor or in Jupyter, too. Exit
status: 0, the curves agree; 1, they do not, or nothing was learned; 2, a wrong option.
"""

# %% Options
import argparse
import copy
import pathlib
import sys
import time
import warnings

PLACES, TOKENS = 3, 32
NAMES = ("eager", "attn")

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--length", type=int, default=64, help="tokens of a sequence (default: 64)")
parser.add_argument("--rate", type=float, default=1e-2, help="learning rate of Adam, of the table ten times that "
                    "(default: 0.01)")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--device", default="", help="cpu or cuda (default: a GPU, if there is one)")
parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
parser.add_argument("--tolerance", type=float, help="how far losses may be apart, absolutely "
                    "(default: 0.002 in float32, 0.1 in bfloat16)")
parser.add_argument("--plot", default="losses.svg", help="where the plot goes; '' for none (default: losses.svg)")
parser.add_argument("--lib", help="the libattn.so to use (default: the one of the package)")
options = parser.parse_args([] if "ipykernel" in sys.modules else None)
for name in ("steps", "batch"):
    if getattr(options, name) < 1:
        parser.error(f"--{name}: wanted 1 or more, got {getattr(options, name)}")
if options.length <= PLACES:
    parser.error(f"--length: wanted more than {PLACES}, got {options.length}")

import torch  # noqa: E402
from transformers import AutoModelForTokenClassification, T5Config  # noqa: E402

import attn  # noqa: E402
import attn.transformers  # noqa: E402

if options.lib:
    attn.use_library(options.lib)
try:
    import matplotlib
except ImportError:
    matplotlib = None
kinds = (".svg", ".png") if matplotlib else (".svg",)
if options.plot and not options.plot.endswith(kinds):
    parser.error(f"--plot: wanted a name that ends with {' or '.join(kinds)} (.png wants matplotlib), "
                 f"got {options.plot!r}")
device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
dtype = getattr(torch, options.dtype)
tolerance = options.tolerance if options.tolerance is not None else 0.002 if dtype == torch.float32 else 0.1

# %% The model, once for each implementation, with the same weights
attn.transformers.register()
# What no kernel can hold would be computed by PyTorch with a warning: here it is an error.
warnings.filterwarnings("error", message="attn.transformers: attention by PyTorch's operations")

torch.manual_seed(options.seed)
config = T5Config(
    vocab_size=TOKENS, num_labels=TOKENS, d_model=64, d_kv=16, num_heads=4, d_ff=128, num_layers=2,
    relative_attention_num_buckets=32, relative_attention_max_distance=64, dropout_rate=0.0,
    initializer_factor=0.1)
first = AutoModelForTokenClassification.from_config(config, attn_implementation=NAMES[0])
models = {NAMES[0]: first, NAMES[1]: copy.deepcopy(first)}
models[NAMES[1]].set_attn_implementation(NAMES[1])


def table_of(model):
    """(buckets, heads): the learned bias, which all layers share."""
    return model.transformer.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight


# %% Training
def batches():
    """(tokens, labels) of each step."""
    generator = torch.Generator().manual_seed(options.seed)
    for _ in range(options.steps):
        tokens = torch.randint(TOKENS, (options.batch, options.length), generator=generator)
        labels = tokens.roll(PLACES, 1)
        labels[:, :PLACES] = -100  # nothing stands there
        yield tokens.to(device), labels.to(device)


def train(model):
    """(losses, the gradient of the table at the first step, seconds)"""
    model.to(device, dtype).train()
    table = table_of(model)
    others = [parameter for parameter in model.parameters() if parameter is not table]
    optimizer = torch.optim.Adam([{"params": others}, {"params": [table], "lr": 10 * options.rate}], lr=options.rate)
    losses, gradient, start = [], None, time.perf_counter()
    for tokens, labels in batches():
        loss = model(input_ids=tokens, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        if gradient is None:
            gradient = (torch.zeros_like(table) if table.grad is None else table.grad).float().cpu()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses], gradient, time.perf_counter() - start


losses, gradients, before = {}, {}, table_of(first).detach().float().clone()
for name, model in models.items():
    losses[name], gradients[name], seconds = train(model)
    moved = (table_of(model).detach().float().cpu() - before).abs().max()
    print(f"{name:5}  {options.steps} steps in {seconds:.1f} s on {device}, {options.dtype}; "
          f"the table of biases moved by up to {moved:.2f}")

# %% The losses
print(f"\n{'step':>5} " + " ".join(f"{name:>9}" for name in NAMES) + "  difference")
rows = range(0, options.steps, max(1, options.steps // 12))
for step in sorted({*rows, options.steps - 1}):
    one, other = (losses[name][step] for name in NAMES)
    print(f"{step:5} {one:9.5f} {other:9.5f}  {abs(one - other):10.6f}")


# %% The plot
def draw_svg(path):
    """The curves as an SVG file, without any library."""
    width, height, edge = 640, 400, 48
    highest = max(max(curve) for curve in losses.values()) * 1.05

    def place(step, loss):
        x = edge + (width - 2 * edge) * step / max(1, options.steps - 1)
        return f"{x:.1f},{height - edge - (height - 2 * edge) * loss / highest:.1f}"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<path d="M{place(0, highest)} L{place(0, 0)} L{place(max(1, options.steps - 1), 0)}" fill="none" '
             'stroke="black"/>']
    for number in range(int(highest) + 1):
        x, y = place(0, number).split(",")
        parts.append(f'<text x="{float(x) - 8:.1f}" y="{float(y) + 4:.1f}" text-anchor="end">{number}</text>')
    looks = {"eager": 'stroke="#bbbbbb" stroke-width="6"', "attn": 'stroke="#c03020" stroke-width="1.5"'}
    for number, name in enumerate(NAMES):
        points = " ".join(place(step, loss) for step, loss in enumerate(losses[name]))
        parts += [f'<polyline points="{points}" fill="none" {looks[name]}/>',
                  f'<line x1="{width - 150}" x2="{width - 120}" y1="{40 + 20 * number}" y2="{40 + 20 * number}" '
                  f'{looks[name]}/>', f'<text x="{width - 112}" y="{44 + 20 * number}">{name}</text>']
    parts += [f'<text x="{width // 2}" y="{height - 12}" text-anchor="middle">step</text>',
              f'<text x="{edge}" y="{edge - 16}">loss</text>', "</svg>\n"]
    pathlib.Path(path).write_text("\n".join(parts))


def draw(path):
    if not matplotlib:
        return draw_svg(path)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    axes.plot(losses["eager"], color="#bbbbbb", linewidth=6, label="eager")
    axes.plot(losses["attn"], color="#c03020", linewidth=1.5, label="attn")
    axes.set(xlabel="step", ylabel="loss", ylim=(0, None))
    axes.legend()
    figure.savefig(path)


if options.plot:
    draw(options.plot)
    print(f"\nthe curves are in {options.plot}")

# %% Do they agree?
apart = max(abs(one - other) for one, other in zip(*losses.values()))
scale = gradients["eager"].abs().max().item()
gradient_apart = (gradients["attn"] - gradients["eager"]).abs().max().item() / (scale or 1)
learned = scale > 0 and (losses["eager"][-1] < losses["eager"][0] or options.steps == 1)
gradient_tolerance = 1e-4 if dtype == torch.float32 else 0.05
print(f"losses are {apart:.2g} apart at most (allowed: {tolerance:g}), the first gradients of the table "
      f"{gradient_apart:.2g} of the largest element (allowed: {gradient_tolerance:g})")
if not (apart <= tolerance and gradient_apart <= gradient_tolerance and learned):
    raise SystemExit("they do not agree" if learned else "nothing was learned")
print("they agree")
