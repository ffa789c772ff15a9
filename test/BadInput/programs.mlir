// RUN: attn-opt %s --attn-to-tile=target=sm_80 --split-input-file --verify-diagnostics

// Wrong programs, as a user might write them, each with what it is told.

// 1. the text ends too early
!t = tensor<1x2x?x64xf16>
// expected-error@+1 {{expected operation name in quotes}}
func.func @f(%q: !t) -> !t {

// -----

// 2. a type without its end
// expected-error@+1 {{expected '>' in tensor type}}
func.func @f(%q: tensor<1x2x?x64xf16) { return }

// -----

// 3. a word that is no operation
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t) -> !t {
  // expected-error@+1 {{custom op 'attn.atention' is unknown}}
  %o = attn.atention %q : !t
  return %o : !t
}

// -----

// 4. a value that nobody defined
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{use of undeclared SSA value name}}
  %o, %l = attn.attention %q, %k, %w
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 5. a name defined twice
!t = tensor<1x2x?x64xf16>
// expected-error@+2 {{region entry argument '%q' is already in use}}
// expected-note@+1 {{previously referenced here}}
func.func @f(%q: !t, %q: !t) { return }

// -----

// 6. two operands
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{expected ','}}
  %o, %l = attn.attention %q, %k
    : (!t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 7. fewer types than operands
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{custom op 'attn.attention' number of operands and types do not match: got 3 operands and 2 types}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 8. one result type
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
  // expected-error@+1 {{custom op 'attn.attention' wanted two result types, output and lse, got 1}}
  %o, %l = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t)
  return %o : !t
}

// -----

// 9. head_dim unknown
!t = tensor<1x2x?x?xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants a static head dimension, got ? in query}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 10. head_dim 60
!t = tensor<1x2x?x60xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants a head dimension that is a multiple of 8 in [8, 256], got 60 in query}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 11. head_dim 264
!t = tensor<1x2x?x264xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants a head dimension that is a multiple of 8 in [8, 256], got 264 in query}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 12. head_dim 0
!t = tensor<1x2x?x0xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants a head dimension that is a multiple of 8 in [8, 256], got 0 in query}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 13. rank 3
!t = tensor<2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants query of rank 4, got 'tensor<2x?x64xf16>'}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 14. f64
!t = tensor<1x2x?x64xf64>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants query of f16, bf16 or f32, got 'f64'}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 15. integers
!t = tensor<1x2x?x64xi8>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants query of f16, bf16 or f32, got 'i8'}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 16. query and key of different types
!t = tensor<1x2x?x64xf16>
!u = tensor<1x2x?x64xbf16>
func.func @f(%q: !t, %k: !u, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants one element type, got 'f16' in query and 'bf16' in key}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !u, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 17. lse of f16
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf16>) {
  // expected-error@+1 {{'attn.attention' op wants lse of f32, got 'f16'}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf16>)
  return %o, %l : !t, tensor<1x2x?xf16>
}

// -----

// 18. head dims of query and key differ
!t = tensor<1x2x?x64xf16>
!u = tensor<1x2x?x128xf16>
func.func @f(%q: !t, %k: !u, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants one head dimension, got 64 in query and 128 in key}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !u, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 19. output as wide as the query, not as the value
!t = tensor<1x2x?x64xf16>
!u = tensor<1x2x?x128xf16>
func.func @f(%q: !t, %k: !t, %v: !u) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants one head dimension, got 128 in value and 64 in output}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !t, !u) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 20. batches differ
!t = tensor<1x2x?x64xf16>
!u = tensor<3x2x?x64xf16>
func.func @f(%q: !t, %k: !u, %v: !u) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants one batch size, got 1 in query and 3 in key}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !u, !u) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 21. lengths of key and value differ
!t = tensor<1x2x?x64xf16>
!u = tensor<1x2x7x64xf16>
!w = tensor<1x2x8x64xf16>
func.func @f(%q: !t, %k: !u, %v: !w) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants one key length, got 7 in key and 8 in value}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !u, !w) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 22. 3 query heads on 2 key heads
!t = tensor<1x2x?x64xf16>
!u = tensor<1x3x?x64xf16>
func.func @f(%q: !u, %k: !t, %v: !t) -> (!u, tensor<1x3x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants a number of query heads that is a multiple of the number of key heads, got 3 and 2}}
  %o, %l = attn.attention %q, %k, %v
    : (!u, !t, !t) -> (!u, tensor<1x3x?xf32>)
  return %o, %l : !u, tensor<1x3x?xf32>
}

// -----

// 23. an attribute with a slip of the pen
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op has no attribute 'scael', did you mean 'scale'?}}
  %o, %l = attn.attention %q, %k, %v {scael = 0.5 : f64}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 24. scale as an integer
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{custom op 'attn.attention' 'attn.attention' op attribute 'scale' failed to satisfy constraint: 64-bit float attribute}}
  %o, %l = attn.attention %q, %k, %v {scale = 1 : i32}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 25. scale without end
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants a scale that is finite in f32, got 0x7FF0000000000000 : f64}}
  %o, %l = attn.attention %q, %k, %v {scale = 0x7FF0000000000000 : f64}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 26. an unknown variant
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{unknown attribute `casual` in dialect `attn`}}
  %o, %l = attn.attention %q, %k, %v {variants = [#attn.casual]}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 27. a variant that is no variant
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants variants among #attn.causal, #attn.window, #attn.softcap and #attn.alibi, got 1 : i32}}
  %o, %l = attn.attention %q, %k, %v {variants = [1 : i32]}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 28. an unknown alignment
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+2 {{expected one of [bottom_right, top_left] for which corners a position offset joins, got: centre}}
  // expected-error@+1 {{failed to parse Attn_CausalAttr parameter 'alignment' which is to be a `::attn::Alignment`}}
  %o, %l = attn.attention %q, %k, %v {variants = [#attn.causal<centre>]}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 29. a window of -2 keys
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'left' must be in [-1, 1073741824], got -2}}
  %o, %l = attn.attention %q, %k, %v {variants = [#attn.window<left = -2>]}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 30. softcap 0
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{softcap must be positive and finite in f32, got 0.000000e+00 : f32}}
  %o, %l = attn.attention %q, %k, %v {variants = [#attn.softcap<0.0 : f32>]}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 31. a plan with a block of 0
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'block_q' must be in [1, 65536], got 0}}
  %o, %l = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_80, block_q = 0, block_k = 64>}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 32. a plan for a machine nobody has
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+2 {{expected one of [cpu, sm_80, sm_90a] for what a kernel is compiled for, got: sm_10}}
  // expected-error@+1 {{failed to parse Attn_PlanAttr parameter 'target' which is to be a `::attn::TargetKind`}}
  %o, %l = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_10, block_q = 64, block_k = 64>}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 33. a plan that does not say for what
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{struct is missing required parameter: target}}
  %o, %l = attn.attention %q, %k, %v {plan = #attn.plan<block_q = 64, block_k = 64>}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 34. a plan larger than the machine
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op plan is not feasible: Q tile 16384 B + K ring 4 x 32768 B + V ring 4 x 32768 B = 278528 B, sm_80 has 166912 B}}
  %o, %l = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_80, block_q = 128, block_k = 256, warps = 4, stages = 4>}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 35. a score region without arguments
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v
    score() {
      // expected-error@+1 {{expected SSA operand}}
      attn.yield
    }
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 36. a score region that misses an index
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants a score region over ('f32', 'i32', 'i32', 'i32', 'i32'), got ('f32', 'i32', 'i32', 'i32')}}
  %o, %l = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32) {
      attn.yield %x : f32
    }
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 37. a score that yields i32
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{'attn.yield' op of a score region wants 'f32', got 'i32'}}
      attn.yield %i : i32
    }
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 38. a mask that yields f32
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %z = arith.constant 0.0 : f32
      // expected-error@+1 {{'attn.yield' op of a mask region wants 'i1', got 'f32'}}
      attn.yield %z : f32
    }
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 39. a region without an end
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{block with no terminator, has %1 = "arith.cmpi"(%arg2, %arg3) <{predicate = 5 : i64}> : (i32, i32) -> i1}}
      %m = arith.cmpi sge, %i, %j : i32
    }
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 40. an empty region
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v
    // expected-error@+1 {{custom op 'attn.attention' 'mask' region is empty: wanted an 'attn.yield', or no 'mask' at all}}
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
    }
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 41. a region that looks outside
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t, %w: f32) -> (!t, tensor<1x2x?xf32>) {
  // expected-note@+1 {{required by region isolation constraints}}
  %o, %l = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{'arith.addf' op using value defined outside the region}}
      %y = arith.addf %x, %w : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 42. a loop in a region
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{'scf.execute_region' op may not stand in a score region: wanted arith, math, attn.capture_load, attn.capture_search or attn.yield}}
      %r = scf.execute_region -> f32 {
        scf.yield %x : f32
      }
      attn.yield %r : f32
    }
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 43. index arithmetic in a region
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      // expected-error@+1 {{'arith.index_cast' op in a mask region wants i1, i8, i16, i32, i64, f16, bf16 or f32, got 'index'}}
      %n = arith.index_cast %i : i32 to index
      %m = arith.cmpi eq, %n, %n : index
      attn.yield %m : i1
    }
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 44. a capture read with too few indices
!t = tensor<1x2x?x64xf16>
!c = tensor<2x8xf32>
func.func @f(%q: !t, %k: !t, %v: !t, %c: !c) -> (!t, tensor<1x2x?xf32>) {
  %o, %l = attn.attention %q, %k, %v captures(%c)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !c) {
      // expected-error@+1 {{'attn.capture_load' op reads a tensor of rank 2 and wants as many indices, got 1}}
      %s = attn.capture_load %t[%h] : !c
      %y = arith.addf %x, %s : f32
      attn.yield %y : f32
    }
    : (!t, !t, !t, !c) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 45. a captured memref
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t, %c: memref<2xf32>) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op wants capture #0 to be i1, i8, i16, i32, i64, f16, bf16, f32 or a ranked tensor of these, got 'memref<2xf32>'}}
  %o, %l = attn.attention %q, %k, %v captures(%c)
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: memref<2xf32>) {
      attn.yield %x : f32
    }
    : (!t, !t, !t, memref<2xf32>) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 46. two attentions in one kernel
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-note@+1 {{first attention is here}}
  %o, %l = attn.attention %q, %k, %v
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  // expected-error@+1 {{'attn.attention' op is the second attention of its function, expected one}}
  %o2, %l2 = attn.attention %o, %k, %v : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o2, %l2 : !t, tensor<1x2x?xf32>
}

// -----

// 47. tensor arithmetic beside the attention
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'arith.addf' op cannot be part of a kernel, expected attn.attention, tensor.dim of an argument or scalar code}}
  %q2 = arith.addf %q, %q : !t
  %o, %l = attn.attention %q2, %k, %v
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 48. attention inside a loop
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'scf.for' op cannot be part of a kernel, expected attn.attention, tensor.dim of an argument or scalar code}}
  %r = scf.for %i = %c0 to %n step %n iter_args(%x = %q) -> !t {
    %o, %l = attn.attention %x, %k, %v : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
    scf.yield %o : !t
  }
  return %r : !t
}

// -----

// 49. a result that is an argument
!t = tensor<1x2x?x64xf16>
// expected-error@+1 {{'func.func' op result #1 is not a result of the attention}}
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, !t) {
  %o, %l = attn.attention %q, %k, %v : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %q : !t, !t
}

// -----

// 50. a constant key
!u = tensor<1x2x8x64xf16>
func.func @f(%q: !u) -> (!u, tensor<1x2x8xf32>) {
  // expected-error@+1 {{'arith.constant' op cannot be part of a kernel, expected attn.attention, tensor.dim of an argument or scalar code}}
  %c = arith.constant dense<0.0> : !u
  %o, %l = attn.attention %q, %c, %c
    : (!u, !u, !u) -> (!u, tensor<1x2x8xf32>)
  return %o, %l : !u, tensor<1x2x8xf32>
}

// -----

// 51. a plan for rows no warp can hold
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op plan is not feasible: block_q = 72 is not a multiple of 64, 16 rows per warp}}
  %o, %l = attn.attention %q, %k, %v {plan = #attn.plan<target = sm_80, block_q = 72, block_k = 64, warps = 4>}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 52. a plan for another target
!t = tensor<1x2x?x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x2x?xf32>) {
  // expected-error@+1 {{'attn.attention' op plan is for cpu, the target is sm_80}}
  %o, %l = attn.attention %q, %k, %v {plan = #attn.plan<target = cpu, block_q = 64, block_k = 64>}
    : (!t, !t, !t) -> (!t, tensor<1x2x?xf32>)
  return %o, %l : !t, tensor<1x2x?xf32>
}

// -----

// 53. a target written into the function
!t = tensor<1x2x?x64xf16>
// expected-error@+1 {{unknown attribute 'attn.plan' of the attn dialect}}
func.func @f(%q: !t) -> !t attributes {attn.plan = 7 : i32} {
  return %q : !t
}
