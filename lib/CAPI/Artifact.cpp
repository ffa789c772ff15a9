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

const void *attnArtifactGetBytes(const AttnArtifact *artifact, size_t *size) {
  *size = artifact->bytes.size();
  return artifact->bytes.data();
}

const char *attnArtifactGetManifest(const AttnArtifact *artifact) {
  return artifact->manifest.c_str();
}

const char *attnArtifactGetPTX(const AttnArtifact *artifact) {
  return artifact->artifact.ptx.c_str();
}

const void *attnArtifactGetCubin(const AttnArtifact *artifact, size_t *size) {
  *size = artifact->artifact.cubin.size();
  return artifact->artifact.cubin.data();
}

const char *attnArtifactGetLog(const AttnArtifact *artifact) {
  return artifact->log.c_str();
}

int attnArtifactIsFromCache(const AttnArtifact *artifact) {
  return artifact->isFromCache;
}
