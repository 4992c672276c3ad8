// What is wrong with a text: its syntax, its dominance, its attributes; each where it stands.

// RUN: stretto-opt %s --split-input-file --verify-diagnostics

func.func @dominance(%x: f32) {
  // expected-error @below {{`arith.addf` uses `%late` where its definition does not reach}}
  %early = arith.addf %x, %late : f32
  // expected-note @below {{`%late` is defined here}}
  %late = arith.addf %x, %x : f32
  func.return
}

// -----

func.func @undefined(%x: f32) {
  // expected-error @below {{`%nowhere` is not defined}}
  %a = arith.addf %x, %nowhere : f32
  func.return
}

// -----

func.func @inside(%n: index, %x: f32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    // expected-error @below {{uses `%own` where its definition does not reach}}
    %a = arith.addf %own, %x : f32
    // expected-note @below {{`%own` is defined here}}
    %own = arith.addf %a, %x : f32
  }
  func.return
}

// -----

func.func @syntax(%x: f32) {
  // expected-error @below {{operand expected}}
  %a = arith.addf %x, : f32
  func.return
}

// -----

func.func @constraints(%x: f32, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    // expected-error @below {{`tileas.schedule.constraint.gid` is -1; expected a whole number of at least 0}}
    %a = arith.addf %x, %x {tileas.schedule.constraint.gid = -1} : f32
    // expected-error @below {{`tileas.schedule.constraint.leader_gid` is "one"; expected a whole number}}
    %b = arith.addf %x, %x {tileas.schedule.constraint.leader_gid = "one"} : f32
    // expected-error @below {{`tileas.schedule.constraint.max_depth` is 1.5; expected a whole number}}
    %c = arith.addf %x, %x {tileas.schedule.constraint.max_depth = 1.5 : f32} : f32
    // expected-error @below {{`tileas.schedule.constraint.pending` is 3; expected true or false}}
    %d = arith.addf %x, %x {tileas.schedule.constraint.pending = 3} : f32
    // expected-error @below {{unknown constraint `max_dept`; did you mean `max_depth`?}}
    %e = arith.addf %x, %x {tileas.schedule.constraint.max_dept = 3} : f32
    // expected-error @below {{`force_serial_execution` belongs on a loop or a function, not on `arith.addf`}}
    %f = arith.addf %x, %x {tileas.schedule.constraint.force_serial_execution} : f32
    // expected-error @below {{`nv_tile.aws.start` is -3 : i64; expected a whole number of at least 0}}
    %g = arith.addf %x, %x {nv_tile.aws.start = -3} : f32
    // expected-error @below {{unknown constraint `tileas.other`; known: gid, leader_gid, stage_offset, max_depth, pending, same_depth, structural, start, stage, cycle, before, force_serial_execution}}
    %h = arith.addf %x, %x {tileas.other} : f32
  // expected-error @below {{`tileas.schedule.constraint.force_serial_execution` is "yes"; expected true or false}}
  } {tileas.schedule.constraint.force_serial_execution = "yes"}
  func.return
}

// -----

func.func @stated(%x: f32, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    // expected-error @below {{`stretto.uses[0].duration` is -1; expected a whole number of at least 0}}
    %a = arith.addf %x, %x {stretto.uses = [{slot = "tma", duration = -1}]} : f32
    // expected-error @below {{`stretto.uses[0].slot` is missing; this key is required}}
    %b = arith.addf %x, %x {stretto.uses = [{duration = 1}]} : f32
    // expected-error @below {{unknown attribute `stretto.latencies`; did you mean `stretto.latency`?}}
    %c = arith.addf %x, %x {stretto.latencies = 3} : f32
    // expected-error @below {{`stretto.machine` belongs on a loop, not on `arith.addf`}}
    %d = arith.addf %x, %x {stretto.machine = "blackwell"} : f32
    // expected-error @below {{`stretto.facts.buffer` is "disk"; expected one of}}
    %e = arith.addf %x, %x {stretto.facts = {buffer = "disk"}} : f32
    // expected-error @below {{`stretto.name` is 3; expected a string}}
    %f = arith.addf %x, %x {stretto.name = 3} : f32
  // expected-error @below {{`stretto.trip_count` is -1 : i64; expected a whole number of at least 0}}
  } {stretto.trip_count = -1}
  func.return
}
