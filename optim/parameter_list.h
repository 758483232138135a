// ParameterList: the parameters that an optimizer or a clipping function works on.
#pragma once

#include "accrue/autograd/variable.h"

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace accrue::optim {

/// Parameters in definition order, with names (Module::named_parameters()) or without
/// (Module::parameters()).
class ParameterList {
 public:
  using Entry = std::pair<std::string, Variable>;

  ParameterList() = default;
  ParameterList(std::vector<Entry> named) : entries_(std::move(named)) {}
  ParameterList(const std::vector<Variable>& parameters) { append(parameters); }
  ParameterList(std::initializer_list<Variable> parameters) { append(parameters); }

  void append(const ParameterList& other) {
    entries_.insert(entries_.end(), other.begin(), other.end());
  }

  std::size_t size() const { return entries_.size(); }
  const Variable& operator[](std::size_t i) const { return entries_[i].second; }
  /// As errors and saved state call it: its position where no name was given.
  std::string name(std::size_t i) const {
    return entries_[i].first.empty() ? std::to_string(i) : entries_[i].first;
  }
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }

  /// Errors: ValueError when a parameter or a name appears twice.
  void check_distinct(const char* operation) const;

 private:
  template <class Range>
  void append(const Range& parameters) {
    for (const Variable& parameter : parameters) entries_.emplace_back("", parameter);
  }

  std::vector<Entry> entries_;
};

}  // namespace accrue::optim
