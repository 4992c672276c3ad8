// The problem, and its graph: edges packed by operation, strongly connected components.
//
//     dependences  ──►  out(op), in(op)  ──►  components, successors first

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <vector>

namespace ims {

using Time = std::int64_t;

struct Use {
  int op, resource, offset, duration, amount;
};

struct Dependence {
  int source, target;
  Time latency, distance;
};

struct Problem {
  int operations = 0;
  int mii = 1, last_ii = 1;
  std::vector<int> capacities;
  std::vector<Use> uses;
  std::vector<Dependence> dependences;
};

[[noreturn]] inline void fail(const char* why) {
  std::fprintf(stderr, "ims: %s\n", why);
  std::exit(1);
}

// Positions in a list of records, by an integer key: those of one key stand side by side.
class Grouped {
 public:
  template <typename Record, typename Key>
  Grouped(const std::vector<Record>& records, int keys, Key key)
      : first_(keys + 1, 0), order_(records.size()) {
    for (const Record& record : records) ++first_[key(record) + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<int> next(first_.begin(), first_.end() - 1);
    for (std::size_t i = 0; i < records.size(); ++i) {
      order_[next[key(records[i])]++] = static_cast<int>(i);
    }
  }
  const int* begin(int key) const { return order_.data() + first_[key]; }
  const int* end(int key) const { return order_.data() + first_[key + 1]; }

 private:
  std::vector<int> first_, order_;
};

// Edges of one direction, packed: those of an operation stand side by side.
struct Edge {
  int other;
  Time latency, distance;
};

class Edges {
 public:
  Edges(const Problem& problem, bool outgoing) : first_(problem.operations + 1, 0) {
    auto key = [&](const Dependence& d) { return outgoing ? d.source : d.target; };
    Grouped grouped(problem.dependences, problem.operations, key);
    edges_.reserve(problem.dependences.size());
    for (int op = 0; op < problem.operations; ++op) {
      for (const int* at = grouped.begin(op); at != grouped.end(op); ++at) {
        const Dependence& d = problem.dependences[*at];
        edges_.push_back({outgoing ? d.target : d.source, d.latency, d.distance});
      }
      first_[op + 1] = static_cast<int>(edges_.size());
    }
  }
  const Edge* begin(int op) const { return edges_.data() + first_[op]; }
  const Edge* end(int op) const { return edges_.data() + first_[op + 1]; }

 private:
  std::vector<int> first_;
  std::vector<Edge> edges_;
};

// Operations by strongly connected component (Tarjan), successors' components first.
class Components {
 public:
  Components(int operations, const Edges& out)
      : number_(operations, 0), low_(operations, 0) {
    order_.reserve(operations);
    ends_.reserve(operations);
    for (int op = 0; op < operations; ++op) {
      if (!number_[op]) visit(op, out);
    }
  }
  // Calls `component(first, last)` for each, as a range of operations.
  template <typename Call>
  void each(Call component) const {
    int first = 0;
    for (int end : ends_) {
      component(order_.data() + first, order_.data() + end);
      first = end;
    }
  }

 private:
  static constexpr int kDone = std::numeric_limits<int>::max();

  void visit(int root, const Edges& out) {
    struct Frame {
      int op;
      const Edge* next;
    };
    std::vector<Frame> frames;
    auto enter = [&](int op) {
      number_[op] = low_[op] = ++count_;
      stack_.push_back(op);
      frames.push_back({op, out.begin(op)});
    };
    enter(root);
    while (!frames.empty()) {
      const int op = frames.back().op;
      int& low = low_[op];
      if (frames.back().next != out.end(op)) {
        const int other = (frames.back().next++)->other;
        if (!number_[other]) {
          enter(other);
        } else if (low_[other] != kDone) {
          low = std::min(low, number_[other]);
        }
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) {
        int& above = low_[frames.back().op];
        above = std::min(above, low);
      }
      if (low == number_[op]) {
        int member = -1;
        do {
          member = stack_.back();
          stack_.pop_back();
          low_[member] = kDone;
          order_.push_back(member);  // the deepest first: most of its successors are before it
        } while (member != op);
        ends_.push_back(static_cast<int>(order_.size()));
      }
    }
  }

  int count_ = 0;
  std::vector<int> number_, low_, stack_, order_, ends_;
};

}  // namespace ims
