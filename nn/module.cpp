#include "accrue/nn/module.h"

#include "accrue/core/error.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace accrue::nn {

/// A parameter or a buffer under one of its names.
struct StateEntry {
  std::string name;
  Variable parameter;              ///< undefined for a buffer
  const Tensor* buffer = nullptr;  ///< the module's own

  /// Tells what is the same under several names.
  const void* identity() const {
    return buffer ? static_cast<const void*>(buffer) : parameter.node().get();
  }
  const Tensor& value() const { return buffer ? *buffer : parameter.value(); }
};

namespace {

std::string described(const Tensor& tensor) {
  return tensor.defined() ? text(tensor.shape(), " ", tensor.dtype()) : "undefined";
}

/// Which entry of a state goes where, and what keeps the state from being loaded.
struct StateMatch {
  std::unordered_map<const void*, const Tensor*> source;  ///< by identity
  std::vector<std::string> missing, unknown, repeated, misfit, untied;

  StateMatch(const StateDict& state, const std::vector<StateEntry>& all) {
    std::unordered_map<std::string, const Tensor*> given;
    for (const auto& [name, tensor] : state) {
      if (!given.emplace(name, &tensor).second) repeated.push_back(name);
    }
    for (const StateEntry& entry : all) {
      const auto found = given.find(entry.name);
      if (found != given.end()) pair(entry, *found->second);
    }
    for (const StateEntry& entry : all) {
      if (source.emplace(entry.identity(), nullptr).second) missing.push_back(entry.name);
      given.erase(entry.name);
    }
    for (const auto& [name, tensor] : state) {
      if (given.erase(name) > 0) unknown.push_back(name);
    }
  }

  void pair(const StateEntry& entry, const Tensor& tensor) {
    const auto [first, is_first] = source.emplace(entry.identity(), &tensor);
    const std::string kind = described(tensor), wanted = described(entry.value());
    if (kind != wanted) {
      misfit.push_back(text(entry.name, " ", kind, " for ", wanted));
    } else if (!is_first && misfit.empty() && !equal_bits(*first->second, tensor)) {
      untied.push_back(entry.name);
    }
  }

  std::string faults() const {
    std::string out;
    const auto list = [&](const char* what, const std::vector<std::string>& names) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        out += i > 0 ? ", " : text(out.empty() ? "" : "; ", what, ": ");
        out += names[i];
      }
    };
    list("missing", missing);
    list("not in the module", unknown);
    list("given twice", repeated);
    list("of another shape or dtype", misfit);
    list("tied but unequal", untied);
    return out;
  }
};

void indent(std::string& lines) {
  for (std::size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 3) {
    lines.insert(at + 1, "  ");
  }
}

}  // namespace

// ---- registration ----

void Module::check_name(const char* operation, const std::string& name) const {
  ACCRUE_CHECK(!name.empty() && name.find('.') == std::string::npos,
               ValueError,
               operation,
               "names must have a character and no dot, got \"",
               name,
               "\"");
  const auto has_name = [&](const auto& entry) { return entry.first == name; };
  ACCRUE_CHECK(std::ranges::none_of(parameters_, has_name) &&
                   std::ranges::none_of(buffers_, has_name) &&
                   std::ranges::none_of(modules_, has_name),
               ValueError,
               operation,
               "names must differ, got \"",
               name,
               "\" a second time");
}

Variable Module::register_parameter(const std::string& name, const Tensor& value) {
  check_name("register_parameter", name);
  return parameters_.emplace_back(name, Variable::leaf(value)).second;
}

Variable Module::register_parameter(const std::string& name, const Variable& existing) {
  check_name("register_parameter", name);
  ACCRUE_CHECK(existing.node() && existing.is_leaf(),
               ValueError,
               "register_parameter",
               "\"",
               name,
               "\" must be a leaf, got ",
               existing.node() ? text("the result of ", existing.node()->name())
                               : "a variable without a gradient",
               "; use Variable::leaf(value)");
  return parameters_.emplace_back(name, existing).second;
}

Tensor Module::register_buffer(const std::string& name, const Tensor& value) {
  check_name("register_buffer", name);
  ACCRUE_CHECK(value.defined(),
               ValueError,
               "register_buffer",
               "\"",
               name,
               "\" must be a tensor, got an undefined one");
  return buffers_.emplace_back(name, value).second;
}

bool Module::holds(const Module& other) const {
  return this == &other || std::ranges::any_of(modules_, [&](const auto& entry) {
           return entry.second->holds(other);
         });
}

void Module::register_module(const std::string& name, Module& child) {
  check_name("register_module", name);
  ACCRUE_CHECK(!child.holds(*this),
               ValueError,
               "register_module",
               "modules must form a tree, got \"",
               name,
               "\", which holds the module it is added to");
  modules_.emplace_back(name, &child);
  place(path_);
}

void Module::place(const std::string& path) {
  path_ = path;
  for (const auto& [name, module] : modules_) {
    module->place(path.empty() ? name : text(path, ".", name));
  }
}

// ---- parameters ----

void Module::append_state(const std::string& prefix, std::vector<StateEntry>& out) const {
  for (const auto& [name, parameter] : parameters_) out.push_back({prefix + name, parameter});
  for (const auto& [name, buffer] : buffers_) out.push_back({prefix + name, {}, &buffer});
  for (const auto& [name, module] : modules_) module->append_state(prefix + name + '.', out);
}

/// What has several names, under the first alone.
std::vector<StateEntry> Module::each_once() const {
  std::vector<StateEntry> all;
  append_state("", all);
  std::unordered_set<const void*> seen;
  std::erase_if(all,
                [&](const StateEntry& entry) { return !seen.insert(entry.identity()).second; });
  return all;
}

NamedParameters Module::named_parameters() const {
  NamedParameters out;
  for (StateEntry& entry : each_once()) {
    if (!entry.buffer) out.emplace_back(std::move(entry.name), std::move(entry.parameter));
  }
  return out;
}

StateDict Module::named_buffers() const {
  StateDict out;
  for (StateEntry& entry : each_once()) {
    if (entry.buffer) out.emplace_back(std::move(entry.name), *entry.buffer);
  }
  return out;
}

std::vector<Variable> Module::parameters() const {
  std::vector<Variable> out;
  for (auto& [name, parameter] : named_parameters()) out.push_back(std::move(parameter));
  return out;
}

std::int64_t Module::num_parameters() const {
  std::int64_t count = 0;
  for (const Variable& parameter : parameters()) count += parameter.numel();
  return count;
}

void Module::to(Device device) {
  std::vector<std::pair<Tensor, Device>> moved;  // and where from
  const auto move = [&](const Tensor& tensor) {
    if (!tensor.defined()) return;
    moved.emplace_back(tensor, tensor.device());
    moved.back().first.move_to(device);
  };
  try {
    for (const StateEntry& entry : each_once()) {
      move(entry.value());
      if (entry.parameter.defined()) move(entry.parameter.grad());
    }
  } catch (...) {
    for (auto& [tensor, before] : moved) tensor.move_to(before);
    throw;
  }
}

void Module::set_requires_grad(bool requires_grad) {
  for (auto& [name, parameter] : parameters_) parameter.set_requires_grad(requires_grad);
  for (const auto& [name, module] : modules_) module->set_requires_grad(requires_grad);
}

void Module::zero_grad() {
  for (auto& [name, parameter] : parameters_) parameter.zero_grad();
  for (const auto& [name, module] : modules_) module->zero_grad();
}

void Module::train(bool mode) {
  training_ = mode;
  for (const auto& [name, module] : modules_) module->train(mode);
}

// ---- state ----

StateDict Module::state_dict() const {
  std::vector<StateEntry> all;
  append_state("", all);
  StateDict state;
  for (const StateEntry& entry : all) state.emplace_back(entry.name, entry.value());
  return state;
}

void Module::load_state_dict(const StateDict& state) {
  std::vector<StateEntry> all;
  append_state("", all);
  const StateMatch match(state, all);
  const std::string faults = match.faults();
  ACCRUE_CHECK(faults.empty(),
               ValueError,
               "load_state_dict",
               "the state must fit the module, got ",
               faults,
               "; nothing was loaded");
  for (const StateEntry& entry : each_once()) {
    Tensor target = entry.value();
    target.copy_from(*match.source.at(entry.identity()));
  }
}

// ---- text ----

std::string Module::type_name() const {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status), std::free);
  const std::string name = demangled ? demangled.get() : "Module";
  const std::size_t colons = name.rfind("::", name.find('<'));
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

std::string Module::str() const {
  const std::string options = options_str();
  std::string out = type_name() + "(";
  if (modules_.empty()) return out + options + ")";
  if (!options.empty()) out += "\n  " + options;
  for (const auto& [name, module] : modules_) {
    std::string lines = module->str();
    indent(lines);
    out += text("\n  (", name, "): ", lines);
  }
  return out + "\n)";
}

}  // namespace accrue::nn
