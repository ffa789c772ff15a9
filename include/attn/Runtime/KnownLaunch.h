//===- KnownLaunch.h - launches that were prepared before ----- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs launch a kernel on the same sizes and strides again and again. What
// follows of these alone - that they are right, the variant, grids, workspaces,
// boxes of tensor maps - is found once and kept; a launch on other addresses
// and scalars then writes these in. Where anything is in doubt the launch is
// prepared anew, which says what is wrong. Needs no GPU.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_KNOWNLAUNCH_H
#define ATTN_RUNTIME_KNOWNLAUNCH_H

#include "attn/Runtime/Arguments.h"

#include <algorithm>
#include <memory>

namespace attn::runtime {

/// CUtensorMap: opaque, as cuda.h aligns it.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

/// The maps of a tensor at the last few addresses: programs launch a kernel on
/// the same few in turn, those of their layers.
class KnownMaps {
public:
  /// The map at that address, which `make(map)` makes if it is not here; null
  /// where it gives false.
  template <typename Make> TensorMap *get(void *data, Make make);

private:
  static constexpr size_t kCount = 8;
  std::array<TensorMap, kCount> maps;
  /// What each was made of; null: of nothing.
  std::array<void *, kCount> places = {};
  size_t last = 0, next = 0;
};

template <typename Make> TensorMap *KnownMaps::get(void *data, Make make) {
  if (places[last] == data && data)
    return &maps[last];
  size_t found = static_cast<size_t>(
      std::find(places.begin(), places.end(), data) - places.begin());
  if (!data || found == kCount) {
    found = next;
    next = (next + 1) % kCount;
    places[found] = nullptr;
    if (!make(maps[found]))
      return nullptr;
    places[found] = data;
  }
  last = found;
  return &maps[found];
}

/// A launch with the memory that the driver reads its parameters from.
class PackedLaunch {
public:
  struct Kernel {
    std::vector<KnownMaps> maps;
    /// Those of arguments and workspaces, then the maps.
    std::vector<void *> parameters;
    /// All of them, where it is known how they lie in it; else empty.
    std::vector<unsigned char> buffer;
  };

  explicit PackedLaunch(LaunchCall call);
  PackedLaunch(const PackedLaunch &) = delete;
  PackedLaunch &operator=(const PackedLaunch &) = delete;

  /// The memory of the launch lies there.
  void place(void *memory);

  LaunchCall call;
  std::vector<Kernel> kernels;
  /// Parameters of the arguments, then of the workspaces.
  std::vector<uint64_t> slots;
  /// Where the memory of the launch lies, if that and the tensor maps stand in
  /// the parameters.
  std::optional<void *> filledAt;
};

/// A packed launch, and on which arguments it is right.
class KnownLaunch {
public:
  /// Of `arguments`, on which `call` was prepared; takes that. Null, and `call`
  /// stays, where tensors are copied: that hangs on addresses.
  static std::unique_ptr<KnownLaunch>
  make(const Artifact &artifact, ArgumentSpan arguments, LaunchCall &call);

  /// Writes the addresses and scalars of `arguments` in. False, and there is no
  /// launch in it until another update, where they differ in more than these,
  /// or may be wrong.
  bool update(const Artifact &artifact, ArgumentSpan arguments);

  PackedLaunch launch;

private:
  struct Tensor {
    size_t argument = 0;
    size_t rank = 0;
    size_t shape = 0; // where its sizes and strides begin in `shapes`
    size_t slot = 0;  // of its address
    uint64_t alignmentMask = 0;
    bool isEmpty = false;
    // From its address to the first byte, and from there to the end of the
    // last.
    int64_t begin = 0, bytes = 0;
    // As in the parameters.
    void *data = nullptr;
  };
  struct Scalar {
    size_t argument = 0;
    size_t slot = 0;
    // Sizes depend on it: only this value will do.
    bool isFixed = false;
    // As in the parameters.
    Argument value;
  };
  /// A result, and a tensor that must be apart from it, by their numbers in
  /// `tensors`.
  struct Pair {
    size_t result = 0, other = 0;
    // Interleaved tensors that far from each other were seen to be apart.
    bool isKnown = false;
    uint64_t distance = 0;
  };

  /// A tensor map of an argument.
  struct Map {
    size_t kernel = 0, number = 0, argument = 0;
  };

  explicit KnownLaunch(LaunchCall call) : launch(std::move(call)) {}
  void addArguments(const Artifact &artifact, ArgumentSpan arguments);
  void addPairs(const Artifact &artifact);
  void addMaps(const Artifact &artifact);
  bool fits(const Tensor &tensor, const Argument &argument) const;
  bool areApart(const Artifact &artifact, ArgumentSpan arguments, Pair &pair);
  bool write(const Artifact &artifact, Scalar &scalar, const Argument &value);
  void move(ArgumentSpan arguments);

  std::vector<int64_t> shapes;
  std::vector<Tensor> tensors;
  std::vector<Scalar> scalars;
  std::vector<Pair> pairs;
  std::vector<Map> maps;
};

/// The known launches of a thread, so that none waits for another: some tens,
/// the oldest of those that fall together goes first. They hold plain memory
/// and outlive their modules, whose numbers never come back.
class KnownLaunches {
public:
  /// Of the calling thread.
  static KnownLaunches &here();
  /// A number that no module of the process has had.
  static uint64_t nextModule();

  /// The launch of module number `module` on such `arguments`, updated to
  /// them; null if none is known.
  KnownLaunch *find(uint64_t module, const Artifact &artifact,
                    ArgumentSpan arguments);
  /// Keeps `launch` for `find`.
  KnownLaunch &keep(uint64_t module, ArgumentSpan arguments,
                    std::unique_ptr<KnownLaunch> launch);

private:
  static constexpr size_t kSets = 16, kWays = 4, kModules = 16;
  struct Entry {
    uint64_t module = 0; // none has number 0
    std::unique_ptr<KnownLaunch> launch;
  };
  struct Set {
    Entry entries[kWays];
    size_t next = 0;
  };
  Set &setOf(uint64_t module, ArgumentSpan arguments);

  Set sets[kSets];
  /// By module number, which may fall together, too: where its last launch is,
  /// looked at first.
  Entry *latest[kModules] = {};
};

} // namespace attn::runtime

#endif // ATTN_RUNTIME_KNOWNLAUNCH_H
