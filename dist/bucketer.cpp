#include "accrue/dist/bucketer.h"

#include "accrue/dist/caught_text.h"
#include "accrue/dist/device_link.h"
#include "accrue/dist/same_lines.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

namespace accrue::dist {
namespace {

/// One line for each option, then for each parameter.
std::string lines_of(std::span<const BucketParameter> parameters, const BucketerOptions& options) {
  std::string lines = text("lanes = ",
                           options.lanes,
                           "\nfirst_bucket_bytes = ",
                           options.first_bucket_bytes,
                           "\nbucket_cap_bytes = ",
                           options.bucket_cap_bytes,
                           '\n');
  for (const BucketParameter& parameter : parameters) {
    lines += text(parameter.name, ' ', parameter.shape, ' ', parameter.dtype);
    lines += parameter.device.is_cpu() ? "\n" : " cuda\n";
  }
  return lines;
}

void check_options(const BucketerOptions& options) {
  ACCRUE_CHECK(options.lanes >= 1 && options.lanes <= 1 << 15 &&
                   std::has_single_bit(static_cast<unsigned>(options.lanes)),
               ValueError,
               "bucketer",
               "lanes must be a power of two in [1, 32768], got ",
               options.lanes,
               "; use 8, the default");
  for (const std::int64_t bytes : {options.first_bucket_bytes, options.bucket_cap_bytes}) {
    ACCRUE_CHECK(bytes >= 1,
                 ValueError,
                 "bucketer",
                 "first_bucket_bytes and bucket_cap_bytes must be positive, got ",
                 bytes,
                 "; use the defaults, 1 MiB and 25 MiB");
  }
}

/// A buffer of zeros whose first element lies at a multiple of kBucketAlignment.
Tensor aligned_buffer(const Bucket& bucket) {
  const DType dtype = bucket.dtype;
  const std::int64_t width = size_of(dtype), step = kBucketAlignment / width;
  const Tensor buffer = Tensor::zeros({bucket.numel + step}, dtype, bucket.device);
  return visit_floating(dtype, "bucketer", [&]<class T>(T) {
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data<T>());
    const auto past = static_cast<std::int64_t>(address % kBucketAlignment) / width;
    return buffer.narrow(0, (step - past) % step, bucket.numel);
  });
}

}  // namespace

Bucketer::Bucketer(ProcessGroup& group,
                   std::vector<BucketParameter> parameters,
                   Divisor divisor,
                   const BucketerOptions& options)
    : parent_(group), parameters_(std::move(parameters)), divisor_of_(divisor), options_(options) {
  check_same_lines(group,
                   lines_of(parameters_, options_),
                   "bucketer",
                   "all ranks must have the same parameters and options",
                   "build the model with the same options everywhere");
  check_options(options_);
  buckets_ = bucket_layout(parameters_, options_.first_bucket_bytes, options_.bucket_cap_bytes);
  allocate();
  group_ = group.duplicate();
  for (const Bucket& bucket : buckets_) {
    if (!bucket.device.is_cpu()) link_ = group_->link(bucket.device);
  }
  if (options_.overlap) thread_ = std::thread([this] { serve(); });
}

void Bucketer::allocate() {
  views_.resize(parameters_.size());
  bucket_of_.resize(parameters_.size());
  uses_.resize(parameters_.size());
  is_ready_.resize(parameters_.size());
  is_used_.resize(parameters_.size());
  num_missing_.resize(buckets_.size());
  marks_.resize(buckets_.size());
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b];
    const Tensor buffer = aligned_buffer(bucket);
    for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
      const std::size_t parameter = bucket.parameters[i];
      const Shape& shape = parameters_[parameter].shape;
      const std::int64_t numel = product(shape, 0, shape.rank());
      views_[parameter] = buffer.narrow(0, bucket.offsets[i], numel).view(shape);
      bucket_of_[parameter] = b;
    }
  }
}

Bucketer::~Bucketer() {
  const bool has_thrown = std::uncaught_exceptions() > 0;
  group_->leave(has_thrown ? "it threw an exception"
                : is_open_ ? "it gave its window up"
                           : "it needs its buckets no more",
                !has_thrown && !is_open_ && !broken_);
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  try {
    if (done_) link_->wait_for(done_);  // before others get the memory of the buckets
  } catch (const Error&) {              // the device is lost, and the buckets with it
  }
}

void Bucketer::check_open(const char* call) const {
  ACCRUE_CHECK(is_open_,
               StateError,
               "bucketer",
               "a window must be open, got ",
               call,
               " outside of one; call begin() first");
}

void Bucketer::check_parameter(std::size_t parameter) const {
  ACCRUE_CHECK(parameter < parameters_.size(),
               IndexError,
               "bucketer",
               "a parameter must lie in [0, ",
               parameters_.size(),
               "), got ",
               parameter,
               "; count in definition order");
}

/// Other ranks' GPUs may have done their part: this one tells them.
void Bucketer::check_link() {
  if (!link_) return;
  try {
    link_->check();
  } catch (const Error& error) {
    broken_ = std::current_exception();
    group_->leave(text("it threw ", error.what()));
    throw;
  }
}

void Bucketer::begin(std::int64_t step, std::string weight) {
  start(step, std::move(weight), std::nullopt);
}

void Bucketer::start(std::int64_t step, std::string weight, std::optional<std::string> failure) {
  ACCRUE_CHECK(!is_open_,
               StateError,
               "bucketer",
               "a window must end before the next one begins, got begin() of step ",
               step,
               " in step ",
               step_,
               "; call finish() first");
  if (broken_) std::rethrow_exception(broken_);
  check_link();
  {
    const std::lock_guard lock(mutex_);
    group_->set_timeout(parent_.timeout());
    step_ = step;
    weight_ = std::move(weight);
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      num_missing_[b] = buckets_[b].parameters.size();
      marks_[b] = nullptr;
    }
    std::fill(is_ready_.begin(), is_ready_.end(), 0);
    std::fill(is_used_.begin(), is_used_.end(), 0);
    is_open_ = true;
    failure_ = std::move(failure);
    is_closed_ = is_done_ = confirms_ = false;
  }
  changed_.notify_all();
}

void Bucketer::ready(std::size_t parameter, Uses uses) {
  check_parameter(parameter);
  const BucketParameter& about = parameters_[parameter];
  check_open("ready()");
  ACCRUE_CHECK(!is_ready_[parameter],
               StateError,
               "bucketer",
               "a parameter must become ready once in a window, got ",
               about.name,
               " twice in step ",
               step_,
               "; report it after its last use");
  for (const std::vector<TreeNode>& nodes : uses) {
    for (const TreeNode& node : nodes) {
      ACCRUE_CHECK(node.partial.shape() == about.shape,
                   ShapeError,
                   "bucketer",
                   "a partial sum must have the shape ",
                   about.shape,
                   " of ",
                   about.name,
                   ", got ",
                   node.partial.shape());
      ACCRUE_CHECK(node.partial.dtype() == about.dtype,
                   DTypeError,
                   "bucketer",
                   "a partial sum must be ",
                   about.dtype,
                   " like ",
                   about.name,
                   ", got ",
                   node.partial.dtype());
    }
  }
  bool is_complete = false;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t bucket = bucket_of_[parameter];
    is_complete = num_missing_[bucket] == 1;
    if (is_complete && link_) marks_[bucket] = link_->mark();
    uses_[parameter] = std::move(uses);
    is_ready_[parameter] = 1;
    --num_missing_[bucket];
  }
  if (is_complete) changed_.notify_all();
}

void Bucketer::fail(std::string reason) {
  check_open("fail()");
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(reason);
  }
  changed_.notify_all();
}

void Bucketer::give_up(std::int64_t step, std::string reason) noexcept {
  try {
    is_open_ ? fail(std::move(reason)) : start(step, {}, std::move(reason));
    finish();
  } catch (const std::exception&) {  // all ranks throw it but this one, which knows the cause
  }
}

double Bucketer::finish(std::span<NodeSum> more, bool confirms) {
  check_open("finish()");
  {
    std::unique_lock lock(mutex_);
    mark_buckets();
    is_closed_ = true;
    more_ = more;
    confirms_ = confirms;
    changed_.notify_all();
    if (options_.overlap) changed_.wait(lock, [&] { return is_done_; });
  }
  if (!options_.overlap) attempt(&Bucketer::reduce_window);
  is_open_ = false;
  for (Uses& uses : uses_) uses.clear();
  if (done_) link_->wait_for(std::exchange(done_, nullptr));
  throw_error();
  check_link();  // of what breaks later, whoever reads the gradients is told
  return divisor_;
}

/// Those that are not complete end here. Under the mutex.
void Bucketer::mark_buckets() {
  for (auto& mark : marks_) {
    if (link_ && !mark) mark = link_->mark();
  }
}

void Bucketer::confirm(std::optional<std::string> failure) {
  if (!std::exchange(confirms_, false)) return;
  failure_ = std::move(failure);
  attempt(&Bucketer::tell_end);  // the communication thread waits for the next window
  throw_error();
}

void Bucketer::confirm_after(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    try {
      confirm(caught_text());
    } catch (const DistributedError&) {  // for the other ranks
    }
    throw;
  }
  confirm();
}

/// What went wrong, if anything: then there are no gradients.
void Bucketer::throw_error() {
  if (!error_) return;
  confirms_ = false;
  std::fill(is_used_.begin(), is_used_.end(), 0);
  std::rethrow_exception(std::exchange(error_, nullptr));
}

Tensor Bucketer::gradient(std::size_t parameter) const {
  check_parameter(parameter);
  ACCRUE_CHECK(!is_open_,
               StateError,
               "bucketer",
               "gradients exist when the window ends, got one asked for in step ",
               step_,
               "; call finish() first");
  return is_used_[parameter] ? views_[parameter] : Tensor();
}

}  // namespace accrue::dist
