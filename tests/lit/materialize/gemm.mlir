// The K loop of a matrix product, II 256 and three stages: loads in stage 0, the product in stage 2.

// RUN: stretto-opt %examples/gemm.mlir -p tileas-generate-schedule > %t.scheduled.mlir
// RUN: stretto-opt %t.scheduled.mlir --tileas-materialize-schedule > %t.one && filecheck %s --check-prefix=ONE --input-file %t.one
// RUN: stretto-opt %t.scheduled.mlir --tileas-materialize-schedule=mode=specialized > %t.agents && filecheck %s --check-prefix=AGENTS --input-file %t.agents
// Both are what they were after another reading, custom and generic; and nothing is left to schedule.
// RUN: stretto-opt %t.one | diff - %t.one && stretto-opt %t.one --mlir-print-op-generic | stretto-opt | diff - %t.one
// RUN: stretto-opt %t.agents | diff - %t.agents && stretto-opt %t.agents --mlir-print-op-generic | stretto-opt | diff - %t.agents
// RUN: stretto-opt %t.one -p tileas-generate-schedule,tileas-verify-schedule,tileas-materialize-schedule 2>&1 | diff - %t.one
// RUN: stretto-opt %t.one --tileas-generate-schedule --remarks-filter=. 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: xdsl-opt %t.scheduled.mlir -p 'tileas-materialize-schedule{mode=specialized}' | stretto-opt | diff - %t.agents

// AGAIN: remark: {{.*}}it is part of a program already

// A ring lives 1,211 cycles: five copies at II 256. The sum is the buffer that was there.

// ONE:       nv_tileas.async.pipeline.program {
// ONE:         %trips = nv_tileas.async.pipeline.trip_count %zero to %tiles step %one : i32
// ONE-NEXT:    %a_tile.ring = {{.*}}create_ring {storage = "a_tile", lifetime = 1211 : i64} : !nv_tileas.pipeline<5, !nv_tileas.smem_ref<128x64xf16>>
// ONE-NEXT:    %b_tile.ring = {{.*}}create_ring {storage = "b_tile", lifetime = 1115 : i64} : !nv_tileas.pipeline<5, !nv_tileas.smem_ref<64x128xf16>>
// ONE-NEXT:    %acc.ring = {{.*}}create_ring(%acc : {{.*}}) {storage = "acc", fixed, {{.*}}} : !nv_tileas.pipeline<1, !nv_tileas.tmem_ref<128x128xf32>>
// ONE-NEXT:    %Pipe_a_tile = {{.*}}create_pipeline on %a_tile.ring {pipe = {name = "Pipe_a_tile", flavour = "tile", producers = ["load_a"], consumers = [{op = "mma"}], latency = 556 : i64, owner = "load_a"}} : !nv_tileas.pipeline<5,
// ONE-NEXT:    %Pipe_b_tile = {{.*}}create_pipeline on %b_tile.ring
// ONE-NEXT:    %a_tile.load_a.put = {{.*}}create_iterator %a_tile.ring {op = "load_a", side = "producer", phase = 1 : i64}
// ONE:         %a_tile.mma.take = {{.*}}create_iterator %a_tile.ring {op = "mma", side = "consumer", phase = 0 : i64}

// The loads of iteration 0, if there is one, and of iteration 1: the prologue.

// ONE:         [[AT_LEAST_1:%[a-z_0-9.]+]] = arith.cmpi sge, %trips, %c1 : i32
// ONE-NEXT:    scf.if [[AT_LEAST_1]] -> (!nv_tileas.iterator, !nv_tileas.iterator) {
// ONE-NEXT:      %offset = arith.muli %c0, %depth
// ONE-NEXT:      [[FREE:%[0-9]+]] = {{.*}}producer_acquire %Pipe_a_tile[%a_tile.load_a.put]
// ONE-NEXT:      [[FULL:%[0-9]+]] = {{.*}}producer_write %Pipe_a_tile[%a_tile.load_a.put] after [[FREE]] (%a_tile: {{.*}}) {
// ONE-NEXT:        tiled_tma_load %A[%zero, %offset] into %a_tile {stretto.name = "load_a", nv_tile.program.stage = 0 : i64, nv_tile.program.cycle = 1 : i64}
// ONE-NEXT:      }
// ONE-NEXT:      producer_commit %Pipe_a_tile[%a_tile.load_a.put] after [[FULL]]
// ONE-NEXT:      inc_iter %a_tile.load_a.put
// ONE:         nv_tile.program.section = "prologue", nv_tile.program.step = 0
// ONE:         [[AT_LEAST_2:%[a-z_0-9.]+]] = arith.cmpi sge, %trips, %c2 : i32
// ONE-NEXT:    scf.if [[AT_LEAST_2]]
// ONE-NEXT:      arith.muli %c1, %depth
// ONE-NOT:       tcgen05_mma
// ONE:         nv_tile.program.section = "prologue", nv_tile.program.step = 1

// The kernel: from step 2 on, loads of this iteration and the product of two before.

// ONE:         scf.for %step = %c2 to %trips step %c1 iter_args({{.*}}) -> (!nv_tileas.iterator, !nv_tileas.iterator, !nv_tileas.iterator, !nv_tileas.iterator) : i32 {
// ONE:           arith.muli %step, %depth
// ONE:           tiled_tma_load %A
// ONE:           tiled_tma_load %B
// ONE:           [[A:%[0-9]+]] = {{.*}}consumer_wait %Pipe_a_tile
// ONE-NEXT:      [[B:%[0-9]+]] = {{.*}}consumer_wait %Pipe_b_tile
// ONE-NEXT:      consumer_read %Pipe_a_tile[{{.*}}] after [[A]]
// ONE:           consumer_read %Pipe_b_tile[{{.*}}] after [[B]]
// ONE:           tcgen05_mma %a_tile_{{[0-9]+}}, %b_tile_{{[0-9]+}} acc %acc {stretto.name = "mma"
// ONE-NEXT:      consumer_release %Pipe_a_tile
// ONE-NEXT:      consumer_release %Pipe_b_tile
// ONE-NEXT:      inc_iter
// ONE-NEXT:      inc_iter
// ONE-NEXT:      scf.yield
// ONE-NEXT:    } {nv_tile.program.section = "kernel"}

// The last two products: the epilogue.

// ONE:         scf.if [[AT_LEAST_2]]
// ONE:           tcgen05_mma
// ONE-NOT:       tiled_tma_load
// ONE:         nv_tile.program.section = "epilogue", nv_tile.program.step = 0
// ONE:         scf.if [[AT_LEAST_1]]
// ONE:           tcgen05_mma
// ONE:         nv_tile.program.section = "epilogue", nv_tile.program.step = 1
// ONE:       } attributes {mode = "unspecialized", machine = "b200-pipes", ii = 256 : i64, stage_count = 3 : i64
// ONE:       tmem_load %acc

// An agent that copies and one that multiplies, two steps later: no prologue in either.

// AGENTS:      nv_tileas.async.pipeline.agent_switch {
// AGENTS-NOT:    scf.if
// AGENTS:        scf.for %step = %c0 to %trips step %c1 iter_args
// AGENTS:          producer_acquire %Pipe_a_tile
// AGENTS-NEXT:     producer_write %Pipe_a_tile
// AGENTS-NEXT:       tiled_tma_load
// AGENTS:          producer_commit %Pipe_a_tile
// AGENTS:          producer_commit %Pipe_b_tile
// AGENTS-NOT:      tcgen05_mma
// AGENTS:      }, {
// AGENTS-NEXT:   [[END:%[0-9]+]] = arith.addi %trips, %c2 : i32
// AGENTS-NEXT:   scf.for {{.*}} = %c2 to [[END]] step %c1
// AGENTS-NOT:      tiled_tma_load
// AGENTS:          consumer_wait %Pipe_a_tile
// AGENTS:          consumer_read %Pipe_a_tile
// AGENTS:          tcgen05_mma
// AGENTS-NEXT:     consumer_release %Pipe_a_tile
// AGENTS:      } attributes {nv_tile.program.agents = [{name = "tma", role = "tma"}, {name = "mma", role = "mma"}]}
// AGENTS:    mode = "specialized"
// AGENTS-SAME: sequence = ["offset", "load_a", "load_b", "mma"]
