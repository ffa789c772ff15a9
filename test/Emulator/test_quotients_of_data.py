#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""A mask that divides by what it reads of each query and key: behind the last key that is 0,
and a quotient by it no number. Lists of blocks, on an emulated GPU, at lengths that are no
multiples of tiles."""

import attn
import numpy as np
import pytest
from emulate import Artifact, launch
from emulated_case import Array



def third(at):
    """Which third of its document a position is in: a quotient in f32, and one of what is left."""
    return f"""
%start_{at} = attn.capture_load %starts[%{at}] : tensor<?xi32>
%size_{at} = attn.capture_load %sizes[%{at}] : tensor<?xi32>
%inside_{at} = arith.subi %{at}, %start_{at} : i32
%n_{at} = arith.muli %inside_{at}, %three : i32
%float_size_{at} = arith.sitofp %size_{at} : i32 to f32
%each_{at} = arith.divf %one, %float_size_{at} : f32
%float_n_{at} = arith.sitofp %n_{at} : i32 to f32
%part_{at} = arith.mulf %float_n_{at}, %each_{at} : f32
%floor_{at} = math.floor %part_{at} : f32
%near_{at} = arith.fptosi %floor_{at} : f32 to i32
%taken_{at} = arith.muli %near_{at}, %size_{at} : i32
%rest_{at} = arith.subi %n_{at}, %taken_{at} : i32
%float_rest_{at} = arith.sitofp %rest_{at} : i32 to f32
%rest_part_{at} = arith.mulf %float_rest_{at}, %each_{at} : f32
%rest_floor_{at} = math.floor %rest_part_{at} : f32
%further_{at} = arith.fptosi %rest_floor_{at} : f32 to i32
%nearer_{at} = arith.addi %near_{at}, %further_{at} : i32
%all_taken_{at} = arith.muli %further_{at}, %size_{at} : i32
%left_{at} = arith.subi %rest_{at}, %all_taken_{at} : i32
%low_{at} = arith.cmpi slt, %left_{at}, %zero : i32
%high_{at} = arith.cmpi sge, %left_{at}, %size_{at} : i32
%less_{at} = arith.subi %nearer_{at}, %unit : i32
%lower_{at} = arith.select %low_{at}, %less_{at}, %nearer_{at} : i32
%more_{at} = arith.addi %lower_{at}, %unit : i32
%third_{at} = arith.select %high_{at}, %more_{at}, %lower_{at} : i32"""


MASK = f"""%zero = arith.constant 0 : i32
%unit = arith.constant 1 : i32
%three = arith.constant 3 : i32
%one = arith.constant 1.0 : f32{third("i")}{third("j")}
%same = arith.cmpi eq, %start_i, %start_j : i32
%equal = arith.cmpi eq, %third_i, %third_j : i32
%shown = arith.andi %same, %equal : i1
attn.yield %shown : i1"""


@pytest.mark.parametrize("length", [37, 70])
@pytest.mark.parametrize("target, plan", [
    ("sm_80", "#attn.plan<target = sm_80, block_q = 64, block_k = 32, warps = 4, stages = 2>"),
    ("sm_90a", "#attn.plan<target = sm_90a, block_q = 64, block_k = 64, warps = 4, stages = 2>")])
def test_blocks_behind_the_end(length, target, plan):
    text = attn.attention("bf16", 16, captures=[("starts", "tensor<?xi32>"), ("sizes", "tensor<?xi32>")], mask=MASK)
    ends = np.array([4, 13, 22, 24, 27, length])
    document = np.searchsorted(ends, np.arange(length), side="right")
    starts = np.concatenate([[0], ends])[document]
    sizes = ends[document] - starts
    third = (np.arange(length) - starts) * 3 // sizes
    shape = (1, 1, length, 16)
    tensors = [Array("bf16", shape).set(np.zeros(shape)) for _ in range(3)]
    tensors += [Array("i32", (length,)).set(values) for values in (starts, sizes)]
    tensors += [Array("bf16", shape), Array("f32", shape[:3])]
    launch(Artifact(attn.compile(text, target=target, plan=plan).bytes), [array.tensor for array in tensors])
    shown = (starts[:, None] == starts) & (third[:, None] == third)
    np.testing.assert_allclose(np.exp(tensors[-1].values()[0, 0]), shown.sum(1), rtol=1e-5)
