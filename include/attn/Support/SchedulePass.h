//===- SchedulePass.h - the base of passes that may be dropped -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schedule pass asks for the form of a function (Form.h), visits the
// operations of one kind in it and tries something with each. What it did it
// says in a *passed* remark with figures; what it left alone, in a *missed*
// remark with the reason. Both have the name of the pass without its room, and
// its flag as category:
//
//   struct WarpDeferSum final
//       : attn::SchedulePass<impl::WarpDeferSumBase<WarpDeferSum>, KernelOp,
//                            WarpForm::Sync> {
//     using Base::Base;
//
//     void transform(RewriterBase &rewriter, KernelOp kernel) override {
//       std::string reason;
//       report("sums", deferRowSums(rewriter, kernel, reason), reason);
//     }
//   };
//
// The transformation itself is a function that other code may call.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_SCHEDULEPASS_H
#define ATTN_SUPPORT_SCHEDULEPASS_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/CSE.h"

namespace attn {

/// What follows where something changed. A pass whose matchers are particular
/// about where operations stand leaves that to the door of its room.
enum class CleanUp { None, CSE };

/// `Generated` is the base that a pass has from its Passes.td; `OpT` is what it
/// visits, perhaps the function itself; `form` is what the function must have,
/// of an enum with a function `requireForm`.
template <typename Generated, typename OpT, auto form,
          CleanUp cleanUp = CleanUp::None>
class SchedulePass : public Generated {
public:
  using Base = SchedulePass;
  using Generated::Generated;

  void runOnOperation() final {
    if (failed(requireForm(this->getOperation(), form, this->getArgument())))
      return this->signalPassFailure();
    // What a pass adds is not visited.
    SmallVector<OpT> ops;
    this->getOperation()->walk([&](OpT op) {
      if (isWanted(op))
        ops.push_back(op);
    });
    IRRewriter rewriter(&this->getContext());
    isChanged = false;
    for (OpT op : ops) {
      place = op.getLoc();
      transform(rewriter, op);
    }
    if (!isChanged || cleanUp == CleanUp::None)
      return;
    DominanceInfo dominance(this->getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, this->getOperation());
  }

protected:
  virtual bool isWanted(OpT) { return true; }

  /// Transforms `op` and says so by `report`, or by `passed` and `missed`.
  virtual void transform(RewriterBase &rewriter, OpT op) = 0;

  /// The operation visited is changed. Gives the remark, for figures.
  remark::detail::InFlightRemark passed(std::optional<Location> loc = {}) {
    isChanged = true;
    return remark::passed(loc.value_or(*place), options());
  }

  /// The operation visited, or something in it at `loc`, stays as it is.
  void missed(const Twine &reason, std::optional<Location> loc = {}) {
    remark::missed(loc.value_or(*place), options()) << reason.str();
  }

  /// `count` things were done, named `figure`; failure and 0 mean none.
  /// `reason` says why others, or all, stayed as they are.
  void report(StringRef figure, FailureOr<int64_t> count, StringRef reason) {
    if (succeeded(count) && *count > 0)
      passed() << remark::metric(figure, *count);
    if (!reason.empty())
      missed(reason);
  }

private:
  remark::RemarkOpts options() {
    StringRef flag = this->getArgument();
    return remark::RemarkOpts::name(flag.split('-').second).category(flag);
  }

  std::optional<Location> place; // of the operation visited
  bool isChanged = false;
};

} // namespace attn

#endif // ATTN_SUPPORT_SCHEDULEPASS_H
