#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""What trace.region makes of PyTorch functions, element by element against PyTorch.

A launch that sees one key gives its score as lse; as many launches as there are keys
give all of them, to compare with torch.vmap of the same function."""

import functools
import math
import operator
import re

import pytest

torch = pytest.importorskip("torch", reason="functions of PyTorch need PyTorch")
flex = pytest.importorskip("torch.nn.attention.flex_attention", reason="this PyTorch has no flex attention")

import attn  # noqa: E402
import attn.torch  # noqa: E402
from attn.torch import trace  # noqa: E402

F = torch.nn.functional
B, H, Q, K = 2, 4, 5, 7


def reference(function, kind, scores=None):
    """The function at every position, by PyTorch."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    at = [torch.arange(size, dtype=torch.int32) for size in (B, H, Q, K)]
    prefix = (0,) if kind == "score" else ()
    with TransformGetItemToIndex(), torch.no_grad():
        return flex._vmap_for_bhqkv(function, prefix)(*([scores] if kind == "score" else []), *at)


def scores():
    torch.manual_seed(1)
    return torch.randn(B, H, Q, K) * 1.5


def one_of(regions):
    """A program whose lse is the value of region `which` at key `only`."""
    lines, captures = ["%chosen0 = arith.constant 0.0 : f32"], [("which", "i32"), ("only", "i32")]
    for number, region in enumerate(regions):
        *body, last = [re.sub(r"%v(\d+)", rf"%r{number}_\1", line) for line in region.lines.split("\n")]
        value, type = re.fullmatch(r"attn\.yield (%\w+) : (\w+)", last).groups()
        if type == "i1":
            body.append(f"%f{number} = arith.uitofp {value} : i1 to f32")
            value = f"%f{number}"
        lines += [*body, f"%n{number} = arith.constant {number} : i32",
                  f"%is{number} = arith.cmpi eq, %which, %n{number} : i32",
                  f"%chosen{number + 1} = arith.select %is{number}, {value}, %chosen{number} : f32"]
        captures += [(name, type) for name, type, _ in region.captures]
    lines.append(f"attn.yield %chosen{len(regions)} : f32")
    return attn.attention("f32", 8, scale=1.0, score="\n".join(lines), captures=captures,
                          mask="%m = arith.cmpi eq, %j, %only : i32\nattn.yield %m : i1")


def values(functions, sizes=None):
    """The values of (function, kind) pairs at all positions."""
    regions, taken = [], ["which", "only"]
    for function, kind in functions:
        regions.append(trace.region(function, kind, taken=taken, sizes=sizes))
        taken += [name for name, _, _ in regions[-1].captures]
    text = one_of(regions)
    # Products that are the scores: row i of the queries by a unit vector.
    q, k = torch.zeros(B, H, Q, 8), torch.zeros(B, H, K, 8)
    q[..., :K] = scores()
    k[..., range(K), range(K)] = 1.0
    tensors = [tensor for region in regions for _, _, tensor in region.captures]
    results = []
    with torch.no_grad():
        for which in range(len(regions)):
            numbers = [[torch.tensor(number, dtype=torch.int32) for number in (which, key)] for key in range(K)]
            results.append(torch.stack([attn.torch.run(text, q, k, k, [*pair, *tensors])[1]
                                        for pair in numbers], 3))
    return results


@functools.lru_cache(None)
def values_of_batch(first):
    """Many functions in one program, which compiles as fast as one."""
    batch = CASES[first:first + BATCH]
    return dict(zip(batch, values([TABLES[kind][name] for kind, name in batch])))


def agree(kind, name):
    number = CASES.index((kind, name))
    got = values_of_batch(number - number % BATCH)[kind, name]
    function, _ = TABLES[kind][name]
    wanted = reference(function, kind, scores()).broadcast_to(got.shape).float()
    torch.testing.assert_close(got, wanted, rtol=2e-5, atol=2e-5)


def table(*shape, dtype=torch.float32):
    torch.manual_seed(2)
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    return torch.randn(shape).to(dtype) if dtype.is_floating_point else torch.randint(-5, 9, shape).to(dtype)


BIAS, SLOPES, IDS = table(B, H, Q, K), table(H), torch.tensor([0, 0, 1, 1, 2, 2, 3])
POSITIVE = (torch.arange(H) + 1.0)


WIDE = torch.tensor([3, -7, 1009, 12345, -99, 1, 250000], dtype=torch.int32)
LONG = torch.tensor([0, 2**40, -2**52 + 1, 5, 2**33 + 7, -3, 2**61 + 11])
WIDER = torch.tensor([3, -7, 2**31 - 1, -2**31, 2**40 + 3, -2**50, 1])


class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(score, hidden):
        return torch.where(hidden, -2.0, score)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(inputs[1])

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None

class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.slopes = torch.nn.Parameter(SLOPES.clone())
        self.gain = torch.nn.Parameter(torch.tensor(1.5))
        self.names = {"bias": BIAS}

    def forward(self, score, b, h, q_idx, kv_idx):
        return score * self.gain + self.slopes[h] * (q_idx - kv_idx) + self.names["bias"][b, h, q_idx, kv_idx]

    def method(self, score, b, h, q_idx, kv_idx):
        return score - self.slopes.abs()[h]


def with_more(scale, score, b, h, q_idx, kv_idx, shift=0.0):
    return score * scale + shift


SCORES = {
    "identity": lambda s, b, h, q, k: s,
    "times two": lambda s, b, h, q, k: s * 2,
    "squared": lambda s, b, h, q, k: s * s,
    "causal": lambda s, b, h, q, k: torch.where(q >= k, s, -float("inf")),
    "relative": lambda s, b, h, q, k: s + (q - k),
    "relative causal": lambda s, b, h, q, k: torch.where(q >= k, s + (q - k), float("-inf")),
    "alibi": lambda s, b, h, q, k: s + (k - q) * torch.exp2(-((h + 1) * 8.0 / H)),
    "alibi of slopes": lambda s, b, h, q, k: s + POSITIVE[h] * (k - q).abs(),
    "softcap": lambda s, b, h, q, k: 20 * torch.tanh(s / 20),
    "trigonometry": lambda s, b, h, q, k: torch.sin(torch.cos(s)) + torch.tan(b),
    "bias": lambda s, b, h, q, k: s + BIAS[b, h, q, k],
    "bias in steps": lambda s, b, h, q, k: s + BIAS[b][h][q, k] + BIAS[b][h][q][k],
    "bias, negative constants": lambda s, b, h, q, k: s + BIAS[-1, -2][q, k] + BIAS[b, h, q, -1],
    "bias, ellipsis": lambda s, b, h, q, k: s + BIAS[..., k][b, h, q] + BIAS[b, ..., q, k][h],
    "bias, slices": lambda s, b, h, q, k: s + BIAS[:, :, :, 1:][b, h, q, k - 1] + BIAS[b, 1:, ::2][h - 1, q // 2, k],
    "bias, None": lambda s, b, h, q, k: s + BIAS[b, h, None, q, k][0] + BIAS[None][0, b, h, q, k],
    "bias, views inside": lambda s, b, h, q, k: s + BIAS.transpose(0, 3)[k, h, q, b] + BIAS.permute(1, 0, 2, 3)[h, b, q, k],
    "bias, reshaped": lambda s, b, h, q, k: s + BIAS.reshape(B * H, Q * K)[b * H + h, q * K + k],
    "bias, symbolic row reshaped": lambda s, b, h, q, k: s + BIAS[b, h].reshape(-1)[q * K + k] + BIAS[b].flatten(1)[h, q * K + k],
    "bias, symbolic row transposed": lambda s, b, h, q, k: s + BIAS[b, h].T[k, q] + BIAS[b, h].t()[k][q],
    "bias, expanded": lambda s, b, h, q, k: s + BIAS[:1, :1].expand(B, H, Q, K)[b, h, q, k] + SLOPES[:1].expand(7)[k],
    "bias, computed": lambda s, b, h, q, k: s + (BIAS * 2).exp()[b, h, q, k] + torch.softmax(SLOPES, 0)[h],
    "bias, negative positions": lambda s, b, h, q, k: s + BIAS[b, h, q - Q, k - K],
    "relative table": lambda s, b, h, q, k: s + BIAS.flatten()[torch.clamp(q - k + 6, 0, 12)],
    "relative table, wrapped": lambda s, b, h, q, k: s + BIAS.flatten()[q - k],
    "module": Module(),
    "method": Module().method,
    "partial": functools.partial(with_more, 0.5, shift=2.0),
    "scalar tensors": lambda s, b, h, q, k, gain=torch.tensor(0.25), n=torch.tensor(3): s * gain + (q + n),
    "scalar divisor": lambda s, b, h, q, k, n=torch.tensor(3): s + q // n + k % n,
    "scalar parameter": lambda s, b, h, q, k, gain=torch.nn.Parameter(torch.tensor(0.25)): s * gain,
    "tensors made inside": lambda s, b, h, q, k: s + torch.tensor(2.5) + torch.tensor([1.0, 2.0, 3.0, 4.0])[h],
    "arange inside": lambda s, b, h, q, k: s + torch.arange(8, device=s.device)[k] + torch.arange(5.0)[2],
    "scalar_tensor": lambda s, b, h, q, k: torch.where(q > k, s, torch.scalar_tensor(-3.0)),
    "like": lambda s, b, h, q, k: torch.where(q > k, torch.zeros_like(s), s + torch.full_like(s, 2.0) + s.new_full((), 1)),
    "aten": lambda s, b, h, q, k: torch.ops.aten.add.Tensor(torch.ops.aten.mul.Scalar(s, 2), torch.ops.aten.index.Tensor(SLOPES, [h])),
    "aten.where": lambda s, b, h, q, k: torch.ops.aten.where.self(torch.ops.aten.ge.Tensor(q, k), s, torch.ops.aten.neg(s)),
    "in place": lambda s, b, h, q, k: s.clone().add_(1).mul_(k).sub_(q),
    "augmented": lambda s, b, h, q, k: operator.iadd(s * 1, BIAS[b, h, q, k]),
    "exponentials": lambda s, b, h, q, k: torch.exp(s) + torch.exp2(s) - torch.expm1(s) + s.exp(),
    "logarithms": lambda s, b, h, q, k: torch.log(s.abs() + 1) + torch.log2(s * s + 1) + torch.log1p(s.abs()) + torch.log10(s * s + 1),
    "roots": lambda s, b, h, q, k: torch.sqrt(s.abs()) + torch.rsqrt(s.abs() + 1) + s.abs() ** 0.5,
    "powers": lambda s, b, h, q, k: s ** 2 + torch.pow(s, 3) + 2 ** s + (s.abs() + 1) ** -1.5 + s.square() + (q + 1) ** 2 + (s * s + 1) ** -1,
    "powers of tensors": lambda s, b, h, q, k: torch.pow(POSITIVE[h], s) + torch.pow(POSITIVE[h], (q - k).abs() * 0.1) + torch.pow(2, BIAS[b, h, q, k]),
    "power of zero": lambda s, b, h, q, k: s ** 0 + s ** 1,
    "reciprocal": lambda s, b, h, q, k: torch.reciprocal(s.abs() + 1) + 1 / (2 + s.abs()) + 1.0 / (q + 1),
    "rounding": lambda s, b, h, q, k: torch.floor(s) + 3 * torch.ceil(s) + 5 * torch.round(s) + 7 * torch.trunc(s) + 11 * torch.frac(s),
    "clamp": lambda s, b, h, q, k: s.clamp(-1, 1) + torch.clamp(s, min=0.5) + torch.clamp_max(s, 0) + s.clamp(max=0.25),
    "clamp by tensors": lambda s, b, h, q, k: torch.clamp(s, -POSITIVE[h], POSITIVE[h]),
    "extremes": lambda s, b, h, q, k: torch.maximum(s, BIAS[b, h, q, k]) + torch.minimum(q, k) + torch.max(q, k) + torch.fmin(s, s * 2),
    "signs": lambda s, b, h, q, k: torch.sign(s) + torch.sign(q - k) + torch.abs(s) + (q - k).abs() + torch.copysign(s, s - 1) - (-s),
    "sigmoid": lambda s, b, h, q, k: torch.sigmoid(s) + F.logsigmoid(s) + s.sigmoid(),
    "activations": lambda s, b, h, q, k: F.relu(s) + F.silu(s) + F.softplus(s) + F.gelu(s) + F.gelu(s, approximate="tanh") + F.leaky_relu(s, 0.1) + F.elu(s) + F.mish(s) + F.hardtanh(s),
    "more activations": lambda s, b, h, q, k: F.relu6(s * 5) + F.hardsigmoid(s) + F.hardswish(s) + F.softsign(s) + F.tanhshrink(s) + F.hardshrink(s) + F.selu(s) + F.celu(s),
    "trigonometry, more": lambda s, b, h, q, k: torch.atan(s) + torch.asin(s / 10) + torch.acos(s / 10) + torch.sinh(s) + torch.cosh(s) + torch.atan2(s, s + 5) + torch.asinh(s),
    "erf": lambda s, b, h, q, k: torch.erf(s) + torch.erfc(s) + torch.special.expit(s),
    "logaddexp": lambda s, b, h, q, k: torch.logaddexp(s, s * 2) + torch.hypot(s, s + 1) + torch.lerp(s, s + 1, 0.3),
    "addcmul": lambda s, b, h, q, k: torch.addcmul(s, s, s, value=0.5) + torch.addcdiv(s, s, s.abs() + 1),
    "masked_fill": lambda s, b, h, q, k: s.masked_fill(q < k, -1e4).masked_fill(k == 3, 2),
    "where of numbers": lambda s, b, h, q, k: s + torch.where(q > k, 1.5, 0) + torch.where(q > k, 2, 3),
    "where of integers": lambda s, b, h, q, k: s * torch.where(q > k, q, k),
    "where method": lambda s, b, h, q, k: s.where(q > k, s * 3),
    "flags as numbers": lambda s, b, h, q, k: s + (q > k) + (q > k) * 2.5 - (k == 2).float() + ((q < k) + 1),
    "flags added": lambda s, b, h, q, k: s * ((q > k) + (k > 3)) + s * ((q > k) * (k > 3)),
    "true division": lambda s, b, h, q, k: s + q / (k + 1) + q / 2 + torch.div(k, 3),
    "floor division": lambda s, b, h, q, k: s + (q - k) // 2 + (k - q) // -3 + torch.div(q - k, 2, rounding_mode="trunc") + s // 0.7,
    "division by data": lambda s, b, h, q, k: s + q // (1 + k) + (q - k) // (h - 9) + (q * 99991) // WIDE[k] + (q * -77773) // WIDE[k] + torch.div(q * 9973 - k * 31337, WIDE[k], rounding_mode="trunc"),
    "remainders by data": lambda s, b, h, q, k: s + q % (1 + k) + (q - k) % (h - 9) + (q * 99991) % WIDE[k] + torch.fmod(q * 9973 - k * 31337, WIDE[k]),
    "division by wide data": lambda s, b, h, q, k: s + (q - k) // WIDER[k] + torch.div(k - q, WIDER[k], rounding_mode="trunc"),
    "remainders by wide data": lambda s, b, h, q, k: s + (q - k) % WIDER[k] % 1024 + torch.fmod(k - q, WIDER[k]),
    "remainders": lambda s, b, h, q, k: s + (q - k) % 3 + torch.fmod(q - k, 3) + (q - k) % -2 + s % 0.7 + torch.remainder(s, 2) + torch.fmod(s, 0.6),
    "bits": lambda s, b, h, q, k: s + (q & 3) + (k | 4) + (q ^ k) + (~q) + ((q - k) & -2) + torch.bitwise_xor(q, 5),
    "shifts": lambda s, b, h, q, k: s + (q << 2) + ((q - k) >> 1) + (1 << k) + torch.bitwise_left_shift(k, 1),
    "morton": lambda s, b, h, q, k: s + (((k | (k << 8)) & 0x00FF00FF) | ((k << 4) & 0x0F0F0F0F)),
    "conversions": lambda s, b, h, q, k: s + q.to(torch.float32) / 3 + s.int() + k.float() + s.to(torch.int64) + q.long() * 2 + q.type_as(s) + s.type(torch.float),
    "halves": lambda s, b, h, q, k: s.half().float() + s.bfloat16() + s.to(torch.float16),
    "narrow integers": lambda s, b, h, q, k: s + (q * 100).to(torch.int8) + (k - 3).to(torch.uint8) + q.short() + (k * 50).byte(),
    "wide integers": lambda s, b, h, q, k: s + ((q.long() + 1) * 3_000_000_000 // 1_000_000_000) + (k.long() << 33 >> 32),
    "is": lambda s, b, h, q, k: torch.where(torch.isinf(s / 0.0) & ~torch.isnan(s) & torch.isfinite(s), s, 0.0),
    "nan_to_num": lambda s, b, h, q, k: torch.nan_to_num((s - s) / 0.0, nan=3.0) + torch.nan_to_num(s / 0.0, posinf=5.0, neginf=-5.0),
    "dot": lambda s, b, h, q, k: s + torch.dot(BIAS[b, h, q, :5], BIAS[b, h, :5, k]) + (BIAS[b, h, q] * BIAS[b, h, 1]).sum(),
    "matmul": lambda s, b, h, q, k: s + BIAS[b, h, q] @ BIAS[b, h, q] + torch.linalg.vector_norm(BIAS[b, h, q] - BIAS[b, h, 0]),
    "reductions": lambda s, b, h, q, k: s + BIAS[b, h, q].mean() + BIAS[b, h, q].amax(0) + BIAS[b, h].sum(0)[k] + BIAS[b, h, q].max(),
    "stack": lambda s, b, h, q, k: s + torch.stack([s, s * 2, s * 3])[1] + torch.stack((q, k, q + k))[k % 3] + torch.cat([SLOPES, SLOPES[h].reshape(1)])[4],
    "stack, sum": lambda s, b, h, q, k: torch.stack([s, s * s]).sum() + torch.stack([q, k]).prod(),
    "tensors as indices": lambda s, b, h, q, k: s + BIAS[b, h, q, torch.tensor([0, 2, 5])].sum() + SLOPES[torch.tensor([1, 3])][h % 2],
    "index_select": lambda s, b, h, q, k: s + torch.index_select(SLOPES, 0, h)[0] + torch.take(SLOPES, h.long()) + F.embedding(h, BIAS[0, 0, :4])[2],
    "gather": lambda s, b, h, q, k: s + torch.gather(SLOPES, 0, h.reshape(1))[0] + BIAS.select(0, 1)[h, q, k],
    "unbind": lambda s, b, h, q, k: s + BIAS[b].unbind(0)[2][q, k] + torch.split(SLOPES, 2)[1][h % 2],
    "composed": lambda s, b, h, q, k: SCORES["softcap"](SCORES["alibi"](s, b, h, q, k), b, h, q, k),
    "buckets": lambda s, b, h, q, k: s + SLOPES[torch.where((k - q).abs() < 2, (k - q).abs(), 2 + (torch.log((k - q).abs().float() / 2).clamp(min=0) / math.log(4) * 2).to(torch.long)).clamp(max=3)],
    "constant": lambda s, b, h, q, k: torch.zeros_like(s),
    "number": lambda s, b, h, q, k: s * math.pi - 1e30 * (q > 99),
    "flags out": lambda s, b, h, q, k: q - k,
}
for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.bool, torch.uint8, torch.int8, torch.int16,
              torch.int32, torch.int64):
    SCORES[f"captured {dtype}"] = (
        lambda t: lambda s, b, h, q, k: s + t[q, k] + t[0, 0])(table(Q, K, dtype=dtype))
    SCORES[f"captured scalar {dtype}"] = (
        lambda t: lambda s, b, h, q, k: s + t)(table(1, dtype=dtype)[0])
SCORES["captured, strided"] = (lambda t: lambda s, b, h, q, k: s + t[q, k])(table(K, Q).T)
SCORES["captured, every second"] = (lambda t: lambda s, b, h, q, k: s + t[q, k])(table(2 * Q, 2 * K)[::2, 1::2])
SCORES["captured, rank 5"] = (lambda t: lambda s, b, h, q, k: s + t[b, h, 0, q, k])(table(B, H, 1, Q, K))

LENGTHS, PREFIX, OFFSETS = torch.tensor([3, 6]), torch.tensor([2, 0], dtype=torch.int32), torch.tensor([0, 2, 5, 7])
START, END = torch.tensor([0, 3, 5]), torch.tensor([2, 5, 6])
MAP, FLAGS, TREE = table(B, H, 3, 4, dtype=torch.bool), table(K, dtype=torch.bool), table(Q, 4, dtype=torch.bool)


def natten(b, h, q, k):
    x, y, u, v = q // 3, q % 3, k // 3, k % 3
    return ((x.clamp(1, 1) - u).abs() <= 1) & ((y.clamp(1, 1) - v).abs() <= 1)


MASKS = {
    "causal": lambda b, h, q, k: q >= k,
    "window": lambda b, h, q, k: (q >= k) & (q - k <= 2),
    "prefix": lambda b, h, q, k: (k < PREFIX[b]) | (q >= k),
    "documents": lambda b, h, q, k: IDS[q] == IDS[k],
    "document starts": lambda b, h, q, k: (k >= OFFSETS[IDS[q]]) & (q >= k),
    "searchsorted": lambda b, h, q, k: torch.searchsorted(OFFSETS, q, right=True) == torch.searchsorted(OFFSETS, k, side="right"),
    "bucketize": lambda b, h, q, k: torch.bucketize(q, OFFSETS, right=True) == torch.bucketize(k + 1, OFFSETS),
    "padding": lambda b, h, q, k: k < LENGTHS[b],
    "natten": natten,
    "batchified": lambda b, h, q, k: (q // 4 == k // 4) & MASKS["causal"](b, h, q % 4, k % 4),
    "dilated": lambda b, h, q, k: (torch.abs(q - k) <= 4) & (torch.abs(q - k) % 2 == 0),
    "diffusion": lambda b, h, q, k: ((q % 4 // 2 >= k % 4 // 2) & ~(q < 4) & ~(k < 4)) | ((q % 4 // 2 == k % 4 // 2) & ((q < 4) == (k < 4))),
    "by head": lambda b, h, q, k: torch.where(h < 2, q >= k, q <= k),
    "map": lambda b, h, q, k: MAP[b, h, q // 2, k // 2],
    "intervals": lambda b, h, q, k: ((q >= START) & (k < END)).any(),
    "interval rows": lambda b, h, q, k: (lambda rows: (q >= rows[0]) & (k < rows[1] + 3))(torch.stack([START, END], 1)[IDS[k].clamp(max=2)]),
    "page table": lambda b, h, q, k: (lambda page: torch.where(page >= 0, q >= page * 2 + k % 2, False))(torch.tensor([1, -1, 0, 2])[k // 2]),
    "and_masks": flex.and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: IDS[q] == IDS[k]),
    "or_masks": flex.or_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: k < 2),
    "noop": flex.noop_mask,
    "logical": lambda b, h, q, k: torch.logical_and(torch.logical_or(q > k, k == 1), torch.logical_not(h == 1)),
    "logical of numbers": lambda b, h, q, k: torch.logical_xor(q, k % 2),
    "flags compared": lambda b, h, q, k: ((q > 2) != (k > 2)) | ((q > 2) > (k > 4)),
    "captured flags": lambda b, h, q, k: FLAGS[k] | FLAGS[q],
    "bytes as flags": lambda b, h, q, k: FLAGS.to(torch.uint8)[k].bool(),
    "floats compared": lambda b, h, q, k: BIAS[b, h, q, k] > SLOPES[h],
    "division of wide data": lambda b, h, q, k: (((k - LONG[q]) // WIDER[k] + torch.div(LONG[k] - q, WIDER[q], rounding_mode="trunc")) % 3) > 0,
    "remainders of wide data": lambda b, h, q, k: (((k - LONG[q]) % WIDER[k] + torch.fmod(LONG[k] - q, WIDE[q])) % 3) > 0,
    "always": lambda b, h, q, k: k >= 0,
    "ancestors": lambda b, h, q, k: (k < 2) | ((k < 6) & TREE[q, (k - 2).clamp(min=0, max=3)]),
}


TABLES = {kind: {name: (function, kind) for name, function in functions.items()}
          for kind, functions in (("score", SCORES), ("mask", MASKS))}
CASES = [(kind, name) for kind, functions in TABLES.items() for name in functions]
BATCH = 12


@pytest.mark.parametrize("kind, name", CASES)
def test_values(kind, name):
    agree(kind, name)


def lines(function, kind="mask"):
    return trace.region(function, kind).lines


def test_dividends_that_are_small_are_divided_once():
    quotient, rest = (trace.region(function, "score", sizes=(B, H, Q, K)) for function in (
        lambda s, b, h, q, k: s + (q - k) // WIDE[k], lambda s, b, h, q, k: s + (q - k) % WIDER[k]))
    assert quotient.lines.count("math.floor") == rest.lines.count("math.floor") == 1
    assert lines(lambda s, b, h, q, k: s + (q - k) // WIDE[k], "score").count("math.floor") == 2
    names = [name for name in SCORES if "by data" in name or "by wide data" in name]
    assert len(names) == 4
    for name, got in zip(names, values([(SCORES[name], "score") for name in names], (B, H, Q, K)), strict=True):
        wanted = reference(SCORES[name], "score", scores()).broadcast_to(got.shape).float()
        torch.testing.assert_close(got, wanted, rtol=2e-5, atol=2e-5)


def test_equal_functions_give_equal_text():
    def make(table):
        return lambda s, b, h, q, k: torch.where(q >= k, s + table[h, q - k], -math.inf)
    one, two = (trace.region(make(torch.randn(4, size)), "score") for size in (9, 9))
    assert one.lines == two.lines and one.captures[0][:2] == two.captures[0][:2]
    assert one.captures[0][2] is not two.captures[0][2]


def retraced(monkeypatch, make, *several):
    """Captured tensors of functions of one kind, and how often one was called."""
    calls, traced = [], trace.traced
    monkeypatch.setattr(trace, "traced", lambda *given: calls.append(given) or traced(*given))
    monkeypatch.setattr(trace, "_KNOWN", {})
    found = [trace.regions(make(*given), None)[0] for given in several]
    return [[tensor for _, _, tensor in one.captures] for one in found], len(calls)


def test_tensors_that_a_function_makes_are_made_again(monkeypatch):
    def make(offsets, pages):
        def score(s, b, h, q, k):
            first, second = pages.unbind(0)
            return s + offsets[1] + (torch.stack([second, first]) * 2)[h, k]
        return score
    given = [(torch.tensor([3.0, 5.0 + n], requires_grad=n > 0), torch.randn(2, 6) + n) for n in range(2)]
    given.insert(1, given[0])
    found, count = retraced(monkeypatch, make, *given)
    assert count == 2  # the second is another kind: it wants a gradient
    for (offsets, pages), captures in zip(given, found, strict=True):
        number, table = sorted(captures, key=lambda x: x.dim())
        assert number.reshape(()) == offsets[1] and torch.equal(table, pages.flip(0) * 2)
        assert number.requires_grad == offsets.requires_grad
    offsets = given[2][0]
    gradient, = torch.autograd.grad(sum(x.sum() for x in found[2]), offsets)
    assert gradient.tolist() == [0.0, 1.0]
    pages = given[0][1]
    pages += 1  # what is in a tensor is read again
    (captures, _), count = retraced(monkeypatch, make, given[0], given[0])
    assert any(torch.equal(x, pages.flip(0) * 2) for x in captures)


@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize("count", [5, 20])
def test_lists_that_are_searched_are_made_again(monkeypatch, count, is_made):
    """torch.isin sorts a long list, inside of PyTorch."""
    def make(chosen):
        numbers = chosen.tolist()
        if is_made:
            return lambda s, b, h, q, k: torch.where(torch.isin(k, torch.tensor(numbers)), s * 2, s + q)
        return lambda s, b, h, q, k: torch.where(torch.isin(k, chosen), s * 2, s + q)
    lists = [torch.randperm(60)[:count] for _ in range(2)]
    found, calls = retraced(monkeypatch, make, *((chosen,) for chosen in (*lists, *lists)))
    assert calls == (2 if is_made else 1)  # of two lists
    for captures, chosen in zip(found, (*lists, *lists), strict=True):
        assert all(sorted(x.flatten().tolist()) == sorted(chosen.tolist()) for x in captures if x.numel() == count)
        assert len(captures) == (0 if is_made and count < 10 else 2 if count > 10 else 1)


@pytest.mark.parametrize("has_gradients", [False, True])
def test_gradients_that_a_function_stops_stay_stopped(monkeypatch, has_gradients):
    def make(table):
        def score(s, b, h, q, k):
            with torch.no_grad():
                doubled = table * 2
            return s + doubled[k]
        return score
    tables = [torch.randn(6, requires_grad=True) for _ in range(3)]
    with torch.set_grad_enabled(has_gradients):
        first, _ = retraced(monkeypatch, make, (tables[0],))
    monkeypatch.undo()
    found = [trace.regions(make(table), None)[0].captures[0][2] for table in tables]
    assert torch.equal(first[0][0], tables[0] * 2)
    assert not any(x.requires_grad for x in found) and torch.equal(found[2], tables[2] * 2)


def test_what_stops_gradients_is_made_again(monkeypatch):
    """A part of it; calls without gradients are others."""
    def make(table):
        def score(s, b, h, q, k):
            with torch.no_grad():
                stopped = table.exp() * 2
                with torch.enable_grad():
                    flows = table * 3
            return s + stopped[k] + flows[q] * table.sin()[h]
        return score
    tables = [torch.randn(6, requires_grad=True) for _ in range(3)]
    found, calls = retraced(monkeypatch, make, *((table,) for table in tables))
    assert calls == 1
    for captures, table in zip(found, tables, strict=True):
        for x, wanted, flows in zip(captures, (table.exp() * 2, table * 3, table.sin()), (False, True, True)):
            assert torch.equal(x, wanted) and x.requires_grad == flows
    with torch.no_grad():
        captures = trace.regions(make(tables[0]), None)[0].captures
        assert [x.requires_grad for *_, x in captures] == [False, True, False]


def _by_iadd(x):
    x += 1


WRITES = {
    "iadd": (_by_iadd, lambda x: x + 1), "method": (lambda x: x.add_(1), lambda x: x + 1),
    "out": (lambda x: torch.add(x, 1, out=x), lambda x: x + 1), "item": (lambda x: operator.setitem(x, 0, 5.0), None),
    "inplace": (lambda x: torch.nn.functional.relu(x, inplace=True), torch.relu),
    "inplace by place": (lambda x: torch.nn.functional.hardtanh(x, 0.0, 9.0, True), torch.relu),
    "overload": (lambda x: torch.ops.aten.add_.Tensor(x, 1), lambda x: x + 1),
    "list": (lambda x: torch._foreach_add_([x], 1), lambda x: x + 1),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_to_is_not_made_again(monkeypatch, name):
    write, same = WRITES[name]

    def make(table):
        def score(s, b, h, q, k):
            shifted = table * 1
            write(shifted)
            return s + shifted[k]
        return score
    tables = [torch.randn(6) for _ in range(2)]
    found, count = retraced(monkeypatch, make, *((table,) for table in tables))
    assert count == 2
    for (x,), table in zip(found, tables):
        assert torch.equal(x, same(table) if same else torch.cat([torch.tensor([5.0]), table[1:]]))


def test_masks_are_plain_conditions():
    text = lines(lambda b, h, q, k: (q >= k) & torch.where(q - k < 4, True, k < 2))
    assert "select" not in text and "i64" not in text
    assert lines(lambda b, h, q, k: (q >= k) & (k >= 0) & True).count("=") == 1


def test_int64_of_positions_is_i32():
    text = lines(lambda b, h, q, k: (q.long() + k.long()) // 3 < k.to(torch.int64) - 5)
    assert "i64" not in text
    assert "i64" in lines(lambda b, h, q, k: q.long() * 4 < k)


def test_table_is_read_where_it_lies():
    table = torch.randn(5, 4)
    region = trace.region(lambda s, b, h, q, k: s + table.t()[h, q], "score")
    (_, _, tensor), = region.captures
    assert tensor.data_ptr() == table.data_ptr() and tensor.is_contiguous()
    wide = torch.randn(1, 5).expand(1000, 5)
    (_, type, tensor), = trace.region(lambda s, b, h, q, k: s + wide[q, k], "score").captures
    assert type == "tensor<?xf32>" and tuple(tensor.shape) == (5,)


def test_gradients_reach_what_a_view_was_made_of():
    base = torch.nn.Parameter(torch.randn(3, 4))
    (_, _, tensor), = trace.region(lambda s, b, h, q, k: s + (base * 2).t()[h, q % 3], "score").captures
    tensor.sum().backward()
    assert (base.grad == 2).all()


def test_shared_captures_have_one_name():
    score = trace.region(lambda s, b, h, q, k: s + SLOPES[h], "score", taken=("t0",))
    mask = trace.region(lambda b, h, q, k: (SLOPES[h] > 0) & (IDS[k] < 2), "mask", shared=score)
    assert [name for name, _, _ in score.captures] == ["t1"]
    assert [name for name, _, _ in mask.captures] == ["t1", "t0"]


def test_unused_work_is_dropped():
    region = trace.region(lambda s, b, h, q, k: (s + BIAS[b, h, q, k], s)[1], "score")
    assert region.lines == "attn.yield %x : f32" and not region.captures


def branch(s, b, h, q, k):
    if q > k:
        return s
    return s * 2


WRONG = {
    "branch": (branch, "score", "torch.where"),
    "python max": (lambda s, b, h, q, k: s + max(q, k), "score", "torch.maximum"),
    "item": (lambda s, b, h, q, k: s + q.item(), "score", "known in the kernel only"),
    "float64": (lambda s, b, h, q, k: s + BIAS.double()[b, h, q, k], "score", "float64"),
    "float64 conversion": (lambda s, b, h, q, k: s.double(), "score", "float64"),
    "complex": (lambda s, b, h, q, k: s + torch.zeros(3, dtype=torch.complex64)[q], "score", "complex64"),
    "sort": (lambda s, b, h, q, k: torch.stack([s, s * 2]).sort()[0][0], "score", "sort"),
    "nonzero": (lambda s, b, h, q, k: torch.nonzero(s), "score", "nonzero"),
    "random": (lambda s, b, h, q, k: s + torch.rand_like(s), "score", "rand_like"),
    "shape": (lambda s, b, h, q, k: s + BIAS[b, h, q], "score", r"shape \(7,\)"),
    "nothing": (lambda s, b, h, q, k: None, "score", "return"),
    "numbers as mask": (lambda b, h, q, k: q - k, "mask", "compare"),
    "division by zero": (lambda s, b, h, q, k: s + q // 0, "score", "by 0"),
    "out of range": (lambda s, b, h, q, k: s + SLOPES[9] * SLOPES[h, 4:], "score", "out of (range|bounds)|too many"),
    "too many indices": (lambda s, b, h, q, k: s + SLOPES[h, q], "score", "too many indices"),
    "mask as index": (lambda s, b, h, q, k: s + SLOPES[q > k].sum(), "score", "mask as an index"),
    "float as index": (lambda s, b, h, q, k: s + SLOPES[s], "score", "integers"),
    "writes a capture": (lambda s, b, h, q, k: (SLOPES.clone().add_(s), s)[1], "score", "written|add_"),
    "too many terms": (lambda s, b, h, q, k: s + torch.ones(2000)[None, :].expand(8, 2000)[h].sum(), "score", "2000"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name):
    function, kind, said = WRONG[name]
    with pytest.raises((attn.AttnError, IndexError), match=said) as caught:
        trace.region(function, kind)
    if isinstance(caught.value, attn.AttnError):
        line = function.__code__.co_firstlineno
        found = re.search(r"test_torch_trace\.py:(\d+): ", str(caught.value))
        assert found and line <= int(found[1]) <= line + 1


def test_wrong_device_is_named():
    with pytest.raises(trace.TraceError, match="wanted a captured tensor on cuda:0, got one on cpu"):
        trace.region(lambda s, b, h, q, k: s + SLOPES[h], "score", device="cuda:0")


@pytest.mark.parametrize("function, kind", [(lambda b, h, q, k: q > k, "score"), (5, "mask"),
                                            (lambda s, b, h, q, k: s, "mask")])
def test_wrong_signature(function, kind):
    with pytest.raises(TypeError, match=f"{kind}_mod: wanted a function of"):
        trace.region(function, kind)


class Counted:
    """Functions that say how often they were called."""

    def __init__(self, make):
        self.make, self.calls = make, 0

    def lines(self, *state, kind="score", **named):
        function, before = self.make(*state), trace.traced
        try:
            trace.traced = lambda *a: (setattr(self, "calls", self.calls + 1), before(*a))[1]
            return trace.region(function, kind, **named)
        finally:
            trace.traced = before


def test_known_functions_are_not_called_again():
    counted = Counted(lambda table, n: lambda s, b, h, q, k: s + table[h, q] * n)
    one = counted.lines(torch.ones(4, 5), 2.0)
    other = torch.zeros(4, 5)
    two = counted.lines(other, 2.0)
    assert counted.calls == 1 and one.lines == two.lines and two.captures[0][2] is other
    assert counted.lines(other, 3.0).lines != two.lines and counted.calls == 2
    assert counted.lines(other[:3], 3.0) and counted.calls == 3
    assert "f16" in counted.lines(other.half(), 3.0).captures[0][1] and counted.calls == 4


FACTOR = 2.0


class Scaled(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor, self.inner, self.table = factor, [factor], torch.nn.Parameter(torch.ones(4))

    def scaled(self, s):
        return s * self.factor * self.inner[0] * FACTOR

    def forward(self, s, b, h, q, k):
        return self.scaled(s) + self.table[h]


def test_known_functions_differ_by_all_that_they_reach():
    global FACTOR
    module = Scaled(3.0)
    counted = Counted(lambda: lambda s, b, h, q, k: module(s, b, h, q, k))
    texts = [counted.lines().lines, counted.lines().lines]
    assert counted.calls == 1
    module.factor = 5.0
    texts.append(counted.lines().lines)
    module.inner[0] = 7.0
    texts.append(counted.lines().lines)
    FACTOR = 11.0
    texts.append(counted.lines().lines)
    FACTOR = 2.0
    module.scaled = lambda s: s
    texts.append(counted.lines().lines)
    assert len(set(texts)) == 5 and counted.calls == 5
    module.table = torch.nn.Parameter(torch.zeros(4))
    assert counted.lines().captures[0][2] is module.table and counted.calls == 5


def test_what_depends_on_elements_is_not_remembered():
    table = torch.ones(4)
    asks = Counted(lambda: lambda s, b, h, q, k: s * float(table.sum()))
    computes = Counted(lambda: lambda s, b, h, q, k: s + (table * 2)[h])
    divides = Counted(lambda n: lambda s, b, h, q, k: s + q // n)
    for value in (1.0, 2.0):
        table.fill_(value)
        assert f"{4 * value:.17e}" in asks.lines().lines
        assert (computes.lines().captures[0][2] == 2 * value).all()
        assert f"constant {int(value) + 2} :" in divides.lines(torch.tensor(int(value) + 2)).lines
    assert asks.calls == divides.calls == 2 and computes.calls == 1  # which PyTorch computes again


def test_sizes_matter_where_they_make_it_shorter():
    table = torch.ones(65)
    wraps = Counted(lambda: lambda s, b, h, q, k: s + table[q - k + 32])
    narrow, wide = wraps.lines(sizes=(1, 1, 33, 33)), wraps.lines(sizes=(1, 1, 40, 40))
    assert "select" not in narrow.lines and "select" in wide.lines
    calls = wraps.calls
    assert wraps.lines(sizes=(1, 1, 33, 33)).lines == narrow.lines and wraps.calls == calls
    plain = Counted(lambda: lambda s, b, h, q, k: s + table[q])
    assert plain.lines(sizes=(1, 1, 33, 33)).lines == plain.lines(sizes=(1, 1, 40, 40)).lines
    assert plain.calls == 1


def test_functions_of_autograd():
    """Their forward, which the compiler differentiates itself."""
    def score(s, b, h, q, k):
        return Hidden.apply(s, q <= k)
    assert "select" in lines(score, "score")
