#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What only large tensors show; sampled rows against float64. PyTorch.

run_long: one head over one very long sequence, and the kernel's extra device
memory; with options.backward its gradients, in both forms. run_huge: tensors of more than 2^31 elements, by keys, by queries and by
the stride of the batch."""

import json

import results
from gpu import SKIP, find_torch, plan_of

ROWS = 64  # sampled
# As bench.py has them.
FORMS = {"two programs": None, "sums": "deterministic = false"}
# What the driver may take for a module besides the results.
EXTRA_LIMIT = 64 << 20


def run_long(options):
    if options.backward:
        return run("Gradients of one very long sequence: sampled rows, memory", options,
                   lambda *modules: [train(options, *modules, dim, numerics)
                                     for dim in (64, 128) for numerics in FORMS.values()])
    return run("One very long sequence: sampled rows, memory", options,
               lambda *modules: [measure(options, *modules, dim) for dim in (64, 128)])


def run_huge(options):
    huge = (1 << 24) + 3  # times 128 elements: just above 2^31
    shapes = [(1, 16, huge, 0), (1, huge, 16, 0), (2, 33, 65, 1 << 31)]
    return run("Tensors of more than 2^31 elements: sampled rows", options,
               lambda *modules: [address(options, *modules, *shape) for shape in shapes])


def run(what, options, measure_all):
    torch = find_torch()
    if torch is None:
        return SKIP
    import attn

    attn.use_library(options.lib)
    rows = measure_all(torch, attn)
    if options.json:
        document = {"what": what, "command": results.command(), "cases": results.table(rows)}
        results.write(options.json, document)
    return 1 if any(row["failures"] for row in rows) else 0


def measure(options, torch, attn, dim):
    length = options.long
    text = attn.attention("bf16", dim, variants=["causal"])
    artifact = attn.compile(text, target=options.target, plan=options.plan or None)
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
        "plan": plan_of(kernel, q, k, v, o, lse),
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


def train(options, torch, attn, dim, numerics):
    """Forward and gradients of causal attention."""
    length = options.long
    text = attn.attention("bf16", dim, variants=["causal"], numerics=numerics)
    forward = attn.compile(text, target=options.target, with_backward=True)
    kernel, backward = forward.on_device(), forward.backward.on_device()
    torch.manual_seed(options.seed)
    q, k, v, d_o = (torch.randn(1, 1, length, dim, device="cuda").bfloat16() for _ in range(4))
    o, d_q, d_k, d_v = (torch.full_like(q, float("nan")) for _ in range(4))
    lse = torch.full(q.shape[:3], float("nan"), device="cuda")
    kernel.launch(q, k, v, o, lse)
    values = q, k, v, o, lse, d_o, d_q, d_k, d_v
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    backward.launch(*values)
    start.record()
    backward.launch(*values)
    stop.record()
    torch.cuda.synchronize()
    exact = sample_gradients(torch, *(tensor[0, 0] for tensor in (q, k, v, o, lse, d_o)))
    failures, errors = [], {}
    for name, got in (("d_q", d_q), ("d_k", d_k), ("d_v", d_v)):
        sample, wanted = exact[name]
        error = (got[0, 0, sample].double() - wanted).abs().max() / wanted.abs().max()
        errors[name] = float(torch.nan_to_num(error, nan=float("inf")))
        if not errors[name] <= 2.0**-6:
            failures.append(f"{name} differs by {errors[name]:.3g} of its largest element")
    workspace = backward.workspace_bytes(*values)
    # One tile's rows more than the tensor, in f32, and two numbers for each row.
    if workspace > 4 * (length + 256) * (dim + 4):
        failures.append(f"{workspace} bytes of workspace")
    milliseconds = start.elapsed_time(stop)
    row = {"length": length, "dim": dim, "sums": bool(numerics), "workspace_bytes": workspace,
           **errors, "milliseconds": milliseconds,
           "tflops": 5 * length * length * dim / milliseconds / 1e9, "failures": failures}
    print(json.dumps(row), flush=True)
    return row


def sample_gradients(torch, q, k, v, o, lse, d_o):
    """{name: (numbers of rows, these rows in float64)}"""
    length, scale = q.shape[0], q.shape[1] ** -0.5
    rows = torch.linspace(0, length - 1, ROWS, device="cuda").long()
    order = torch.arange(length, device="cuda")
    delta = torch.cat([(part.double() * other.double()).sum(1)
                       for part, other in zip(d_o.split(1 << 18), o.split(1 << 18))])

    def weights(some, all_keys):
        """of the queries `some` for the keys `all_keys`, and of these the gradients of scores"""
        x = q[some].double() @ k[all_keys].double().T * scale
        p = (x - lse[some, None].double()).exp()
        p = p.masked_fill(order[all_keys] > order[some][:, None], 0)
        return p, p * (d_o[some].double() @ v[all_keys].double().T - delta[some, None])

    d_k = d_v = 0
    for queries in order.split(1 << 16):
        p, d_s = weights(queries, rows)
        d_v = d_v + p.T @ d_o[queries].double()
        d_k = d_k + d_s.T @ q[queries].double() * scale
    d_q = sum(weights(rows, keys)[1] @ k[keys].double() * scale for keys in order.split(1 << 16))
    return {"d_q": (rows, d_q), "d_k": (rows, d_k), "d_v": (rows, d_v)}


def address(options, torch, attn, batch, queries, keys, gap):
    """Attention of `queries` x `keys`, batch entries `gap` elements apart."""
    dim = 128
    torch.manual_seed(options.seed)

    def make(length):
        stride = max(gap, length * dim)
        storage = torch.empty((batch - 1) * stride + length * dim, device="cuda", dtype=torch.bfloat16)
        tensor = storage.as_strided((batch, 1, length, dim), (stride, length * dim, dim, 1))
        for start in range(0, length, 1 << 20):
            tensor[:, :, start : start + (1 << 20)].normal_()
        return tensor

    q, k, v, o = make(queries), make(keys), make(keys), make(queries)
    lse = torch.full((batch, 1, queries), float("nan"), device="cuda")
    kernel = attn.compile(
        attn.attention("bf16", dim), target=options.target, plan=options.plan or None
    ).on_device()
    kernel.launch(q, k, v, o, lse)
    kernel.synchronize()
    sample = torch.cat([torch.arange(8), torch.arange(queries - 8, queries)]).cuda()
    error = error_lse = 0.0
    step = 1 << 20
    for b in range(batch):
        rows = q[b, 0, sample].double()
        parts = range(0, keys, step)
        x = torch.cat([rows @ k[b, 0, at : at + step].double().T for at in parts], dim=1)
        x *= dim**-0.5
        p = torch.softmax(x, dim=1)
        exact = sum(p[:, at : at + step] @ v[b, 0, at : at + step].double() for at in parts)
        difference = (o[b, 0, sample].double() - exact).abs().max()
        error = max(error, float(torch.nan_to_num(difference, nan=float("inf"))))
        difference = (lse[b, 0, sample].double() - torch.logsumexp(x, dim=1)).abs().max()
        error_lse = max(error_lse, float(torch.nan_to_num(difference, nan=float("inf"))))
    failures = []
    if not error <= 2.0**-6:
        failures.append(f"e(o) {error:.3g}")
    if not error_lse <= 1e-4:
        failures.append(f"lse error {error_lse:.3g}")
    row = {"batch": batch, "queries": queries, "keys": keys, "gap": gap}
    row.update(e_o=error, e_lse=error_lse, failures=failures)
    print(json.dumps(row), flush=True)
    return row
