#include "gguf/fingerprint.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "core/bytes.h"

namespace forebay {
namespace {

class Digest {
 public:
  void add(std::span<const std::byte> bytes) { sum_ = checksum(bytes, sum_); }
  void add(std::string_view text) {
    add(static_cast<uint64_t>(text.size()));
    add(std::as_bytes(std::span(text)));
  }
  void add(uint64_t number) {
    buffer_.clear();
    put_le(buffer_, number);
    add(buffer_);
  }
  void add(int64_t number) { add(static_cast<uint64_t>(number)); }
  void add(double number) { add(std::bit_cast<uint64_t>(number)); }
  void add(bool value) { add(static_cast<uint64_t>(value)); }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(const GgufArray& array) {
    std::visit(
        [this](const auto& items) {
          add(static_cast<uint64_t>(items.size()));
          for (size_t i = 0; i < items.size(); ++i)
            add(static_cast<std::decay_t<decltype(items)>::value_type>(items[i]));
        },
        array);
  }
  uint64_t sum() const { return sum_; }

 private:
  uint64_t sum_ = kChecksumSeed;
  std::vector<std::byte> buffer_;
};

}  // namespace

uint64_t fingerprint(const GgufFile& file) {
  constexpr size_t kSample = 64;
  Digest digest;
  const Result<std::string> architecture = file.metadata().get_string_or("general.architecture", "");
  const std::string prefix = (architecture ? *architecture : "") + ".";
  for (const auto& [key, value] : file.metadata().entries()) {
    if (!key.starts_with(prefix) && !key.starts_with("tokenizer.ggml.")) continue;
    digest.add(key);
    std::visit([&](const auto& data) { digest.add(data); }, value.data);
  }
  for (const TensorInfo& tensor : file.tensors()) {
    digest.add(tensor.name);
    digest.add(static_cast<uint64_t>(tensor.type));
    for (const uint64_t n : tensor.ne) digest.add(n);
    const std::span<const std::byte> bytes = file.bytes(tensor);
    const size_t n = std::min(kSample, bytes.size());
    digest.add(bytes.first(n));
    digest.add(bytes.subspan((bytes.size() - n) / 2, n));
    digest.add(bytes.last(n));
  }
  return digest.sum();
}

}  // namespace forebay
