#include "accrue/autograd/node.h"

#include "accrue/autograd/grad_mode.h"

#include <atomic>

namespace accrue {
namespace {

std::atomic<std::uint64_t> next_sequence{1};
thread_local bool grad_mode = true;

}  // namespace

bool grad_enabled() { return grad_mode; }
NoGrad::NoGrad() : previous_(std::exchange(grad_mode, false)) {}
NoGrad::~NoGrad() { grad_mode = previous_; }

Node::Node() : sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)) {}
Node::~Node() = default;

void Node::destroy(Node* node) noexcept {
  thread_local Node* dead = nullptr;
  thread_local bool deleting = false;
  node->next_dead_ = std::exchange(dead, node);
  if (deleting) return;
  deleting = true;
  while (dead) {
    Node* next = std::exchange(dead, dead->next_dead_);
    delete next;
  }
  deleting = false;
}

Node::Extras& Node::extras() {
  if (!extras_) extras_ = std::make_unique<Extras>();
  return *extras_;
}

void Node::add_hook(GradientHook hook) { extras().hooks.push_back(std::move(hook)); }
void Node::retain_gradient() { extras().retain = true; }
Tensor Node::retained_gradient() const { return extras_ ? extras_->retained : Tensor(); }

const Tensor& SavedTensor::get(const char* operation) const {
  ACCRUE_CHECK(tensor_.version() == version_,
               StateError,
               operation,
               "a tensor saved for backward must not be written before it, got version ",
               tensor_.version(),
               " instead of ",
               version_,
               "; write to a clone() or after backward");
  return tensor_;
}

}  // namespace accrue
