#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""debug=True: what only data say is checked before a launch."""

import copy
import os
import pathlib
import pickle
import subprocess
import types

import attn
import numpy
import pytest
from attn import debug, evaluate, expression, masks
from test_reach import random_flag, random_index, random_mask, random_score

BATCH, HEADS, QUERIES, KEYS = 2, 3, 10, 12
IDS = numpy.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 5], numpy.int32)
OFFSETS = numpy.array([0, 4, 9, 12], numpy.int32)


def launch(arrays, captures, wrap=lambda array: array, words=None, **options):
    """A launch that is refused in these words, but not without debug."""
    kernel = attn.compile(attn.attention("f32", 8, captures=captures, **options), target="cpu", debug=True)
    q = numpy.ones((BATCH, HEADS, QUERIES, 8), numpy.float32)
    k = numpy.ones((BATCH, HEADS, KEYS, 8), numpy.float32)
    values = [q, k, k, *map(wrap, arrays), numpy.empty_like(q), numpy.empty(q.shape[:3], numpy.float32)]
    if words is None:
        return kernel.launch(*values)
    with pytest.raises(attn.AttnError) as caught:
        kernel.launch(*values)
    assert words in str(caught.value)
    kernel.debugged = None
    kernel.launch(*values)


def refused(words, *arguments, **options):
    launch(*arguments, words=words, **options)


def by_ids(p):
    return p.x + p.table[p.h, p.ids[p.j]]


TABLE = [("ids", "tensor<?xi32>"), ("table", "tensor<?x?xf32>")]


def table(columns):
    return numpy.ones((HEADS, columns), numpy.float32)


def test_indices_that_data_give():
    launch([IDS, table(6)], TABLE, score=by_ids)
    refused("capture 'table': index 5 of dimension 1, which has 5 elements, is read at batch entry 0, "
            "head 0, query 0, key 11", [IDS, table(5)], TABLE, score=by_ids)
    refused("capture 'table': index -1 of dimension 1", [IDS - 1, table(5)], TABLE, score=by_ids)


def test_indices_below_0():
    refused("capture 't': index -1 of dimension 0, which has 12 elements, is read at batch entry 0, head 0, "
            "query 0, key 0", [numpy.ones(12, numpy.float32)], [("t", "tensor<?xf32>")],
            score=lambda p: p.x + p.t[p.j - 1])


@pytest.mark.parametrize("options", [
    dict(mask=lambda p: p.j < 11),
    dict(mask=lambda p: p.ids[p.j] < 5),
    dict(variants=["causal<top_left>"]),
    dict(variants=["window<left = -1, right = 0>", "causal<top_left>"]),
    dict(variants=["window<left = -1, right = 0, alignment = top_left>", "softcap<3.0 : f32>", "alibi"]),
])
def test_what_is_hidden_does_not_count(options):
    launch([IDS, table(5)], TABLE, score=by_ids, **options)


@pytest.mark.parametrize("score", [
    lambda p: expression.where(p.ids[p.j] < 5, by_ids(p), p.x),
    lambda p: p.x + expression.where(p.j == 11, 0.0, p.table[p.h, p.ids[p.j]]),
    lambda p: p.x + p.table[p.h, p.ids[p.j]] * (p.ids[p.j] < 5).to("f32"),
    lambda p: p.x + p.table[p.h, expression.minimum(p.ids[p.j], 4)],
])
def test_what_is_dropped_does_not_count(score):
    launch([IDS, table(5)], TABLE, score=score)


def test_flags_that_drop():
    captures = [("ids", "tensor<?xi32>"), ("shown", "tensor<?xi1>")]
    arrays = [IDS, numpy.ones(5, bool)]
    for mask in (lambda p: (p.ids[p.j] < 5) & p.shown[p.ids[p.j]],
                 lambda p: (p.ids[p.j] >= 5) | p.shown[p.ids[p.j]]):
        launch(arrays, captures, mask=mask)
    refused("capture 'shown': index 5", arrays, captures, mask=lambda p: p.shown[p.ids[p.j]])


def test_searches():
    captures = [("offsets", "tensor<?xi32>"), ("t", "tensor<?xf32>")]
    score = lambda p: p.x + p.t[p.offsets.upto(p.j)]  # noqa: E731
    launch([OFFSETS, numpy.ones(5, numpy.float32)], captures, score=score)
    # Key 8 is in the second document, whose number is 2.
    refused("capture 't': index 2 of dimension 0, which has 2 elements, is read at batch entry 0, head 0, "
            "query 0, key 4", [OFFSETS, numpy.ones(2, numpy.float32)], captures, score=score)


def test_sorted():
    captures = [("offsets", "tensor<?xi32>")]
    options = dict(mask=masks.documents("offsets"))
    launch([OFFSETS], captures, **options)
    words = "capture 'offsets' is not sorted: element [2] is 4, after 9"
    refused(words, [OFFSETS[[0, 2, 1, 3]]], captures, **options)
    captures = [("ids", "tensor<?x?xi32>")]
    options = dict(mask=masks.same("ids"), sorted_captures=["ids"])
    both = numpy.stack([IDS, IDS])
    launch([both], captures, **options)
    both[1, 7] = 1
    refused("capture 'ids' is not sorted: element [1, 7] is 1, after 2", [both], captures, **options)


def test_sizes_and_scalars():
    captures = [("t", "tensor<?xf32>"), ("n", "i32"), ("ids", "tensor<?xi32>")]
    score = lambda p: p.x + p.t[p.ids[p.j] * p.n + p.keys - p.queries - p.offset]  # noqa: E731
    launch([numpy.ones(11, numpy.float32), 2, IDS], captures, score=score)
    refused("capture 't': index 10", [numpy.ones(10, numpy.float32), numpy.int32(2), IDS], captures, score=score)


def test_lines_of_mlir():
    score = """
        %id = attn.capture_load %ids[%j] : tensor<?xi32>  // a comment
        %wide = arith.extsi %id : i32 to i64
        %c2 = arith.constant 2 : i64
        %half = arith.divsi %wide, %c2 : i64
        %at = arith.trunci %half : i64 to i32
        %y = attn.capture_load %t[%at] : tensor<?xf32>
        %e = math.exp %y : f32
        %sum = arith.addf %x, %e fastmath<reassoc> : f32
        attn.yield %sum : f32"""
    captures = [("ids", "tensor<?xi32>"), ("t", "tensor<?xf32>")]
    launch([IDS, numpy.ones(3, numpy.float32)], captures, score=score)
    refused("capture 't': index 2", [IDS, numpy.ones(2, numpy.float32)], captures, score=score)


def test_what_floats_give_is_not_looked_at():
    launch([numpy.ones(2, numpy.float32)], [("t", "tensor<?xf32>")],
           score=lambda p: p.x + p.t[(p.x * 100 + 7).to("i32")])


def test_names_that_hold_letters_of_the_position():
    captures = [("hi", "tensor<?xi32>"), ("t", "tensor<?xf32>")]
    refused("capture 't': index 5", [IDS, numpy.ones(5, numpy.float32)], captures, score=lambda p: p.x + p.t[p.hi[p.j]])


def test_tensors_of_a_gpu_are_copied():
    """Those of torch and CuPy; here they lie on the CPU."""
    class Torch:
        is_cuda, device, layout = False, types.SimpleNamespace(type="cpu"), "torch.strided"

        def __init__(self, array):
            self.array, self.dtype, self.shape = array, f"torch.{array.dtype}", array.shape
            self.data_ptr = lambda: array.ctypes.data
            self.stride = lambda: [stride // array.itemsize for stride in array.strides]

        def detach(self):
            return self

        cpu = detach

        def numpy(self):
            return self.array

    refused("capture 'table': index 5", [IDS, table(5)], TABLE, score=by_ids, wrap=Torch)
    device = types.SimpleNamespace(__cuda_array_interface__={}, get=lambda: IDS)
    assert (debug._host_array(device, "i32") == IDS).all()
    with pytest.raises(attn.AttnError, match="cannot copy a SimpleNamespace from the GPU"):
        debug._host_array(types.SimpleNamespace(__cuda_array_interface__={}), "i32")
    assert (debug._host_array(numpy.array([0x3F80], numpy.uint16), "bf16") == 1).all()


def test_copies_and_pickles_look_too():
    text = attn.attention("f32", 8, captures=TABLE, score=by_ids)
    artifact = pickle.loads(pickle.dumps(attn.compile(text, debug=True)))
    assert artifact.debugged.captures == TABLE
    kernel = pickle.loads(pickle.dumps(copy.deepcopy(attn.compile(text, target="cpu", debug=True))))
    assert kernel.debugged == text


def test_other_texts():
    with pytest.raises(TypeError, match="wants a text that attn.attention made"):
        attn.compile(str(attn.attention("f32", 8)) + "\n", debug=True)


def test_large_problems_in_parts(monkeypatch):
    monkeypatch.setattr(debug, "_ROWS", 30)
    refused("query 9, key 11", [IDS, table(6), numpy.arange(10, dtype=numpy.int32)],
            [*TABLE, ("rows", "tensor<?xi32>")],
            score=lambda p: p.x + p.table[p.h, p.ids[p.j] + p.rows[p.i] // 9])


@pytest.mark.parametrize("line, expected", [
    ("arith.addi %a, %b : i8", [-128 + 0, -126]),
    ("arith.floordivsi %a, %c : i8", [42, -43]),
    ("arith.divsi %a, %c : i8", [42, -42]),
    ("arith.remsi %a, %c : i8", [1, -2]),
    ("arith.ceildivsi %a, %c : i8", [43, -42]),
    ("arith.divui %a, %c : i8", [42, 42]),
    ("arith.shrui %a, %b : i8", [63, 32]),
    ("arith.extui %a : i8 to i32", [127, 128]),
    ("arith.extsi %a : i8 to i32", [127, -128]),
    ("arith.cmpi ult, %a, %b : i8", [False, False]),
    ("arith.cmpi slt, %a, %b : i8", [False, True]),
    ("arith.cmpf une, %f, %f : f32", [False, True]),
    ("arith.cmpf oeq, %f, %f : f32", [True, False]),
    ("arith.uitofp %t : i1 to f32", [1.0, 0.0]),
    ("arith.sitofp %t : i1 to f32", [-1.0, 0.0]),
    ("arith.extui %t : i1 to i32", [1, 0]),
    ("arith.extsi %t : i1 to i32", [-1, 0]),
    ("arith.trunci %a : i8 to i1", [True, False]),
    ("math.absi %a : i8", [127, -128]),
    ("math.tanh %f : f32", None),
])
def test_operations(line, expected):
    values = dict(a=numpy.array([127, -128], numpy.int8), b=numpy.array([1, 2], numpy.int8),
                  c=numpy.int8(3), f=numpy.array([1, numpy.nan], numpy.float32), t=numpy.array([True, False]))
    region = evaluate.Region(numpy, {}, values)
    value = region.run([f"%r = {line}", "attn.yield %r : t"]).value
    assert value is expected if expected is None else value.tolist() == expected


def attn_run(text, values, directory):
    """What attn-run --debug-captures says, which looks for the same; "" if nothing."""
    tool = pathlib.Path(attn._capi._path).resolve().parent.parent / "bin" / "attn-run"
    if not tool.exists():
        pytest.skip("attn-run is not beside the library")
    (directory / "f.mlir").write_text(str(text))
    options = []
    for name, value in values.items():
        if isinstance(value, int):
            options.append(f"--scalar={name}={value}")
        else:
            numpy.save(directory / f"{name}.npy", value)
            options.append(f"--input={name}={directory / name}.npy")
    # The tool has its sanitizer inside; the one that is loaded first is Python's.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([tool, directory / "f.mlir", "--target=cpu", "--debug-captures", *options],
                          capture_output=True, text=True, env=environment)
    assert done.returncode in (0, 1), done.stderr
    return done.stderr


@pytest.mark.parametrize("seed", range(12))
def test_attn_run_says_the_same(seed, tmp_path):
    rng = numpy.random.default_rng(seed)
    captures = [("t", "tensor<?xf32>"), ("u", "tensor<?xf32>"), ("ids", "tensor<?xi32>"),
                ("rows", "tensor<?x?xi32>"), ("n", "i32")]

    def score(p):
        where = p.ids[random_index(rng, p)]
        return random_score(rng, p) + expression.where(random_flag(rng, p), p.u[where], 0.0) * p.t[p.ids[p.j]]

    text = attn.attention("f32", 8, captures=captures, score=score, mask=lambda p: random_mask(rng, p),
                          variants=[[], ["causal"], ["window<left = 3, right = 2, alignment = top_left>"]][seed % 3])
    kernel = attn.compile(text, target="cpu")
    for _ in range(20):
        batch, heads, queries, keys, t, u, rows = (int(number) for number in rng.integers(2, 9, 7))
        q, k = (numpy.ones((batch, heads, length, 8), numpy.float32) for length in (queries, keys))
        values = dict(q=q, k=k, v=k, t=numpy.ones(t, numpy.float32), u=numpy.ones(u, numpy.float32),
                      ids=rng.integers(0, 5, 8).astype(numpy.int32),
                      rows=numpy.sort(rng.integers(0, 9, (rows, 3))).astype(numpy.int32), n=int(rng.integers(0, 9)))
        arguments = [*values.values(), numpy.empty_like(q), numpy.empty(q.shape[:3], numpy.float32)]
        try:
            kernel.describe_launch(*arguments)
        except attn.AttnError:
            continue  # sizes say it
        found = attn_run(text, values, tmp_path)
        try:
            debug.check(text, kernel.manifest["arguments"], arguments)
        except attn.AttnError as error:
            # Which position comes first is another matter.
            assert "is read at batch entry" in str(error)
            assert "is read at batch entry" in found
        else:
            assert found == ""
        return
