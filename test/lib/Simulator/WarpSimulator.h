//===- WarpSimulator.h - warp kernels run warp by warp ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a function with a `warp.kernel` in any form (copies in place, rings,
// roles, products in flight, turns) without a GPU, for tests. A warp is a
// coroutine; a seeded scheduler says who goes on, so that other seeds are other
// schedules of the same program. Rings, roles and turns do what their
// descriptions say, fragments are registers of lanes as attn/Layout spreads
// them.
//
// What one schedule hides, another shows; what none can show is checked:
//
// - A slot has no content until its copy has arrived, nor after this warp has
//   released it; reading it then is an error. A copy by TMA arrives at any time
//   after its start, cp.async at the last moment that the derived number of
//   copies in flight (Analysis/PendingCopies.h) allows.
// - A product in flight reads its slots until it is waited for. A release of
//   such a slot, a copy to it, or a result stored via its rows is an error; so
//   is a wait whose derived number (Analysis/PendingMmas.h) leaves the product
//   in flight.
// - The items of a ring are counted. An item copied or awaited out of order, a
//   slot released twice, or overwritten before all warps released it and met
//   at a barrier, an item that nobody awaits, a slot never released: errors.
// - The warps of a group issue the same products, those of a block meet at the
//   same barriers, groups take the same turns.
// - An element of global memory written twice is an error.
// - Where no warp can go on, the error says for each what it waits for.
//
// Each is a diagnostic at the operation.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_SIMULATOR_WARPSIMULATOR_H
#define ATTN_TEST_SIMULATOR_WARPSIMULATOR_H

#include "Simulator/Simulator.h"

namespace attn::simulator {

/// Runs a host function whose kernel is a `warp.kernel`.
LogicalResult simulateWarps(func::FuncOp host, ArrayRef<HostArgument> arguments,
                            uint64_t seed = 0);

} // namespace attn::simulator

#endif // ATTN_TEST_SIMULATOR_WARPSIMULATOR_H
