//===- x - BuildId.cpp - the identity of this build ---------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Support/BuildId.h"

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <link.h>

using namespace attn;

namespace {
struct NoteSearch {
  uintptr_t address;
  std::string id;
};
} // namespace

static std::string hexDigits(const unsigned char *bytes, size_t count) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
  return text;
}

// The GNU build id among the notes of one segment, or "".
static std::string findNote(const char *notes, size_t size) {
  constexpr char kOwner[] = "GNU";
  auto padded = [](size_t bytes) { return (bytes + 3) & ~size_t(3); };
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof(note));
    const char *owner = notes + at + sizeof(note);
    const char *value = owner + padded(note.n_namesz);
    at += sizeof(note) + padded(note.n_namesz) + padded(note.n_descsz);
    if (at > size)
      break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(kOwner) &&
        std::memcmp(owner, kOwner, sizeof(kOwner)) == 0)
      return hexDigits(reinterpret_cast<const unsigned char *>(value),
                       note.n_descsz);
  }
  return "";
}

// Called for every loaded object; stops at the one that holds the address.
static int visitObject(dl_phdr_info *object, size_t, void *data) {
  auto *search = static_cast<NoteSearch *>(data);
  bool holdsAddress = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = object->dlpi_phdr[i];
    uintptr_t start = object->dlpi_addr + header.p_vaddr;
    holdsAddress |= header.p_type == PT_LOAD && search->address >= start &&
                    search->address - start < header.p_memsz;
  }
  for (int i = 0; holdsAddress && i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &header = object->dlpi_phdr[i];
    if (header.p_type == PT_NOTE && search->id.empty())
      search->id = findNote(
          reinterpret_cast<const char *>(object->dlpi_addr + header.p_vaddr),
          header.p_memsz);
  }
  return holdsAddress;
}

std::string attn::buildId() {
  NoteSearch search = {reinterpret_cast<uintptr_t>(&buildId), ""};
  dl_iterate_phdr(visitObject, &search);
  return search.id;
}
