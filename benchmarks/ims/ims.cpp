// Iterative modulo scheduling (B. R. Rau, MICRO-27, 1994): the yardstick of `make bench-speed`.
//
//     ims [--budget RATIO]... [--limit SECONDS] < problem        II, stages, CPU time, starts
//     ims --check II < problem, starts                           "legal" or "not legal"
//
//     for II = MII, MII + 1, ...                     until an attempt seats everything
//         budget = RATIO × operations
//         while somebody stands outside and budget is left
//             op   = the one with the greatest height
//             E    = what its seated predecessors ask for
//             t    = first free start in [E, E + II - 1]; else E, or one after its last seat
//             seat op at t; whoever is in the way, or comes too soon after it, stands up again
//
// The table is one bit a cycle and resource, 64 cycles a word; a count of up to c takes the bits of
// c (a plane each), so that a slot of capacity 1 is one plane. A hold of 300 cycles is probed in
// five or six words; a start that does not fit skips to the end of what is in its way. Pools are
// resources like slots. Heights are longest paths at this II, one strongly connected component
// after another. What stands up again is found by a bitset of the cycles at which holds begin.
//
// Input, whitespace between integers (`ims_process.py` writes it):
//     operations resources uses dependences mii last_ii
//     capacity                                      for each resource
//     operation resource offset duration amount     for each use, by operation
//     source target latency distance                for each dependence
// Output, two lines a budget: "RATIO ii|unfinished II stages attempts steps runs given whole mii", and
// the starts. Times are microseconds of CPU time, medians of several runs: `given` the MII, from
// these arrays to the starts; `whole`, with its own MII worked out and its schedule checked besides,
// as one does who has the graph alone. `mii` is its own.

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "check.hpp"
#include "graph.hpp"
#include "mii.hpp"
#include "table.hpp"

namespace ims {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Ranks that stand outside; `first` is the most urgent.
class Waiting {
 public:
  void fill(int count) {
    words_.assign((count + 63) / 64, ~Word{0});
    if (count % 64) words_.back() = ~Word{0} >> (64 - count % 64);
    lowest_ = 0;
    count_ = count;
  }
  bool empty() const { return count_ == 0; }
  int first() {
    while (!words_[lowest_]) ++lowest_;
    return static_cast<int>(lowest_) * 64 + std::countr_zero(words_[lowest_]);
  }
  void remove(int rank) {
    words_[rank / 64] &= ~(Word{1} << (rank % 64));
    --count_;
  }
  void add(int rank) {
    const std::size_t word = rank / 64;
    words_[word] |= Word{1} << (rank % 64);
    lowest_ = std::min(lowest_, word);
    ++count_;
  }

 private:
  std::vector<Word> words_;
  std::size_t lowest_ = 0;
  int count_ = 0;
};

struct Outcome {
  bool finished = false;
  int ii = 0, attempts = 0;
  Time stages = 0, steps = 0;
  std::vector<Time> starts;
};

class Scheduler {
 public:
  explicit Scheduler(const Problem& problem)
      : problem_(problem),
        uses_(problem.uses, problem.operations, [](const Use& use) { return use.op; }),
        out_(problem, true),
        in_(problem, false),
        components_(problem.operations, out_),
        table_(problem.capacities),
        height_(problem.operations),
        rank_(problem.operations),
        by_rank_(problem.operations) {}

  // What it would begin with, were it not given.
  Time mii() const {
    return Recurrences(problem_.operations, out_, components_).mii(res_mii(problem_));
  }

  Outcome run(int ratio, double limit) {
    const double until = cpu_seconds() + limit;
    const Time budget = static_cast<Time>(ratio) * problem_.operations;
    Outcome outcome;
    for (int ii = problem_.mii; ii <= problem_.last_ii; ++ii) {
      outcome.ii = ii;
      if (cpu_seconds() > until) return outcome;
      if (!fold(ii)) continue;
      ++outcome.attempts;
      rank_by_height(ii);
      if (attempt(ii, budget, until, outcome.steps)) {
        outcome.finished = true;
        const auto [least, most] = std::minmax_element(start_.begin(), start_.end());
        const Time origin = start_.empty() ? 0 : *least;
        outcome.stages = start_.empty() ? 0 : (*most - origin) / ii + 1;
        outcome.starts = start_;
        for (Time& start : outcome.starts) start -= origin;
        return outcome;
      }
    }
    return outcome;
  }

 private:
  static constexpr Time kOutside = -1;

  // A change of what one operation holds of a resource, at a cycle.
  struct Step {
    int resource, cycle, amount;
  };

  // What each operation holds at this II; false: somebody cannot be seated even in an empty table.
  bool fold(int ii) {
    segments_.clear();
    first_segment_.assign(1, 0);
    for (int op = 0; op < problem_.operations; ++op) {
      const std::size_t before = segments_.size();
      bool alone = true;  // on each of its resources
      for (const int* at = uses_.begin(op); at != uses_.end(op); ++at) {
        const Use& use = problem_.uses[*at];
        for (std::size_t i = before; i < segments_.size(); ++i) {
          alone = alone && segments_[i].resource != use.resource;
        }
        const int rounds = use.duration / ii, rest = use.duration % ii;
        const int offset = use.offset % ii;
        if (rest) segments_.push_back({op, use.resource, offset, rest, use.amount * (rounds + 1)});
        if (rounds) {
          const int begin = (offset + rest) % ii;
          segments_.push_back({op, use.resource, begin, ii - rest, use.amount * rounds});
        }
      }
      if (!alone) merge(before, ii);
      first_segment_.push_back(static_cast<int>(segments_.size()));
    }
    begin_.resize(segments_.size());
    return std::all_of(segments_.begin(), segments_.end(), [&](const Segment& s) {
      return s.amount <= problem_.capacities[s.resource];
    });
  }

  // Segments of one operation, cut where they overlap, so that no two share a cycle.
  void merge(std::size_t before, int ii) {
    std::vector<Step>& steps = steps_;
    steps.clear();
    const int op = segments_[before].op;
    for (std::size_t i = before; i < segments_.size(); ++i) {
      const Segment& s = segments_[i];
      const int end = s.offset + s.length;
      steps.push_back({s.resource, s.offset, s.amount});
      steps.push_back({s.resource, std::min(end, ii), -s.amount});
      if (end > ii) {
        steps.push_back({s.resource, 0, s.amount});
        steps.push_back({s.resource, end - ii, -s.amount});
      }
    }
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
      return a.resource != b.resource ? a.resource < b.resource : a.cycle < b.cycle;
    });
    segments_.resize(before);
    int amount = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      amount += steps[i].amount;
      if (!amount || i + 1 == steps.size()) continue;
      const int length = steps[i + 1].cycle - steps[i].cycle;
      if (length) segments_.push_back({op, steps[i].resource, steps[i].cycle, length, amount});
    }
  }

  // Rank 0 is the operation with the longest path to the end of the iteration.
  void rank_by_height(int ii) {
    components_.each([&](const int* first, const int* last) {
      for (const int* at = first; at != last; ++at) height_[*at] = 0;
      bool risen = true;
      for (std::ptrdiff_t round = 0; risen; ++round) {
        if (round > last - first) fail("the MII is below what a recurrence asks for");
        risen = false;
        for (const int* at = first; at != last; ++at) {
          Time& height = height_[*at];
          for (const Edge* e = out_.begin(*at); e != out_.end(*at); ++e) {
            const Time asked = height_[e->other] + e->latency - ii * e->distance;
            if (asked > height) {
              height = asked;
              risen = last - first > 1;
            }
          }
        }
      }
    });
    std::iota(by_rank_.begin(), by_rank_.end(), 0);
    std::sort(by_rank_.begin(), by_rank_.end(), [&](int a, int b) {
      const Time x = height_[a], y = height_[b];
      return x != y ? x > y : a < b;
    });
    for (int i = 0; i < problem_.operations; ++i) rank_[by_rank_[i]] = i;
  }

  bool attempt(int ii, Time budget, double until, Time& steps) {
    table_.clear(ii, segments_);
    start_.assign(problem_.operations, kOutside);
    last_.assign(problem_.operations, kOutside);
    waiting_.fill(problem_.operations);
    while (!waiting_.empty()) {
      if (budget-- == 0) return false;
      if (++steps % 4096 == 0 && cpu_seconds() > until) return false;
      const int op = by_rank_[waiting_.first()];
      const Time early = earliest(op, ii);
      Time start = first_fit(op, early, ii);
      if (start < 0) {
        const Time last = last_[op];
        start = last < early ? early : last + 1;
        clear_the_way(op, start, ii);
      }
      seat(op, start, ii);
      for (const Edge* e = out_.begin(op); e != out_.end(op); ++e) {
        const Time other = start_[e->other];
        if (other >= 0 && e->other != op && other < start + e->latency - ii * e->distance) {
          unseat(e->other);
        }
      }
    }
    return true;
  }

  Time earliest(int op, int ii) const {
    Time early = 0;
    for (const Edge* e = in_.begin(op); e != in_.end(op); ++e) {
      const Time other = start_[e->other];
      if (other >= 0) early = std::max(early, other + e->latency - ii * e->distance);
    }
    return early;
  }

  // The first start in [early, early + II - 1] at which nobody is in the way; -1: none.
  Time first_fit(int op, Time early, int ii) const {
    const int first = first_segment_[op];
    const int count = first_segment_[op + 1] - first;
    if (!count) return early;
    const int base = static_cast<int>(early % ii);
    int moved = 0;
    for (int i = 0, content = 0; content < count;) {
      const Segment& s = segments_[first + i];
      int cycle = base + moved;
      if (cycle >= ii) cycle -= ii;
      cycle += s.offset;
      if (cycle >= ii) cycle -= ii;
      const int more = table_.in_the_way(s, cycle);
      if (more) {
        moved += more;
        if (moved >= ii) return -1;
        content = 0;  // all are asked again, this one first
      } else {
        ++content;
        i = i + 1 < count ? i + 1 : 0;
      }
    }
    return early + moved;
  }

  void clear_the_way(int op, Time start, int ii) {
    for_segments(op, [&](int, const Segment& s) {
      const int cycle = static_cast<int>((start + s.offset) % ii);
      for (int last = table_.last_full(s, cycle); last >= 0; last = table_.last_full(s, cycle)) {
        const int at = (cycle + last) % ii;
        const int holder = table_.least_holder(s.resource, at, segments_, begin_, rank_);
        unseat(segments_[holder].op);
      }
    });
  }

  void seat(int op, Time start, int ii) {
    start_[op] = last_[op] = start;
    waiting_.remove(rank_[op]);
    for_segments(op, [&](int index, const Segment& s) {
      const int cycle = static_cast<int>((start + s.offset) % ii);
      begin_[index] = cycle;
      table_.add(index, s, cycle);
    });
  }

  void unseat(int op) {
    start_[op] = kOutside;
    waiting_.add(rank_[op]);
    for_segments(op, [&](int index, const Segment& s) { table_.remove(index, s, begin_[index]); });
  }

  template <typename Call>
  void for_segments(int op, Call call) const {
    for (int i = first_segment_[op]; i < first_segment_[op + 1]; ++i) call(i, segments_[i]);
  }

  const Problem& problem_;
  Grouped uses_;
  Edges out_, in_;
  Components components_;
  Table table_;
  Waiting waiting_;
  std::vector<Time> height_, start_, last_;
  std::vector<int> rank_, by_rank_, first_segment_, begin_;
  std::vector<Segment> segments_;
  std::vector<Step> steps_;
};

Time number() {
  long long value = 0;
  if (std::scanf("%lld", &value) != 1) fail("the problem ends too soon, or has no integer there");
  return value;
}

int small(Time least = 0) {
  const Time value = number();
  const Time most = std::numeric_limits<int>::max() / 4;
  if (value < least || value > most) fail("a number is out of range");
  return static_cast<int>(value);
}

Problem read() {
  Problem problem;
  problem.operations = small();
  const int resources = small(), uses = small(), dependences = small();
  problem.mii = small(1);
  problem.last_ii = small(1);
  for (int i = 0; i < resources; ++i) problem.capacities.push_back(small(1));
  for (int i = 0; i < uses; ++i) {
    const int op = small(), resource = small();
    const int offset = small(), duration = small(), amount = small();
    if (op >= problem.operations || resource >= resources) fail("a use of nobody, or of nothing");
    if (duration && amount) problem.uses.push_back({op, resource, offset, duration, amount});
  }
  for (int i = 0; i < dependences; ++i) {
    const int source = small(), target = small();
    const Time latency = number(), distance = number();
    const int last = std::max(source, target);
    if (last >= problem.operations) fail("a dependence of nobody");
    problem.dependences.push_back({source, target, latency, distance});
  }
  return problem;
}

constexpr double kEnough = 0.1;  // seconds of runs from which on the median is believed
constexpr std::size_t kRuns = 11;

double median(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void measure(const Problem& problem, int ratio, double limit) {
  std::vector<double> given, whole;
  Outcome outcome;
  Time mii = 0;
  double total = 0;
  while (given.size() < kRuns && (given.empty() || total < kEnough)) {
    const double began = cpu_seconds();
    Scheduler scheduler(problem);
    outcome = scheduler.run(ratio, limit);
    const double seated = cpu_seconds();
    mii = scheduler.mii();
    if (outcome.finished && !legal(problem, outcome.ii, outcome.starts)) fail("not legal");
    const double ended = cpu_seconds();
    given.push_back(seated - began);
    whole.push_back(ended - began);
    total += given.back();
  }
  const std::size_t runs = given.size();
  std::printf("%d %s %d %lld %d %lld %zu %.3f %.3f %lld\n", ratio,
              outcome.finished ? "ii" : "unfinished", outcome.ii,
              static_cast<long long>(outcome.stages), outcome.attempts,
              static_cast<long long>(outcome.steps), runs, 1e6 * median(given),
              1e6 * median(whole), static_cast<long long>(mii));
  for (Time start : outcome.starts) std::printf("%lld ", static_cast<long long>(start));
  std::printf("\n");
}

}  // namespace
}  // namespace ims

int main(int count, char** words) {
  std::vector<int> ratios;
  double limit = 60;
  ims::Time checked = 0;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i];
    if (word == "--budget") {
      ratios.push_back(std::atoi(words[i + 1]));
    } else if (word == "--limit") {
      limit = std::atof(words[i + 1]);
    } else if (word == "--check") {
      checked = std::max(1, std::atoi(words[i + 1]));
    } else {
      ims::fail("usage: ims [--budget RATIO]... [--limit SECONDS] | [--check II] < problem");
    }
  }
  if (ratios.empty()) ratios = {6, 60};
  const ims::Problem problem = ims::read();
  if (checked) {
    std::vector<ims::Time> starts;
    for (int i = 0; i < problem.operations; ++i) starts.push_back(ims::small());
    std::puts(ims::legal(problem, checked, starts) ? "legal" : "not legal");
    return 0;
  }
  for (int ratio : ratios) ims::measure(problem, ratio, limit);
}
