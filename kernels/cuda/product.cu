// The launch of the product kernel: which tiles.
#include "accrue/kernels/cuda/product.cuh"

namespace accrue::kernels::cuda {
namespace {

template <int kTile, bool kInBatch>
void launch_tiles(const char* name, const Product& product, Stream stream) {
  const auto tiles = [](std::int64_t count) { return (count + kTile - 1) / kTile; };
  const std::int64_t line = tiles(product.a.count) * product.batch;
  const std::int64_t num_lines = tiles(product.b.count);
  launch({.name = name,
          .grid_x = kInBatch ? line * num_lines : line,
          .grid_y = kInBatch ? 1 : num_lines,
          .threads = kProductThreads,
          .stream = stream},
         product_kernel<kTile, kInBatch>,
         product,
         static_cast<int>(line));
}

}  // namespace

void launch_product(const char* name, const Product& product, Stream stream) {
  constexpr std::int64_t kLarge = 128, kEnough = 132;  // large tiles that fill a GPU
  if (product.a.count == 0 || product.b.count == 0 || product.batch == 0) return;
  constexpr std::int64_t kMaxColumns = std::int64_t{65535} * 64;  // of tiles in the grid's y
  const bool is_one = product.offsets == nullptr && product.triangle == Triangle::none &&
                      product.b.count <= kMaxColumns;
  const bool is_large = product.a.count / kLarge * (product.b.count / kLarge) >= kEnough;
  if (!is_one) return launch_tiles<64, true>(name, product, stream);
  if (is_large) return launch_tiles<128, false>(name, product, stream);
  launch_tiles<64, false>(name, product, stream);
}

}  // namespace accrue::kernels::cuda
