// What operations and types refuse, at the operation that is wrong.

// RUN: stretto-opt %s --split-input-file --verify-diagnostics

func.func @coordinates(%g: !nv_tileas.tensor<?x64xf16, global>, %i: i32) {
  // expected-error @below {{`nv_tileas.async.tiled_tma_load` has 1 coordinates; ?x64xf16 has 2 dimensions}}
  %a = nv_tileas.async.tiled_tma_load %g[%i] : !nv_tileas.tensor<?x64xf16, global> -> !nv_tileas.smem_ref<16x64xf16>
  // expected-error @below {{result has elements of bf16, source of f16}}
  %b = nv_tileas.async.tiled_tma_load %g[%i, %i] : !nv_tileas.tensor<?x64xf16, global> -> !nv_tileas.smem_ref<16x64xbf16>
  func.return
}

// -----

func.func @buffers(%r: tensor<4xf32>) {
  // expected-error @below {{tensor<4xf32> is not a tile in shared memory}}
  %a = nv_tileas.async.smem_read %r : tensor<4xf32> -> tensor<4xf32>
  func.return
}

// -----

func.func @destination(%r: tensor<4xf32>, %s: !nv_tileas.smem_ref<8xf32>) {
  // expected-error @below {{operand is used with type !nv_tileas.smem_ref<4xf32>, but has been previously used or defined with type !nv_tileas.smem_ref<8xf32>}}
  %a = nv_tileas.async.smem_write %r into %s : tensor<4xf32> -> !nv_tileas.smem_ref<4xf32>
  func.return
}

// -----

func.func @shapes(%r: tensor<4xf32>, %n: tensor<16xi64>, %g: !nv_tileas.tensor<?x64xf16, global>, %k: tensor<8xi32>) {
  // expected-error @below {{`nv_tileas.async.smem_write`: result is 8xf32, value is 4xf32}}
  %a = nv_tileas.async.smem_write %r : tensor<4xf32> -> !nv_tileas.smem_ref<8xf32>
  // expected-error @below {{the indices are tensor<16xi64>, not a row of i32}}
  %b = nv_tileas.async.tma_gather %g[%n] : !nv_tileas.tensor<?x64xf16, global>[tensor<16xi64>] -> !nv_tileas.smem_ref<16x64xf16>
  // expected-error @below {{8 indices pick 16 rows of 16x64xf16}}
  %c = nv_tileas.async.tma_gather %g[%k] : !nv_tileas.tensor<?x64xf16, global>[tensor<8xi32>] -> !nv_tileas.smem_ref<16x64xf16>
  // expected-error @below {{`nv_tileas.async.copy` to global memory needs `into`}}
  %d = nv_tileas.async.copy %r : tensor<4xf32> -> !nv_tileas.tensor<?xf32, global>
  // expected-error @below {{asks for a ring of 0; at least 1 is needed}}
  %e = nv_tileas.alloc_tensor {depth = 0} : !nv_tileas.smem_ref<4xf32>
  func.return
}

// -----

func.func @batches(%a: !nv_tileas.smem_ref<4x64x32xf16>, %b: !nv_tileas.smem_ref<2x32x64xf16>, %c: !nv_tileas.tmem_ref<4x64x64xf32>) {
  // expected-error @below {{of 4x64x32xf16 and 2x32x64xf16: they are not as many products}}
  %x = nv_tileas.async.wgmma %a, %b acc %c : !nv_tileas.smem_ref<4x64x32xf16>, !nv_tileas.smem_ref<2x32x64xf16> -> !nv_tileas.tmem_ref<4x64x64xf32>
  func.return
}

// -----

func.func @waits(%p: tensor<64x64xf32>, %s: !nv_tileas.smem_ref<64x32xf16>) {
  // expected-error @below {{`nv_tileas.async.wgmma_wait` hands on a value of the type it waits for}}
  %x = nv_tileas.async.wgmma_wait %p : tensor<64x64xf32> -> tensor<64x32xf32>
  // expected-error @below {{`nv_tileas.async.wgmma_wait` hands on a value of the type it waits for}}
  nv_tileas.async.wgmma_wait %p : tensor<64x64xf32>
  // expected-error @below {{`nv_tileas.async.wgmma_wait` waits for nothing; give a value or a token}}
  nv_tileas.async.wgmma_wait frees %s : !nv_tileas.smem_ref<64x32xf16>
  func.return
}

// -----

func.func @products(%a: !nv_tileas.smem_ref<64x32xf16>, %b: !nv_tileas.smem_ref<16x64xf16>, %c: !nv_tileas.tmem_ref<64x64xf32>, %d: !nv_tileas.smem_ref<32x64xf16>) {
  // expected-error @below {{`nv_tileas.async.wgmma` of 64x32xf16 and 16x64xf16: 32 columns meet 16 rows}}
  %x = nv_tileas.async.wgmma %a, %b acc %c : !nv_tileas.smem_ref<64x32xf16>, !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tmem_ref<64x64xf32>
  // expected-error @below {{has both `acc` and `into`; it fills one buffer}}
  %y = nv_tileas.async.wgmma %a, %d acc %c into %c : !nv_tileas.smem_ref<64x32xf16>, !nv_tileas.smem_ref<32x64xf16> -> !nv_tileas.tmem_ref<64x64xf32>
  // expected-error @below {{is 64x64, not 64x32xf32}}
  %z = nv_tileas.async.tcgen05_mma %a, %d : !nv_tileas.smem_ref<64x32xf16>, !nv_tileas.smem_ref<32x64xf16> -> !nv_tileas.tmem_ref<64x32xf32>
  func.return
}

// -----

func.func @views(%s: !nv_tileas.smem_ref<16x64xf16>, %r: tensor<16xf32>, %i: i32) {
  // expected-error @below {{`nv_tileas.transpose` of 16x64xf16 cannot be 16x64xf16: the order of dimensions is [1, 0]}}
  %a = nv_tileas.transpose %s : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.smem_ref<16x64xf16>
  // expected-error @below {{[0, 0] is no order of 2 dimensions}}
  %b = nv_tileas.transpose %s {permutation = array<i64: 0, 0>} : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.smem_ref<16x64xf16>
  // expected-error @below {{`nv_tileas.view` of 16x64xf16 cannot be 16x64xf32: 2048 bytes are not 4096}}
  %c = nv_tileas.view %s : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.smem_ref<16x64xf32>
  // expected-error @below {{cannot move a tile from smem to tmem}}
  %d = nv_tileas.view %s : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.tmem_ref<16x64xf16>
  // expected-error @below {{has 1 offsets; 16x64xf16 has 2 dimensions}}
  %e = nv_tileas.slice %s[%i] : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.smem_ref<8x64xf16>
  // expected-error @below {{it does not lie inside}}
  %f = nv_tileas.slice %s[%i, %i] : !nv_tileas.smem_ref<16x64xf16> -> !nv_tileas.smem_ref<32x64xf16>
  // expected-error @below {{dimensions of size 1, and new ones at the end, may grow}}
  %g = nv_tileas.broadcast %r : tensor<16xf32> -> tensor<32x8xf32>
  // expected-error @below {{a dimension of size 1 comes in at 0}}
  %h = nv_tileas.expand_dims %r {axis = 0} : tensor<16xf32> -> tensor<16x1xf32>
  // expected-error @below {{axis 3 of 1 dimensions}}
  %j = nv_tileas.expand_dims %r {axis = 3} : tensor<16xf32> -> tensor<16x1xf32>
  // expected-error @below {{it takes a scalar}}
  %k = nv_tileas.splat %r : tensor<16xf32> -> tensor<16x2xf32>
  func.return
}

// -----

func.func @numbers(%x: tensor<4xf32>, %y: tensor<8xf32>, %z: f16) {
  // expected-error @below {{`nv_tileas.arith.addf`: rhs is 8xf32, the result is 4xf32}}
  %a = nv_tileas.arith.addf %x, %y : tensor<4xf32>, tensor<8xf32> -> tensor<4xf32>
  // expected-error @below {{rhs has elements of f16, result of f32}}
  %b = nv_tileas.arith.addf %x, %z : tensor<4xf32>, f16 -> tensor<4xf32>
  // expected-error @below {{the condition is tensor<4xf32>, not i1}}
  %c = nv_tileas.arith.select %x, %x, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // expected-error @below {{the source is 4xf32, the result is 8xf16}}
  %d = nv_tileas.arith.truncf %x : tensor<4xf32> -> tensor<8xf16>
  // expected-error @below {{axis 1 of 1 dimensions}}
  %e = nv_tileas.reduce.sum %x axis 1 : tensor<4xf32> -> f32
  // expected-error @below {{`nv_tileas.reduce.max` of 4xf32 along axis 0 is not 4xf32}}
  %f = nv_tileas.reduce.max %x axis 0 : tensor<4xf32> -> tensor<4xf32>
  func.return
}

// -----

func.func @pipelines(%p: !nv_tileas.pipeline<2, !nv_tileas.smem_ref<4xf32>>, %i: !nv_tileas.iterator) {
  // expected-error @below {{its body takes !nv_tileas.smem_ref<8xf32>; the slot is !nv_tileas.smem_ref<4xf32>}}
  %a = nv_tileas.async.pipeline.producer_write %p[%i] (%s: !nv_tileas.smem_ref<8xf32>) {
  } : !nv_tileas.pipeline<2, !nv_tileas.smem_ref<4xf32>>
  // expected-error @below {{its body yields nothing; the operation makes tensor<4xf32>}}
  %b, %c = nv_tileas.async.pipeline.consumer_read %p[%i] (%s: !nv_tileas.smem_ref<4xf32>) {
  } : !nv_tileas.pipeline<2, !nv_tileas.smem_ref<4xf32>> -> tensor<4xf32>
  // expected-error @below {{has 0 producers; at least 1 is needed}}
  %d = nv_tileas.async.pipeline.create_pipeline {producers = 0} : !nv_tileas.pipeline<2, !nv_tileas.smem_ref<4xf32>>
  func.return
}

// -----

// expected-error @below {{dimension 1 is `?`; only tiles in global memory may be of any size}}
func.func @dynamic(%x: !nv_tileas.smem_ref<4x?xf32>) {
  func.return
}

// -----

// expected-error @below {{`f17a` is not an element type such as f16, bf16 or i32}}
func.func @element(%x: !nv_tileas.tmem_ref<4x4xf17a>) {
  func.return
}

// -----

// expected-error @below {{`disk` is no buffer; global, smem, tmem, register are}}
func.func @buffer(%x: !nv_tileas.tensor<4x4xf32, disk>) {
  func.return
}

// -----

// expected-error @below {{a pipeline of 0 stages; at least 1 is needed}}
func.func @stages(%x: !nv_tileas.pipeline<0, !nv_tileas.smem_ref<4xf32>>) {
  func.return
}

// -----

// expected-error @below {{a pipeline of !nv_tileas.tensor<4xf32, global>; its slots hold tiles on the chip, scalars or tokens}}
func.func @slot(%x: !nv_tileas.pipeline<2, !nv_tileas.tensor<4xf32, global>>) {
  func.return
}

// -----

func.func @programs(%r: !nv_tileas.pipeline<2, tensor<4xf32>>, %i: !nv_tileas.iterator, %x: tensor<8xf32>, %n: i32) {
  // expected-error @below {{its body takes tensor<4xf32>; the slot is tensor<4xf32>, which has no address: the body yields what goes there}}
  %a = nv_tileas.async.pipeline.producer_write %r[%i] (%s: tensor<4xf32>) {
  } : !nv_tileas.pipeline<2, tensor<4xf32>>
  // expected-error @below {{`nv_tileas.async.pipeline.slot`: tensor<8xf32> in a ring of tensor<4xf32>}}
  %b = nv_tileas.async.pipeline.slot %r[%i] : !nv_tileas.pipeline<2, tensor<4xf32>> -> tensor<8xf32>
  // expected-error @below {{`nv_tileas.async.pipeline.create_iterator`: tensor<8xf32> in a ring of tensor<4xf32>}}
  %c = nv_tileas.async.pipeline.create_iterator %r init(%x : tensor<8xf32>) : !nv_tileas.pipeline<2, tensor<4xf32>>
  // expected-error @below {{one copy of tensor<8xf32> is no ring !nv_tileas.pipeline<2, tensor<8xf32>>}}
  %d = nv_tileas.async.pipeline.create_ring(%x : tensor<8xf32>) : !nv_tileas.pipeline<2, tensor<8xf32>>
  // expected-error @below {{`nv_tileas.async.pipeline.create_mutex` needs `called`, `waiters` and `excludes`}}
  %e = nv_tileas.async.pipeline.create_mutex {holder = "a", latency = 3} : !nv_tileas.mutex
  // expected-error @below {{has 2 results; a problem of 2 axes needs 3: a coordinate an axis, and the validity}}
  %f:2 = nv_tileas.work_tile_info %n {problem = array<i64: 256, 128>, tile = array<i64: 128, 64>, cluster = array<i64: 2, 1>} : i32 -> i32, i32
  // expected-error @below {{coordinate 1 is i64, the index i32}}
  %g:3 = nv_tileas.work_tile_info %n {problem = array<i64: 256, 128>, tile = array<i64: 128, 64>, cluster = array<i64: 2, 1>} : i32 -> i32, i64, i1
  // expected-error @below {{the validity is i32; it must be i1}}
  %h:3 = nv_tileas.work_tile_info %n {problem = array<i64: 256, 128>, tile = array<i64: 128, 64>, cluster = array<i64: 2, 1>} : i32 -> i32, i32, i32
  // expected-error @below {{has a `problem`, or extents `of` one: either}}
  %w:2 = nv_tileas.work_tile_info %n {tile = array<i64: 128>, cluster = array<i64: 2>} : i32 -> i32, i1
  // expected-error @below {{it yields nothing; it makes i32}}
  %j = nv_tileas.async.pipeline.program {
    nv_tileas.async.pipeline.yield
  } -> i32 attributes {mode = "unspecialized", machine = "m", ii = 3, stage_count = 2, ops = ["a"], loop = {}}
  func.return
}

// -----

func.func @far(%g: !nv_tileas.tensor<?x64xf16, global>, %i: i32, %r: tensor<16x64xf16>) {
  // expected-error @below {{`nv_tileas.async.gnic_read` has 1 coordinates; ?x64xf16 has 2 dimensions}}
  %a = nv_tileas.async.gnic_read %g[%i] : !nv_tileas.tensor<?x64xf16, global> -> tensor<16x64xf16>
  // expected-error @below {{`nv_tileas.async.mma_copy`: result is 8x64xf16, source is 16x64xf16}}
  %b = nv_tileas.async.mma_copy %r : tensor<16x64xf16> -> tensor<8x64xf16>
  func.return
}

// -----

func.func @short_of_a_definition() {
  // expected-error @below {{`%later` is not defined above; the long form states its type}}
  %a = nv_tileas.async.smem_read %later : tensor<4xf32>
  func.return
}

// -----

func.func @too_much_in_short(%s: !nv_tileas.smem_ref<4xf32>) {
  // expected-error @below {{2 operands; `nv_tileas.async.smem_read` has up to 1 in its short form}}
  %a = nv_tileas.async.smem_read %s, %s : tensor<4xf32>
  func.return
}
