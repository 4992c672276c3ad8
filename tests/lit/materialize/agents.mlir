// Who issues what can be stated: the read goes to an agent of its own, the rest by rule.

// RUN: stretto-opt %s -p 'tileas-generate-schedule,tileas-materialize-schedule{mode=specialized}' > %t && filecheck %s --input-file %t
// RUN: stretto-opt %t | diff - %t

!global = !nv_tileas.tensor<4096x64xf16, global>
!tile = !nv_tileas.smem_ref<64x64xf16>

// An order that no data carries goes through a mutex, which its holder's agent shares with others.

// CHECK:      %Mutex_load = nv_tileas.async.pipeline.create_mutex {called = "Mutex_load", holder = "load", latency = 8 : i64, waiters = [{op = "clear", distance = 1 : i64}], excludes = ["order"]} : !nv_tileas.mutex
// CHECK:      agent_switch {
// CHECK:        tiled_tma_load {{.*}} into %load {stretto.name = "load"
// CHECK:        arrive %Mutex_load
// CHECK:      }, {
// CHECK:        nv_tileas.async.pipeline.await %Mutex_load {distance = 1 : i64}
// CHECK:        "clear"
// CHECK:      }, {
// CHECK:        smem_read
// CHECK:      } attributes {nv_tile.program.agents = [{name = "tma", role = "tma"}, {name = "simt", role = "simt"}, {name = "reader", role = "simt"}]}
func.func @copy(%A: !global, %n: i32) {
  %zero = arith.constant 0 : i32
  %rows = arith.constant 64 : i32
  scf.for %row = %zero to %n step %rows : i32 {
    %load = nv_tileas.async.tiled_tma_load %A[%row, %zero] : !global -> !tile
    %read = nv_tileas.async.smem_read %load {stretto.agent = "reader"} : !tile -> tensor<64x64xf16>
    %clear = nv_tileas.generic "clear"() {stretto.uses = [], stretto.latency = 1} : () -> i32
  } {stretto.dependences = [{src = "load", dst = "clear", latency = 8, distance = 1, kind = "order"}]}
  func.return
}
