#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""attn.raise_: attention in plain graphs."""

import attn
import pytest

GRAPH = """\
func.func @plain(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %q, %c0 : tensor<?x64xf32>
  %t = tensor.dim %k, %c0 : tensor<?x64xf32>
  %et = tensor.empty(%t) : tensor<64x?xf32>
  %kt = linalg.transpose ins(%k : tensor<?x64xf32>) outs(%et : tensor<64x?xf32>) permutation = [1, 0]
  %es = tensor.empty(%n, %t) : tensor<?x?xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.matmul ins(%q, %kt : tensor<?x64xf32>, tensor<64x?xf32>) outs(%s0 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = linalg.softmax dimension(DIM) ins(%s : tensor<?x?xf32>) outs(%es : tensor<?x?xf32>) -> tensor<?x?xf32>
  %eo = tensor.empty(%n) : tensor<?x64xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%eo : tensor<?x64xf32>) -> tensor<?x64xf32>
  %o = linalg.matmul ins(%p, %v : tensor<?x64xf32>, tensor<?x64xf32>) outs(%o0 : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}
""".replace("%p, %v : tensor<?x64xf32>", "%p, %v : tensor<?x?xf32>")


def test_what_is_proved_is_raised():
    text, log = attn.raise_(GRAPH.replace("DIM", "1"))
    assert "attn.attention" in text and "linalg.softmax" not in text
    assert log == ["14:8: raised: attention with scale 1"]


def test_what_is_not_stays():
    text, log = attn.raise_(GRAPH.replace("DIM", "0"))
    assert "attn.attention" not in text and "linalg.softmax dimension(0)" in text
    assert log == ["14:8: not raised: the sum of the exponentials runs over another "
                   "dimension than that of the keys"]


def test_a_line_for_each_graph():
    again = GRAPH.replace("@plain", "@again").replace("DIM", "1")
    text, log = attn.raise_(GRAPH.replace("DIM", "0") + again)
    assert text.count("attn.attention") == 1
    assert [line.split(": ")[1] for line in log] == ["not raised", "raised"]


def test_nothing_that_looks_like_attention():
    text, log = attn.raise_("func.func @empty() { return }")
    assert "func.func @empty" in text and log == []


def test_mistakes():
    with pytest.raises(attn.AttnError, match=r"1:1: error: .*\n    nonsense\n    \^"):
        attn.raise_("nonsense")
    with pytest.raises(TypeError, match="wanted MLIR text, got int"):
        attn.raise_(1)
