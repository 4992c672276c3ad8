// Attention forward: values carried from iteration to iteration, views, a sum in tensor memory.

// RUN: stretto-opt %examples/attention_forward.mlir -p tileas-generate-schedule > %t.scheduled.mlir
// RUN: stretto-opt %t.scheduled.mlir --tileas-materialize-schedule > %t.one && filecheck %s --check-prefixes=BOTH,ONE --input-file %t.one
// RUN: stretto-opt %t.scheduled.mlir --tileas-materialize-schedule=mode=specialized > %t.agents && filecheck %s --check-prefixes=BOTH,AGENTS --input-file %t.agents

// The running sum is read after the loop; the output is in its buffer; the maximum nobody asks for.

// BOTH:   %l_last = nv_tileas.async.pipeline.program {
// BOTH:     %k_tile.ring = {{.*}}create_ring {storage = "k_tile", {{.*}}} : !nv_tileas.pipeline<2, !nv_tileas.smem_ref<64x128xbf16>>
// BOTH:     %o_acc.ring = {{.*}}create_ring(%o_acc : {{.*}}) {storage = "o_acc", fixed, {{.*}}} : !nv_tileas.pipeline<1, !nv_tileas.tmem_ref<128x128xf32>>
// BOTH:     %m.ring = {{.*}}create_ring {value = "m", {{.*}}} : !nv_tileas.pipeline<2, tensor<128xf32>>
// BOTH:     %Pipe_m = {{.*}}create_pipeline on %m.ring {{.*}}producers = ["new_max"], consumers = [{op = "new_max", distance = 1 : i64}, {op = "max_drop", distance = 1 : i64}

// Orders inside one stream are private.

// ONE:      %Order_load_k = {{.*}}create_mutex {holder = "load_k", latency = 556 : i64, private}

// In the first iteration there is no maximum yet: the iterator begins one place before the ring.

// BOTH:     %m.new_max.take-1 = {{.*}}create_iterator %m.ring init(%lowest : tensor<128xf32>) {op = "new_max", side = "consumer", phase = 0 : i64}
// BOTH:     %l_last_1 = {{.*}}create_ring(%none : tensor<128xf32>) : !nv_tileas.pipeline<1, tensor<128xf32>>

// What waits for another of its own stream says so before it starts.

// ONE:      nv_tile.program.section = "prologue", nv_tile.program.step = 0
// ONE:      nv_tile.program.section = "prologue", nv_tile.program.step = 2
// ONE:      scf.for %step = %c3 to %trips step %c1
// ONE:        await %Order_load_k
// ONE:        stretto.name = "qk"
// ONE:      } {nv_tile.program.section = "kernel"}
// ONE:      nv_tile.program.section = "epilogue", nv_tile.program.step = 0
// ONE:      nv_tile.program.section = "epilogue", nv_tile.program.step = 2

// AGENTS:   agent_switch {
// AGENTS:     tiled_tma_load %K
// AGENTS:   }, {
// AGENTS:     nv_tileas.transpose %k_tile
// AGENTS:     tcgen05_mma {{.*}} {stretto.name = "qk"
// AGENTS:   }, {
// AGENTS:     nv_tileas.async.pipeline.fill %l
// AGENTS:   } attributes {nv_tile.program.agents = [{name = "tma", role = "tma"}, {name = "mma", role = "mma"}, {name = "simt", role = "simt"}]}
// BOTH:     [[L:%[a-z_0-9]+]] = nv_tileas.async.pipeline.slot %l_last_1 : !nv_tileas.pipeline<1, tensor<128xf32>> -> tensor<128xf32>
// BOTH-NEXT: nv_tileas.async.pipeline.yield [[L]] : tensor<128xf32>
// BOTH-NEXT: } -> tensor<128xf32> attributes
// BOTH:   tmem_load %o_first
// BOTH:   nv_tileas.expand_dims %l_last
