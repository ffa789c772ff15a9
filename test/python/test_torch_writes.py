#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""Functions of scores that write in place: what is read of tensors, of views of them and of
what was computed from them is what eager PyTorch reads there, position by position."""

import pytest

torch = pytest.importorskip("torch", reason="functions of PyTorch need PyTorch")
pytest.importorskip("torch.nn.attention.flex_attention", reason="this PyTorch has no flex attention")

import attn  # noqa: E402
from attn.torch import flex_attention, trace  # noqa: E402
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex  # noqa: E402
from torch.nn import functional as F  # noqa: E402

LENGTH = 5
torch.manual_seed(0)
ROWS = torch.randn(LENGTH, 4, requires_grad=True)
TABLES = torch.randn(LENGTH, 2, 2, requires_grad=True)
KINDS = torch.arange(LENGTH) % 4
PLACES = torch.tensor([3, 1])


def by_elements(y, s, q, k):
    first, second, third, fourth = (y.clone() for _ in range(4))
    first[0] = 5.0
    first[-1] = s
    second[1:3] = 2.0
    second[::3] += 0.5
    third[1] += ROWS[k, 0]
    third[2:] *= third[0]
    for n in range(1, 4):
        fourth[n] = fourth[n - 1] * 0.5 + ROWS[k, n]
    fourth[0], fourth[1] = fourth[1], fourth[0]
    return first.sum() + second.prod() + third.sum() + fourth[1] * fourth[2]


def by_elements_known_to_the_kernel(y, s, q, k):
    first, second = y.clone(), y.clone()
    first[KINDS[k]] = s
    second[KINDS[q]] += 2.0
    second[1] = 0.5
    return first.prod() + second[KINDS[k]]


def by_views(y, s, q, k):
    first, second, third, fourth = (y.clone() for _ in range(4))
    half = first[:2]
    half.mul_(0.5)
    second.unsqueeze(0).zero_()
    third.view(2, 2).t()[:1].add_(2.0)
    third.reshape(-1).narrow(0, 1, 2).mul_(3.0)
    front, back = fourth.view(2, 2), fourth[2:]
    front[1:, :1].add_(s)
    front.mul_(2.0)
    return first.sum() + half[0] + second.sum() + third.prod() + back.prod() + fourth[3]


def by_views_that_are_copies(y, s, q, k):
    """What PyTorch copies is not written to."""
    square = y.view(2, 2)
    for copied in (square.t().reshape(-1), square.t().contiguous(), square[:, :1].flatten(), y.to(torch.float32, copy=True),
                   y.expand(3, 4).reshape(-1), y[PLACES], y.clone()):
        copied.zero_()
    first, same = y.clone(), y.to(torch.float32).contiguous().view(-1)
    same += 1.0
    number = y[0]  # in functions of flex attention
    number += 100.0
    return first.prod() + y.sum() * y[2]


def by_tensors_of_tables(y, s, q, k):
    table = TABLES[q] - TABLES[k]
    row = table[1:]
    table.transpose(0, 1).mul_(torch.tensor([1.5, 2.0]))
    table.mT[:1] -= 1.0
    table[..., 0] = ROWS[k][:2]
    element = row[0:1, 1:]
    element.mul_(0.5)
    return table.prod() + row.sum() + element.sum()


def with_earlier_values(y, s, q, k):
    doubled, total, joined, more = y * 2, y.cumsum(0), torch.stack([y, y + 1]), torch.cat([y, y])
    weights, chosen = y.softmax(0), torch.where(y > 0, y, 1.0)
    y.copy_(ROWS[k])
    y += 1.0
    shown = y[KINDS[q]]
    y.fill_(1.0)
    return (doubled.sum() + total[2] * weights[1] + joined[1].prod() + more[5] + chosen.sum() + shown + y.prod())


def with_operations_in_place(y, s, q, k):
    first, second, third = (y.clone() for _ in range(3))
    first += ROWS[k]
    first.mul_(0.5).clamp_(-0.6, 0.8).sub_(0.1).neg_()
    second.masked_fill_(second > 0, 0.3)
    second[second < -1] = s
    third.copy_(ROWS[q, :1])
    third.addcmul_(ROWS[k], ROWS[q], value=0.5).lerp_(ROWS[k], 0.3)
    F.hardtanh(third[:2], -0.5, 0.5, inplace=True)
    return first.prod() + second.sum() + third.sum()


def with_scores_in_place(y, s, q, k):
    changed = s.clone()
    later = changed * 2
    changed += 1
    changed.unsqueeze(0).mul_(0.5)
    numbers = torch.stack([q, k])
    numbers *= 2
    numbers[0] = 3
    zeros = s.new_zeros(3)
    zeros[1] = s
    return later * changed + numbers.sum() + zeros.sum() + F.cosine_similarity(ROWS[q], ROWS[k], dim=0)


def with_items_of_other_names(y, s, q, k):
    first, second, third, table = y.clone(), y.clone(), y.clone(), TABLES[q] - TABLES[k]
    first.index_put_((PLACES,), torch.tensor([3.0, 4.0]))
    first.index_copy_(0, PLACES[:1], s.reshape(1))
    second.scatter_(0, PLACES, ROWS[k][:2])
    second.index_fill_(0, torch.tensor([0]), 2.5)
    third = torch.select_scatter(third, s, 0, 1) * third.index_put((PLACES,), torch.tensor(2.0))
    table.scatter_(1, torch.tensor([[1], [0]]), 1.5)
    table[torch.tensor([0, 1]), torch.tensor([0, 1])] = ROWS[q][:2]
    return first.prod() + second.prod() + third.sum() + table.prod()


CASES = [by_elements, by_elements_known_to_the_kernel, by_views, by_views_that_are_copies, by_tensors_of_tables, with_earlier_values,
         with_operations_in_place, with_scores_in_place, with_items_of_other_names]


def score_of(function):
    return lambda s, b, h, q, k: s + function((ROWS[q] - ROWS[k]) * 1.0, s, q, k)


def eager(function, q, k, v):
    """One call for each score, as TransformGetItemToIndex has flex attention index."""
    score, scores = score_of(function), q[0, 0] @ k[0, 0].mT / 4
    at = [torch.tensor(n, dtype=torch.int32) for n in range(LENGTH)]
    with TransformGetItemToIndex():
        rows = [torch.stack([score(scores[i, j].clone(), at[0], at[0], at[i], at[j]) for j in range(LENGTH)])
                for i in range(LENGTH)]
    return torch.stack(rows).softmax(-1) @ v


def close(got, wanted):
    torch.testing.assert_close(*torch.broadcast_tensors(got, wanted), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_values_and_gradients(function):
    torch.manual_seed(1)
    inputs = [torch.randn(1, 1, LENGTH, 16, requires_grad=True) for _ in range(3)]
    got, wanted = flex_attention(*inputs, score_of(function)), eager(function, *inputs)
    close(got, wanted)
    leaves, upstream = [*inputs, ROWS, TABLES], torch.randn(1, 1, LENGTH, 16)
    both = [torch.autograd.grad((x * upstream).sum(), leaves, allow_unused=True) for x in (got, wanted)]
    for mine, its in zip(*both):
        if mine is not None or its is not None:
            close(torch.zeros(()) if mine is None else mine, torch.zeros(()) if its is None else its)


@pytest.mark.parametrize("function", [by_views, by_views_that_are_copies, with_operations_in_place], ids=lambda function: function.__name__)
def test_where_pytorch_asks_for_whole_operations(function):
    """reshape(), contiguous() and others, which are several elsewhere."""
    inputs = [torch.randn(1, 1, LENGTH, 16) for _ in range(3)]
    with torch.no_grad():
        wanted = eager(function, *inputs)
    with torch.inference_mode():
        close(flex_attention(*inputs, score_of(function)), wanted)


def test_what_autograd_does_not_differentiate():
    def function(y, s, q, k):
        w, z, out, flags = y.abs(), y.clone(), torch.empty_like(y), y > 0
        taken = y.gather(0, PLACES)
        y.div_(y.norm() + 1)
        y[0] = 0.25
        torch.add(z, 1, out=out)
        torch.exp(z[:2], out=z[2:])
        z.detach()[:1].zero_()
        z.data[1:2] += 1
        return w.sum() + y.prod() + out.prod() + z.sum() + flags[0] + taken.prod()
    inputs = [torch.randn(1, 1, LENGTH, 16) for _ in range(3)]
    with torch.no_grad():
        close(flex_attention(*inputs, score_of(function)), eager(function, *inputs))


def test_masks():
    def mask(b, h, q, k):
        near = ROWS[q] - ROWS[k]
        near[:2].abs_()
        shown = near > -0.5
        near.zero_()
        shown[1] |= q == k
        return shown.all()
    inputs = [torch.randn(1, 1, LENGTH, 16) for _ in range(3)]
    at = torch.arange(LENGTH)
    near = (ROWS[:, None] - ROWS)
    shown = torch.cat([near[..., :2].abs(), near[..., 2:]], -1) > -0.5
    shown[..., 1] |= at[:, None] == at
    from torch.nn.attention.flex_attention import create_block_mask
    with torch.no_grad():
        got = flex_attention(*inputs, block_mask=create_block_mask(lambda b, h, q, k: k >= 0, 1, 1, LENGTH, LENGTH, device="cpu"),
                             score_mod=lambda s, b, h, q, k: torch.where(mask(b, h, q, k), s, -torch.inf))
        wanted = (inputs[0] @ inputs[1].mT / 4).masked_fill(~shown.all(-1), -torch.inf).softmax(-1).nan_to_num(0.0) @ inputs[2]
    close(got, wanted)


# What was there before


def test_tensors_that_the_function_makes():
    def function(y, s, q, k):
        doubled, numbers = KINDS * 2, torch.zeros(5)
        doubled.mul_(3)
        numbers[2] = 4.0
        return doubled[k] + numbers[q]
    inputs = [torch.randn(1, 1, LENGTH, 16) for _ in range(3)]
    with torch.no_grad():
        close(flex_attention(*inputs, score_of(function)), eager(function, *inputs))


@pytest.mark.parametrize("sizes", [None, (1, 1, LENGTH, LENGTH)])
def test_functions_that_write_to_what_they_capture_do_so_in_each_call(sizes):
    calls = torch.zeros(3, dtype=torch.int64)

    def score(s, b, h, q, k):
        calls.add_(1)
        return s + calls[q - k]
    for count in (1, 2, 3):
        trace.region(score, "score", sizes=sizes)
        assert calls.tolist() == [count] * 3


def later_of_a_capture(y, s, q, k):
    table = ROWS * 2
    read = table[k].sum()
    table[0].mul_(3)
    return read


def later_of_numbers(y, s, q, k):
    table = torch.zeros(5)
    read = table[k]
    table[2] = 4.0
    return read


def of_positions_to_numbers(y, s, q, k):
    table = torch.zeros(4)
    table[0] = s
    return table.sum()


def to_a_view_that_repeats(y, s, q, k):
    y[:1].expand(3).zero_()
    return y.sum()


def that_add_up(y, s, q, k):
    return y.index_add_(0, PLACES, torch.ones(2)).sum()


def of_another_type(y, s, q, k):
    return torch.stack([q, k]).add_(1.5).sum()


def into_another_shape(y, s, q, k):
    return y.copy_(TABLES[q]).sum()


def of_another_size(y, s, q, k):
    out = torch.empty_like(y)[:2]
    torch.add(y, 1, out=out)
    return out.sum()


def of_the_shape(y, s, q, k):
    return y.unsqueeze_(0).sum()


def of_the_memory(y, s, q, k):
    y.data = ROWS[k]
    return y.sum()


def at_random(y, s, q, k):
    return y.normal_().sum()


REFUSED = {
    later_of_a_capture: "after positions said", later_of_numbers: "after positions said",
    of_positions_to_numbers: "depends on positions", to_a_view_that_repeats: "several times", that_add_up: "added up",
    of_another_type: "float32 cannot be written to a tensor of torch.int32", into_another_shape: "shape",
    of_another_size: "of the shape of the result", of_the_shape: "changes the shape", at_random: "random",
    of_the_memory: "replaced",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_refused(function):
    with pytest.raises(trace.TraceError, match=REFUSED[function]):
        trace.region(score_of(function), "score")


@pytest.mark.parametrize("has_gradients", [False, True])
def test_writes_to_memory_that_detach_shares(has_gradients):
    """Both see it, where that has nothing to do with gradients."""
    x = torch.randn(40, 4, requires_grad=has_gradients)
    q, k, v = (torch.randn(1, 2, 40, 16) for _ in range(3))

    def by_detached(s, b, h, i, j):
        y = x[i] - x[j]
        y.detach()[1:].fill_(0.5)
        return s + y.sum()

    def after_detach(s, b, h, i, j):
        y = x[i] - x[j]
        z = y.detach()
        y[1:] = 0.5
        return s + z.sum()

    first = x[:, None, 0] - x[None, :, 0]
    wanted = (q @ k.mT / 4 + first.detach() + 1.5).softmax(-1) @ v
    with torch.set_grad_enabled(has_gradients):
        close(flex_attention(q, k, v, score_mod=after_detach).detach(), wanted)
        if has_gradients:
            with pytest.raises(attn.AttnError, match=r"through detach\(\)"):
                flex_attention(q, k, v, score_mod=by_detached)
        else:
            close(flex_attention(q, k, v, score_mod=by_detached), wanted)
