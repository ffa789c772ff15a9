//===- x - Artifact.cpp - artifacts, versions and errors for C ----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Handles.h"

#include "attn/Support/Version.h"

using namespace attn;

static std::string &lastError() {
  thread_local std::string message;
  return message;
}

void capi::setError(std::string message) { lastError() = std::move(message); }

int attnGetApiVersion(void) { return ATTN_API_VERSION; }

const char *attnGetVersion(void) { return versionString; }

const char *attnErrorMessage(void) { return lastError().c_str(); }

AttnArtifact *attnArtifactParse(const void *bytes, size_t size) {
  if (!bytes) {
    capi::setError("attnArtifactParse: bytes is NULL");
    return nullptr;
  }
  std::string error;
  std::optional<Artifact> artifact =
      Artifact::parse({static_cast<const char *>(bytes), size}, error);
  if (!artifact) {
    capi::setError(error);
    return nullptr;
  }
  return new AttnArtifact(std::move(*artifact), "", false);
}

void attnArtifactDestroy(AttnArtifact *artifact) { delete artifact; }

// Whether there is a handle; if not, that is the error of `call`.
static bool isGiven(const AttnArtifact *artifact, const char *call) {
  if (!artifact)
    capi::setError(std::string(call) + ": artifact is NULL");
  return artifact != nullptr;
}

// The bytes and their number.
static const void *giveBytes(const void *bytes, size_t count, size_t *size,
                             const char *call) {
  if (!size) {
    capi::setError(std::string(call) + ": size is NULL");
    return nullptr;
  }
  *size = count;
  return bytes;
}

// Nothing, and no bytes of it.
static const void *giveNone(size_t *size) {
  if (size)
    *size = 0;
  return nullptr;
}

const void *attnArtifactGetBytes(const AttnArtifact *artifact, size_t *size) {
  if (!isGiven(artifact, "attnArtifactGetBytes"))
    return giveNone(size);
  return giveBytes(artifact->bytes.data(), artifact->bytes.size(), size,
                   "attnArtifactGetBytes");
}

int attnArtifactGetFunctionCount(const AttnArtifact *artifact) {
  return isGiven(artifact, "attnArtifactGetFunctionCount")
             ? static_cast<int>(artifact->artifact.functions().size())
             : -1;
}

// The function of that number; if there is none, that is the error of `call`.
static const Artifact *findFunction(const AttnArtifact *artifact, int number,
                                    const char *call) {
  if (!isGiven(artifact, call))
    return nullptr;
  std::vector<const Artifact *> functions = artifact->artifact.functions();
  if (number >= 0 && static_cast<size_t>(number) < functions.size())
    return functions[number];
  capi::setError(std::string(call) + ": artifact '" + artifact->artifact.name +
                 "' has no function " + std::to_string(number) +
                 ", its functions are 0 to " +
                 std::to_string(functions.size() - 1));
  return nullptr;
}

const char *attnArtifactGetName(const AttnArtifact *artifact, int number) {
  const Artifact *function =
      findFunction(artifact, number, "attnArtifactGetName");
  return function ? function->name.c_str() : nullptr;
}

AttnArtifact *attnArtifactCopyFunction(const AttnArtifact *artifact,
                                       int number) {
  const Artifact *function =
      findFunction(artifact, number, "attnArtifactCopyFunction");
  if (!function)
    return nullptr;
  Artifact alone = *function;
  alone.companions.clear();
  return new AttnArtifact(std::move(alone), artifact->log,
                          artifact->isFromCache);
}

const char *attnArtifactGetManifest(const AttnArtifact *artifact) {
  return isGiven(artifact, "attnArtifactGetManifest")
             ? artifact->manifest.c_str()
             : nullptr;
}

const char *attnArtifactGetPTX(const AttnArtifact *artifact) {
  return isGiven(artifact, "attnArtifactGetPTX")
             ? artifact->artifact.ptx.c_str()
             : nullptr;
}

const void *attnArtifactGetCubin(const AttnArtifact *artifact, size_t *size) {
  if (!isGiven(artifact, "attnArtifactGetCubin"))
    return giveNone(size);
  const std::vector<uint8_t> &cubin = artifact->artifact.cubin;
  return giveBytes(cubin.data(), cubin.size(), size, "attnArtifactGetCubin");
}

const char *attnArtifactGetLog(const AttnArtifact *artifact) {
  return isGiven(artifact, "attnArtifactGetLog") ? artifact->log.c_str()
                                                 : nullptr;
}

int attnArtifactIsFromCache(const AttnArtifact *artifact) {
  return isGiven(artifact, "attnArtifactIsFromCache") ? artifact->isFromCache
                                                      : -1;
}
