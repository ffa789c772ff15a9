//===- Ptxas.cpp - machine code by NVIDIA's assembler -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Target/Ptxas.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"

#include <chrono>
#include <cstring>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// The log
//===----------------------------------------------------------------------===//

/// The number that stands before `text` in a line.
static int64_t numberBefore(StringRef line, StringRef text) {
  size_t at = line.find(text);
  if (at == StringRef::npos)
    return -1;
  StringRef head = line.take_front(at).rtrim();
  size_t begin = head.find_last_not_of("0123456789");
  int64_t value;
  if (head.drop_front(begin == StringRef::npos ? 0 : begin + 1)
          .getAsInteger(10, value))
    return -1;
  return value;
}

/// The name in "Compiling entry function 'name' for 'sm_80'".
static StringRef entryIn(StringRef line) {
  constexpr StringLiteral text = "Compiling entry function '";
  size_t at = line.find(text);
  if (at == StringRef::npos)
    return "";
  return line.drop_front(at + text.size()).take_until([](char c) {
    return c == '\'';
  });
}

static void readFigures(StringRef line, PtxasFigures &figures) {
  auto set = [](int64_t &field, int64_t value) {
    if (value >= 0)
      field = std::max(field, value);
  };
  set(figures.stackBytes, numberBefore(line, " bytes stack frame"));
  set(figures.spillStoreBytes, numberBefore(line, " bytes spill stores"));
  set(figures.spillLoadBytes, numberBefore(line, " bytes spill loads"));
  if (size_t at = line.find("Used "); at != StringRef::npos)
    set(figures.registers, numberBefore(line.drop_front(at), " registers"));
}

PtxasReport attn::parsePtxasLog(StringRef log) {
  PtxasReport report;
  static const llvm::Regex advice("\\(C7[0-9]+\\)");
  SmallVector<StringRef> lines;
  log.split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::string kernel;
  for (StringRef line : lines) {
    if (StringRef name = entryIn(line); !name.empty())
      kernel = name.str();
    readFigures(line, report);
    if (!kernel.empty())
      readFigures(line, report.kernels[kernel]);
    if (size_t at = line.find("Compile time = "); at != StringRef::npos)
      if (int64_t time = numberBefore(line.drop_front(at), "."); time >= 0)
        report.milliseconds = std::max(report.milliseconds, time);
    if (line.contains("warning") || advice.match(line))
      report.warnings.push_back(line.trim().str());
  }
  return report;
}

bool attn::isSerialized(StringRef warning) {
  static const llvm::Regex numbers("\\(C75(0[4-9]|1[0-8]|20)\\)");
  return numbers.match(warning);
}

/// Where a kernel's parameters begin.
static size_t findEntry(StringRef ptx, StringRef kernel) {
  size_t entry = ptx.find((".entry " + kernel + "(").str());
  assert(entry != StringRef::npos && "no such kernel");
  return entry;
}

void attn::dropKernel(std::string &ptx, StringRef kernel) {
  constexpr StringLiteral last = "\n}\n";
  size_t entry = findEntry(ptx, kernel), end = ptx.find(last, entry);
  assert(end != std::string::npos && "a kernel without an end");
  // A comment before it has its name, behind the kernel before that.
  size_t said = ptx.rfind(("// .globl\t" + kernel).str(), entry);
  size_t before = ptx.rfind(last.data(), entry);
  bool isSaid = said != std::string::npos &&
                (before == std::string::npos || before < said);
  size_t begin = ptx.rfind('\n', isSaid ? said : entry) + 1;
  // What others need, shared memory, may be declared behind that comment.
  std::string kept;
  for (StringRef line :
       llvm::split(StringRef(ptx).slice(begin, ptx.rfind('\n', entry)), '\n'))
    if (line.starts_with(".extern"))
      (kept += line) += '\n';
  ptx.replace(begin, end + last.size() - begin, kept);
}

void attn::allowOneBlock(std::string &ptx, StringRef kernel) {
  size_t body = ptx.find("\n{", findEntry(ptx, kernel));
  assert(body != std::string::npos && "a kernel without a body");
  ptx.insert(body, "\n.minnctapersm 1");
}

LogicalResult attn::reportPtxas(Location loc, StringRef name,
                                const PtxasReport &report, bool strict) {
  auto emit = [&] { return strict ? emitError(loc) : emitWarning(loc); };
  bool clean = true;
  for (const auto &[kernel, figures] : report.kernels) {
    if (figures.spillStoreBytes <= 0 && figures.spillLoadBytes <= 0)
      continue;
    emit() << "kernel '" << kernel << "' spills: " << figures.spillStoreBytes
           << " bytes of stores, " << figures.spillLoadBytes
           << " bytes of loads, with " << figures.registers << " registers";
    clean = false;
  }
  for (const std::string &warning : report.warnings) {
    emit() << "kernel '" << name << "': " << warning;
    clean = false;
  }
  return success(clean || !strict);
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

std::string attn::findPtxas(StringRef given) {
  if (!given.empty()) {
    SmallString<128> path(given);
    if (llvm::sys::fs::is_directory(path))
      llvm::sys::path::append(path, "bin", "ptxas");
    return llvm::sys::fs::can_execute(path) ? std::string(path) : "";
  }
  llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas");
  return found ? *found : "";
}

namespace {
/// A file that goes away with its object.
struct TemporaryFile {
  SmallString<128> path;
  std::optional<llvm::FileRemover> remover;

  std::error_code create(StringRef suffix) {
    if (std::error_code error =
            llvm::sys::fs::createTemporaryFile("attn", suffix, path))
      return error;
    remover.emplace(path);
    return {};
  }
  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }
};
} // namespace

/// What a program finds in its environment: what this one found, and how to
/// take memory. ptxas takes 50 MB in small pieces; in large pages of one arena,
/// which its threads share, 6 percent of its time goes away. C libraries other
/// than glibc do not read it, and what the user has set is left as it is.
static SmallVector<StringRef> describeEnvironment() {
  SmallVector<StringRef> variables;
  for (char **variable = environ; *variable; ++variable)
    variables.push_back(*variable);
  if (llvm::none_of(variables, [](StringRef variable) {
        return variable.starts_with("GLIBC_TUNABLES=");
      }))
    variables.push_back("GLIBC_TUNABLES=glibc.malloc.hugetlb=1:"
                        "glibc.malloc.arena_max=1");
  return variables;
}

/// Runs a program; -1 or -2 with a message where it has no exit status. Its
/// limit is no alarm, as LLVM's is, of which a process has one: threads wait
/// for programs at the same time, and the host may have set its own.
static int execute(StringRef program, ArrayRef<StringRef> arguments,
                   ArrayRef<std::optional<StringRef>> redirects,
                   std::string &message) {
  constexpr auto limit = std::chrono::minutes(10);
  constexpr auto pause = std::chrono::milliseconds(1);
  bool isFailed = false;
  SmallVector<StringRef> environment = describeEnvironment();
  pid_t child = llvm::sys::ExecuteNoWait(
                    program, arguments, ArrayRef<StringRef>(environment),
                    redirects, /*MemoryLimit=*/0, &message, &isFailed)
                    .Pid;
  if (isFailed)
    return -1;
  auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  for (pid_t ended = 0; ended != child;) {
    ended = waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno != EINTR) {
      message = llvm::sys::StrError();
      return -1;
    }
    if (ended != 0)
      continue;
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      message = "it ran for ten minutes";
      return -2;
    }
    std::this_thread::sleep_for(pause);
  }
  if (WIFSIGNALED(status)) {
    message = strsignal(WTERMSIG(status));
    return -2;
  }
  return WEXITSTATUS(status);
}

FailureOr<AssembledCubin> attn::assemble(Location loc, StringRef ptxas,
                                         StringRef ptx, StringRef chip,
                                         bool isSparing) {
  TemporaryFile input, output, log;
  for (auto [file, suffix] :
       {std::pair(&input, "ptx"), std::pair(&output, "cubin"),
        std::pair(&log, "log")})
    if (std::error_code error = file->create(suffix))
      return emitError(loc) << "cannot create the temporary file '"
                            << file->path << "': " << error.message();
  {
    std::error_code error;
    llvm::raw_fd_ostream stream(input.path, error);
    stream << ptx;
    stream.close();
    if (!error)
      error = stream.error();
    stream.clear_error(); // which would end the process
    if (error)
      return emitError(loc)
             << "cannot write " << input.path << ": " << error.message();
  }
  std::string arch = ("-arch=" + chip).str();
  // Kernels at the same time, one per processor; the code is the same, and so
  // is the log. A number would stand in the cubin.
  SmallVector<StringRef> arguments = {ptxas, "-v",        arch,      "-O3",
                                      "-o",  output.path, input.path};
  if (isSparing)
    arguments.push_back("--register-usage-level=0");
  arguments.push_back("--split-compile=0");
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log.path),
                                          StringRef(log.path)};
  std::string message, text;
  auto run = [&] {
    std::error_code error; // to write the log is to empty it
    llvm::raw_fd_ostream(log.path, error);
    int status = execute(ptxas, arguments, redirects, message);
    text = log.read();
    return status;
  };
  int status = run();
  // Older assemblers do not know it.
  if (status != 0 && StringRef(text).contains("split-compile")) {
    arguments.pop_back();
    status = run();
  }
  if (status != 0) {
    InFlightDiagnostic error = emitError(loc) << ptxas << " failed";
    if (!message.empty())
      error << ": " << message;
    if (!text.empty())
      error << "\n" << text;
    return error;
  }
  AssembledCubin cubin;
  std::string bytes = output.read();
  if (bytes.empty())
    return emitError(loc) << ptxas << " wrote nothing";
  cubin.bytes.assign(bytes.begin(), bytes.end());
  cubin.report = parsePtxasLog(text);
  return cubin;
}
