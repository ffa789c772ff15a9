//===- Npy.h - tensors in NumPy's file format -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXECUTE_NPY_H
#define ATTN_EXECUTE_NPY_H

#include "attn/Execute/HostTensor.h"
#include "attn/Runtime/Result.h"
#include <string>

namespace attn {

/// Reads a .npy file (little endian, C order) as a tensor of `element`; values
/// are rounded where the file has a wider type. bf16 comes as `<V2` (what
/// ml_dtypes writes) or from any float type.
runtime::Result<HostTensor> readNpy(const std::string &path,
                                    ElementKind element);

/// Writes the elements in C order; bf16 is written as f32.
runtime::Status writeNpy(const std::string &path, const HostTensor &tensor);

} // namespace attn

#endif // ATTN_EXECUTE_NPY_H
