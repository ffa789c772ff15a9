#===----------------------------------------------------------------------===#
#
# Part of attn, an attention compiler.
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===----------------------------------------------------------------------===#
"""The first lines of README.md run as they are."""

import pathlib
import re

import pytest

torch = pytest.importorskip("torch", minversion="2.9")
README = pathlib.Path(__file__).parents[2] / "README.md"


def test_first_lines():
    lines = re.search(r"```python\n(.*?)```", README.read_text(), re.S)[1]
    names = {}
    exec(lines, names)
    q, k, v, o = (names[name] for name in "qkvo")
    past = torch.ones(1000, 1000, dtype=torch.bool).tril()
    wanted = torch.cat([(q @ k.mT / 8).masked_fill(~past, -torch.inf), torch.zeros(1, 8, 1000, 1)], 3)
    torch.testing.assert_close(o, wanted.softmax(3)[..., :1000] @ v, rtol=1e-4, atol=1e-5)
    near = names["soft"](torch.tensor(3.0), 0, 0, torch.tensor(5), torch.tensor(7))
    torch.testing.assert_close(near, 20 * torch.tanh(torch.tensor(3.0) / 20))
