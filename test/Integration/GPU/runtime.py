#!/usr/bin/env python3
#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What the runtime promises, on a GPU: streams, threads, empty tensors, and
refusals that leave the context usable.

    runtime.py --lib build/lib/libattn.so

Exit code 0: all as promised; 1: not; 77: no GPU.
"""

import argparse
import pathlib
import sys
import threading
import warnings

from gpu import SKIP, find_torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))


class Checks:
    def __init__(self, attn, torch, target):
        self.attn, self.torch = attn, torch
        text = attn.attention("bf16", 64, variants=["causal"])
        self.artifact = attn.compile(text, target=target)
        self.kernel = self.artifact.on_device()

    def tensors(self, queries=100, keys=120, batch=2):
        torch = self.torch
        q = torch.randn(batch, 4, queries, 64, device="cuda").bfloat16()
        k, v = (torch.randn(batch, 2, keys, 64, device="cuda").bfloat16() for _ in range(2))
        o = torch.full_like(q, float("nan"))
        lse = torch.full((batch, 4, queries), float("nan"), device="cuda")
        return q, k, v, o, lse

    def expect_right(self, q, k, v, o, lse):
        torch = self.torch
        k, v = (x.repeat_interleave(2, dim=1).float() for x in (k, v))
        x = q.float() @ k.transpose(2, 3) / 8
        shape = x.shape[-2:]
        seen = torch.ones(shape, device="cuda").tril(shape[1] - shape[0]).bool()
        x = x.masked_fill(~seen, float("-inf"))
        assert (o.float() - torch.softmax(x, dim=-1) @ v).abs().max() < 0.05
        assert (lse - torch.logsumexp(x, dim=-1)).abs().max() < 1e-3

    def expect_refused(self, values, *words):
        try:
            self.kernel.launch(*values)
        except self.attn.AttnError as error:
            missing = [word for word in words if word not in str(error)]
            assert not missing, f"'{error}' does not say {missing}"
        else:
            raise AssertionError(f"not refused: {words}")

    def check_default_stream(self):
        values = self.tensors()
        self.kernel.launch(*values)
        self.expect_right(*values)

    def check_other_stream(self):
        values = self.tensors()
        stream = self.torch.cuda.Stream()
        stream.wait_stream(self.torch.cuda.current_stream())
        self.kernel.launch(*values, stream=stream)
        stream.synchronize()
        self.expect_right(*values)

    def check_current_stream_of_torch(self):
        stream = self.torch.cuda.Stream()
        with self.torch.cuda.stream(stream):
            values = self.tensors()
            self.kernel.launch(*values)
            stream.synchronize()
        self.expect_right(*values)

    def check_graph(self):
        values = self.tensors()
        graph = self.torch.cuda.CUDAGraph()
        self.torch.cuda.synchronize()
        with self.torch.cuda.graph(graph):
            self.kernel.launch(*values)
        values[3].fill_(float("nan"))
        graph.replay()
        self.torch.cuda.synchronize()
        self.expect_right(*values)

    def check_threads(self):
        """Threads without a CUDA context of their own share the kernel."""
        batches = [self.tensors() for _ in range(4)]
        self.torch.cuda.synchronize()
        prepared = [self.kernel.prepare(*values) for values in batches]
        errors = []

        def work(arguments):
            try:
                self.kernel.launch_prepared(arguments)
                self.kernel.synchronize()
            except self.attn.AttnError as error:
                errors.append(str(error))

        threads = [threading.Thread(target=work, args=(item,)) for item in prepared]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors
        for values in batches:
            self.expect_right(*values)

    def check_artifact_from_bytes(self):
        values = self.tensors()
        self.attn.Artifact.load(self.artifact.bytes).launch(*values)
        self.expect_right(*values)

    def check_empty(self):
        self.kernel.launch(*self.tensors(queries=0))
        self.kernel.launch(*self.tensors(batch=0))
        values = self.tensors(keys=0)
        self.kernel.launch(*values)
        assert (values[3] == 0).all()
        assert (values[4] == float("-inf")).all()

    def check_host_memory(self):
        values = list(self.tensors())
        values[1] = values[1].cpu()
        self.expect_refused(values, "argument 'k'", "wanted a tensor on cuda, got one on cpu")

    def expect_copied(self, good, bad, *words):
        """`bad` are the tensors of `good` in layouts that kernels do not take: the
        runtime copies them, says so, and the bits are the same."""
        self.kernel.launch(*good)
        text = " ".join(self.kernel.describe_launch(*bad))
        missing = [word for word in words if word not in text]
        assert not missing, f"'{text}' does not say {missing}"
        before = self.kernel.relayouts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.kernel.launch(*bad)
        assert self.kernel.relayouts > before
        for a, b in zip(good[3:], bad[3:]):
            assert self.torch.equal(a, b)

    def check_alignment(self):
        good = self.tensors()
        bad = list(good)
        flat = self.torch.empty(good[0].numel() + 1, device="cuda").bfloat16()
        bad[0] = flat[1:].view(good[0].shape).copy_(good[0])
        bad[3], bad[4] = (self.torch.zeros_like(x) for x in good[3:])
        self.expect_copied(good, bad, "'q'", "not aligned to 16 bytes")

    def check_strides(self):
        torch, good = self.torch, self.tensors()
        bad = list(good)
        bad[1] = torch.empty(2, 2, 120, 65, device="cuda").bfloat16()[..., :64].copy_(good[1])
        bad[2] = good[2].transpose(2, 3).contiguous().transpose(2, 3)
        bad[3] = torch.empty(64, 100, 4, 2, device="cuda").bfloat16().permute(3, 2, 1, 0)
        bad[4] = torch.empty(2, 4, 100, 3, device="cuda")[..., 1]
        self.expect_copied(good, bad, "'k'", "wanted a multiple of 16 bytes",
                           "'v' is copied first", "'o' is copied after the kernel",
                           "innermost one must be 1", "'lse'")

    def check_copies_in_a_graph(self):
        torch, good = self.torch, self.tensors()
        self.kernel.launch(*good)
        bad = [x.transpose(-1, -2).contiguous().transpose(-1, -2) for x in good]
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            self.kernel.launch(*bad)
        for _ in range(3):
            bad[3].zero_()
            graph.replay()
            torch.cuda.synchronize()
            assert torch.equal(good[3], bad[3]) and torch.equal(good[4], bad[4])

    def check_expanded_heads(self):
        """One key head for all, by a stride of 0."""
        values = list(self.tensors())
        one = values[1][:, :1].contiguous()
        self.kernel.launch(values[0], one.repeat(1, 2, 1, 1), *values[2:])
        first = values[3].clone()
        self.kernel.launch(values[0], one.expand(-1, 2, -1, -1), *values[2:])
        assert self.torch.equal(first, values[3])

    def check_shapes(self):
        values = list(self.tensors())
        values[2] = values[2][:, :, :-1]
        self.expect_refused(values, "'v'", "119", "120")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", required=True)
    parser.add_argument("--target", default="sm_80", help="sm_80 or sm_90a")
    options = parser.parse_args()
    torch = find_torch()
    if torch is None:
        return SKIP
    import attn

    attn.use_library(options.lib)
    torch.manual_seed(1)
    torch.zeros(1, device="cuda")
    checks, bad = Checks(attn, torch, options.target), 0
    for name in [name for name in dir(checks) if name.startswith("check_")]:
        try:
            getattr(checks, name)()
            checks.check_default_stream()  # the context is still fine
            print(f"ok   {name}", flush=True)
        except Exception as error:
            bad += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
