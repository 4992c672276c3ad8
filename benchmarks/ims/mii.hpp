// The minimum initiation interval: what resources ask for, then what recurrences ask for.
//
//     ResMII   for each resource, ceil(Σ amount × duration / capacity)
//     RecMII   the smallest II at which no cycle of dependences gains: Σ latency <= II × Σ distance
//
// As in Rau's method recurrences are asked from ResMII on: mostly one pass of longest paths says
// that none of them asks for more. Where a cycle gains, ceil(Σ latency / Σ distance) of it is the
// next II (Newton's iteration on the ratio, in integers); a cycle shows in the pointers to what each
// longest path goes through next, long before Bellman-Ford runs out of sweeps. Only components with
// a cycle are looked at, in an order in which most successors come first.

#pragma once

#include <algorithm>
#include <vector>

#include "graph.hpp"

namespace ims {

inline Time res_mii(const Problem& problem) {
  std::vector<Time> filled(problem.capacities.size(), 0);
  for (const Use& use : problem.uses) {
    filled[use.resource] += static_cast<Time>(use.amount) * use.duration;
  }
  Time mii = 1;
  for (std::size_t i = 0; i < filled.size(); ++i) {
    const Time capacity = problem.capacities[i];
    mii = std::max(mii, (filled[i] + capacity - 1) / capacity);
  }
  return mii;
}

class Recurrences {
 public:
  Recurrences(int operations, const Edges& out, const Components& components)
      : out_(out),
        component_(operations, -1),
        value_(operations, 0),
        next_(operations, nullptr),
        seen_(operations, 0) {
    int count = 0;
    components.each([&](const int* first, const int* last) {
      for (const int* at = first; at != last; ++at) component_[*at] = count;
      ++count;
      if (last - first > 1) {
        ranges_.push_back({first, last});
        return;
      }
      for (const Edge* e = out_.begin(*first); e != out_.end(*first); ++e) {
        if (e->other == *first) own_.push_back(e);
      }
    });
  }

  // The smallest II from `ii` on at which no cycle gains.
  Time mii(Time ii) {
    for (const Edge* e : own_) ii = std::max(ii, ratio(e->latency, e->distance));
    for (const Range& range : ranges_) {
      while (const Time more = gain(range, ii)) ii = more;
    }
    return ii;
  }

 private:
  struct Range {
    const int *first, *last;
  };

  static Time ratio(Time latency, Time distance) {
    if (distance <= 0) {
      if (latency > 0) fail("a cycle of dependences inside an iteration");
      return 1;
    }
    return latency <= 0 ? 1 : (latency + distance - 1) / distance;
  }

  // The II that a cycle asks for which gains at this one; 0: none gains.
  Time gain(const Range& range, Time ii) {
    for (const int* at = range.first; at != range.last; ++at) {
      value_[*at] = 0;
      next_[*at] = nullptr;
    }
    for (bool risen = true; risen;) {
      risen = false;
      for (const int* at = range.first; at != range.last; ++at) {
        const int component = component_[*at];
        Time value = value_[*at];
        for (const Edge* e = out_.begin(*at); e != out_.end(*at); ++e) {
          if (component_[e->other] != component) continue;
          const Time asked = value_[e->other] + e->latency - ii * e->distance;
          if (asked > value) {
            value = asked;
            next_[*at] = e;
            risen = true;
          }
        }
        value_[*at] = value;
      }
      if (!risen) return 0;
      if (const Time more = cycle_of_pointers(range)) return more;
    }
    return 0;
  }

  // The largest ratio of a cycle that the pointers close; 0: they close none.
  Time cycle_of_pointers(const Range& range) {
    Time most = 0;
    const int before = walk_;
    for (const int* at = range.first; at != range.last; ++at) {
      if (seen_[*at] > before) continue;
      ++walk_;
      int op = *at;
      while (seen_[op] <= before && next_[op]) {
        seen_[op] = walk_;
        op = next_[op]->other;
      }
      if (seen_[op] != walk_ || !next_[op]) continue;
      Time latency = 0, distance = 0;
      int round = op;
      do {
        latency += next_[round]->latency;
        distance += next_[round]->distance;
        round = next_[round]->other;
      } while (round != op);
      most = std::max(most, ratio(latency, distance));
    }
    return most;
  }

  const Edges& out_;
  std::vector<int> component_;
  std::vector<Time> value_;
  std::vector<const Edge*> next_;
  std::vector<int> seen_;
  std::vector<Range> ranges_;
  std::vector<const Edge*> own_;
  int walk_ = 0;
};

}  // namespace ims
