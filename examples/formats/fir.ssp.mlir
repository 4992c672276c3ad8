// Four taps of a filter, as a modulo problem of CIRCT's: two multipliers that take an operand every
// cycle, one port of memory, and a sum that is carried around.
ssp.instance @fir of "ModuloProblem" {
  library {
    operator_type @load [latency<2>]
    operator_type @mul [latency<4>]
    operator_type @add [latency<1>]
    operator_type @store [latency<1>]
  }
  resource {
    resource_type @port [limit<1>]
    resource_type @dsp [limit<2>, ii<1>]
  }
  graph {
    %x0 = operation<@load> @x0() uses[@port]
    %x1 = operation<@load> @x1() uses[@port]
    %p0 = operation<@mul>(%x0) uses[@dsp]
    %p1 = operation<@mul>(%x1) uses[@dsp]
    %p2 = operation<@mul>(%x0 [dist<1>]) uses[@dsp]
    %p3 = operation<@mul>(%x1 [dist<1>]) uses[@dsp]
    %s0 = operation<@add>(%p0, %p1)
    %s1 = operation<@add>(%p2, %p3)
    %y = operation<@add> @sum(%s0, %s1, @sum [dist<1>])
    operation<@store> @last(%y) uses[@port]
  }
}
