// The document as Python writes it (stretto.schedule/1): what the page shows, and nothing it works out.

export interface Use {
  slot: string;
  duration: number;
  offset: number;
  occupancy: number;
}

export interface Op {
  name: string;
  kind: string;
  start: number;
  stage: number;
  cycle: number;
  order: number;
  uses: Use[];
  rung: string;
  arm: string;
  fused_with: string[];
  latency: number;
  completion: number;
  agent: string | null;
  slack: { earlier: number | null; later: number | null };
  bound_by: { earlier: string[]; later: string[] };
  location: { file: string; line: number; column: number } | null;
}

export interface Dependence {
  src: string;
  dst: string;
  latency: number;
  distance: number;
  kind: string;
  via: string;
  slack: number;
  critical: boolean;
}

export interface Storage {
  name: string;
  space: string;
  bytes: number;
  lifetime: number;
  ring_depth: number;
  fixed: boolean;
  begin: number | null;
  writers: string[];
  readers: { op: string; distance: number }[];
}

export interface Witness {
  kind: string;
  limit: string;
  total: number;
  capacity: number;
  bound: number;
  parts: { ops: string[]; amount: number; distance: number }[];
}

export interface Bounds {
  resource: number;
  recurrence: number;
  fine: number;
  dependence: number;
  group: number;
  mii: number;
  limiter: string;
  witness: Witness;
  witnesses: Record<string, Witness>;
}

export interface Slot {
  name: string;
  id: number;
  capacity: number | null;
  held: number;
  utilization: number | null;
  limiting: boolean;
}

export interface Run {
  cycle: number;
  cycles: number;
  held: Record<string, number>;
  drawn: Record<string, number>;
}

export interface Occupancy {
  space: string;
  unit: string;
  budget: number | null;
  fixed: number;
  steps: { cycle: number; live: number }[];
}

export interface Program {
  mode: string;
  agents: { name: string; role: string; ops: string[]; warps: number | null }[];
  pipes: {
    name: string;
    ring: string;
    space: string;
    bytes: number;
    depth: number;
    producers: string[];
    consumers: { op: string; distance: number }[];
    trivial: boolean;
  }[];
  mutexes: {
    name: string;
    holder: string;
    waiters: { op: string; distance: number }[];
    excludes: string[];
  }[];
}

export interface Remedy {
  kind: string;
  effort: number;
  hardware: boolean;
  change: string;
  next: string;
  ops: string[];
  mii: number;
}

export interface Measured {
  unit: string;
  events: { op: string; agent: string; iteration: number; start: number; end: number }[];
}

export interface Refusal {
  ii: number;
  through?: number | null;
  reason: string;
}

/** A kernel in one configuration (stretto.prediction/1). */
export interface Predicted {
  of: string;
  kernel: string;
  consumers: number;
  rings: Record<string, number>;
  grid: number[];
  loops: {
    name: string;
    ii: number;
    stages: number;
    cycles: number;
    bound: string;
    by_machine_code: boolean;
    units: Record<string, number>;
    agent: string;
    kinds: Record<string, number>;
  }[];
  block_cycles: number;
  resident_blocks: number;
  cycles: number;
  clock_mhz: number;
  seconds: number;
  tflops: number | null;
  bound: string;
  spills: boolean;
  spilled: number;
  assembled: boolean;
}

export interface Loop {
  name: string;
  machine: string;
  machine_why?: string;
  unit?: string;
  success: boolean;
  errors?: string[];
  warnings?: string[];
  refused?: Refusal[];
  generator: string;
  rule: string;
  ii: number;
  bounds: Bounds | null;
  stage_count: number;
  pipeline_depth: number;
  proof: { optimal: boolean; lower_bound: number; method: string } | null;
  ops: Op[];
  storages: Storage[];
  memory: Record<string, { used: number; budget: number | null }>;
  pressure: { peak: number; budget: number | null; cycle: number } | null;
  table: Run[];
  seconds: number;
  machine_digest: string;
  options: Record<string, unknown>;
  spills: boolean;
  prediction: { fixed: number; per_iteration: number; prologue: number; epilogue: number };
  slots: Slot[];
  pools: { name: string; cap: number; drawn: number; utilization: number; limiting: boolean }[];
  dependences: Dependence[];
  occupancy: Occupancy[];
  program: Program | null;
  remedies: Remedy[];
  ties: string[];
  measured?: Measured | null;
}

/** Something that can be changed, where a server answers. */
export interface Knob {
  kind: string;
  path: string;
  label: string;
  value: number | string;
  unit: string;
  ops: string[];
}

export interface Live {
  knobs: Knob[][];
}

export interface Violation {
  rule: string;
  message: string;
  ops: string[];
}

export interface Document {
  live?: Live;
  schema: string;
  success: boolean;
  version: string;
  source: { file: string; text?: string } | null;
  loops: Loop[];
  prediction?: { predictions: Predicted[] };
}
