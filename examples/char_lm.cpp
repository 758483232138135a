// A small GPT that learns to write like a text, character by character.
#include "accrue/bench/support/options.h"
#include "accrue/bench/support/program.h"
#include "accrue/core/bits.h"
#include "accrue/examples/gpt.h"
#include "accrue/kernels/cpu/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <set>

namespace accrue::examples {
namespace {

using bench::ProgramEnd;

struct Settings {
  std::string text_file = {};
  std::int64_t steps = 300;
  std::int64_t global_batch_size = 64;
  std::int64_t per_device_batch_size = 64;
  std::int64_t context = 64;
  std::int64_t layers = 4;
  std::int64_t embed_dim = 128;
  std::int64_t threads = 2;
  std::int64_t seed = 0;
  std::int64_t sample = 400;
};

// ---- text ----

/// The King James Bible, one verse per line, from Debian's packages bible-kjv and bible-kjv-text.
std::string bible() {
  std::FILE* const pipe = popen("bible -f ge1:1-re22:21 2>/dev/null </dev/null", "r");
  if (!pipe) throw ProgramEnd{bench::kInternal, "cannot start a shell"};
  std::string lines;
  std::array<char, 1 << 16> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe))
    lines.append(part.data(), count);
  if (pclose(pipe) != 0 || lines.empty()) {
    throw ProgramEnd{bench::kConfiguration,
                     "no text: install bible-kjv and bible-kjv-text, or give --text FILE"};
  }
  std::string verses;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size() - 1) + 1;
    const std::size_t verse = lines.find(' ', begin) + 1;  // behind `Ge1:1 `
    if (verse > 0 && verse < end) verses.append(lines, verse, end - verse);
    begin = end;
  }
  return verses;
}

std::string read_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  std::string content;
  std::array<char, 1 << 16> part;
  while (file.read(part.data(), part.size()) || file.gcount() > 0)
    content.append(part.data(), static_cast<std::size_t>(file.gcount()));
  if (!file.is_open() || file.bad())  // a directory opens, but does not read
    throw ProgramEnd{bench::kInputOutput, "cannot read " + name};
  return content;
}

/// A text as indices into the sorted list of its characters.
struct Corpus {
  std::string characters;
  std::vector<std::int64_t> tokens;

  explicit Corpus(const std::string& text) {
    const std::set<char> distinct(text.begin(), text.end());
    characters.assign(distinct.begin(), distinct.end());
    std::array<std::int64_t, 256> index_of{};
    for (std::size_t i = 0; i < characters.size(); ++i)
      index_of[static_cast<unsigned char>(characters[i])] = static_cast<std::int64_t>(i);
    for (const char c : text) tokens.push_back(index_of[static_cast<unsigned char>(c)]);
  }
  std::int64_t vocabulary() const { return static_cast<std::int64_t>(characters.size()); }
};

/// Sample i: `context` tokens from i * context on, and for each the token that follows it.
class NextTokens final : public data::Dataset {
 public:
  NextTokens(const std::vector<std::int64_t>& tokens, std::int64_t context)
      : tokens_(Tensor::from(tokens, {static_cast<std::int64_t>(tokens.size())})),
        context_(context) {}

  std::int64_t size() const override { return (tokens_.numel() - 1) / context_; }
  data::Sample get(std::int64_t index) const override {
    const std::int64_t begin = index * context_;
    return {.fields = {tokens_.narrow(0, begin, context_), tokens_.narrow(0, begin + 1, context_)}};
  }

 private:
  Tensor tokens_;
  std::int64_t context_;
};

// ---- training ----

void train(Gpt& net, const Corpus& corpus, const Settings& settings) {
  const train::StopSignal stop;
  data::DataLoader batches(NextTokens(corpus.tokens, settings.context),
                           {.batch_size = settings.per_device_batch_size, .shuffle = true});
  optim::AdamW adamw(net.parameters(), {.lr = 3e-3, .beta2 = 0.99});
  auto warmup = optim::cosine_schedule_with_warmup(adamw, 20, settings.steps + 1);
  train::Accelerator accelerator({.global_batch_size = settings.global_batch_size});
  auto [model, optimizer, loader, schedule] = accelerator.prepare(net, adamw, batches, warmup);

  std::int64_t step = 0;
  while (step < settings.steps) {
    for (const auto& batch : loader) {
      auto scope = accelerator.accumulate(model);
      accelerator.backward(model.loss(batch.inputs, batch.labels));
      accelerator.clip_grad_norm(model.parameters(), 1.0);
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      if (!accelerator.sync_gradients()) continue;
      ++step;
      const bool is_shown = step == 1 || step % 20 == 0 || step == settings.steps;
      if (is_shown && accelerator.is_main_process())
        fmt::print("step {:>4}  loss {:.4f}\n", step, accelerator.window_loss());
      std::fflush(stdout);
      if (step == settings.steps) break;
      if (stop.has_come(accelerator)) {
        throw ProgramEnd{bench::kRankLost,
                         fmt::format("interrupted after step {}; start again", step)};
      }
    }
  }
}

/// Draws one token from the softmax of `logits`.
std::int64_t draw(const Tensor& logits, Generator& generator) {
  const std::vector<float> p = softmax(logits).value().to_vector<float>();
  double u = 0;
  generator.uniform(std::span(&u, 1));
  for (std::size_t i = 0; i < p.size(); ++i) {
    u -= p[i];
    if (u < 0) return static_cast<std::int64_t>(i);
  }
  return static_cast<std::int64_t>(p.size()) - 1;
}

/// Continues the text's first characters by `count` characters.
std::string generate(Gpt& net, const Corpus& corpus, std::int64_t context, std::int64_t count) {
  const NoGrad no_grad;
  net.eval();
  Generator generator(1);
  std::vector<std::int64_t> tokens(corpus.tokens.begin(), corpus.tokens.begin() + context);
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::vector<std::int64_t> seen(tokens.end() - context, tokens.end());
    const Tensor logits = net(Tensor::from(seen, {1, context})).value();
    tokens.push_back(draw(logits[0][-1], generator));
    text += corpus.characters[static_cast<std::size_t>(tokens.back())];
  }
  return text;
}

std::uint64_t hash_of(Gpt& net) {
  std::uint64_t hash = kHashSeed;
  for (const Variable& parameter : net.parameters()) {
    const std::vector<float> values = parameter.value().to_vector<float>();
    hash = hash_bits(std::span(values), hash);
  }
  return hash;
}

Settings parse(int argc, char** argv) {
  Settings s;
  bench::Options options("Trains a small GPT on characters and lets it write.");
  options.file("text", s.text_file, "to learn from instead of the King James Bible");
  options.integer("steps", s.steps, "of the optimizer");
  options.integer("global_batch_size", s.global_batch_size, "samples per step");
  options.integer("per_device_batch_size", s.per_device_batch_size, "samples per micro-batch");
  options.integer("context", s.context, "characters that the model sees");
  options.integer("layers", s.layers, "transformer blocks");
  options.integer("embed_dim", s.embed_dim, "width, a multiple of 4");
  options.integer("threads", s.threads, "", 1, 1024);
  options.integer("seed", s.seed, "of the initial weights and of the order", 0);
  options.integer("sample", s.sample, "characters to write at the end", 0);
  options.parse(argc, argv);
  return s;
}

int run(int argc, char** argv) {
  const Settings settings = parse(argc, argv);
  const Corpus corpus(settings.text_file.empty() ? bible() : read_file(settings.text_file));
  if (static_cast<std::int64_t>(corpus.tokens.size()) <= settings.context) {
    throw ProgramEnd{bench::kConfiguration,
                     fmt::format("the text needs more than {} characters, got {}; give a smaller "
                                 "--context or another --text",
                                 settings.context,
                                 corpus.tokens.size())};
  }
  kernels::set_num_threads(static_cast<int>(settings.threads));
  manual_seed(static_cast<std::uint64_t>(settings.seed));
  Gpt net({.vocabulary = corpus.vocabulary(),
           .context = settings.context,
           .embed_dim = settings.embed_dim,
           .num_layers = settings.layers});
  const bool is_main = train::ProcessState().is_main_process();
  if (is_main) {
    fmt::print("{} characters, {} different; {} parameters; an even guess has loss {:.4f}\n",
               corpus.tokens.size(),
               corpus.vocabulary(),
               net.num_parameters(),
               std::log(static_cast<double>(corpus.vocabulary())));
  }
  train(net, corpus, settings);
  if (!is_main) return bench::kDone;
  fmt::print("weights {}\n", hex16(hash_of(net)));
  if (settings.sample > 0)
    fmt::print("\n{}\n", generate(net, corpus, settings.context, settings.sample));
  return bench::kDone;
}

}  // namespace
}  // namespace accrue::examples

int main(int argc, char** argv) {
  return accrue::bench::run_program(accrue::examples::run, argc, argv);
}
