//===- CrashGuard.h - a tool's main that survives its compiler -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CRASHGUARD_H
#define ATTN_TOOLS_CRASHGUARD_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <unistd.h>

namespace attn {

/// Runs `body`, the tool's main. A fault in the compiler, or in the MLIR and
/// LLVM below it, is then a diagnostic and this exit status, never a death by
/// signal. (EX_SOFTWARE of sysexits.h.)
inline constexpr int internalErrorStatus = 70;

/// Whether all of standard output has arrived, on a disk that may be full. Says
/// if not, where LLVM would end the process without saying where.
inline bool finishOutput(llvm::StringRef tool) {
  llvm::raw_fd_ostream &output = llvm::outs();
  output.flush();
  std::error_code error = output.error();
  output.clear_error();
  if (error)
    llvm::errs() << tool
                 << ": error: cannot write standard output: " << error.message()
                 << "\n";
  return !error;
}

/// The tool that runs.
inline llvm::StringRef guardedTool;
/// The machine does not give what is asked of it.
inline constexpr int machineErrorStatus = 1;

/// What the machine, or a limit on the process, does not give is no fault of
/// the compiler. Nothing here may allocate.
inline void failForMemory(void *, const char *reason, bool) {
  llvm::sys::RunInterruptHandlers(); // files half written
  auto print = [](llvm::StringRef text) {
    return ::write(STDERR_FILENO, text.data(), text.size()) >= 0;
  };
  if (print(guardedTool) && print(": error: out of memory: "))
    (void)(print(reason) && print("\n"));
  std::_Exit(machineErrorStatus);
}

inline int runGuarded(int argc, char **argv, llvm::StringRef tool,
                      llvm::function_ref<int()> body) {
  // --help and --version leave through exit(). Both streams outlive the
  // handler.
  guardedTool = tool;
  llvm::errs();
  llvm::outs();
  std::atexit([] {
    if (!finishOutput(guardedTool))
      std::_Exit(machineErrorStatus);
  });
  llvm::install_bad_alloc_error_handler(failForMemory);
  // Before the guard: it must be the last to install signal handlers.
  llvm::InitLLVM init(argc, argv);
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext context;
  context.DumpStackAndCleanupOnFailure = true;
  int status = internalErrorStatus;
  if (!context.RunSafely([&] { status = body(); })) {
    llvm::errs() << tool
                 << ": error: the compiler itself failed on this input; "
                    "please report it with the input\n";
    return internalErrorStatus;
  }
  return finishOutput(tool) || status != 0 ? status : machineErrorStatus;
}

} // namespace attn

#endif // ATTN_TOOLS_CRASHGUARD_H
