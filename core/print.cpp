#include "accrue/core/print.h"

#include "accrue/core/tensor.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace accrue {
namespace {

constexpr int kPrecision = 4;
constexpr std::int64_t kThreshold = 1000;  // above this many elements only the corners are shown
constexpr std::int64_t kEdgeItems = 3;
constexpr int kLineWidth = 80;
constexpr std::string_view kPrefix = "tensor(";

std::string spaces(int count) { return std::string(static_cast<std::size_t>(count), ' '); }

/// How the numbers of one tensor are written. `whole`: all are integers, so `2.` and not `2.0000`.
enum class Style { whole, fixed, scientific };

std::string number_text(double x, Style style) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  // Longest: -100000000.0000; `fixed` and `whole` never meet values above 1e8.
  char buffer[32];
  const auto format =
      style == Style::scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const int digits = style == Style::whole ? 0 : kPrecision;
  std::string result(buffer, std::to_chars(buffer, std::end(buffer), x, format, digits).ptr);
  return style == Style::whole ? result + "." : result;
}

/// Writes the nested brackets of one tensor.
template <class T>
class ElementWriter {
 public:
  explicit ElementWriter(const Tensor& tensor)
      : first_(tensor.data<T>()),
        shape_(tensor.shape()),
        strides_(tensor.strides()),
        summarize_(tensor.numel() > kThreshold) {
    for_each_element(0, 0, [&](T x) { note_range(x); });
    choose_style();
    for_each_element(0, 0, [&](T x) { note_width(x); });
  }

  std::string str() {
    write(0, 0, static_cast<int>(kPrefix.size()));
    return std::move(out_);
  }

 private:
  /// Calls visit(i) for each index of `dim` that is shown, and visit(-1) for the dots.
  template <class Visit>
  void for_each_shown(int dim, Visit visit) const {
    const bool cut = summarize_ && shape_[dim] > 2 * kEdgeItems;
    for (std::int64_t i = 0; i < shape_[dim]; ++i) {
      if (cut && i == kEdgeItems) {
        visit(std::int64_t{-1});
        i = shape_[dim] - kEdgeItems;
      }
      visit(i);
    }
  }

  template <class Visit>
  void for_each_element(int dim, std::int64_t offset, Visit visit) const {
    if (dim == shape_.rank()) return visit(first_[offset]);
    for_each_shown(dim, [&](std::int64_t i) {
      if (i >= 0) for_each_element(dim + 1, offset + i * strides_[dim], visit);
    });
  }

  // Zeros, infinities and NaN count neither for the style nor for the width.
  static bool counts(T x) { return std::isfinite(static_cast<double>(x)) && x != T{}; }

  void note_range(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!counts(x)) return;
      const double magnitude = std::abs(static_cast<double>(x));
      smallest_ = std::min(smallest_, magnitude);
      largest_ = std::max(largest_, magnitude);
      whole_ = whole_ && x == std::ceil(x);
    }
  }

  void choose_style() {
    if (largest_ == 0) return;
    const bool scientific =
        largest_ / smallest_ > 1000.0 || largest_ > 1e8 || (!whole_ && smallest_ < 1e-4);
    style_ = scientific ? Style::scientific : whole_ ? Style::whole : Style::fixed;
  }

  void note_width(T x) {
    if (std::is_floating_point_v<T> && !counts(x)) return;
    width_ = std::max(width_, static_cast<int>(text_of(x).size()));
  }

  std::string text_of(T x) const {
    if constexpr (std::is_same_v<T, bool>) {
      return x ? "True" : "False";
    } else if constexpr (std::is_integral_v<T>) {
      return std::to_string(x);
    } else {
      return number_text(static_cast<double>(x), style_);
    }
  }

  void write(int dim, std::int64_t offset, int indent) {
    if (dim == shape_.rank()) {
      const std::string element = text_of(first_[offset]);
      out_ += spaces(std::max(width_ - static_cast<int>(element.size()), 0)) + element;
      return;
    }
    const int depth = shape_.rank() - dim;
    const int per_line = depth > 1 ? 1 : std::max(1, (kLineWidth - indent) / (width_ + 2));
    std::string line_break(static_cast<std::size_t>(std::max(depth, 2)), '\n');
    line_break.front() = ',';
    line_break += spaces(indent + 1);
    int count = 0;
    out_ += '[';
    for_each_shown(dim, [&](std::int64_t i) {
      if (count > 0) out_ += count % per_line == 0 ? line_break : ", ";
      ++count;
      if (i < 0) {
        out_ += depth == 1 ? " ..." : "...";
      } else {
        write(dim + 1, offset + i * strides_[dim], indent + 1);
      }
    });
    out_ += ']';
  }

  const T* first_;
  Shape shape_;
  Shape strides_;
  bool summarize_;
  double smallest_ = std::numeric_limits<double>::infinity();
  double largest_ = 0;
  bool whole_ = true;
  Style style_ = Style::whole;
  int width_ = 1;
  std::string out_;
};

/// Appends `, suffix`, or puts the suffix on a line of its own when it would pass the line's end.
class SuffixWriter {
 public:
  explicit SuffixWriter(std::string text)
      : out_(std::move(text)), column_(out_.size() - (out_.rfind('\n') + 1) + 2) {}

  void add(std::string_view suffix) {
    const bool fits = column_ + suffix.size() + 2 <= kLineWidth;
    out_ += fits ? ", " : ",\n" + spaces(static_cast<int>(kPrefix.size()));
    out_ += suffix;
    column_ = (fits ? column_ + 2 : kPrefix.size()) + suffix.size();
  }
  std::string finish() { return std::move(out_) + ")"; }

 private:
  std::string out_;
  std::size_t column_;  // of the end of the last line, as torch counts it: two more than there are
};

bool names_dtype(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::float32) return false;
  return tensor.numel() == 0 || (dtype != DType::int64 && dtype != DType::boolean);
}

}  // namespace

std::string to_string(const Tensor& tensor, std::string_view suffix) {
  ACCRUE_CHECK(tensor.defined(),
               StateError,
               "to_string",
               "tensor must be defined, got a default-constructed or moved-from one");
  const bool is_empty = tensor.numel() == 0;
  std::string elements = "[]";
  if (!is_empty) {
    const bool is_stored_half = size_of(tensor.dtype()) == 2;
    const Tensor near = tensor.to(Device::cpu());
    const Tensor shown = is_stored_half ? near.to(DType::float32) : near;
    visit_dtype(shown.dtype(), [&]<class T>(T) {
      if constexpr (!is_half<T>) elements = ElementWriter<T>(shown).str();
    });
  }
  SuffixWriter out(std::string(kPrefix) + elements);
  const Device device = tensor.device();
  if (!device.is_cpu()) out.add("device='" + device.str() + "'");
  if (is_empty && tensor.rank() != 1) {
    const std::string sizes = tensor.shape().str();
    out.add("size=(" + sizes.substr(1, sizes.size() - 2) + ")");
  }
  if (names_dtype(tensor)) out.add(std::string("dtype=torch.") + name_of(tensor.dtype()));
  if (!suffix.empty()) out.add(suffix);
  return out.finish();
}

std::string Tensor::str() const { return to_string(*this); }

}  // namespace accrue
