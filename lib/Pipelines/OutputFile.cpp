//===- OutputFile.cpp - files that are there whole or not at all *- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/OutputFile.h"

#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>

using namespace mlir;
using namespace attn;
namespace fs = llvm::sys::fs;

using Printer = llvm::function_ref<void(raw_ostream &)>;

static llvm::Error cannotWrite(StringRef path, std::error_code error) {
  return llvm::createStringError(error, "cannot write '%s': %s",
                                 path.str().c_str(), error.message().c_str());
}

/// The file behind links, which need not be there yet.
static llvm::ErrorOr<std::string> followLinks(StringRef path) {
  constexpr int maxLinks = 40; // as the kernel allows
  std::filesystem::path current(path.str());
  for (int i = 0; i < maxLinks; ++i) {
    std::error_code error;
    std::filesystem::path target =
        std::filesystem::read_symlink(current, error);
    if (error)
      return current.string(); // no link
    current = current.parent_path() / target;
  }
  return std::make_error_code(std::errc::too_many_symbolic_link_levels);
}

/// Prints and flushes. A stream that ends with an error that nobody asked for
/// ends the process.
static std::error_code printTo(llvm::raw_fd_ostream &stream, Printer print) {
  print(stream);
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  return error;
}

llvm::Error attn::writeOutputFile(StringRef path, Printer print) {
  fs::file_status status;
  bool exists = !fs::status(path, status);
  bool isDevice = exists && status.type() != fs::file_type::regular_file &&
                  status.type() != fs::file_type::directory_file;
  if (isDevice) {
    std::error_code error;
    llvm::raw_fd_ostream stream(path, error, fs::CD_OpenExisting);
    if (!error)
      error = printTo(stream, print);
    return error ? cannotWrite(path, error) : llvm::Error::success();
  }

  llvm::ErrorOr<std::string> name = followLinks(path);
  if (!name)
    return cannotWrite(path, name.getError());
  llvm::Expected<fs::TempFile> file =
      fs::TempFile::create(*name + ".tmp-%%%%%%");
  if (!file)
    return cannotWrite(path, llvm::errorToErrorCode(file.takeError()));
  llvm::raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
  std::error_code error = printTo(stream, print);
  if (!error && exists)
    error = fs::setPermissions(file->FD, status.permissions());
  llvm::Error done = error ? file->discard() : file->keep(*name);
  if (!error)
    error = llvm::errorToErrorCode(std::move(done));
  else
    llvm::consumeError(std::move(done));
  return error ? cannotWrite(path, error) : llvm::Error::success();
}
