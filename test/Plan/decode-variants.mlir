// A program for a few queries, as one step of decoding is, has variants that share
// keys out and have rows of several heads in a tile: as many heads as share a key
// head, where that is known.
// RUN: attn-compile %s --function=step --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: attn-compile %s --function=step --target=sm_80 --emit=ptx -o %t.ptx 2>&1 | FileCheck %s
// RUN: attn-compile %s --function=any_heads --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=ANY
// RUN: attn-compile %s --function=few_keys --target=sm_90a --emit=warp 2>&1 | FileCheck %s --check-prefix=FEW --allow-empty --implicit-check-not=variants
// RUN: attn-compile %s --function=many --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty

// CHECK: remark: compiled in {{[67]}} variants
// CHECK-SAME: : key_length >= 8192 and 8 * batch_heads <= multiprocessors -> {{[^;]*}}, split_keys = 32, packed_heads = 4>;
// CHECK-SAME: key_length >= 4096 and 4 * batch_heads <= multiprocessors -> {{[^;]*}}, split_keys = 16, packed_heads = 4>;
// CHECK-SAME: key_length >= 2048 and 2 * batch_heads <= multiprocessors -> {{[^;]*}}, split_keys = 8, packed_heads = 4>;
// CHECK-SAME: key_length >= 1024 and batch_heads <= multiprocessors -> {{[^;]*}}, split_keys = 4, packed_heads = 4>;
// CHECK-SAME: key_length >= 2048 and batch_heads <= 2 * multiprocessors -> {{[^;]*}}, split_keys = 2, packed_heads = 4>;
// NARROW-SAME: key_length <= 1024 -> {{[^;]*}}, stages = 3, scheduler = grid, blocks_per_sm = 3, packed_heads = 4>;
// CHECK-SAME: #attn.plan<{{[^;]*}}, packed_heads = 4>{{$}}
// CHECK-NOT: packed_heads = 2
func.func @step(%q: tensor<?x32x1x64xbf16>, %k: tensor<?x8x?x64xbf16>) -> tensor<?x32x1x64xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x32x1x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>) -> (tensor<?x32x1x64xbf16>, tensor<?x32x1xf32>)
  return %o : tensor<?x32x1x64xbf16>
}

// Of 2000 keys there are four parts, if there are any.
// ANY: compiled in 2 variants: batch_heads <= 2 * multiprocessors and 4 * batch_key_heads <= multiprocessors -> {{[^;]*}}, split_keys = 4, packed_heads = 8>; {{[^;]*}}, packed_heads = 8>{{$}}
func.func @any_heads(%q: tensor<?x?x5x64xbf16>, %k: tensor<?x?x2000x64xbf16>) -> tensor<?x?x5x64xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x?x5x64xbf16>, tensor<?x?x2000x64xbf16>, tensor<?x?x2000x64xbf16>) -> (tensor<?x?x5x64xbf16>, tensor<?x?x5xf32>)
  return %o : tensor<?x?x5x64xbf16>
}

// One plan serves few keys.
// FEW: warp.kernel @few_keys{{.*}} warps(8) {{.*}}per_sm(3)
func.func @few_keys(%q: tensor<?x32x1x64xbf16>, %k: tensor<?x8x1023x64xbf16>) -> tensor<?x32x1x64xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x32x1x64xbf16>, tensor<?x8x1023x64xbf16>, tensor<?x8x1023x64xbf16>) -> (tensor<?x32x1x64xbf16>, tensor<?x32x1xf32>)
  return %o : tensor<?x32x1x64xbf16>
}

// NONE-NOT: split_keys
// NONE-NOT: packed_heads
func.func @many(%q: tensor<?x32x17x64xbf16>, %k: tensor<?x8x?x64xbf16>) -> tensor<?x32x17x64xbf16> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x32x17x64xbf16>, tensor<?x8x?x64xbf16>, tensor<?x8x?x64xbf16>) -> (tensor<?x32x17x64xbf16>, tensor<?x32x17xf32>)
  return %o : tensor<?x32x17x64xbf16>
}

// Of f32 a warp has 16 rows of the eight of each head, and fewer keys are worth a
// part.
// RUN: attn-compile %s --function=f32 --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=F32
// RUN: attn-compile %s --function=f32 --target=sm_80 --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=F32
// F32: compiled in 6 variants: key_length >= 2048 and 2 * batch_heads <= multiprocessors -> {{[^;]*}}, block_q = 32, block_k = 32, warps = 2, split_keys = 32, packed_heads = 4>;
// F32-SAME: key_length >= 256 and batch_heads <= 4 * multiprocessors -> {{[^;]*}}, split_keys = 4, packed_heads = 4>;
// F32-SAME: block_q = 32, block_k = 32, warps = 2, packed_heads = 4>{{$}}
func.func @f32(%q: tensor<?x32x1x64xf32>, %k: tensor<?x8x?x64xf32>) -> tensor<?x32x1x64xf32> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x32x1x64xf32>, tensor<?x8x?x64xf32>, tensor<?x8x?x64xf32>) -> (tensor<?x32x1x64xf32>, tensor<?x32x1xf32>)
  return %o : tensor<?x32x1x64xf32>
}

// A prompt of f32 has tiles of 64 rows where there are few of them.
// RUN: attn-compile %s --function=prompt --target=sm_90a --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=PROMPT
// RUN: attn-compile %s --function=prompt --target=sm_80 --emit=ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=PROMPT
// PROMPT: compiled in 2 variants: batch_heads * query_length <= 128 * multiprocessors -> {{[^;]*}}, block_q = 64, block_k = 64, warps = 4>; {{[^;]*}}, block_q = 128, block_k = 32, warps = 4{{[^;]*}}>{{$}}
func.func @prompt(%q: tensor<?x32x?x64xf32>, %k: tensor<?x8x?x64xf32>) -> tensor<?x32x?x64xf32> {
  %o, %lse = attn.attention %q, %k, %k
    : (tensor<?x32x?x64xf32>, tensor<?x8x?x64xf32>, tensor<?x8x?x64xf32>) -> (tensor<?x32x?x64xf32>, tensor<?x32x?xf32>)
  return %o : tensor<?x32x?x64xf32>
}
