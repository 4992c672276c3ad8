// Attention backward: five products, two sums in place, a tile that leaves in every iteration.

// RUN: stretto-opt %examples/attention_backward.mlir -p tileas-generate-schedule > %t.scheduled.mlir
// RUN: stretto-opt %t.scheduled.mlir --tileas-materialize-schedule > %t.one && filecheck %s --check-prefixes=BOTH,ONE --input-file %t.one
// RUN: stretto-opt %t.scheduled.mlir --tileas-materialize-schedule=mode=specialized > %t.agents && filecheck %s --check-prefixes=BOTH,AGENTS --input-file %t.agents

// BOTH:   nv_tileas.async.pipeline.program {
// BOTH:     %q_tile.ring = {{.*}}create_ring {storage = "q_tile"
// BOTH:     %dk_acc.ring = {{.*}}create_ring(%dk_acc : {{.*}}) {storage = "dk_acc", fixed
// ONE:      %Pipe_q_tile = {{.*}}producers = ["load_q"], consumers = [{op = "dk"}]
// AGENTS:   %Pipe_q_tile = {{.*}}producers = ["load_q"], consumers = [{op = "kq"}, {op = "dk"}]

// Who is in the same stage of one stream needs no pipe; between agents there is one.

// ONE-NOT:  %Pipe_dq_tile
// ONE:      %Order_write_dq = {{.*}}create_mutex {holder = "write_dq", {{.*}}, private}
// AGENTS:   %Pipe_dq_tile = {{.*}}producers = ["write_dq"], consumers = [{op = "store_dq"}]

// ONE:      nv_tile.program.section = "prologue", nv_tile.program.step = 0
// ONE:      scf.for %step = [[LAST:%c[0-9]+]] to %trips step %c1
// ONE:      } {nv_tile.program.section = "kernel"}
// ONE:      nv_tile.program.section = "epilogue", nv_tile.program.step = 0

// AGENTS:   agent_switch {
// AGENTS:     scf.for
// AGENTS-DAG:   producer_commit %Pipe_q_tile
// AGENTS-DAG:   consumer_wait %Pipe_dq_tile
// AGENTS-DAG:   tiled_tma_store
// AGENTS:   }, {
// AGENTS:     scf.for
// AGENTS:       consumer_wait %Pipe_q_tile
// AGENTS:   }, {
// AGENTS:     scf.for
// AGENTS:       producer_commit %Pipe_dq_tile
// AGENTS:   } attributes {nv_tile.program.agents = [{name = "tma", role = "tma"}, {name = "mma", role = "mma"}, {name = "simt", role = "simt"}]}
// BOTH:   } attributes {mode =
// BOTH:   tmem_load %dk_acc
