// Module: a named tree of parameters, the base of every layer and model.
#pragma once

#include "accrue/autograd/variable.h"

#include <string>
#include <utility>
#include <vector>

namespace accrue::nn {

/// Parameters and tensors by name, in definition order.
using NamedParameters = std::vector<std::pair<std::string, Variable>>;
using StateDict = std::vector<std::pair<std::string, Tensor>>;

struct StateEntry;

/// A part of a model: parameters and smaller modules, each under a name.
///
///     struct Net : nn::Module {
///       nn::Linear fc1{784, 256}, fc2{256, 10};
///       Net() {
///         register_module("fc1", fc1);
///         register_module("fc2", fc2);
///       }
///       Variable operator()(const Variable& x) { return fc2(relu(fc1(x))); }
///     };
///
/// Buffers are tensors that belong to the state but are not trained, such as running means.
///
/// Order: a module's own parameters first, then its buffers, then its modules, each in order of
/// registration. A name is the path with dots, `fc1.weight`. Lists hold what has several names
/// once, under its first name. Shares its parameters and buffers, borrows its modules: these are
/// members or live longer. Modules are neither copied nor moved. Threads: as Variable.
class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  std::vector<Variable> parameters() const;
  NamedParameters named_parameters() const;
  StateDict named_buffers() const;
  /// Elements of all parameters.
  std::int64_t num_parameters() const;

  /// The values of all parameters and buffers, not copied, under all their names.
  StateDict state_dict() const;
  /// Copies `state` into parameters and buffers. Gradients stay.
  /// Errors: ValueError listing every name that is missing, not known, given twice or does not fit;
  ///         nothing is written then.
  void load_state_dict(const StateDict& state);

  /// Tells all modules whether they train (as they do at first) or are evaluated.
  void train(bool mode = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }

  /// Moves parameters, their gradients and buffers to a device. All who share them follow, such as
  /// optimizers; no window may be open. Errors: StateError, OutOfMemoryError, DeviceError; what had
  /// moved then moves back.
  void to(Device device);
  /// Freezes or unfreezes all parameters.
  void set_requires_grad(bool requires_grad);
  void zero_grad();

  /// Where this module is in its model, `layers.0.dropout`; empty for the model itself.
  const std::string& path() const { return path_; }
  /// The tree as torch prints it.
  std::string str() const;

 protected:
  Module() = default;

  /// Makes `value` a parameter. Copies of the result are the same parameter.
  /// Errors: ValueError for a name that is empty, has a dot or is taken; DTypeError unless floating
  ///         point.
  Variable register_parameter(const std::string& name, const Tensor& value);
  /// Adds a parameter that another module may hold too: both train it.
  /// Errors also: ValueError unless `existing` is a leaf.
  Variable register_parameter(const std::string& name, const Variable& existing);
  /// Makes `value` a buffer. Copies of the result are the same buffer: write into one. A tensor
  /// assigned to one is another, which neither the state nor other ranks follow.
  /// Errors: ValueError for the name as above, or an undefined tensor.
  Tensor register_buffer(const std::string& name, const Tensor& value);
  /// Errors: ValueError as above; ValueError when `child` holds this module.
  void register_module(const std::string& name, Module& child);

  /// The class name without namespace, as str() shows it.
  virtual std::string type_name() const;
  /// What str() shows between the parentheses.
  virtual std::string options_str() const { return {}; }

 private:
  void check_name(const char* operation, const std::string& name) const;
  bool holds(const Module& other) const;
  void place(const std::string& path);
  void append_state(const std::string& prefix, std::vector<StateEntry>& out) const;
  std::vector<StateEntry> each_once() const;

  NamedParameters parameters_;
  StateDict buffers_;
  std::vector<std::pair<std::string, Module*>> modules_;
  std::string path_;
  bool training_ = true;
};

}  // namespace accrue::nn
