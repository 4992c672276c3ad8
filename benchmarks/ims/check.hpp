// Whether a schedule is legal, counted anew: it uses nothing of the table that made it.
//
//     dependences    start[target] >= start[source] + latency - II × distance, one by one
//     resources      what is held in each modulo cycle, as sums of steps up and down

#pragma once

#include <vector>

#include "graph.hpp"

namespace ims {

inline bool legal(const Problem& problem, Time ii, const std::vector<Time>& starts) {
  for (const Dependence& d : problem.dependences) {
    if (starts[d.target] < starts[d.source] + d.latency - ii * d.distance) return false;
  }
  const std::size_t width = static_cast<std::size_t>(ii) + 1;
  std::vector<Time> steps(problem.capacities.size() * width, 0);
  std::vector<Time> always(problem.capacities.size(), 0);  // held in every cycle
  for (const Use& use : problem.uses) {
    Time* row = steps.data() + use.resource * width;
    always[use.resource] += use.amount * (use.duration / ii);
    const Time begin = (starts[use.op] + use.offset) % ii;
    const Time end = begin + use.duration % ii;
    row[begin] += use.amount;
    if (end > ii) {
      row[ii] -= use.amount;
      row[0] += use.amount;
      row[end - ii] -= use.amount;
    } else {
      row[end] -= use.amount;
    }
  }
  for (std::size_t i = 0; i < problem.capacities.size(); ++i) {
    Time held = always[i];
    for (Time cycle = 0; cycle < ii; ++cycle) {
      held += steps[i * width + cycle];
      if (held > problem.capacities[i]) return false;
    }
  }
  return true;
}

}  // namespace ims
