// The modulo reservation table: one bit a cycle, 64 cycles a word.
//
//     capacity 1    busy     1110000111...      one plane
//     capacity 3    count 1  1010000001...      the bits of a count, a plane each
//                   count 2  0110000111...
//     begins        1000000100...               where holds begin: who is in the way is near it
//
// A hold is probed word by word, not cycle by cycle, and so is it added and taken away.

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace ims {

using Word = std::uint64_t;

// A hold at one II: `length` <= II cycles from `offset` < II. Those of an operation on one resource
// never share a cycle, so each may be probed by itself.
struct Segment {
  int op, resource, offset, length, amount;
};

// Counts of every resource and modulo cycle, in bit planes, and who holds what.
class Table {
 public:
  explicit Table(const std::vector<int>& capacities) {
    for (int capacity : capacities) {
      const int planes = static_cast<int>(std::bit_width(static_cast<unsigned>(capacity)));
      columns_.push_back({capacity, planes, 0, 0, 0, 0});
    }
  }

  // Empty, for `segments` at this II.
  void clear(int ii, const std::vector<Segment>& segments) {
    ii_ = ii;
    words_ = (ii + 63) / 64;
    std::size_t size = 0, cycles = 0;
    for (Column& column : columns_) {
      column.counts = size;
      size += words_ * column.planes;
      column.begins = size;
      size += words_;
      column.heads = cycles;
      cycles += ii;
      column.longest = 0;
    }
    bits_.assign(size, 0);
    if (heads_.size() < cycles) heads_.resize(cycles);  // read only where `begins` has a bit
    next_.resize(segments.size());
    for (const Segment& s : segments) {
      int& longest = columns_[s.resource].longest;
      longest = std::max(longest, s.length);
    }
  }

  // How many cycles a segment that begins at `cycle` must move on to be past the last cycle that
  // is too full for it, and past whatever follows on that; 0: it fits.
  int in_the_way(const Segment& s, int cycle) const {
    const int last = last_full(s, cycle);
    if (last < 0) return 0;
    int past = cycle + last + 1;
    if (past >= ii_) past -= ii_;
    return last + 1 + full_run(s, past);
  }

  // The last cycle of a segment at `cycle` that is too full for it, counted from `cycle`; -1: none.
  int last_full(const Segment& s, int cycle) const {
    const Column& column = columns_[s.resource];
    const unsigned room = static_cast<unsigned>(column.capacity - s.amount);
    const int end = cycle + s.length;
    if (end > ii_) {
      const int found = last_in(column, room, 0, end - ii_);
      if (found >= 0) return found + ii_ - cycle;
    }
    const int found = last_in(column, room, cycle, std::min(end, ii_));
    return found < 0 ? -1 : found - cycle;
  }

  // Of those that hold the resource at `cycle`, the segment whose operation ranks last.
  int least_holder(int resource, int cycle, const std::vector<Segment>& segments,
                   const std::vector<int>& begin, const std::vector<int>& rank) const {
    const Column& column = columns_[resource];
    const int back = std::min(column.longest, ii_) - 1;
    int least = -1;
    auto look = [&](int from, int to) {  // begins in [from, to], the latest first
      for (int word = to / 64; word >= from / 64; --word) {
        Word set = bits_[column.begins + word];
        if (word == to / 64) set &= ~Word{0} >> (63 - to % 64);
        if (word == from / 64) set &= ~Word{0} << (from % 64);
        while (set) {
          const int at = word * 64 + 63 - std::countl_zero(set);
          set &= ~(Word{1} << (at % 64));
          for (int i = heads_[column.heads + at]; i >= 0; i = next_[i]) {
            const Segment& s = segments[i];
            int after = cycle - begin[i];
            if (after < 0) after += ii_;
            if (after >= s.length) continue;
            if (least < 0 || rank[s.op] > rank[segments[least].op]) least = i;
          }
          if (least >= 0 && column.capacity == 1) return;
        }
      }
    };
    look(std::max(0, cycle - back), cycle);
    if (cycle < back && (least < 0 || column.capacity > 1)) {
      look(std::max(cycle + 1, cycle - back + ii_), ii_ - 1);
    }
    return least;
  }

  void add(int index, const Segment& s, int cycle) {
    const Column& column = columns_[s.resource];
    change<true>(column, s, cycle);
    Word& word = bits_[column.begins + cycle / 64];
    const Word bit = Word{1} << (cycle % 64);
    int& head = heads_[column.heads + cycle];
    next_[index] = word & bit ? head : -1;
    word |= bit;
    head = index;
  }

  void remove(int index, const Segment& s, int cycle) {
    const Column& column = columns_[s.resource];
    change<false>(column, s, cycle);
    int* link = &heads_[column.heads + cycle];
    while (*link != index) link = &next_[*link];
    *link = next_[index];
    if (heads_[column.heads + cycle] < 0) {
      bits_[column.begins + cycle / 64] &= ~(Word{1} << (cycle % 64));
    }
  }

 private:
  struct Column {
    int capacity, planes;
    std::size_t counts;  // where its planes stand in `bits_`, those of a word side by side
    std::size_t begins;  // where its bitset of beginning holds stands in `bits_`
    std::size_t heads;   // where its lists of holds stand in `heads_`
    int longest;         // of its segments
  };

  // The cycles of a word that hold more than `room`.
  Word full(const Column& column, unsigned room, int word) const {
    const Word* plane = &bits_[column.counts + static_cast<std::size_t>(word) * column.planes];
    if (column.planes == 1) return plane[0];  // capacity 1: room is 0
    Word more = 0, equal = ~Word{0};
    for (int p = column.planes - 1; p >= 0; --p) {
      if (room >> p & 1) {
        equal &= plane[p];
      } else {
        more |= equal & plane[p];
        equal &= ~plane[p];
      }
    }
    return more;
  }

  int last_in(const Column& column, unsigned room, int from, int to) const {
    for (int word = (to - 1) / 64; word >= from / 64; --word) {
      Word set = full(column, room, word);
      if (word == (to - 1) / 64) set &= ~Word{0} >> (63 - (to - 1) % 64);
      if (word == from / 64) set &= ~Word{0} << (from % 64);
      if (set) return word * 64 + 63 - std::countl_zero(set);
    }
    return -1;
  }

  // How many cycles in a row, from `cycle` on, are too full for a segment: at most II.
  int full_run(const Segment& s, int cycle) const {
    const Column& column = columns_[s.resource];
    const unsigned room = static_cast<unsigned>(column.capacity - s.amount);
    auto first_free = [&](int from) {
      for (int word = from / 64; word < static_cast<int>(words_); ++word) {
        Word clear = ~full(column, room, word);
        if (word == from / 64) clear &= ~Word{0} << (from % 64);
        if (clear) return std::min(ii_, word * 64 + std::countr_zero(clear));
      }
      return ii_;
    };
    const int ahead = first_free(cycle);
    if (ahead < ii_) return ahead - cycle;
    return ii_ - cycle + std::min(first_free(0), cycle);
  }

  template <bool adding>
  void change(const Column& column, const Segment& s, int cycle) {
    const int end = cycle + s.length;
    change_in<adding>(column, s.amount, cycle, std::min(end, ii_));
    if (end > ii_) change_in<adding>(column, s.amount, 0, end - ii_);
  }

  // Add `amount` to the counts of [from, to), or take it away: a ripple of carries, or of borrows.
  template <bool adding>
  void change_in(const Column& column, int amount, int from, int to) {
    for (int word = from / 64; word <= (to - 1) / 64; ++word) {
      Word mask = ~Word{0};
      if (word == from / 64) mask &= ~Word{0} << (from % 64);
      if (word == (to - 1) / 64) mask &= ~Word{0} >> (63 - (to - 1) % 64);
      Word* plane = &bits_[column.counts + static_cast<std::size_t>(word) * column.planes];
      Word carry = 0;
      for (int p = 0; p < column.planes; ++p) {
        const Word other = (amount >> p & 1) ? mask : 0;
        const Word old = plane[p];
        plane[p] = old ^ other ^ carry;
        const Word mine = adding ? old : ~old;
        carry = (mine & (other | carry)) | (other & carry);
      }
    }
  }

  int ii_ = 1;
  std::size_t words_ = 1;
  std::vector<Column> columns_;
  std::vector<Word> bits_;
  std::vector<int> heads_, next_;
};

}  // namespace ims
