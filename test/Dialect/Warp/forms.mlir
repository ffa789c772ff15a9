// Each pass of the room in a wrong order: the error names the form that the pass
// needs and the one that is there. In the right order each one runs.

// DEFINE: %{tile} = attn-opt %s --attn-expand-variants --attn-plan=target=sm_90a --convert-attn-to-tile --tile-fold-exp2 --tile-overlap-products --tile-expand-scores --tile-expand-softmax
// DEFINE: %{warp} = %{tile} --cse --convert-tile-to-warp
// DEFINE: %{place} = --warp-assign-resources=shared-limit=232448

// RUN: not %{tile} --warp-buffer -o %t 2>&1 | FileCheck %s --check-prefix=TILE
// TILE: error: warp-buffer needs warp-resident, got a tile.kernel; run it after convert-tile-to-warp
// RUN: not attn-opt %s --warp-buffer -o %t 2>&1 | FileCheck %s --check-prefix=ATTN
// ATTN: error: warp-buffer needs warp-resident, got an attn.attention; run it after convert-attn-to-tile

// RUN: %{warp} --warp-defer-sum --warp-persist --warp-double-buffer --warp-specialize --warp-delay-exchange --warp-make-async --warp-insert-turns --warp-stage-stores --warp-deepen-rings --warp-test-ahead --warp-expand-tanh --warp-turn-ends %{place} --convert-warp-to-gpu=chip=sm_90a -o %t

// RUN: not %{warp} --warp-specialize --warp-defer-sum -o %t 2>&1 | FileCheck %s --check-prefix=DEFER
// DEFER: error: warp-defer-sum needs warp-sync, got warp-roles: a role; run it before warp-specialize
// RUN: not %{warp} --warp-buffer --warp-persist -o %t 2>&1 | FileCheck %s --check-prefix=PERSIST
// PERSIST: error: warp-persist needs warp-sync, got warp-buffered: a ring; run it before warp-buffer
// RUN: not %{warp} --warp-persist --warp-persist -o %t 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: warp-persist needs warp-sync, got warp-resident: a resident kernel; it has run already
// RUN: not %{warp} --warp-buffer --warp-order-tiles -o %t 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: warp-order-tiles needs warp-resident, got warp-buffered: a ring; run it before warp-buffer
// RUN: not %{warp} --warp-make-async --warp-double-buffer -o %t 2>&1 | FileCheck %s --check-prefix=DOUBLE
// DOUBLE: error: warp-double-buffer needs warp-resident, got warp-async: a product in flight; run it before warp-make-async
// RUN: not %{warp} --warp-buffer --warp-specialize -o %t 2>&1 | FileCheck %s --check-prefix=ROLES
// ROLES: error: warp-specialize needs warp-resident, got warp-buffered: a ring; run it before warp-buffer
// RUN: not %{warp} --warp-specialize --warp-buffer -o %t 2>&1 | FileCheck %s --check-prefix=BUFFER
// BUFFER: error: warp-buffer needs warp-resident, got warp-roles: a role; run it before warp-specialize

// RUN: not %{warp} --warp-specialize --warp-make-async --warp-delay-exchange -o %t 2>&1 | FileCheck %s --check-prefix=DELAY
// DELAY: error: warp-delay-exchange needs warp-roles, got warp-async: a product in flight; run it before warp-make-async

// RUN: not %{warp} --warp-stage-stores --warp-make-async -o %t 2>&1 | FileCheck %s --check-prefix=ASYNC
// ASYNC: error: warp-make-async needs warp-roles, got warp-staged: a store via shared memory; run it before warp-stage-stores
// RUN: not %{warp} --warp-specialize --warp-insert-turns -o %t 2>&1 | FileCheck %s --check-prefix=TURNS
// TURNS: error: warp-insert-turns needs warp-async, got a product that is waited for at once and could be in flight; run it after warp-make-async

// RUN: not %{warp} --warp-persist --warp-specialize --warp-deepen-rings --warp-stage-stores -o %t 2>&1 | FileCheck %s --check-prefix=STAGE
// STAGE: error: warp-stage-stores needs warp-staged, got warp-deepened: a ring of several slots that a tile fills once; run it before warp-deepen-rings
// RUN: not %{warp} %{place} --warp-deepen-rings -o %t 2>&1 | FileCheck %s --check-prefix=DEEPEN
// DEEPEN: error: warp-deepen-rings needs warp-deepened, got warp-placed: memory that has its place; run it before warp-assign-resources
// RUN: not %{warp} %{place} --warp-test-ahead -o %t 2>&1 | FileCheck %s --check-prefix=TEST
// TEST: error: warp-test-ahead needs warp-deepened, got warp-placed: memory that has its place; run it before warp-assign-resources
// RUN: not %{warp} %{place} --warp-expand-tanh -o %t 2>&1 | FileCheck %s --check-prefix=TANH
// TANH: error: warp-expand-tanh needs warp-deepened, got warp-placed: memory that has its place; run it before warp-assign-resources
// RUN: not %{warp} %{place} --warp-turn-ends -o %t 2>&1 | FileCheck %s --check-prefix=ENDS
// ENDS: error: warp-turn-ends needs warp-deepened, got warp-placed: memory that has its place; run it before warp-assign-resources
// RUN: not %{warp} %{place} %{place} -o %t 2>&1 | FileCheck %s --check-prefix=PLACE
// PLACE: error: warp-assign-resources needs warp-deepened, got warp-placed: memory that has its place; it has run already

// RUN: not %{warp} --convert-warp-to-gpu=chip=sm_90a -o %t 2>&1 | FileCheck %s --check-prefix=GPU
// GPU: error: convert-warp-to-gpu needs warp-placed, got memory without a place; run it after warp-assign-resources
// RUN: not %{warp} --warp-specialize %{place} --convert-warp-to-gpu=chip=sm_90a --warp-stage-stores -o %t 2>&1 | FileCheck %s --check-prefix=LAUNCH
// LAUNCH: error: warp-stage-stores needs warp-staged, got gpu: a gpu.launch_func; run it before convert-warp-to-gpu

!t = tensor<?x?x?x64xbf16>
!l = tensor<?x?x?xf32>

func.func @causal(%q: !t, %k: !t, %v: !t) -> (!t, !l) {
  %o, %lse = attn.attention %q, %k, %v
    mask(%b: i32, %h: i32, %i: i32, %j: i32) {
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    } : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
