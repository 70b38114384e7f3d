// The store that torchrun's agent keeps, of which all ranks are clients.
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "train/comm/transport.h"

namespace forebay::train {

Result<std::string> exchange_in_agent_store(const World& world, const std::string& key,
                                            const std::string& mine, Milliseconds patience) {
  try {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(world.port);
    options.isServer = false;
    options.waitWorkers = false;
    options.timeout = patience;
    c10d::TCPStore store(world.host, options);
    if (world.rank == 0) store.set(key, std::vector<uint8_t>(mine.begin(), mine.end()));
    const std::vector<uint8_t> value = store.get(key);
    return std::string(value.begin(), value.end());
  } catch (const std::exception& exception) {
    const std::string_view text = exception.what();
    return Error{Code::kIo, fmt::format("rank {}: torchrun's store at {}:{}: {}", world.rank, world.host,
                                        world.port, text.substr(0, text.find('\n')))};
  }
}

}  // namespace forebay::train
