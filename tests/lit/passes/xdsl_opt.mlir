// Stock xdsl-opt finds the dialect and the passes by itself.

// RUN: xdsl-opt %s -p 'tileas-generate-schedule{max-ii=16},tileas-verify-schedule' > %t && filecheck %s --input-file %t
// RUN: stretto-opt %s -p 'tileas-generate-schedule{max-ii=16},tileas-verify-schedule' -o %t.ours && stretto-opt %t | diff - %t.ours
// RUN: xdsl-opt %s -p 'tileas-generate-schedule{max-ii=7}' 2>&1 | filecheck %s --check-prefix=WARNED
// RUN: xdsl-opt -p tileas-verify-schedule < %t | diff - %t
// RUN: sed -e 's/start = 8 : i64/start = 7 : i64/' %t | xdsl-opt -p tileas-verify-schedule --verify-diagnostics | filecheck %s --check-prefix=REFUSED

// CHECK: nv_tileas.async.smem_read {{.*}}nv_tile.aws.start = 8 : i64
// CHECK: nv_tile.aws.ii = 8 : i64

// WARNED: warning: f: left alone: no schedule exists up to II 7

// REFUSED: error: dependence: `r` starts at 7; `t` is ready at 8
// REFUSED: note: `t` starts at 0
func.func @f(%A: !nv_tileas.tensor<64x64xf16, global>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %t = nv_tileas.async.tiled_tma_load %A[%c0, %k] : !nv_tileas.tensor<64x64xf16, global> -> !nv_tileas.smem_ref<64x64xf16>
    %r = nv_tileas.async.smem_read %t : !nv_tileas.smem_ref<64x64xf16> -> tensor<64x64xf16>
  }
  func.return
}
