// A loop gets its schedule as attributes and is otherwise what it was.

// RUN: stretto-opt %s --tileas-generate-schedule > %t.once && filecheck %s --input-file %t.once
// Twice is once, and what another machine had left is replaced.
// RUN: stretto-opt %t.once -p tileas-generate-schedule,tileas-verify-schedule | diff - %t.once
// RUN: stretto-opt %s -p 'tileas-generate-schedule{machine=b200-pipes},tileas-verify-schedule' > %t.b200
// RUN: filecheck %s --check-prefix=B200 --input-file %t.b200
// RUN: stretto-opt %t.b200 --tileas-generate-schedule='machine=blackwell' | diff - %t.once
// The generic form carries it too.
// RUN: stretto-opt %t.once --mlir-print-op-generic | stretto-opt --tileas-verify-schedule | diff - %t.once
// Without the attributes, it is the input.
// RUN: stretto-opt %s > %t.input && not diff %t.once %t.input
// RUN: stretto-opt %t.once --tileas-generate-schedule='max-ii=1' 2>/dev/null | diff - %t.input
// RUN: stretto-opt %s --tileas-generate-schedule='generator=serial' --tileas-verify-schedule | filecheck %s --check-prefix=SERIAL
// RUN: stretto-opt %s --tileas-generate-schedule='max-stages=1' --tileas-verify-schedule='max-stages=1' | filecheck %s --check-prefix=FLAT
// RUN: not stretto-opt %s --tileas-generate-schedule='generator=magic' 2>&1 | filecheck %s --check-prefix=MAGIC

!A = !nv_tileas.tensor<4096x4096xf16, global>
!a = !nv_tileas.smem_ref<128x64xf16>
!b = !nv_tileas.smem_ref<64x128xf16>
!acc = !nv_tileas.tmem_ref<128x128xf32>

// Two copies hold the tma slot for 8 cycles each, so the II is 16, and the product, which needs
// both, starts when the second copy is done: at 16, one stage on.

// CHECK-LABEL: func.func @gemm
// CHECK:         tiled_tma_load {{.*}} {nv_tile.aws.stage = 0 : i64, nv_tile.aws.order = 0 : i64, nv_tile.aws.start = 0 : i64}
// CHECK:         tiled_tma_load {{.*}} {nv_tile.aws.stage = 0 : i64, nv_tile.aws.order = 1 : i64, nv_tile.aws.start = 8 : i64}
// CHECK:         tcgen05_mma {{.*}} {nv_tile.aws.stage = 1 : i64, nv_tile.aws.order = 0 : i64, nv_tile.aws.start = 16 : i64}
// CHECK-NEXT:  } {nv_tile.aws.ii = 16 : i64, nv_tile.aws.stage_count = 2 : i64, nv_tile.aws.pipeline_depth = 3 : i64,
// CHECK-SAME:   nv_tile.aws.generator = "cost-based", nv_tile.aws.machine = "blackwell",
// CHECK-SAME:   nv_tile.aws.bounds = {resource = 16 : i64, recurrence = 1 : i64, fine = 1 : i64, dependence = 1 : i64, group = 1 : i64, mii = 16 : i64, limiter = "resource"}, nv_tile.aws.table = [{cycle = 0 : i64, cycles = 8 : i64, word = "0x48c00", held = {tc_and_mma = 1 : i64, tma = 1 : i64, tp_smem_wr = 1 : i64, tp_mma = 1 : i64}, drawn = {}}, {cycle = 8 : i64, cycles = 8 : i64, word = "0x8800", held = {tma = 1 : i64, tp_smem_wr = 1 : i64}, drawn = {}}]}

// B200-LABEL: func.func @gemm
// B200:       nv_tile.aws.ii = 256 : i64
// B200-SAME:  nv_tile.aws.machine = "b200-pipes"

// SERIAL-LABEL: func.func @gemm
// SERIAL:       nv_tile.aws.stage_count = 1 : i64
// SERIAL-SAME:  nv_tile.aws.generator = "serial"

// FLAT-LABEL: func.func @gemm
// FLAT:       nv_tile.aws.stage_count = 1 : i64

// MAGIC: generate.mlir:[[LINE:[0-9]+]]:3: error: gemm: no generator `magic`; known: auto, serial, cost-based
// MAGIC: generate.mlir:{{[0-9]+}}:5: error: nest.0: no generator `magic`
func.func @gemm(%A: !A, %B: !A, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %acc = nv_tileas.alloc_tensor : !acc
  scf.for %k = %c0 to %n step %c64 : i32 {
    %a_tile = nv_tileas.alloc_tensor : !a
    %b_tile = nv_tileas.alloc_tensor : !b
    %load_a = nv_tileas.async.tiled_tma_load %A[%c0, %k] into %a_tile : !A -> !a
    %load_b = nv_tileas.async.tiled_tma_load %B[%k, %c0] into %b_tile : !A -> !b
    %mma = nv_tileas.async.tcgen05_mma %load_a, %load_b acc %acc : !a, !b -> !acc
  }
  func.return
}

// An inner loop is a loop, and an operation of the outer one: it has a place and a schedule.

// CHECK-LABEL: func.func @nest
// CHECK:         scf.for %i
// CHECK:           scf.for %k
// CHECK:           } {nv_tile.aws.stage = {{[0-9]+}} : i64, nv_tile.aws.order = {{[0-9]+}} : i64, nv_tile.aws.start = {{[0-9]+}} : i64, nv_tile.aws.ii = 16 : i64
// CHECK:         } {nv_tile.aws.ii = {{[0-9]+}} : i64
func.func @nest(%A: !A, %B: !A) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c512 = arith.constant 512 : i32
    %acc = nv_tileas.alloc_tensor : !acc
    scf.for %i = %c0 to %c512 step %c1 : i32 {
      scf.for %k = %c0 to %c512 step %c64 : i32 {
        %a_tile = nv_tileas.alloc_tensor : !a
        %b_tile = nv_tileas.alloc_tensor : !b
        %load_a = nv_tileas.async.tiled_tma_load %A[%i, %k] into %a_tile : !A -> !a
        %load_b = nv_tileas.async.tiled_tma_load %B[%k, %i] into %b_tile : !A -> !b
        %mma = nv_tileas.async.tcgen05_mma %load_a, %load_b acc %acc : !a, !b -> !acc
      }
    }
  func.return
}
