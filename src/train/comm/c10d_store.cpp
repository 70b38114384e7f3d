#include "train/comm/c10d_store.h"

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace forebay::train {

Result<c10::intrusive_ptr<c10d::Store>> share_store(Control& control, std::string_view name) {
  c10d::TCPStoreOptions options;
  options.isServer = control.rank() == 0;
  options.port = 0;  // any
  options.waitWorkers = false;
  options.timeout = control.timeouts().init;
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::string place;
  if (control.rank() == 0) {
    store = c10::make_intrusive<c10d::TCPStore>(control.address(), options);
    place = fmt::format("{} {}", control.address(), store->getPort());
  }
  const std::vector<Bytes> places =
      TRY(control.gather(fmt::format("{}/store", name), Bytes(place.begin(), place.end())));
  if (control.rank() > 0) {
    place.assign(places[0].begin(), places[0].end());
    const size_t gap = place.find(' ');
    options.port = static_cast<uint16_t>(std::atoi(place.substr(gap + 1).c_str()));
    store = c10::make_intrusive<c10d::TCPStore>(place.substr(0, gap), options);
  }
  return c10::intrusive_ptr<c10d::Store>(c10::make_intrusive<c10d::PrefixStore>(std::string(name), store));
}

}  // namespace forebay::train
