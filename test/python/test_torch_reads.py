#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Functions of scores that read what tensors hold: traced once, and again where these hold
something else, whoever wrote it."""

import math

import pytest

torch = pytest.importorskip("torch", reason="no PyTorch")

import attn.torch  # noqa: E402
from attn.torch import likeness, reads, trace  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask  # noqa: E402

SIZES = (1, 2, 16, 16)
TABLE = torch.linspace(-1, 1, 32).reshape(2, 16)


class Sized:
    """A function that is an object."""

    def __init__(self, n):
        self.n = n

    def __call__(self, s, b, h, q, k):
        return s + q // self.n


# Of a tensor of two numbers, or of another one made of it.
FUNCTIONS = {
    "divisor": lambda n: lambda s, b, h, q, k: s + q // n[0],
    "remainder": lambda n: lambda s, b, h, q, k: s + q % n[0],
    "sum as a divisor": lambda n: lambda s, b, h, q, k: s + q // (n[0] + n[1]),
    "power": lambda n: lambda s, b, h, q, k: s ** n[0],
    "item": lambda n: lambda s, b, h, q, k: s * n[0].item(),
    "int": lambda n: lambda s, b, h, q, k: s * int(n[0]),
    "float of a sum": lambda n: lambda s, b, h, q, k: s * float(n.sum()),
    "index": lambda n: lambda s, b, h, q, k: s + [2, 3, 5, 7, 11, 13][n[0]],
    "range": lambda n: lambda s, b, h, q, k: sum((s * i for i in range(n[0])), s),
    "bool": lambda n: lambda s, b, h, q, k: s * 2 if n[0] == 2 else s,
    "list": lambda n: lambda s, b, h, q, k: s * sum(n.tolist()),
    "in": lambda n: lambda s, b, h, q, k: s * 2 if 2 in n else s,
    "equal": lambda n: lambda s, b, h, q, k: s * 2 if torch.equal(n, n.new_tensor([2, 4])) else s,
    "allclose": lambda n: lambda s, b, h, q, k: s * 2 if torch.allclose(n, n.new_tensor([2, 4])) else s,
    "text": lambda n: lambda s, b, h, q, k: s * 2 if f"{n[0]}" == "2" else s,
    "end of a slice": lambda n: lambda s, b, h, q, k: s + TABLE[0, :n[1]].sum(),
    "end of a slice that is read": lambda n: lambda s, b, h, q, k: s + TABLE[0, :n[1]][k],
    "size of what is chosen": lambda n: lambda s, b, h, q, k: s * n[n > 2].shape[0],
    "last of what is chosen": lambda n: lambda s, b, h, q, k: s + TABLE[0, :2][n > 2][-1],
    "count": lambda n: lambda s, b, h, q, k: s * len(n.nonzero()),
    "copy": lambda n: lambda s, b, h, q, k: s + torch.as_tensor([*n])[h],
    "new tensor": lambda n: lambda s, b, h, q, k: s + TABLE.new_tensor([1.0, n[1]])[h],
    "tensor of it": lambda n: lambda s, b, h, q, k: s + torch.tensor([n[0], 1.0])[h],
    "tensor of numbers": lambda n: lambda s, b, h, q, k: s + torch.full((2,), n[0])[h],
    "element of numbers": lambda n: lambda s, b, h, q, k: s + torch.arange(9.0)[n[0]],
    "size of a part": lambda n: lambda s, b, h, q, k: s * TABLE[0].tensor_split(n)[0].shape[0],
    "size of what is made": lambda n: lambda s, b, h, q, k: s * torch.arange(n[1]).shape[0],
    "classes": lambda n: lambda s, b, h, q, k: s * torch.nn.functional.one_hot(n).shape[1],
    "of its data": lambda n: lambda s, b, h, q, k: s * n.data.unbind(0)[1].item(),
    "largest": lambda n: lambda s, b, h, q, k: s * max(n),
    "repeated": lambda n: lambda s, b, h, q, k: s * TABLE[0, 0].repeat(n[0]).shape[0],
    "an object": lambda n: Sized(n[0].view(())),
    "two times": lambda n: lambda s, b, h, q, k: s * n[0].item() + n[1].item() * n[0].item(),
    "one after the other": lambda n: lambda s, b, h, q, k: s * n[1].item() if n[0] > 2 else s,
}


def by_view(x, numbers):
    for place, number in enumerate(numbers):
        x[place:].view(-1)[0] = number


def by_numpy(x, numbers):
    x.numpy()[:] = numbers


CHANGES = {
    "in place": lambda x, numbers: x.copy_(torch.tensor(numbers)),
    "by a view": by_view,
    "by data": lambda x, numbers: x.data.copy_(torch.tensor(numbers)),
    "by numpy": by_numpy,
    "of its storage": lambda x, numbers: x.set_(torch.tensor(numbers)),
}


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(trace, "_KNOWN", {})
    monkeypatch.setattr(likeness, "_known", {})


@pytest.fixture
def traced(monkeypatch):
    """A list that grows with each call of a function."""
    calls, trace_it = [], trace.traced
    monkeypatch.setattr(trace, "traced", lambda *given: calls.append(given) or trace_it(*given))
    return calls


def regions(function):
    score, mask = trace.regions(function, None, device=torch.device("cpu"), sizes=SIZES)
    return None if score is None else (score.lines, [x.tolist() for *_, x in score.captures]), mask


def anew(function):
    """The same, of a function of which nothing is known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "_KNOWN", {})
        patch.setattr(likeness, "_known", {})
        return regions(function)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_not_traced_again(name, traced):
    make, numbers = FUNCTIONS[name], torch.tensor([2, 4])
    function = make(numbers)
    first, count = regions(function), len(traced)
    assert regions(function) == regions(function) == first
    assert regions(make(numbers)) == regions(make(numbers.clone())) == first
    assert len(traced) == count


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_changed_numbers(name, change, traced):
    numbers = torch.tensor([2, 4])
    function = FUNCTIONS[name](numbers)
    for values in ([2, 4], [3, 5], [4, 1], [3, 5], [2, 4], [1, 5]):
        CHANGES[change](numbers, values)
        count = len(traced)
        got = regions(function)
        known = len(traced) == count
        assert got == anew(function)
        if values == [2, 4]:
            assert regions(function) == got and len(traced) > count + (not known)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_tensors(name):
    """Of the same shape, and the first ones again, which have changed."""
    make, several = FUNCTIONS[name], [torch.tensor([2, 4]), torch.tensor([3, 5]), torch.tensor([2, 4])]
    for numbers in several:
        assert regions(make(numbers)) == anew(make(numbers))
    several[0].copy_(several[1])
    for numbers in several:
        assert regions(make(numbers)) == anew(make(numbers))


def test_numbers_of_python():
    def make(n, m):
        return lambda s, b, h, q, k: s * n + q // m
    for n, m in ((2.0, 3), (2.0, 3), (4.0, 3), (4.0, 5), (2, 3), (True, 3)):
        assert regions(make(n, torch.tensor(m))) == anew(make(n, torch.tensor(m)))
    width = 3

    def score(s, b, h, q, k):
        return s * divisor.item() + q // width
    divisor = torch.tensor(4)
    before = regions(score)
    width = 5
    assert regions(score) == anew(score) != before


@pytest.mark.parametrize("one, other", [(0.0, -0.0), (1.0, math.nan), (1.0, math.nextafter(1.0, 2.0))])
def test_bits_are_compared(one, other):
    for shape in ((), (3,)):
        number = torch.full(shape, one, dtype=torch.float64)

        def score(s, b, h, q, k):
            x = number.tolist()
            return s * math.copysign(1.0, x[0] if shape else x) + (x[0] if shape else x)
        first = regions(score)
        number.fill_(other)
        assert regions(score) == anew(score) != first


@pytest.mark.parametrize("dtype", [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16, torch.float32,
    torch.float64])
def test_types(dtype, traced):
    numbers = torch.tensor([1, 0, 1], dtype=dtype)

    def score(s, b, h, q, k):
        return s * sum(x * (1 << i) for i, x in enumerate(numbers.tolist()))
    first = regions(score)
    assert regions(score) == first and len(traced) == 1
    numbers[1] = 1
    assert regions(score) == anew(score) != first


def test_elements_out_of_order(traced):
    """A view that is not contiguous, and one with a sign that is not in memory."""
    for numbers in (torch.arange(12.0).reshape(3, 4).T, torch.imag(torch.arange(4) * 1j).conj(),
                    torch.imag((torch.arange(4) * 1j).conj())):
        def score(s, b, h, q, k):
            return s * torch.tensor(numbers.tolist()).flatten()[1]
        first, count = regions(score), len(traced)
        assert regions(score) == first and len(traced) == count
        numbers += 1
        assert regions(score) == anew(score) != first


def test_too_many_are_not_kept(monkeypatch, traced):
    monkeypatch.setattr(reads, "_MOST", 24)
    for size, count in ((3, 1), (4, 3)):
        del traced[:]
        numbers = torch.arange(size)
        for _ in range(3):
            regions(lambda s, b, h, q, k: s * sum(numbers.tolist()))
        assert len(traced) == count


def test_what_is_written_to_is_not_kept():
    """Functions that count their calls."""
    for write in (lambda x: x.add_(1), lambda x: x.numpy().__iadd__(1)):
        calls = torch.tensor([0, 0])

        def score(s, b, h, q, k):
            write(calls)
            return s * calls[0].item()
        found = [regions(score)[0] for _ in range(3)]
        assert found[0] != found[1] != found[2] and calls.tolist() == [3, 3]


def test_places_are_read_where_they_are(traced):
    """A number that says which element is captured is no part of what is traced."""
    table, at = torch.randn(4, 16), torch.tensor(1)

    def score(s, b, h, q, k):
        return s + table[at][k]
    for row in (1, 2, 3):
        at.fill_(row)
        assert regions(score)[0][1] == [table[row].tolist()]
    assert len(traced) == 1


def test_types_are_no_numbers(traced):
    table = torch.randn(16)

    def score(s, b, h, q, k):
        return s + torch.ones(16).type_as(table).view_as(table)[k] * table[q]
    first = regions(score)
    table += 1
    assert regions(score) == anew(score) != first and len(traced) == 2  # one of them is new


def test_few_variants_are_kept(traced):
    n = torch.tensor(1)

    def score(s, b, h, q, k):
        return s * n.item()
    for value in range(40):
        n.fill_(value)
        regions(score)
    count = len(traced)
    assert regions(score) and len(traced) == count
    n.fill_(0)
    assert regions(score) == anew(score) and len(traced) > count


def attend(q, k, v, score, mask):
    return attn.torch.attention(q, k, v, score=score, mask=mask)


def attend_bshd(q, k, v, score, mask):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return attn.torch.attention(q, k, v, score=score, mask=mask, layout="bshd").transpose(1, 2)


def flex(q, k, v, score, mask):
    blocks = create_block_mask(mask, None, None, q.shape[2], k.shape[2], device="cpu") if mask else None
    return attn.torch.flex_attention(q, k, v, score_mod=score, block_mask=blocks)


@pytest.mark.parametrize("call", [attend, attend_bshd, flex])
@pytest.mark.parametrize("kind", ["score", "mask"])
@pytest.mark.parametrize("change", CHANGES)
def test_calls(call, kind, change, traced):
    """Warm ones, too; two queries less than keys."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, length, 16, generator=generator) for length in (14, 16, 16))
    numbers, lone = torch.tensor([2, 4]), torch.tensor(3)
    scores = {"score": lambda s, b, h, i, j: s * numbers[0].item() + i // lone, "mask": None}
    masks = {"score": None, "mask": lambda b, h, i, j: (i // lone >= j // numbers[1]) | (j < int(numbers[0]))}
    score, mask = scores[kind], masks[kind]

    def wanted():
        i, j = torch.arange(14)[:, None], torch.arange(16)
        s = q @ k.transpose(-1, -2) / 4
        s = s if score is None else score(s, 0, 0, i, j)
        s = s if mask is None else s.masked_fill(~mask(0, 0, i, j), -math.inf)
        return s.softmax(-1) @ v
    for values in ([2, 4], [3, 5], [2, 4], [4, 2]):
        CHANGES[change](numbers, values)
        for _ in range(6):
            got = call(q, k, v, score, mask)
            count = len(traced)
            torch.testing.assert_close(got, wanted(), rtol=1e-5, atol=1e-5)
        if call is not flex or kind == "score":  # a new BlockMask each time is looked at again
            call(q, k, v, score, mask)
            assert len(traced) == count
    lone.fill_(5)
    torch.testing.assert_close(call(q, k, v, score, mask), wanted(), rtol=1e-5, atol=1e-5)


def test_gradients_of_what_is_read():
    """A tensor that is read by the function, too, is one that gradients reach."""
    q, k, v = torch.randn(3, 1, 2, 16, 16).unbind(0)
    scale = torch.tensor([2.0, 3.0], requires_grad=True)

    def score(s, b, h, i, j):
        return s * scale[h] + (1.0 if scale[0] > 1 else 2.0) * i * scale[1]
    for value in (2.0, 2.0, 2.0, 2.0, 0.5, 2.0):
        with torch.no_grad():
            scale[0] = value
        got = torch.autograd.grad(attn.torch.attention(q, k, v, score=score).square().sum(), scale)
        i = torch.arange(16)[:, None]
        s = q @ k.transpose(-1, -2) / 4 * scale[:, None, None] + (1.0 if value > 1 else 2.0) * i * scale[1]
        wanted = torch.autograd.grad((s.softmax(-1) @ v).square().sum(), scale)
        torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-3)
