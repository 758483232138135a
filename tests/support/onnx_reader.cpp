#include "accrue/tests/support/onnx_reader.h"

#include "accrue/core/error.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace accrue::tests {
namespace {

/// One field of a message: a number (varint or fixed) or bytes.
struct Field {
  std::uint64_t id = 0;
  std::uint64_t number = 0;
  std::string_view bytes;
};

/// Walks over the fields of a message.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  bool next(Field& field) {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    field = {.id = key >> 3, .number = 0, .bytes = {}};
    switch (key & 7) {
      case 0:
        field.number = varint();
        break;
      case 1:
        field.number = fixed<std::uint64_t>();
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.number = fixed<std::uint32_t>();
        break;
      default:
        ACCRUE_CHECK(false, ValueError, "onnx", "wire types are 0, 1, 2, 5, got ", key & 7);
    }
    return true;
  }
  bool empty() const { return rest_.empty(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << (shift & 63);
      if (byte < 0x80) return value;
    }
  }

  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::string_view take(std::uint64_t count) {
    ACCRUE_CHECK(count <= rest_.size(),
                 ValueError,
                 "onnx",
                 "a message must be whole, got ",
                 rest_.size(),
                 " of ",
                 count,
                 " bytes");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  ACCRUE_CHECK(file, ValueError, "onnx", "a file must be there, got none at ", path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A repeated number: alone or packed.
template <class T, class Read>
void append(std::vector<T>& values, const Field& field, Read read) {
  if (field.bytes.empty()) return values.push_back(static_cast<T>(field.number));
  for (Message packed(field.bytes); !packed.empty();) values.push_back(read(packed));
}

template <class T>
Tensor from_raw(std::string_view bytes, const Shape& shape) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return Tensor::from(values, shape);
}

Tensor read_tensor(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<std::int64_t> dims, integers;
  std::vector<float> floats;
  std::uint64_t type = 0;
  std::string_view raw;
  const auto integer = [](Message& m) { return static_cast<std::int64_t>(m.varint()); };
  Message message(bytes);
  for (Field field; message.next(field);) {
    if (field.id == 1) append(dims, field, integer);
    if (field.id == 2) type = field.number;
    if (field.id == 4) append(floats, field, [](Message& m) { return m.fixed<float>(); });
    if (field.id == 5 || field.id == 7) append(integers, field, integer);
    if (field.id == 9) raw = field.bytes;
  }
  Shape shape;
  for (const std::int64_t dim : dims) shape.push_back(dim);
  if (!floats.empty()) return Tensor::from(floats, shape);
  if (!integers.empty()) return Tensor::from(integers, shape);
  switch (type) {
    case 1:
      return from_raw<float>(raw, shape);
    case 2:
      return from_raw<std::uint8_t>(raw, shape);
    case 6:
      return from_raw<std::int32_t>(raw, shape);
    case 7:
      return from_raw<std::int64_t>(raw, shape);
    case 11:
      return from_raw<double>(raw, shape);
    default:
      ACCRUE_CHECK(false, ValueError, "onnx", "types are 1, 2, 6, 7, 11, got ", type);
  }
  return {};
}

void read_attribute(Message message, OnnxNode& node) {
  std::string name;
  for (Field field; message.next(field);) {
    if (field.id == 1) name = field.bytes;
    if (field.id == 2) {
      float number = 0;
      const auto bits = static_cast<std::uint32_t>(field.number);
      std::memcpy(&number, &bits, sizeof number);
      node.numbers[name] = number;
    }
    if (field.id == 3) node.numbers[name] = static_cast<double>(std::int64_t(field.number));
    if (field.id == 4) node.words[name] = field.bytes;
  }
}

OnnxNode read_node(Message message) {
  OnnxNode node;
  for (Field field; message.next(field);) {
    if (field.id == 1) node.inputs.emplace_back(field.bytes);
    if (field.id == 2) node.outputs.emplace_back(field.bytes);
    if (field.id == 4) node.op = field.bytes;
    if (field.id == 5) read_attribute(Message(field.bytes), node);
  }
  return node;
}

std::vector<OnnxNode> read_model(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<OnnxNode> nodes;
  Message model(bytes);
  for (Field field; model.next(field);) {
    if (field.id != 7) continue;
    Message graph(field.bytes);
    for (Field part; graph.next(part);) {
      if (part.id == 1) nodes.push_back(read_node(Message(part.bytes)));
    }
  }
  return nodes;
}

std::vector<Tensor> read_tensors(const std::filesystem::path& folder, const std::string& kind) {
  std::vector<Tensor> tensors;
  for (;;) {
    const auto path = folder / (kind + '_' + std::to_string(tensors.size()) + ".pb");
    if (!std::filesystem::exists(path)) return tensors;
    tensors.push_back(read_tensor(path));
  }
}

}  // namespace

double OnnxNode::number(const std::string& name, double otherwise) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? otherwise : found->second;
}

OnnxCase read_onnx_case(const std::filesystem::path& folder) {
  return {.name = folder.filename().string(),
          .nodes = read_model(folder / "model.onnx"),
          .inputs = read_tensors(folder / "test_data_set_0", "input"),
          .outputs = read_tensors(folder / "test_data_set_0", "output")};
}

}  // namespace accrue::tests
