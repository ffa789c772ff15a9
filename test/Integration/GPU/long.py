#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""One head over one very long sequence: the kernel's extra device memory, and
sampled rows against float64. PyTorch."""

import json
import pathlib

ROWS = 64  # sampled
# What the driver may take for a module besides the results.
EXTRA_LIMIT = 64 << 20


def run_long(options):
    import attn
    import torch

    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        return 77
    attn.use_library(options.lib)
    rows = [measure(options, torch, attn, dim) for dim in (64, 128)]
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return 1 if any(row["failures"] for row in rows) else 0


def measure(options, torch, attn, dim):
    length = options.long
    text = attn.attention("bf16", dim, variants=["causal"])
    artifact = attn.compile(text, plan=options.plan or None)
    torch.manual_seed(options.seed)
    shape = (1, 1, length, dim)
    q, k, v = (torch.randn(shape, device="cuda").bfloat16() for _ in range(3))
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.mem_get_info()[0]
    o = torch.full_like(q, float("nan"))
    lse = torch.full(shape[:3], float("nan"), device="cuda")
    torch.cuda.synchronize()
    results = before - torch.cuda.mem_get_info()[0]
    kernel = artifact.on_device()
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    kernel.launch(q, k, v, o, lse)
    start.record()
    kernel.launch(q, k, v, o, lse)
    stop.record()
    torch.cuda.synchronize()
    extra = before - torch.cuda.mem_get_info()[0] - results
    sample = torch.linspace(0, length - 1, ROWS, device="cuda").long()
    x = q[0, 0, sample].double() @ k[0, 0].double().T * dim**-0.5
    x = x.masked_fill(torch.arange(length, device="cuda") > sample[:, None], float("-inf"))
    exact = torch.softmax(x, dim=1) @ v[0, 0].double()
    error = float((o[0, 0, sample].double() - exact).abs().max())
    error_lse = float((lse[0, 0, sample].double() - torch.logsumexp(x, dim=1)).abs().max())
    # The first row is one value; longer rows average, so half an ulp of 1 is
    # the largest rounding of a result.
    failures = []
    if not error <= 2 * 2.0**-6:
        failures.append(f"e(o) {error:.3g} on {ROWS} rows")
    if not error_lse <= 1e-4:
        failures.append(f"lse error {error_lse:.3g}")
    if extra > EXTRA_LIMIT:
        failures.append(f"{extra} bytes of device memory besides the results")
    milliseconds = start.elapsed_time(stop)
    row = {
        "length": length,
        "dim": dim,
        "plan": artifact.manifest["plan"],
        "result_bytes": results,
        "extra_bytes": extra,
        "e_o": error,
        "e_lse": error_lse,
        "milliseconds": milliseconds,
        "tflops": 2 * length * length * dim / milliseconds / 1e9,
        "failures": failures,
    }
    print(json.dumps(row), flush=True)
    return row
