// Operands in a row and the type of what is made: read beside the long form, which is printed.

// RUN: stretto-opt %s > %t.long.mlir && filecheck %s --input-file %t.long.mlir
// RUN: stretto-opt %t.long.mlir | diff - %t.long.mlir
// RUN: stretto-opt %s --tileas-generate-schedule | filecheck %s --check-prefix=SCHEDULE

!smem_ref = !nv_tileas.smem_ref<64x64xf16>
!tmem_ref = !nv_tileas.tmem_ref<64x64xf32>
!reg = tensor<64x64xf16>
!row = !nv_tileas.tensor<1048576xf16, global>

// CHECK-LABEL: func.func @four
func.func @four(%desc: !row, %coord: i32, %src: !reg, %a: !smem_ref, %b: !smem_ref, %c: !tmem_ref, %n: index) {
  scf.for %i = %n to %n step %n {
    // CHECK: %0 = nv_tileas.async.tiled_tma_load %desc[%coord] : !nv_tileas.tensor<1048576xf16, global> -> !nv_tileas.smem_ref<64x64xf16>
    %0 = nv_tileas.async.tiled_tma_load %desc, %coord : !smem_ref
    // CHECK: %1 = nv_tileas.async.smem_write %src : tensor<64x64xf16> -> !nv_tileas.smem_ref<64x64xf16>
    %1 = nv_tileas.async.smem_write     %src        : !smem_ref
    // CHECK: %2 = nv_tileas.async.wgmma %a, %b acc %c : {{.*}} -> !nv_tileas.tmem_ref<64x64xf32>
    %2 = nv_tileas.async.wgmma          %a, %b, %c  : !tmem_ref
    // CHECK: %3 = nv_tileas.async.smem_read %0 : !nv_tileas.smem_ref<64x64xf16> -> tensor<64x64xf16>
    %3 = nv_tileas.async.smem_read      %0          : !reg
  }
  // SCHEDULE: nv_tile.aws.ii = 15
  func.return
}

// CHECK-LABEL: func.func @others
func.func @others(%g: !nv_tileas.tensor<?x64xf16, global>, %i: i32, %r: !reg, %s: !smem_ref) {
  // CHECK: cp_async %g[%i, %i] {stretto.latency = 9 : i64} :
  %cp = nv_tileas.async.cp_async %g, %i, %i {stretto.latency = 9} : !smem_ref // a comment -> with an arrow
  // CHECK: %t = nv_tileas.async.tmem_store %r : tensor<64x64xf16> -> !nv_tileas.tmem_ref<64x64xf16>
  %t = nv_tileas.async.tmem_store %r : !nv_tileas.tmem_ref<64x64xf16>
  // CHECK: nv_tileas.async.tmem_load %t : !nv_tileas.tmem_ref<64x64xf16> -> tensor<64x64xf16>
  %l = nv_tileas.async.tmem_load %t
    : tensor<64x64xf16>
  // CHECK: nv_tileas.async.tcgen05_mma %t, %s : !nv_tileas.tmem_ref<64x64xf16>, !nv_tileas.smem_ref<64x64xf16> -> !nv_tileas.tmem_ref<64x64xf32>
  %m = nv_tileas.async.tcgen05_mma %t, %s : !tmem_ref
  func.return
}
