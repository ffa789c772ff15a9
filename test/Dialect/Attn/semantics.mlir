// What constraints of attn.attention mean, in numbers. They hold for both
// evaluations of the definition; kernels are compared with these elsewhere.
//
// RUN: attn-opt %s --attn-expand-variants --attn-expand-math --attn-simplify \
// RUN:   --convert-attn-to-linalg=precision=f64 --attn-linalg-to-llvm | \
// RUN: mlir-runner -e main -entry-point-result=void \
// RUN:   -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so | \
// RUN: FileCheck %s --check-prefixes=CHECK,F64
// RUN: attn-opt %s --attn-expand-variants --attn-expand-math --attn-simplify \
// RUN:   --convert-attn-to-linalg=precision=input --attn-linalg-to-llvm | \
// RUN: mlir-runner -e main -entry-point-result=void \
// RUN:   -shared-libs=%mlir_lib_dir/libmlir_runner_utils.so,%mlir_lib_dir/libmlir_c_runner_utils.so | \
// RUN: FileCheck %s --check-prefixes=CHECK,INPUT

!t = tensor<?x?x?x8xf32>
!l = tensor<?x?x?xf32>

func.func private @printMemrefF32(tensor<*xf32>)
func.func private @printI64(i64)
func.func private @printNewline()

func.func @title(%number: i64) {
  call @printNewline() : () -> ()
  call @printI64(%number) : (i64) -> ()
  call @printNewline() : () -> ()
  return
}

// Prints the first column of the output, then lse.
func.func @show(%o: !t, %lse: !l) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %o, %c0 : !t
  %h = tensor.dim %o, %c1 : !t
  %s = tensor.dim %o, %c2 : !t
  %column = tensor.extract_slice %o[0, 0, 0, 0] [%b, %h, %s, 1] [1, 1, 1, 1]
    : !t to tensor<?x?x?xf32>
  %o1 = tensor.cast %column : tensor<?x?x?xf32> to tensor<*xf32>
  %l1 = tensor.cast %lse : !l to tensor<*xf32>
  call @printMemrefF32(%o1) : (tensor<*xf32>) -> ()
  call @printMemrefF32(%l1) : (tensor<*xf32>) -> ()
  return
}

// One batch, one head, six rows; row j is 12 j: the mean of rows a..b is
// 6 (a + b).
func.func @ramp() -> tensor<1x1x6x8xf32> {
  %t = tensor.generate {
  ^bb0(%b: index, %h: index, %j: index, %d: index):
    %i = arith.index_cast %j : index to i32
    %f = arith.sitofp %i : i32 to f32
    %c = arith.constant 12.0 : f32
    %y = arith.mulf %f, %c : f32
    tensor.yield %y : f32
  } : tensor<1x1x6x8xf32>
  return %t : tensor<1x1x6x8xf32>
}

// CHECK: {{^}}5{{$}}
// CHECK: {{\[\[\[}}0],
// CHECK-NEXT: [0],
// CHECK-NEXT: [100],
// CHECK-NEXT: [100]]]
func.func @attention_c5() {
  %n = arith.constant 5 : i64
  call @title(%n) : (i64) -> ()
  %q = arith.constant dense<0.0> : tensor<1x4x1x8xf32>
  %k = arith.constant dense<0.0> : tensor<1x2x3x8xf32>
  %v = tensor.generate {
  ^bb0(%b: index, %h: index, %j: index, %d: index):
    %i = arith.index_cast %h : index to i32
    %f = arith.sitofp %i : i32 to f32
    %c = arith.constant 100.0 : f32
    %y = arith.mulf %f, %c : f32
    tensor.yield %y : f32
  } : tensor<1x2x3x8xf32>
  %o, %lse = attn.attention %q, %k, %v
    : (tensor<1x4x1x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// The scale that is not given: 8 / sqrt(8).
// CHECK: {{^}}7{{$}}
// CHECK: {{\[\[\[}}12]]]
// CHECK: {{\[\[\[}}2.82843]]]
func.func @attention_c7() {
  %n = arith.constant 7 : i64
  call @title(%n) : (i64) -> ()
  %q = arith.constant dense<1.0> : tensor<1x1x1x8xf32>
  %v = arith.constant dense<12.0> : tensor<1x1x1x8xf32>
  %o, %lse = attn.attention %q, %q, %v
    : (tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// The positions that a score sees, with the query head: 1000 b + 100 h + 10 i
// + j, where only j = 1 is visible.
// CHECK: {{^}}9{{$}}
// CHECK: {{\[\[\[}}1,{{ +}}11],
// CHECK-NEXT: [101,{{ +}}111]],
// CHECK-NEXT: {{\[\[}}1001,{{ +}}1011],
// CHECK-NEXT: [1101,{{ +}}1111]]]
func.func @attention_c9() {
  %n = arith.constant 9 : i64
  call @title(%n) : (i64) -> ()
  %q = arith.constant dense<0.0> : tensor<2x2x2x8xf32>
  %k = arith.constant dense<0.0> : tensor<2x1x3x8xf32>
  %ten = arith.constant 10 : i32
  %o, %lse = attn.attention %q, %k, %k captures(%ten)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %c: i32) {
      %0 = arith.muli %b, %c : i32
      %1 = arith.addi %0, %h : i32
      %2 = arith.muli %1, %c : i32
      %3 = arith.addi %2, %i : i32
      %4 = arith.muli %3, %c : i32
      %5 = arith.addi %4, %j : i32
      %y = arith.sitofp %5 : i32 to f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %c: i32) {
      %one = arith.constant 1 : i32
      %m = arith.cmpi eq, %j, %one : i32
      attn.yield %m : i1
    }
    : (tensor<2x2x2x8xf32>, tensor<2x1x3x8xf32>, tensor<2x1x3x8xf32>, i32) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// math.clampf of -1, 0 and 1 to [-0.5, 0.75]; to [5, 0.75], where the bounds
// cross; of NaN. One key: lse is its score.
// CHECK: {{^}}11{{$}}
// CHECK: {{\[\[\[}}-0.5,{{ +}}0,{{ +}}0.75,{{ +}}5,{{ +}}{{-?}}nan]]]
func.func @attention_c11_clamp() {
  %n = arith.constant 11 : i64
  call @title(%n) : (i64) -> ()
  %q = arith.constant dense<0.0> : tensor<1x1x5x8xf32>
  %k = arith.constant dense<0.0> : tensor<1x1x1x8xf32>
  %o, %lse = attn.attention %q, %k, %k
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %one = arith.constant 1 : i32
      %three = arith.constant 3 : i32
      %four = arith.constant 4 : i32
      %least = arith.constant -0.5 : f32
      %five = arith.constant 5.0 : f32
      %most = arith.constant 0.75 : f32
      %nan = arith.constant 0x7FC00000 : f32
      %d = arith.subi %i, %one : i32
      %f = arith.sitofp %d : i32 to f32
      %crosses = arith.cmpi eq, %i, %three : i32
      %low = arith.select %crosses, %five, %least : f32
      %is_nan = arith.cmpi eq, %i, %four : i32
      %value = arith.select %is_nan, %nan, %f : f32
      %y = math.clampf %value to [%low, %most] : f32
      attn.yield %y : f32
    }
    : (tensor<1x1x5x8xf32>, tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// score sees 0.5 * 8 = 4, and 4 * 4 is the log of the one weight.
// CHECK: {{^}}14{{$}}
// CHECK: {{\[\[\[}}1]]]
// CHECK: {{\[\[\[}}16]]]
func.func @attention_c14() {
  %n = arith.constant 14 : i64
  call @title(%n) : (i64) -> ()
  %q = arith.constant dense<1.0> : tensor<1x1x1x8xf32>
  %o, %lse = attn.attention %q, %q, %q {scale = 0.5}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = arith.mulf %x, %x : f32
      attn.yield %y : f32
    }
    : (tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>, tensor<1x1x1x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// A score that forgets what it is given does not undo the mask.
// CHECK: {{^}}15{{$}}
// CHECK: {{\[\[\[}}12,{{ +}}12,{{ +}}12,{{ +}}12,{{ +}}12,{{ +}}12]]]
// CHECK: {{\[\[\[}}5,{{ +}}5,{{ +}}5,{{ +}}5,{{ +}}5,{{ +}}5]]]
func.func @attention_c15(%q: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x8xf32>) {
  %n = arith.constant 15 : i64
  call @title(%n) : (i64) -> ()
  %o, %lse = attn.attention %q, %q, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %y = arith.constant 5.0 : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %one = arith.constant 1 : i32
      %m = arith.cmpi eq, %j, %one : i32
      attn.yield %m : i1
    }
    : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// log 6, the natural one; and the mean of all rows.
// CHECK: {{^}}16{{$}}
// CHECK: {{\[\[\[}}30,{{ +}}30,{{ +}}30,{{ +}}30,{{ +}}30,{{ +}}30]]]
// CHECK: {{\[\[\[}}1.79176,
func.func @attention_c16(%q: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x8xf32>) {
  %n = arith.constant 16 : i64
  call @title(%n) : (i64) -> ()
  %o, %lse = attn.attention %q, %q, %v
    : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// Query i sees the keys below i; query 0 sees none.
// CHECK: {{^}}17{{$}}
// CHECK: {{\[\[\[}}0,{{ +}}0,{{ +}}6,{{ +}}12,{{ +}}18,{{ +}}24]]]
// CHECK: {{\[\[\[}}-inf,{{ +}}0,{{ +}}0.693147,
func.func @attention_c17_mask(%q: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x8xf32>) {
  %n = arith.constant 17 : i64
  call @title(%n) : (i64) -> ()
  %o, %lse = attn.attention %q, %q, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi slt, %j, %i : i32
      attn.yield %m : i1
    }
    : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// The same where the score says so.
// CHECK: {{^}}1017{{$}}
// CHECK: {{\[\[\[}}0,{{ +}}0,{{ +}}6,{{ +}}12,{{ +}}18,{{ +}}24]]]
// CHECK: {{\[\[\[}}-inf,{{ +}}0,{{ +}}0.693147,
func.func @attention_c17_score(%q: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x8xf32>) {
  %n = arith.constant 1017 : i64
  call @title(%n) : (i64) -> ()
  %o, %lse = attn.attention %q, %q, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi slt, %j, %i : i32
      %lowest = arith.constant 0xFF800000 : f32
      %y = arith.select %m, %x, %lowest : f32
      attn.yield %y : f32
    }
    : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// No keys at all.
// CHECK: {{^}}2017{{$}}
// CHECK: {{\[\[\[}}0,{{ +}}0,{{ +}}0,{{ +}}0,{{ +}}0,{{ +}}0]]]
// CHECK: {{\[\[\[}}-inf,{{ +}}-inf,{{ +}}-inf,{{ +}}-inf,{{ +}}-inf,{{ +}}-inf]]]
func.func @attention_c17_no_keys(%q: tensor<1x1x6x8xf32>, %k: tensor<1x1x?x8xf32>) {
  %n = arith.constant 2017 : i64
  call @title(%n) : (i64) -> ()
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.causal]}
    : (tensor<1x1x6x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// Two rows of a tensor whose other rows are NaN.
// CHECK: {{^}}18{{$}}
// CHECK: {{\[\[\[}}1.5,{{ +}}1.5]]]
// CHECK: {{\[\[\[}}0.693147,{{ +}}0.693147]]]
func.func @attention_c18() {
  %n = arith.constant 18 : i64
  call @title(%n) : (i64) -> ()
  %all = tensor.generate {
  ^bb0(%b: index, %h: index, %j: index, %d: index):
    %c2 = arith.constant 2 : index
    %inside = arith.cmpi ult, %j, %c2 : index
    %nan = arith.constant 0x7FC00000 : f32
    %one = arith.constant 1.5 : f32
    %y = arith.select %inside, %one, %nan : f32
    tensor.yield %y : f32
  } : tensor<1x1x6x8xf32>
  %two = tensor.extract_slice %all[0, 0, 0, 0] [1, 1, 2, 8] [1, 1, 1, 1]
    : tensor<1x1x6x8xf32> to tensor<1x1x2x8xf32>
  %o, %lse = attn.attention %two, %two, %two {scale = 0.0}
    : (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// Six queries and four keys: the last joins the last, so that two queries see
// nothing.
// CHECK: {{^}}21{{$}}
// CHECK: {{\[\[\[}}0,{{ +}}0,{{ +}}0,{{ +}}6,{{ +}}12,{{ +}}18]]]
// CHECK: {{\[\[\[}}-inf,{{ +}}-inf,{{ +}}0,{{ +}}0.693147,
func.func @attention_c21_bottom_right(%q: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x8xf32>) {
  %n = arith.constant 21 : i64
  call @title(%n) : (i64) -> ()
  %k = tensor.extract_slice %v[0, 0, 0, 0] [1, 1, 4, 8] [1, 1, 1, 1]
    : tensor<1x1x6x8xf32> to tensor<1x1x4x8xf32>
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.causal]}
    : (tensor<1x1x6x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// The same, with lengths that the types do not tell; four queries, six keys.
// CHECK: {{^}}1021{{$}}
// CHECK: {{\[\[\[}}12,{{ +}}18,{{ +}}24,{{ +}}30]]]
// CHECK: {{\[\[\[}}1.09861,{{ +}}1.38629,
func.func @attention_c21_dynamic(%q: tensor<1x1x?x8xf32>, %v: tensor<1x1x?x8xf32>) {
  %n = arith.constant 1021 : i64
  call @title(%n) : (i64) -> ()
  %o, %lse = attn.attention %q, %v, %v {variants = [#attn.causal]}
    : (tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// CHECK: {{^}}2021{{$}}
// CHECK: {{\[\[\[}}0,{{ +}}6,{{ +}}12,{{ +}}18,{{ +}}18,{{ +}}18]]]
func.func @attention_c21_top_left(%q: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x8xf32>) {
  %n = arith.constant 2021 : i64
  call @title(%n) : (i64) -> ()
  %k = tensor.extract_slice %v[0, 0, 0, 0] [1, 1, 4, 8] [1, 1, 1, 1]
    : tensor<1x1x6x8xf32> to tensor<1x1x4x8xf32>
  %o, %lse = attn.attention %q, %k, %k {variants = [#attn.causal<top_left>]}
    : (tensor<1x1x6x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// One key to the left, two to the right of the diagonal.
// CHECK: {{^}}3021{{$}}
// CHECK: {{\[\[\[}}12,{{ +}}18,{{ +}}30,{{ +}}42,{{ +}}48,{{ +}}54]]]
func.func @attention_c21_window(%q: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x8xf32>) {
  %n = arith.constant 3021 : i64
  call @title(%n) : (i64) -> ()
  %o, %lse = attn.attention %q, %v, %v {variants = [#attn.window<left = 1, right = 2>]}
    : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// The one visible key is 4 away: 2 tanh(large) - 4 * 2^-(h + 1), then + 8.
// CHECK: {{^}}22{{$}}
// CHECK: {{\[\[\[}}8],
// CHECK-NEXT: [9],
// CHECK-NEXT: [9.5],
// CHECK-NEXT: [9.75],
func.func @attention_c22_scores() {
  %n = arith.constant 22 : i64
  call @title(%n) : (i64) -> ()
  %q = arith.constant dense<100.0> : tensor<1x8x1x8xf32>
  %k = arith.constant dense<100.0> : tensor<1x1x5x8xf32>
  %o, %lse = attn.attention %q, %k, %k
    {variants = [#attn.softcap<2.0>, #attn.alibi<top_left>]}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %c = arith.constant 8.0 : f32
      %y = arith.addf %x, %c : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c = arith.constant 4 : i32
      %m = arith.cmpi eq, %j, %c : i32
      attn.yield %m : i1
    }
    : (tensor<1x8x1x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// The other order: 2 tanh(large), whatever the head; and heads unknown.
// CHECK: {{^}}1022{{$}}
// CHECK: {{\[\[\[}}10],
// CHECK-NEXT: [10]]]
func.func @attention_c22_order(%q: tensor<1x?x1x8xf32>) {
  %n = arith.constant 1022 : i64
  call @title(%n) : (i64) -> ()
  %k = arith.constant dense<100.0> : tensor<1x1x5x8xf32>
  %o, %lse = attn.attention %q, %k, %k
    {variants = [#attn.alibi<top_left>, #attn.softcap<2.0>]}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %c = arith.constant 8.0 : f32
      %y = arith.addf %x, %c : f32
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c = arith.constant 4 : i32
      %m = arith.cmpi eq, %j, %c : i32
      attn.yield %m : i1
    }
    : (tensor<1x?x1x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// Visible: causal, in the window, and not key 0.
// CHECK: {{^}}2022{{$}}
// CHECK: {{\[\[\[}}0,{{ +}}12,{{ +}}18,{{ +}}24,{{ +}}36,{{ +}}48]]]
func.func @attention_c22_masks(%q: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x8xf32>) {
  %n = arith.constant 2022 : i64
  call @title(%n) : (i64) -> ()
  %o, %lse = attn.attention %q, %v, %v
    {variants = [#attn.window<left = 2>, #attn.causal]}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %c = arith.constant 0 : i32
      %m = arith.cmpi ne, %j, %c : i32
      attn.yield %m : i1
    }
    : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// An infinite score that query 0 does not see, and the others do.
// CHECK: {{^}}23{{$}}
// CHECK: {{\[\[\[}}0,{{ +}}{{-?}}nan,{{ +}}{{-?}}nan,
// CHECK: {{\[\[\[}}0,{{ +}}{{-?}}nan,{{ +}}{{-?}}nan,
func.func @attention_c23(%q: tensor<1x1x6x8xf32>, %v: tensor<1x1x6x8xf32>) {
  %n = arith.constant 23 : i64
  call @title(%n) : (i64) -> ()
  %o, %lse = attn.attention %q, %v, %v {variants = [#attn.causal]}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %c = arith.constant 1 : i32
      %m = arith.cmpi eq, %j, %c : i32
      %infinity = arith.constant 0x7F800000 : f32
      %y = arith.select %m, %infinity, %x : f32
      attn.yield %y : f32
    }
    : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> (!t, !l)
  call @show(%o, %lse) : (!t, !l) -> ()
  return
}

// 8 * 128 * 128 is beyond f16, and no matter. (An eager framework that stores
// scores in f16 gives NaN: the reference keeps such a score in f32.)
// CHECK: {{^}}24{{$}}
// F64: {{\[\[\[}}131072]]]
// INPUT: {{\[\[\[}}131072]]]
func.func @attention_c24() {
  %n = arith.constant 24 : i64
  call @title(%n) : (i64) -> ()
  %q = arith.constant dense<128.0> : tensor<1x1x1x8xf16>
  %o, %lse = attn.attention %q, %q, %q {scale = 1.0}
    : (tensor<1x1x1x8xf16>, tensor<1x1x1x8xf16>, tensor<1x1x1x8xf16>)
      -> (tensor<1x1x1x8xf16>, tensor<1x1x1xf32>)
  %l1 = tensor.cast %lse : tensor<1x1x1xf32> to tensor<*xf32>
  call @printMemrefF32(%l1) : (tensor<*xf32>) -> ()
  return
}

// 8 * 1.2578125 * 0.99 = 9.961875 lies between two bf16.
// CHECK: {{^}}20{{$}}
// F64: {{\[\[\[}}9.9618{{[78]}}]]]
// INPUT: {{\[\[\[}}9.9375]]]
func.func @attention_c20_scores() {
  %n = arith.constant 20 : i64
  call @title(%n) : (i64) -> ()
  %q = arith.constant dense<1.2578125> : tensor<1x1x1x8xbf16>
  %k = arith.constant dense<1.0> : tensor<1x1x1x8xbf16>
  %o, %lse = attn.attention %q, %k, %k {scale = 0.99}
    : (tensor<1x1x1x8xbf16>, tensor<1x1x1x8xbf16>, tensor<1x1x1x8xbf16>)
      -> (tensor<1x1x1x8xbf16>, tensor<1x1x1xf32>)
  %l1 = tensor.cast %lse : tensor<1x1x1xf32> to tensor<*xf32>
  call @printMemrefF32(%l1) : (tensor<*xf32>) -> ()
  return
}

// Weights 0.6 and 0.4, as bf16 0.6015625 and 0.400390625, of 128 and -192.
// CHECK: {{^}}1020{{$}}
// INPUT: {{\[\[\[}}0.125]]]
func.func @attention_c20_weights() {
  %n = arith.constant 1020 : i64
  call @title(%n) : (i64) -> ()
  %q = arith.constant dense<0.0> : tensor<1x1x1x8xbf16>
  %k = arith.constant dense<0.0> : tensor<1x1x2x8xbf16>
  %v = tensor.generate {
  ^bb0(%b: index, %h: index, %j: index, %d: index):
    %zero = arith.constant 0 : index
    %first = arith.cmpi eq, %j, %zero : index
    %c0 = arith.constant 128.0 : bf16
    %c1 = arith.constant -192.0 : bf16
    %y = arith.select %first, %c0, %c1 : bf16
    tensor.yield %y : bf16
  } : tensor<1x1x2x8xbf16>
  %o, %lse = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      %c0 = arith.constant 0 : i32
      %first = arith.cmpi eq, %j, %c0 : i32
      %log = arith.constant 0.40546510810816438 : f32
      %y = arith.select %first, %log, %x : f32
      attn.yield %y : f32
    }
    : (tensor<1x1x1x8xbf16>, tensor<1x1x2x8xbf16>, tensor<1x1x2x8xbf16>)
      -> (tensor<1x1x1x8xbf16>, tensor<1x1x1xf32>)
  %zero = arith.constant 0 : index
  %e = tensor.extract %o[%zero, %zero, %zero, %zero] : tensor<1x1x1x8xbf16>
  %f = arith.extf %e : bf16 to f32
  %t = tensor.from_elements %f : tensor<1x1x1xf32>
  %o1 = tensor.cast %t : tensor<1x1x1xf32> to tensor<*xf32>
  call @printMemrefF32(%o1) : (tensor<*xf32>) -> ()
  return
}

// The only visible key of query i is i: its score is the table's there, and 0
// past the table and before it.
// CHECK: {{^}}102{{$}}
// CHECK: {{\[\[\[}}0,{{ +}}5,{{ +}}7,{{ +}}0,{{ +}}0,{{ +}}0]]]
func.func @capture_load_c2(%q: tensor<1x1x6x8xf32>, %table: tensor<?xf32>,
                           %none: tensor<?xi32>) {
  %n = arith.constant 102 : i64
  call @title(%n) : (i64) -> ()
  %o, %lse = attn.attention %q, %q, %q captures(%table, %none)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>,
          %e: tensor<?xi32>) {
      %zero = attn.capture_load %e[%b] : tensor<?xi32>
      %one = arith.constant 1 : i32
      %before = arith.subi %j, %one : i32
      %at = arith.addi %before, %zero : i32
      %y = attn.capture_load %t[%at] : tensor<?xf32>
      attn.yield %y : f32
    }
    mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xf32>,
         %e: tensor<?xi32>) {
      %m = arith.cmpi eq, %i, %j : i32
      attn.yield %m : i1
    }
    : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>,
       tensor<?xf32>, tensor<?xi32>) -> (!t, !l)
  %l1 = tensor.cast %lse : !l to tensor<*xf32>
  call @printMemrefF32(%l1) : (tensor<*xf32>) -> ()
  return
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %q = arith.constant dense<0.0> : tensor<1x1x6x8xf32>
  %v = call @ramp() : () -> tensor<1x1x6x8xf32>
  call @attention_c5() : () -> ()
  call @attention_c7() : () -> ()
  call @attention_c9() : () -> ()
  call @attention_c11_clamp() : () -> ()
  call @attention_c14() : () -> ()
  call @attention_c15(%q, %v) : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> ()
  call @attention_c16(%q, %v) : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> ()
  call @attention_c17_mask(%q, %v) : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> ()
  call @attention_c17_score(%q, %v) : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> ()
  %none = tensor.empty(%c0) : tensor<1x1x?x8xf32>
  call @attention_c17_no_keys(%q, %none) : (tensor<1x1x6x8xf32>, tensor<1x1x?x8xf32>) -> ()
  call @attention_c18() : () -> ()
  call @attention_c21_bottom_right(%q, %v) : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> ()
  %q4 = arith.constant dense<0.0> : tensor<1x1x4x8xf32>
  %dq = tensor.cast %q4 : tensor<1x1x4x8xf32> to tensor<1x1x?x8xf32>
  %dv = tensor.cast %v : tensor<1x1x6x8xf32> to tensor<1x1x?x8xf32>
  call @attention_c21_dynamic(%dq, %dv) : (tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32>) -> ()
  call @attention_c21_top_left(%q, %v) : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> ()
  call @attention_c21_window(%q, %v) : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> ()
  call @attention_c22_scores() : () -> ()
  %q2 = arith.constant dense<100.0> : tensor<1x2x1x8xf32>
  %dq2 = tensor.cast %q2 : tensor<1x2x1x8xf32> to tensor<1x?x1x8xf32>
  call @attention_c22_order(%dq2) : (tensor<1x?x1x8xf32>) -> ()
  call @attention_c22_masks(%q, %v) : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> ()
  call @attention_c23(%q, %v) : (tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> ()
  call @attention_c24() : () -> ()
  call @attention_c20_scores() : () -> ()
  call @attention_c20_weights() : () -> ()
  %table = arith.constant dense<[5.0, 7.0]> : tensor<2xf32>
  %dt = tensor.cast %table : tensor<2xf32> to tensor<?xf32>
  %noi = tensor.empty(%c0) : tensor<?xi32>
  call @capture_load_c2(%q, %dt, %noi) : (tensor<1x1x6x8xf32>, tensor<?xf32>, tensor<?xi32>) -> ()
  return
}
