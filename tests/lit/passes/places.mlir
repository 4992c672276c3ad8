// (stage, order) is enough: what carries only that is verified and materialized.

// RUN: stretto-opt %s --split-input-file --verify-diagnostics --tileas-verify-schedule
// RUN: not stretto-opt %s --split-input-file --tileas-materialize-schedule | filecheck %s

!global = !nv_tileas.tensor<4096x64xf16, global>
!tile = !nv_tileas.smem_ref<64x64xf16>

func.func @copy(%A: !global, %n: i32) {
  %zero = arith.constant 0 : i32
  %rows = arith.constant 64 : i32
  scf.for %row = %zero to %n step %rows : i32 {
    %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] {nv_tile.aws.stage = 0, nv_tile.aws.order = 0} : !global -> !tile
    %read = nv_tileas.async.smem_read %load {nv_tile.aws.stage = 1, nv_tile.aws.order = 0} : !tile -> tensor<64x64xf16>
  }
  func.return
}
// CHECK-LABEL: func.func @copy
// CHECK: nv_tileas.async.pipeline.program
// CHECK: nv_tileas.async.smem_read {{.*}}nv_tile.program.stage = 1

// -----

!global = !nv_tileas.tensor<4096x64xf16, global>
!tile = !nv_tileas.smem_ref<64x64xf16>

func.func @turned(%A: !global, %n: i32) {
  %zero = arith.constant 0 : i32
  %rows = arith.constant 64 : i32
  // expected-error@+1 {{turned: `read` in stage 0 cannot wait for `load` in stage 1: flow latency 8, distance 0, II 8}}
  scf.for %row = %zero to %n step %rows : i32 {
    %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] {nv_tile.aws.stage = 1, nv_tile.aws.order = 0} : !global -> !tile
    %read = nv_tileas.async.smem_read %load {nv_tile.aws.stage = 0, nv_tile.aws.order = 0} : !tile -> tensor<64x64xf16>
  } {nv_tile.aws.ii = 8}
  func.return
}
