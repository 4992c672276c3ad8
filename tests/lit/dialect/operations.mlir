// Every operation once, in the form it is written in; custom to generic to custom is the same text.

// RUN: stretto-opt %s > %t.custom.mlir && filecheck %s --input-file %t.custom.mlir
// RUN: stretto-opt --mlir-print-op-generic %t.custom.mlir > %t.generic.mlir && filecheck %s --check-prefix=GENERIC --input-file %t.generic.mlir
// RUN: stretto-opt %t.generic.mlir | diff - %t.custom.mlir
// RUN: stretto-opt --mlir-print-op-generic %t.generic.mlir | diff - %t.generic.mlir
// RUN: xdsl-opt %t.custom.mlir | stretto-opt | diff - %t.custom.mlir

// CHECK-LABEL: func.func @memory
// GENERIC-LABEL: sym_name = "memory"
func.func @memory(%g: !nv_tileas.tensor<?x64xf16, global>, %i: i32, %picks: tensor<16xi32>, %t: !nv_tileas.token) {
  // CHECK: %s = nv_tileas.alloc_tensor : !nv_tileas.smem_ref<16x64xf16>
  %s = nv_tileas.alloc_tensor : !nv_tileas.smem_ref<16x64xf16>
  // CHECK: %ring = nv_tileas.alloc_tensor {depth = 3 : i64} : !nv_tileas.tmem_ref<16x64xf16>
  // GENERIC: "nv_tileas.alloc_tensor"() <{depth = 3 : i64}> : () -> !nv_tileas.tmem_ref<16x64xf16>
  %ring = nv_tileas.alloc_tensor {depth = 3} : !nv_tileas.tmem_ref<16x64xf16>
  // CHECK: %load = nv_tileas.async.tiled_tma_load %g[%i, %i] : !nv_tileas.tensor<?x64xf16, global> -> !nv_tileas.smem_ref<16x64xf16>
  // GENERIC: "nv_tileas.async.tiled_tma_load"(%g, %i, %i) <{operandSegmentSizes = array<i32: 1, 2, 0, 0>}>
  %load = nv_tileas.async.tiled_tma_load %g[%i, %i] : !nv_tileas.tensor<?x64xf16, global> -> !nv_tileas.smem_ref<16x64xf16>
  // CHECK: %into, %t1 = nv_tileas.async.tiled_tma_load %g[%i, %i] into %s after %t {tag} : !nv_tileas.tensor<?x64xf16, global> -> !nv_tileas.smem_ref<16x64xf16>, !nv_tileas.token
  %into, %t1 = nv_tileas.async.tiled_tma_load %g[%i, %i] into %s after %t {tag} : !nv_tileas.tensor<?x64xf16, global> -> !nv_tileas.smem_ref<16x64xf16>, !nv_tileas.token
  // CHECK: nv_tileas.async.tma_gather %g[%picks] into %s : !nv_tileas.tensor<?x64xf16, global>[tensor<16xi32>] -> !nv_tileas.smem_ref<16x64xf16>
  %gather = nv_tileas.async.tma_gather %g[%picks] into %s : !nv_tileas.tensor<?x64xf16, global>[tensor<16xi32>] -> !nv_tileas.smem_ref<16x64xf16>
  // CHECK: nv_tileas.async.tiled_tma_store %s to %g[%i, %i] after %t, %t1 : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>
  %out = nv_tileas.async.tiled_tma_store %s to %g[%i, %i] after %t, %t1 : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>
  // CHECK: nv_tileas.async.tma_gather %g[%picks, %i] into %s : !nv_tileas.tensor<?x64xf16, global>[tensor<16xi32>] -> !nv_tileas.smem_ref<16x64xf16>
  %further = nv_tileas.async.tma_gather %g[%picks, %i] into %s : !nv_tileas.tensor<?x64xf16, global>[tensor<16xi32>] -> !nv_tileas.smem_ref<16x64xf16>
  // CHECK: nv_tileas.async.tma_scatter %s to %g[%picks] : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>[tensor<16xi32>]
  %scatter = nv_tileas.async.tma_scatter %s to %g[%picks] : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>[tensor<16xi32>]
  // CHECK: nv_tileas.async.tma_scatter %s to %g[%picks, %i] after %t : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>[tensor<16xi32>]
  %spread = nv_tileas.async.tma_scatter %s to %g[%picks, %i] after %t : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>[tensor<16xi32>]
  // CHECK: nv_tileas.async.tiled_tma_store %s to %g[%i, %i] {kind = "add"} : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>
  %added = nv_tileas.async.tiled_tma_store %s to %g[%i, %i] {kind = "add"} : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>
  // CHECK: nv_tileas.async.cp_async %g[%i, %i] into %s : !nv_tileas.tensor<?x64xf16, global> -> !nv_tileas.smem_ref<16x64xf16>
  %cp = nv_tileas.async.cp_async %g[%i, %i] into %s : !nv_tileas.tensor<?x64xf16, global> -> !nv_tileas.smem_ref<16x64xf16>
  // CHECK: %r = nv_tileas.load %g[%i, %i] : !nv_tileas.tensor<?x64xf16, global> -> tensor<16x64xf16>
  %r = nv_tileas.load %g[%i, %i] : !nv_tileas.tensor<?x64xf16, global> -> tensor<16x64xf16>
  // CHECK: nv_tileas.store %r to %g[%i, %i] : tensor<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>
  %stored = nv_tileas.store %r to %g[%i, %i] : tensor<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>
  // CHECK: %far = nv_tileas.async.gnic_read %g[%i, %i] after %t : !nv_tileas.tensor<?x64xf16, global> -> tensor<16x64xf16>
  %far = nv_tileas.async.gnic_read %g[%i, %i] after %t : !nv_tileas.tensor<?x64xf16, global> -> tensor<16x64xf16>
  // CHECK: nv_tileas.async.gnic_write %far to %g[%i, %i] : tensor<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>
  %sent = nv_tileas.async.gnic_write %far to %g[%i, %i] : tensor<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>
  // CHECK: nv_tileas.async.mma_copy %far : tensor<16x64xf16> -> tensor<16x64xf16>
  %laid = nv_tileas.async.mma_copy %far : tensor<16x64xf16> -> tensor<16x64xf16>
  // CHECK: nv_tileas.async.smem_write %r into %s : tensor<16x64xf16> -> !nv_tileas.smem_ref<16x64xf16>
  %w = nv_tileas.async.smem_write %r into %s : tensor<16x64xf16> -> !nv_tileas.smem_ref<16x64xf16>
  // CHECK: nv_tileas.async.smem_read %w after %t1 : !nv_tileas.smem_ref<16x64xf16> -> tensor<16x64xf16>, !nv_tileas.token
  %read, %t2 = nv_tileas.async.smem_read %w after %t1 : !nv_tileas.smem_ref<16x64xf16> -> tensor<16x64xf16>, !nv_tileas.token
  // CHECK: nv_tileas.async.tmem_store %r into %ring : tensor<16x64xf16> -> !nv_tileas.tmem_ref<16x64xf16>
  %ts = nv_tileas.async.tmem_store %r into %ring : tensor<16x64xf16> -> !nv_tileas.tmem_ref<16x64xf16>
  // CHECK: nv_tileas.async.tmem_load %ts : !nv_tileas.tmem_ref<16x64xf16> -> tensor<16x64xf16>
  %tl = nv_tileas.async.tmem_load %ts : !nv_tileas.tmem_ref<16x64xf16> -> tensor<16x64xf16>
  // CHECK: nv_tileas.async.tmem_copy %w into %ring : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tmem_ref<16x64xf16>
  %tc = nv_tileas.async.tmem_copy %w into %ring : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tmem_ref<16x64xf16>
  // CHECK: nv_tileas.async.copy %r into %s : tensor<16x64xf16> -> !nv_tileas.smem_ref<16x64xf16>
  %copy = nv_tileas.async.copy %r into %s : tensor<16x64xf16> -> !nv_tileas.smem_ref<16x64xf16>
  // CHECK: nv_tileas.async.copy %s into %g : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>
  %away = nv_tileas.async.copy %s into %g : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tensor<?x64xf16, global>
  // CHECK: nv_tileas.alloc_tensor(%r : tensor<16x64xf16>) : !nv_tileas.smem_ref<16x64xf16>
  %filled = nv_tileas.alloc_tensor(%r : tensor<16x64xf16>) : !nv_tileas.smem_ref<16x64xf16>
  func.return
}

// CHECK-LABEL: func.func @views
func.func @views(%s: !nv_tileas.smem_ref<16x64xf16>, %r: tensor<16xf32>, %x: f32, %i: i32, %n: !nv_tileas.tensor<8x4xf8E4M3FN, smem>) {
  // CHECK: nv_tileas.slice %s[%i, %i] : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.smem_ref<8x64xf16>
  %slice = nv_tileas.slice %s[%i, %i] : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.smem_ref<8x64xf16>
  // CHECK: nv_tileas.view %s : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.smem_ref<512xf32>
  %view = nv_tileas.view %s : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.smem_ref<512xf32>
  // CHECK: nv_tileas.transpose %s : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.smem_ref<64x16xf16>
  %transpose = nv_tileas.transpose %s : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.smem_ref<64x16xf16>
  // CHECK: nv_tileas.transpose %n {permutation = array<i64: 0, 1>} : !nv_tileas.tensor<8x4xf8E4M3FN, smem> -> !nv_tileas.tensor<8x4xf8E4M3FN, smem>
  %same = nv_tileas.transpose %n {permutation = array<i64: 0, 1>} : !nv_tileas.tensor<8x4xf8E4M3FN, smem> -> !nv_tileas.tensor<8x4xf8E4M3FN, smem>
  // CHECK: nv_tileas.expand_dims %r {axis = 1 : i64} : tensor<16xf32> -> tensor<16x1xf32>
  %expand = nv_tileas.expand_dims %r {axis = 1} : tensor<16xf32> -> tensor<16x1xf32>
  // CHECK: nv_tileas.broadcast %expand : tensor<16x1xf32> -> tensor<16x8xf32>
  %wide = nv_tileas.broadcast %expand : tensor<16x1xf32> -> tensor<16x8xf32>
  // CHECK: nv_tileas.splat %x : f32 -> tensor<16xf32>
  %splat = nv_tileas.splat %x : f32 -> tensor<16xf32>
  // CHECK: nv_tileas.convert_layout %wide : tensor<16x8xf32> -> tensor<16x8xf32, "rows">
  %convert = nv_tileas.convert_layout %wide : tensor<16x8xf32> -> tensor<16x8xf32, "rows">
  func.return
}

// CHECK-LABEL: func.func @compute
func.func @compute(%a: !nv_tileas.smem_ref<64x32xf16>, %b: !nv_tileas.smem_ref<32x16xf16>, %c: !nv_tileas.tmem_ref<64x16xf32>,
                   %r: tensor<64x32xf16>, %s: tensor<32x16xf16>, %x: tensor<64x16xf32>, %y: f32,
                   %p: tensor<64x16xi1>) {
  // CHECK: nv_tileas.async.wgmma %a, %b acc %c : !nv_tileas.smem_ref<64x32xf16>, !nv_tileas.smem_ref<32x16xf16> -> !nv_tileas.tmem_ref<64x16xf32>
  %w = nv_tileas.async.wgmma %a, %b acc %c : !nv_tileas.smem_ref<64x32xf16>, !nv_tileas.smem_ref<32x16xf16> -> !nv_tileas.tmem_ref<64x16xf32>
  // CHECK: %made, %done = nv_tileas.async.wgmma %a, %b : !nv_tileas.smem_ref<64x32xf16>, !nv_tileas.smem_ref<32x16xf16> -> tensor<64x16xf32>, !nv_tileas.token
  %made, %done = nv_tileas.async.wgmma %a, %b : !nv_tileas.smem_ref<64x32xf16>, !nv_tileas.smem_ref<32x16xf16> -> tensor<64x16xf32>, !nv_tileas.token
  // CHECK: %waited = nv_tileas.async.wgmma_wait %made : tensor<64x16xf32> after %done frees %a, %b : !nv_tileas.smem_ref<64x32xf16>, !nv_tileas.smem_ref<32x16xf16> -> tensor<64x16xf32>
  %waited = nv_tileas.async.wgmma_wait %made : tensor<64x16xf32> after %done frees %a, %b : !nv_tileas.smem_ref<64x32xf16>, !nv_tileas.smem_ref<32x16xf16> -> tensor<64x16xf32>
  // CHECK: nv_tileas.async.wgmma_wait after %done
  nv_tileas.async.wgmma_wait after %done
  // CHECK: nv_tileas.async.tcgen05_mma %a, %b into %c : !nv_tileas.smem_ref<64x32xf16>, !nv_tileas.smem_ref<32x16xf16> -> !nv_tileas.tmem_ref<64x16xf32>, !nv_tileas.token
  %m, %t = nv_tileas.async.tcgen05_mma %a, %b into %c : !nv_tileas.smem_ref<64x32xf16>, !nv_tileas.smem_ref<32x16xf16> -> !nv_tileas.tmem_ref<64x16xf32>, !nv_tileas.token
  // CHECK: nv_tileas.async.dot %r, %b after %t : tensor<64x32xf16>, !nv_tileas.smem_ref<32x16xf16> -> tensor<64x16xf32>
  %d = nv_tileas.async.dot %r, %b after %t : tensor<64x32xf16>, !nv_tileas.smem_ref<32x16xf16> -> tensor<64x16xf32>
  // CHECK: nv_tileas.mma_sync %r, %s acc %x : tensor<64x32xf16>, tensor<32x16xf16> -> tensor<64x16xf32>
  %e = nv_tileas.mma_sync %r, %s acc %x : tensor<64x32xf16>, tensor<32x16xf16> -> tensor<64x16xf32>
  // CHECK: nv_tileas.dot_fma %r, %s : tensor<64x32xf16>, tensor<32x16xf16> -> tensor<64x16xf32>
  %f = nv_tileas.dot_fma %r, %s : tensor<64x32xf16>, tensor<32x16xf16> -> tensor<64x16xf32>
  // CHECK: nv_tileas.reduce.max %x axis 1 : tensor<64x16xf32> -> tensor<64xf32>
  %max = nv_tileas.reduce.max %x axis 1 : tensor<64x16xf32> -> tensor<64xf32>
  // CHECK: nv_tileas.reduce.sum %max axis 0 : tensor<64xf32> -> f32
  %sum = nv_tileas.reduce.sum %max axis 0 : tensor<64xf32> -> f32
  // CHECK: nv_tileas.arith.addf %x, %y : tensor<64x16xf32>, f32 -> tensor<64x16xf32>
  %add = nv_tileas.arith.addf %x, %y : tensor<64x16xf32>, f32 -> tensor<64x16xf32>
  // CHECK: nv_tileas.arith.subf %y, %x : f32, tensor<64x16xf32> -> tensor<64x16xf32>
  %sub = nv_tileas.arith.subf %y, %x : f32, tensor<64x16xf32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.arith.mulf %x, %x : tensor<64x16xf32>, tensor<64x16xf32> -> tensor<64x16xf32>
  %mul = nv_tileas.arith.mulf %x, %x : tensor<64x16xf32>, tensor<64x16xf32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.arith.divf %x, %y
  %div = nv_tileas.arith.divf %x, %y : tensor<64x16xf32>, f32 -> tensor<64x16xf32>
  // CHECK: nv_tileas.arith.maxnumf %x, %y
  %greater = nv_tileas.arith.maxnumf %x, %y : tensor<64x16xf32>, f32 -> tensor<64x16xf32>
  // CHECK: nv_tileas.arith.minnumf %x, %y
  %lesser = nv_tileas.arith.minnumf %x, %y : tensor<64x16xf32>, f32 -> tensor<64x16xf32>
  // CHECK: nv_tileas.arith.negf %x : tensor<64x16xf32> -> tensor<64x16xf32>
  %neg = nv_tileas.arith.negf %x : tensor<64x16xf32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.math.absf %x
  %abs = nv_tileas.math.absf %x : tensor<64x16xf32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.math.exp2 %x
  %exp2 = nv_tileas.math.exp2 %x : tensor<64x16xf32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.math.exp %x
  %exp = nv_tileas.math.exp %x : tensor<64x16xf32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.math.log2 %x
  %log2 = nv_tileas.math.log2 %x : tensor<64x16xf32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.math.rsqrt %x
  %rsqrt = nv_tileas.math.rsqrt %x : tensor<64x16xf32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.math.sqrt %x
  %sqrt = nv_tileas.math.sqrt %x : tensor<64x16xf32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.math.tanh %x
  %tanh = nv_tileas.math.tanh %x : tensor<64x16xf32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.math.fma %x, %y, %x : tensor<64x16xf32>, f32, tensor<64x16xf32> -> tensor<64x16xf32>
  %fma = nv_tileas.math.fma %x, %y, %x : tensor<64x16xf32>, f32, tensor<64x16xf32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.arith.truncf %x : tensor<64x16xf32> -> tensor<64x16xbf16>
  %narrow = nv_tileas.arith.truncf %x : tensor<64x16xf32> -> tensor<64x16xbf16>
  // CHECK: nv_tileas.arith.extf %narrow : tensor<64x16xbf16> -> tensor<64x16xf32>
  %wide = nv_tileas.arith.extf %narrow : tensor<64x16xbf16> -> tensor<64x16xf32>
  // CHECK: nv_tileas.arith.fptosi %x : tensor<64x16xf32> -> tensor<64x16xi32>
  %whole = nv_tileas.arith.fptosi %x : tensor<64x16xf32> -> tensor<64x16xi32>
  // CHECK: nv_tileas.arith.sitofp %whole : tensor<64x16xi32> -> tensor<64x16xf32>
  %float = nv_tileas.arith.sitofp %whole : tensor<64x16xi32> -> tensor<64x16xf32>
  // CHECK: nv_tileas.arith.select %p, %x, %y : tensor<64x16xi1>, tensor<64x16xf32>, f32 -> tensor<64x16xf32>
  %select = nv_tileas.arith.select %p, %x, %y : tensor<64x16xi1>, tensor<64x16xf32>, f32 -> tensor<64x16xf32>
  func.return
}

// CHECK-LABEL: func.func @pipeline
func.func @pipeline(%g: !nv_tileas.tensor<?x64xf16, global>, %i: i32) {
  // CHECK: %pipe = nv_tileas.async.pipeline.create_pipeline {producers = 1 : i64, consumers = 2 : i64} : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
  %pipe = nv_tileas.async.pipeline.create_pipeline {producers = 1, consumers = 2} : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
  // CHECK: nv_tileas.async.pipeline.create_iterator %pipe : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
  %it = nv_tileas.async.pipeline.create_iterator %pipe : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
  // CHECK: nv_tileas.async.pipeline.inc_iter %it
  %next = nv_tileas.async.pipeline.inc_iter %it
  // CHECK: nv_tileas.async.pipeline.agent_switch {
  nv_tileas.async.pipeline.agent_switch {
    // CHECK-NEXT: %free = nv_tileas.async.pipeline.producer_acquire %pipe[%it] : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
    %free = nv_tileas.async.pipeline.producer_acquire %pipe[%it] : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
    // CHECK-NEXT: %full = nv_tileas.async.pipeline.producer_write %pipe[%it] after %free (%slot: !nv_tileas.smem_ref<16x64xf16>) {
    // CHECK-NEXT:   %load = nv_tileas.async.tiled_tma_load %g[%i, %i] into %slot
    // CHECK-NEXT: } : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
    %full = nv_tileas.async.pipeline.producer_write %pipe[%it] after %free (%slot: !nv_tileas.smem_ref<16x64xf16>) {
      %load = nv_tileas.async.tiled_tma_load %g[%i, %i] into %slot : !nv_tileas.tensor<?x64xf16, global> -> !nv_tileas.smem_ref<16x64xf16>
    } : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
    // CHECK-NEXT: %done = nv_tileas.async.pipeline.producer_commit %pipe[%it] after %full : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
    %done = nv_tileas.async.pipeline.producer_commit %pipe[%it] after %full : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
  // CHECK-NEXT: }, {
  }, {
    // CHECK-NEXT: nv_tileas.async.pipeline.consumer_wait %pipe[%it] : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
    %here = nv_tileas.async.pipeline.consumer_wait %pipe[%it] : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
    // CHECK-NEXT: %read, %tile = nv_tileas.async.pipeline.consumer_read %pipe[%it] after %here (%slot_1: !nv_tileas.smem_ref<16x64xf16>) {
    // CHECK-NEXT:   %r = nv_tileas.async.smem_read %slot_1
    // CHECK-NEXT:   nv_tileas.async.pipeline.yield %r : tensor<16x64xf16>
    // CHECK-NEXT: } {who = "consumer"} : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>> -> tensor<16x64xf16>
    %read, %tile = nv_tileas.async.pipeline.consumer_read %pipe[%it] after %here (%slot: !nv_tileas.smem_ref<16x64xf16>) {
      %r = nv_tileas.async.smem_read %slot : !nv_tileas.smem_ref<16x64xf16> -> tensor<16x64xf16>
      nv_tileas.async.pipeline.yield %r : tensor<16x64xf16>
    } {who = "consumer"} : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>> -> tensor<16x64xf16>
    // CHECK-NEXT: nv_tileas.async.pipeline.consumer_release %pipe[%it] after %read : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
    %gone = nv_tileas.async.pipeline.consumer_release %pipe[%it] after %read : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<16x64xf16>>
  // CHECK-NEXT: }, {
  }, {
  // CHECK-NEXT: } attributes {agents = ["load", "use", "idle"]}
  } attributes {agents = ["load", "use", "idle"]}
  // CHECK: nv_tileas.barrier
  nv_tileas.barrier
  // CHECK: %a = nv_tileas.async.mbarrier_arrive : !nv_tileas.token
  %a = nv_tileas.async.mbarrier_arrive : !nv_tileas.token
  // CHECK: nv_tileas.async.mbarrier_wait after %a
  nv_tileas.async.mbarrier_wait after %a
  // CHECK: %x, %y = nv_tileas.generic "tt.load"(%i, %a) {hint} : (i32, !nv_tileas.token) -> (f32, !nv_tileas.iterator)
  // GENERIC: %x, %y = "nv_tileas.generic"(%i, %a) <{kind = "tt.load"}> {hint} : (i32, !nv_tileas.token) -> (f32, !nv_tileas.iterator)
  %x, %y = nv_tileas.generic "tt.load"(%i, %a) {hint} : (i32, !nv_tileas.token) -> (f32, !nv_tileas.iterator)
  // CHECK: nv_tileas.generic "nothing"() : () -> ()
  nv_tileas.generic "nothing"() : () -> ()
  func.return
}

!ring = !nv_tileas.pipeline<3, tensor<4xf32>>
!cell = !nv_tileas.pipeline<1, tensor<4xf32>>

// CHECK-LABEL: func.func @programs
// GENERIC-LABEL: sym_name = "programs"
func.func @programs(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: %m, %n_1, %valid = nv_tileas.work_tile_info %n {problem = array<i64: 256, 128>, tile = array<i64: 128, 64>, cluster = array<i64: 2, 1>, blocks = 2 : i64} : i32 -> i32, i32, i1
  %m, %n_1, %valid = nv_tileas.work_tile_info %n {problem = array<i64: 256, 128>, tile = array<i64: 128, 64>, cluster = array<i64: 2, 1>, blocks = 2} : i32 -> i32, i32, i1
  // CHECK: %at, %there = nv_tileas.work_tile_info %n of %m : i32 {tile = array<i64: 1>, cluster = array<i64: 1>} : i32 -> i32, i1
  %at, %there = nv_tileas.work_tile_info %n of %m : i32 {tile = array<i64: 1>, cluster = array<i64: 1>} : i32 -> i32, i1
  // CHECK: %last = nv_tileas.async.pipeline.program {
  %last = nv_tileas.async.pipeline.program {
    // CHECK-NEXT: %t = nv_tileas.async.pipeline.trip_count %c0 to %n step %c1 : i32
    %t = nv_tileas.async.pipeline.trip_count %c0 to %n step %c1 : i32
    // CHECK-NEXT: %r = nv_tileas.async.pipeline.create_ring {value = "x", lifetime = 3 : i64} : !nv_tileas.pipeline<3, tensor<4xf32>>
    %r = nv_tileas.async.pipeline.create_ring {value = "x", lifetime = 3} : !ring
    // CHECK-NEXT: %l = nv_tileas.async.pipeline.create_ring(%x : tensor<4xf32>) : !nv_tileas.pipeline<1, tensor<4xf32>>
    %l = nv_tileas.async.pipeline.create_ring(%x : tensor<4xf32>) : !cell
    // CHECK-NEXT: %pipe = nv_tileas.async.pipeline.create_pipeline on %r {pipe = {name = "P"}} : !nv_tileas.pipeline<3, tensor<4xf32>>
    %pipe = nv_tileas.async.pipeline.create_pipeline on %r {pipe = {name = "P"}} : !ring
    // CHECK-NEXT: %order = nv_tileas.async.pipeline.create_mutex {holder = "a", latency = 3 : i64, private} : !nv_tileas.mutex
    %order = nv_tileas.async.pipeline.create_mutex {holder = "a", latency = 3, private} : !nv_tileas.mutex
    // CHECK-NEXT: %i = nv_tileas.async.pipeline.create_iterator %r init(%x : tensor<4xf32>) {op = "a", side = "producer", phase = 1 : i64} : !nv_tileas.pipeline<3, tensor<4xf32>>
    %i = nv_tileas.async.pipeline.create_iterator %r init(%x : tensor<4xf32>) {op = "a", side = "producer", phase = 1} : !ring
    // CHECK-NEXT: nv_tileas.async.pipeline.await %order {distance = 1 : i64}
    nv_tileas.async.pipeline.await %order {distance = 1}
    // CHECK-NEXT: %{{.*}}, %v = nv_tileas.async.pipeline.producer_write %pipe[%i] () {
    %tok, %v = nv_tileas.async.pipeline.producer_write %pipe[%i] () {
      %y = arith.addf %x, %x : tensor<4xf32>
      nv_tileas.async.pipeline.yield %y : tensor<4xf32>
    } : !ring -> tensor<4xf32>
    // CHECK: nv_tileas.async.pipeline.arrive %order
    nv_tileas.async.pipeline.arrive %order
    // CHECK-NEXT: nv_tileas.async.pipeline.fill %v into %l : tensor<4xf32> -> !nv_tileas.pipeline<1, tensor<4xf32>>
    nv_tileas.async.pipeline.fill %v into %l : tensor<4xf32> -> !cell
    // CHECK-NEXT: %s = nv_tileas.async.pipeline.slot %r[%i] : !nv_tileas.pipeline<3, tensor<4xf32>> -> tensor<4xf32>
    %s = nv_tileas.async.pipeline.slot %r[%i] : !ring -> tensor<4xf32>
    // CHECK-NEXT: %e = nv_tileas.async.pipeline.slot %l : !nv_tileas.pipeline<1, tensor<4xf32>> -> tensor<4xf32>
    %e = nv_tileas.async.pipeline.slot %l : !cell -> tensor<4xf32>
    // CHECK-NEXT: nv_tileas.async.pipeline.yield %e : tensor<4xf32>
    nv_tileas.async.pipeline.yield %e : tensor<4xf32>
  // CHECK-NEXT: } -> tensor<4xf32> attributes {mode = "unspecialized", machine = "m", ii = 3 : i64, stage_count = 2 : i64, ops = ["a"], loop = {}}
  } -> tensor<4xf32> attributes {mode = "unspecialized", machine = "m", ii = 3, stage_count = 2, ops = ["a"], loop = {}}
  func.return %last : tensor<4xf32>
}

// CHECK-LABEL: func.func @kernel
// GENERIC-LABEL: sym_name = "kernel"
func.func @kernel(%p: !nv_tileas.ptr<f16>, %n: i32, %s: i64, %m: tensor<16xi1>, %o: tensor<16xf16>, %x: tensor<16x4xf32>, %k: tensor<16x4xi32>, %b: tensor<16xi32>, %yes: i1) {
  // CHECK: %ring = nv_tileas.alloc_tensor : !nv_tileas.smem_ref<16xf16>
  %ring = nv_tileas.alloc_tensor : !nv_tileas.smem_ref<16xf16>
  // CHECK: %index = nv_tileas.block_index {axis = 0 : i64} : i32
  %index = nv_tileas.block_index {axis = 0 : i64} : i32
  // CHECK: %count = nv_tileas.block_count {axis = 2 : i64} : i32
  %count = nv_tileas.block_count {axis = 2 : i64} : i32
  // CHECK: %tiles = nv_tileas.tile_count {axis = 0 : i64, blocks = 132 : i64} : i32
  %tiles = nv_tileas.tile_count {axis = 0 : i64, blocks = 132 : i64} : i32
  // CHECK: %range = nv_tileas.range {start = 0 : i64, end = 16 : i64} : tensor<16xi32>
  %range = nv_tileas.range {start = 0 : i64, end = 16 : i64} : tensor<16xi32>
  // CHECK: %view = nv_tileas.tensor_view %p sizes %n, %n : i32, i32 strides %s, %s : i64, i64 {padding = "zero"} : !nv_tileas.ptr<f16> -> !nv_tileas.tensor<?x64xf16, global>
  %view = nv_tileas.tensor_view %p sizes %n, %n : i32, i32 strides %s, %s : i64, i64 {padding = "zero"} : !nv_tileas.ptr<f16> -> !nv_tileas.tensor<?x64xf16, global>
  // CHECK: %further = nv_tileas.offset %p, %n : !nv_tileas.ptr<f16>, i32 -> !nv_tileas.ptr<f16>
  %further = nv_tileas.offset %p, %n : !nv_tileas.ptr<f16>, i32 -> !nv_tileas.ptr<f16>
  // CHECK: %many = nv_tileas.splat %further : !nv_tileas.ptr<f16> -> tensor<16x!nv_tileas.ptr<f16>>
  %many = nv_tileas.splat %further : !nv_tileas.ptr<f16> -> tensor<16x!nv_tileas.ptr<f16>>
  // CHECK: %at = nv_tileas.offset %many, %range : tensor<16x!nv_tileas.ptr<f16>>, tensor<16xi32> -> tensor<16x!nv_tileas.ptr<f16>>
  %at = nv_tileas.offset %many, %range : tensor<16x!nv_tileas.ptr<f16>>, tensor<16xi32> -> tensor<16x!nv_tileas.ptr<f16>>
  // CHECK: %loaded = nv_tileas.pointer.load %at mask %m : tensor<16xi1> other %o : tensor<16xf16> : tensor<16x!nv_tileas.ptr<f16>> -> tensor<16xf16>
  %loaded = nv_tileas.pointer.load %at mask %m : tensor<16xi1> other %o : tensor<16xf16> : tensor<16x!nv_tileas.ptr<f16>> -> tensor<16xf16>
  // CHECK: %whole = nv_tileas.pointer.load %at : tensor<16x!nv_tileas.ptr<f16>> -> tensor<16xf16>
  %whole = nv_tileas.pointer.load %at : tensor<16x!nv_tileas.ptr<f16>> -> tensor<16xf16>
  // CHECK: %copied = nv_tileas.async.pointer_copy %at mask %m : tensor<16xi1> into %ring : tensor<16x!nv_tileas.ptr<f16>> -> !nv_tileas.smem_ref<16xf16>
  %copied = nv_tileas.async.pointer_copy %at mask %m : tensor<16xi1> into %ring : tensor<16x!nv_tileas.ptr<f16>> -> !nv_tileas.smem_ref<16xf16>
  // CHECK: nv_tileas.pointer.store %at, %loaded mask %m : tensor<16xi1> : tensor<16x!nv_tileas.ptr<f16>>, tensor<16xf16>
  nv_tileas.pointer.store %at, %loaded mask %m : tensor<16xi1> : tensor<16x!nv_tileas.ptr<f16>>, tensor<16xf16>
  // CHECK: %old = nv_tileas.pointer.atomic_rmw %at, %o {kind = "fadd"} : tensor<16x!nv_tileas.ptr<f16>>, tensor<16xf16> -> tensor<16xf16>
  %old = nv_tileas.pointer.atomic_rmw %at, %o {kind = "fadd"} : tensor<16x!nv_tileas.ptr<f16>>, tensor<16xf16> -> tensor<16xf16>
  // CHECK: %swapped = nv_tileas.pointer.atomic_cas %at, %o, %loaded : tensor<16x!nv_tileas.ptr<f16>>, tensor<16xf16>, tensor<16xf16> -> tensor<16xf16>
  %swapped = nv_tileas.pointer.atomic_cas %at, %o, %loaded : tensor<16x!nv_tileas.ptr<f16>>, tensor<16xf16>, tensor<16xf16> -> tensor<16xf16>
  // CHECK: %number = nv_tileas.pointer_to_int %p : !nv_tileas.ptr<f16> -> i64
  %number = nv_tileas.pointer_to_int %p : !nv_tileas.ptr<f16> -> i64
  // CHECK: %taken = nv_tileas.pointer_cast %p : !nv_tileas.ptr<f16> -> !nv_tileas.ptr<i16>
  %taken = nv_tileas.pointer_cast %p : !nv_tileas.ptr<f16> -> !nv_tileas.ptr<i16>
  // CHECK: %address = nv_tileas.int_to_pointer %number : i64 -> !nv_tileas.ptr<f16>
  %address = nv_tileas.int_to_pointer %number : i64 -> !nv_tileas.ptr<f16>
  // CHECK: %joined = nv_tileas.join %o, %loaded : tensor<16xf16>, tensor<16xf16> -> tensor<16x2xf16>
  %joined = nv_tileas.join %o, %loaded : tensor<16xf16>, tensor<16xf16> -> tensor<16x2xf16>
  // CHECK: %left, %right = nv_tileas.split %joined : tensor<16x2xf16> -> tensor<16xf16>, tensor<16xf16>
  %left, %right = nv_tileas.split %joined : tensor<16x2xf16> -> tensor<16xf16>, tensor<16xf16>
  // CHECK: %long = nv_tileas.cat %left, %right : tensor<16xf16>, tensor<16xf16> -> tensor<32xf16>
  %long = nv_tileas.cat %left, %right : tensor<16xf16>, tensor<16xf16> -> tensor<32xf16>
  // CHECK: %masked_swap = nv_tileas.pointer.atomic_cas %at, %o, %loaded mask %m : tensor<16xi1> : tensor<16x!nv_tileas.ptr<f16>>, tensor<16xf16>, tensor<16xf16> -> tensor<16xf16>
  %masked_swap = nv_tileas.pointer.atomic_cas %at, %o, %loaded mask %m : tensor<16xi1> : tensor<16x!nv_tileas.ptr<f16>>, tensor<16xf16>, tensor<16xf16> -> tensor<16xf16>
  // CHECK: %wide = nv_tileas.cat %joined, %joined {axis = 1 : i64} : tensor<16x2xf16>, tensor<16x2xf16> -> tensor<16x4xf16>
  %wide = nv_tileas.cat %joined, %joined {axis = 1 : i64} : tensor<16x2xf16>, tensor<16x2xf16> -> tensor<16x4xf16>
  // CHECK: %wider = nv_tileas.arith.extsi %range : tensor<16xi32> -> tensor<16xi64>
  %wider = nv_tileas.arith.extsi %range : tensor<16xi32> -> tensor<16xi64>
  // CHECK: %zeros = nv_tileas.arith.extui %range : tensor<16xi32> -> tensor<16xi64>
  %zeros = nv_tileas.arith.extui %range : tensor<16xi32> -> tensor<16xi64>
  // CHECK: %narrower = nv_tileas.arith.trunci %wider : tensor<16xi64> -> tensor<16xi32>
  %narrower = nv_tileas.arith.trunci %wider : tensor<16xi64> -> tensor<16xi32>
  // CHECK: %unsigned = nv_tileas.arith.uitofp %range : tensor<16xi32> -> tensor<16xf32>
  %unsigned = nv_tileas.arith.uitofp %range : tensor<16xi32> -> tensor<16xf32>
  // CHECK: %rounded = nv_tileas.arith.fptoui %unsigned : tensor<16xf32> -> tensor<16xi32>
  %rounded = nv_tileas.arith.fptoui %unsigned : tensor<16xf32> -> tensor<16xi32>
  // CHECK: %indices = nv_tileas.arith.index_cast %range : tensor<16xi32> -> tensor<16xindex>
  %indices = nv_tileas.arith.index_cast %range : tensor<16xi32> -> tensor<16xindex>
  // CHECK: %part = nv_tileas.extract %long[%index : i32] : tensor<32xf16> -> tensor<1xf16>
  %part = nv_tileas.extract %long [%index : i32] : tensor<32xf16> -> tensor<1xf16>
  // CHECK: %chosen = nv_tileas.gather %long[%picked] {axis = 0 : i64} : tensor<32xf16>[tensor<8xi32>] -> tensor<8xf16>
  %picked = nv_tileas.range {start = 0 : i64, end = 8 : i64} : tensor<8xi32>
  %chosen = nv_tileas.gather %long[%picked] {axis = 0 : i64} : tensor<32xf16>[tensor<8xi32>] -> tensor<8xf16>
  // CHECK: %element = nv_tileas.extract %part : tensor<1xf16> -> f16
  %element = nv_tileas.extract %part : tensor<1xf16> -> f16
  // CHECK: nv_tileas.assume %yes : i1
  nv_tileas.assume %yes : i1
  // CHECK: nv_tileas.assert %yes {message = "even"} : i1
  nv_tileas.assert %yes {message = "even"} : i1
  // CHECK: %token = nv_tileas.token : !nv_tileas.token
  %token = nv_tileas.token : !nv_tileas.token
  // CHECK: %maximum = nv_tileas.reduce.maximum %x axis 1 : tensor<16x4xf32> -> tensor<16xf32>
  %maximum = nv_tileas.reduce.maximum %x axis 1 : tensor<16x4xf32> -> tensor<16xf32>
  // CHECK: %min = nv_tileas.reduce.min %x axis 1 : tensor<16x4xf32> -> tensor<16xf32>
  %min = nv_tileas.reduce.min %x axis 1 : tensor<16x4xf32> -> tensor<16xf32>
  // CHECK: %minimum = nv_tileas.reduce.minimum %x axis 1 : tensor<16x4xf32> -> tensor<16xf32>
  %minimum = nv_tileas.reduce.minimum %x axis 1 : tensor<16x4xf32> -> tensor<16xf32>
  // CHECK: %umax = nv_tileas.reduce.umax %k axis 1 : tensor<16x4xi32> -> tensor<16xi32>
  %umax = nv_tileas.reduce.umax %k axis 1 : tensor<16x4xi32> -> tensor<16xi32>
  // CHECK: %umin = nv_tileas.reduce.umin %k axis 1 : tensor<16x4xi32> -> tensor<16xi32>
  %umin = nv_tileas.reduce.umin %k axis 1 : tensor<16x4xi32> -> tensor<16xi32>
  // CHECK: %prod = nv_tileas.reduce.prod %x axis 0 : tensor<16x4xf32> -> tensor<4xf32>
  %prod = nv_tileas.reduce.prod %x axis 0 : tensor<16x4xf32> -> tensor<4xf32>
  // CHECK: %and = nv_tileas.reduce.and %k axis 1 : tensor<16x4xi32> -> tensor<16xi32>
  %and = nv_tileas.reduce.and %k axis 1 : tensor<16x4xi32> -> tensor<16xi32>
  // CHECK: %or = nv_tileas.reduce.or %k axis 1 : tensor<16x4xi32> -> tensor<16xi32>
  %or = nv_tileas.reduce.or %k axis 1 : tensor<16x4xi32> -> tensor<16xi32>
  // CHECK: %xor = nv_tileas.reduce.xor %b axis 0 : tensor<16xi32> -> i32
  %xor = nv_tileas.reduce.xor %b axis 0 : tensor<16xi32> -> i32
  // CHECK: %best, %where = nv_tileas.reduce.with %x, %k {
  // CHECK:   nv_tileas.combined %a, %i : f32, i32
  // CHECK: } {axis = 1 : i64} : (tensor<16x4xf32>, tensor<16x4xi32>) -> (tensor<16xf32>, tensor<16xi32>)
  %best, %where = nv_tileas.reduce.with %x, %k {
  ^bb0(%a: f32, %i: i32, %c: f32, %j: i32):
    nv_tileas.combined %a, %i : f32, i32
  } {axis = 1} : (tensor<16x4xf32>, tensor<16x4xi32>) -> (tensor<16xf32>, tensor<16xi32>)
  // CHECK: %sums = nv_tileas.scan %x {
  // CHECK: } {axis = 0 : i64, reverse = 1 : i64} : (tensor<16x4xf32>) -> tensor<16x4xf32>
  %sums = nv_tileas.scan %x {
  ^bb0(%a_1: f32, %c_1: f32):
    %more = arith.addf %a_1, %c_1 : f32
    nv_tileas.combined %more : f32
  } {axis = 0, reverse = 1} : (tensor<16x4xf32>) -> tensor<16x4xf32>
  // CHECK: %less = nv_tileas.arith.cmpi "slt", %b, %range : tensor<16xi32>, tensor<16xi32> -> tensor<16xi1>
  %less = nv_tileas.arith.cmpi "slt", %b, %range : tensor<16xi32>, tensor<16xi32> -> tensor<16xi1>
  // CHECK: %equal = nv_tileas.arith.cmpf "oeq", %o, %loaded : tensor<16xf16>, tensor<16xf16> -> tensor<16xi1>
  %equal = nv_tileas.arith.cmpf "oeq", %o, %loaded : tensor<16xf16>, tensor<16xf16> -> tensor<16xi1>
  func.return
}
