// A program for a few queries, as one step of decoding is, has variants that share
// keys out and have rows of several heads in a tile: as many heads as share a key
// head, where that is known.
// RUN: attn-compile %s --function=step --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s
// RUN: attn-compile %s --function=step --target=sm_80 --emit=ptx -o %t.ptx 2>&1 | FileCheck %s
// RUN: attn-compile %s --function=any_heads --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=ANY
// RUN: attn-compile %s --function=few_keys --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty
// RUN: attn-compile %s --function=many --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty

// CHECK: remark: compiled in {{[0-9]+}} variants:
// CHECK-SAME: query_length <= 16 and key_length >= 16384 and 33 * batch_heads <= 4 * multiprocessors -> {{[^;]*}}, split_keys = 32, packed_heads = 4>;
// CHECK-SAME: and key_length >= 4096 and 2 * batch_heads <= multiprocessors -> {{[^;]*}}, split_keys = 8, packed_heads = 4>;
// CHECK-SAME: and key_length >= 2048 and batch_heads <= multiprocessors -> {{[^;]*}}, split_keys = 4, packed_heads = 4>;
// CHECK-SAME: and key_length >= 1024 and batch_heads <= 2 * multiprocessors -> {{[^;]*}}, split_keys = 2, packed_heads = 4>;
// CHECK-SAME: query_length <= 16 and key_length >= 1024 -> {{[^;]*}}, packed_heads = 4>;
// CHECK-NOT: packed_heads = 2
func.func @step(%q: tensor<?x32x1x64xbf16>, %k: tensor<?x8x?x64xbf16>) -> tensor<?x32x1x64xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x32x1x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>) -> (tensor<?x32x1x64xbf16>, tensor<?x32x1xf32>)
  return %o : tensor<?x32x1x64xbf16>
}

// ANY: split_keys = 32, packed_heads = 8>;
func.func @any_heads(%q: tensor<?x?x5x64xbf16>, %k: tensor<?x?x2000x64xbf16>) -> tensor<?x?x5x64xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x?x5x64xbf16>, tensor<?x?x2000x64xbf16>, tensor<?x?x2000x64xbf16>) -> (tensor<?x?x5x64xbf16>, tensor<?x?x5xf32>)
  return %o : tensor<?x?x5x64xbf16>
}

// NONE-NOT: split_keys
// NONE-NOT: packed_heads
func.func @few_keys(%q: tensor<?x32x1x64xbf16>, %k: tensor<?x8x1023x64xbf16>) -> tensor<?x32x1x64xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x32x1x64xbf16>, tensor<?x8x1023x64xbf16>, tensor<?x8x1023x64xbf16>) -> (tensor<?x32x1x64xbf16>, tensor<?x32x1xf32>)
  return %o : tensor<?x32x1x64xbf16>
}

func.func @many(%q: tensor<?x32x17x64xbf16>, %k: tensor<?x8x?x64xbf16>) -> tensor<?x32x17x64xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x32x17x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>) -> (tensor<?x32x17x64xbf16>, tensor<?x32x17xf32>)
  return %o : tensor<?x32x17x64xbf16>
}
