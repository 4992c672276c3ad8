// A loop over work tiles gets an index of 64 bits; whoever knew the narrow one still does.

// RUN: stretto-opt %examples/persistent_gemm.mlir -p 'tileas-generate-schedule,tileas-materialize-schedule{mode=specialized}' > %t && filecheck %s --input-file %t
// RUN: stretto-opt %t | diff - %t && stretto-opt %t --mlir-print-op-generic | stretto-opt | diff - %t
// RUN: stretto-opt %t -p tileas-generate-schedule,tileas-materialize-schedule 2>&1 | diff - %t

// CHECK:      [[FIRST:%[a-z_0-9]+]] = arith.extsi %block : i32 to i64
// CHECK-NEXT: [[TILES:%[a-z_0-9]+]] = arith.constant 1024 : i64
// CHECK-NEXT: [[BLOCKS:%[a-z_0-9]+]] = arith.constant 128 : i64
// CHECK-NEXT: scf.for %tile = [[FIRST]] to [[TILES]] step [[BLOCKS]] : i64 {
// CHECK-NEXT:   %m, %n, %valid = nv_tileas.work_tile_info %tile {problem = array<i64: 4096, 4096>, tile = array<i64: 128, 128>, cluster = array<i64: 2, 1>} : i64 -> i64, i64, i1
// CHECK-NEXT:   [[M:%[a-z_0-9]+]] = arith.trunci %m : i64 to i32
// CHECK-NEXT:   [[N:%[a-z_0-9]+]] = arith.trunci %n : i64 to i32
// CHECK-NEXT:   %row = arith.muli [[M]], %extent : i32
// CHECK-NEXT:   %column = arith.muli [[N]], %extent : i32
// CHECK:        tmem_store
// CHECK-NEXT:   nv_tileas.async.pipeline.program {
// CHECK:          trip_count %zero to %steps step %one : i32
// CHECK:          tiled_tma_load %A[%row, %offset]
// CHECK:        } attributes {mode = "specialized"
// CHECK-NEXT:   tmem_load %acc
