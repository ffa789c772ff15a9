//===- KernelOps.cpp - warp.kernel ----------------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Support/KernelOps.h"
#include "attn/Dialect/Warp/IR/Warp.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn::warp;

/// `keyword(number)`, or nothing.
static ParseResult parseOptionalNumber(OpAsmParser &p, StringRef keyword,
                                       StringAttr name,
                                       OperationState &result) {
  int64_t number;
  if (failed(p.parseOptionalKeyword(keyword)))
    return success();
  if (p.parseLParen() || p.parseInteger(number) || p.parseRParen())
    return failure();
  result.addAttribute(name, p.getBuilder().getI64IntegerAttr(number));
  return success();
}

/// `scheduler(dynamic)`, `starts(early)`, or nothing: `keyword` and one of
/// `choices`, which `symbolize` knows.
template <typename EnumAttr, typename Enum>
static ParseResult
parseOptionalEnum(OpAsmParser &p, StringRef keyword, StringRef choices,
                  std::optional<Enum> (*symbolize)(StringRef), EnumAttr &attr) {
  if (failed(p.parseOptionalKeyword(keyword)))
    return success();
  StringRef word;
  SMLoc loc;
  if (p.parseLParen() || p.getCurrentLocation(&loc) || p.parseKeyword(&word))
    return failure();
  std::optional<Enum> value = symbolize(word);
  if (!value)
    return p.emitError(loc, "got ")
           << keyword << " " << word << ", expected " << choices;
  attr = EnumAttr::get(p.getContext(), *value);
  return p.parseRParen();
}

// @name blocks(%x, %y, %z) in (%nx, %ny, %nz) warps(4) stages(2) shared(98304)
// resident scheduler(dynamic) independent starts(early) { … }
ParseResult KernelOp::parse(OpAsmParser &p, OperationState &result) {
  SmallVector<OpAsmParser::Argument> ids;
  SmallVector<OpAsmParser::UnresolvedOperand> grid;
  Type index = p.getBuilder().getIndexType();
  int64_t warps = 0;
  SMLoc idsLoc, loc;
  StringAttr name;
  if (p.parseSymbolName(name, getSymNameAttrName(result.name),
                        result.attributes) ||
      p.parseKeyword("blocks") || p.getCurrentLocation(&idsLoc) ||
      p.parseArgumentList(ids, OpAsmParser::Delimiter::Paren) ||
      p.parseKeyword("in") || p.getCurrentLocation(&loc) ||
      p.parseOperandList(grid, 3, OpAsmParser::Delimiter::Paren) ||
      p.resolveOperands(grid, {index, index, index}, loc, result.operands) ||
      p.parseKeyword("warps") || p.parseLParen() || p.parseInteger(warps) ||
      p.parseRParen())
    return failure();
  if (ids.size() != 3)
    return p.emitError(idsLoc, "expected three block numbers, got ")
           << ids.size();
  Builder &b = p.getBuilder();
  result.addAttribute(getWarpsAttrName(result.name),
                      b.getI64IntegerAttr(warps));
  if (parseOptionalNumber(p, "stages", getStagesAttrName(result.name),
                          result) ||
      parseOptionalNumber(p, "registers", getRegistersAttrName(result.name),
                          result) ||
      parseOptionalNumber(p, "per_sm", getBlocksPerSMAttrName(result.name),
                          result) ||
      parseOptionalNumber(p, "shared", getSharedBytesAttrName(result.name),
                          result))
    return failure();
  if (succeeded(p.parseOptionalKeyword("resident")))
    result.addAttribute(getResidentAttrName(result.name), b.getUnitAttr());
  auto &properties = result.getOrAddProperties<KernelOp::Properties>();
  if (parseOptionalEnum(p, "scheduler", "grid, static or dynamic",
                        symbolizeScheduler, properties.scheduler))
    return failure();
  if (succeeded(p.parseOptionalKeyword("independent")))
    result.addAttribute(getIndependentAttrName(result.name), b.getUnitAttr());
  if (parseOptionalEnum(p, "starts", "early or beside", symbolizeStart,
                        properties.start))
    return failure();
  for (OpAsmParser::Argument &id : ids)
    id.type = index;
  Region *body = result.addRegion();
  if (p.parseOptionalAttrDictWithKeyword(result.attributes) ||
      p.parseRegion(*body, ids))
    return failure();
  ensureTerminator(*body, b, result.location);
  return success();
}

void KernelOp::getAsmBlockArgumentNames(Region &, OpAsmSetValueNameFn setName) {
  static constexpr StringLiteral names[] = {"x", "y", "z"};
  for (auto [number, name] : llvm::zip(getBody().getArguments(), names))
    setName(number, name);
}

void KernelOp::print(OpAsmPrinter &p) {
  p << " ";
  p.printSymbolName(getSymName());
  p << " blocks(";
  llvm::interleaveComma(getBody().getArguments(), p);
  p << ") in (" << getGridX() << ", " << getGridY() << ", " << getGridZ()
    << ") warps(" << getWarps() << ")";
  if (std::optional<int64_t> stages = getStages())
    p << " stages(" << *stages << ")";
  if (std::optional<int64_t> registers = getRegisters())
    p << " registers(" << *registers << ")";
  if (std::optional<int64_t> blocks = getBlocksPerSM())
    p << " per_sm(" << *blocks << ")";
  if (std::optional<int64_t> bytes = getSharedBytes())
    p << " shared(" << *bytes << ")";
  if (getResident())
    p << " resident";
  if (std::optional<Scheduler> scheduler = getScheduler())
    p << " scheduler(" << stringifyScheduler(*scheduler) << ")";
  if (getIndependent())
    p << " independent";
  if (std::optional<Start> start = getStart())
    p << " starts(" << stringifyStart(*start) << ")";
  p.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getWarpsAttrName(), getStagesAttrName(),
       getSharedBytesAttrName(), getResidentAttrName(), getSchedulerAttrName(),
       getRegistersAttrName(), getBlocksPerSMAttrName(),
       getIndependentAttrName(), getStartAttrName()});
  p << " ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                /*printBlockTerminators=*/false);
}

KernelOp KernelOp::getNextKernel() {
  for (Operation *op = (*this)->getNextNode(); op; op = op->getNextNode())
    if (auto next = dyn_cast<KernelOp>(op))
      return next;
  return {};
}

LogicalResult KernelOp::verify() {
  if (getWarps() < 1 || getWarps() > attn::layout::maxWarps)
    return emitOpError("has ")
           << getWarps() << " warps, expected 1 to " << attn::layout::maxWarps;
  // The bound is that of the rings that warp-buffer builds.
  if (std::optional<int64_t> stages = getStages();
      stages && (*stages < 1 || *stages > 64))
    return emitOpError("has ") << *stages << " stages, expected 1 to 64";
  if (std::optional<int64_t> registers = getRegisters();
      registers && (*registers < 1 || *registers > 255))
    return emitOpError("has ") << *registers << " registers, expected 1 to 255";
  if (std::optional<int64_t> blocks = getBlocksPerSM();
      blocks && (*blocks < 1 || *blocks > 8))
    return emitOpError("has ")
           << *blocks << " blocks per multiprocessor, expected 1 to 8";
  std::optional<int64_t> shared = getSharedBytes();
  if (shared && *shared < 0)
    return emitOpError("has ")
           << *shared << " bytes of shared memory, expected 0 or more";
  return verifyNameAndBody(*this, getBody().front());
}

LogicalResult ExitIfOp::verify() {
  auto kernel = dyn_cast_if_present<KernelOp>((*this)->getParentOp());
  if (!kernel)
    return emitOpError("must stand directly in a warp.kernel"); // C1
  for (auto role : kernel.getBodyBlock()->getOps<RoleOp>())
    if (role->isBeforeInBlock(*this)) {
      InFlightDiagnostic diag = emitOpError("stands after a role"); // C1
      diag.attachNote(role.getLoc()) << "the role";
      return diag;
    }
  return success();
}

LogicalResult KernelOp::verifyRegions() { return verifyProtocol(*this); }

std::vector<RoleOp> KernelOp::getRoles() {
  auto roles = getBodyBlock()->getOps<RoleOp>();
  return {roles.begin(), roles.end()};
}

bool KernelOp::hasRoles() { return !getBodyBlock()->getOps<RoleOp>().empty(); }

RoleOp KernelOp::getRole(StringRef name) {
  for (auto role : getBodyBlock()->getOps<RoleOp>())
    if (role.getSymName() == name)
      return role;
  return {};
}

int64_t KernelOp::getBarrierBytes() {
  if (!hasRoles())
    return 0;
  int64_t slots = 0;
  for (auto ring : getBodyBlock()->getOps<RingOp>())
    slots += ring.getRing().getType().getDepth();
  int64_t bytes = slots * RingOp::barrierBytesPerSlot;
  for (auto mailbox : getBodyBlock()->getOps<MailboxOp>()) {
    MailboxType type = mailbox.getRing().getType();
    bytes += type.getDepth() * type.getItemBytes();
  }
  return bytes;
}
