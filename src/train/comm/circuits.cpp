#include "train/comm/circuits.h"

#include <fmt/format.h>

namespace forebay::train {
namespace {

/// torchrun's agent has the port of MASTER_PORT: rank 0 takes another one and says so in the agent's store.
Result<World> beside_agent(World world, const Timeouts& timeouts) {
  std::string port;
  if (world.rank == 0) port = std::to_string(TRY(Socket::listen(0)).local_port());
  port = TRY(exchange_in_agent_store(world, "forebay/control", port, timeouts.init));
  world.port = std::atoi(port.c_str());
  return world;
}

Result<std::unique_ptr<Comm>> make_circuit(const std::string& name, Control& control, const World& world,
                                           Backend backend, const LinkOptions& link) {
  std::unique_ptr<Transport> transport;
  if (world.size > 1) {
    switch (backend) {
      case Backend::kTcp:
        transport = TRY(make_tcp_transport(control, name));
        break;
      case Backend::kGloo:
        transport = TRY(make_gloo_transport(control, name));
        break;
      case Backend::kNccl:
        transport = TRY(make_nccl_transport(control, name, world.local_rank));
        break;
    }
  }
  return std::make_unique<Comm>(name, control, std::move(transport), link);
}

}  // namespace

std::string_view name_of(Backend backend) {
  switch (backend) {
    case Backend::kTcp:
      return "tcp";
    case Backend::kGloo:
      return "gloo";
    case Backend::kNccl:
      return "nccl";
  }
  return "?";
}

Circuits::~Circuits() {
  anchor.reset();
  pipe.reset();
  control.reset();
}

Result<void> Circuits::shutdown() {
  TRY(pipe->shutdown());
  TRY(anchor->shutdown());
  return control->leave();
}

Result<Circuits> connect_circuits(const World& world, const CommOptions& options) {
  TRY(options.timeouts.check());
  TRY(options.pipe_link.check());
  TRY(options.anchor_link.check());
  World place = world;
  if (world.size > 1 && world.has_agent_store) place = TRY(beside_agent(world, options.timeouts));
  Circuits circuits;
  circuits.control = TRY(Control::join(place, options.timeouts));
  circuits.pipe = TRY(make_circuit("pipe", *circuits.control, world, options.backend, options.pipe_link));
  circuits.anchor =
      TRY(make_circuit("anchor", *circuits.control, world, options.backend, options.anchor_link));
  return circuits;
}

}  // namespace forebay::train
