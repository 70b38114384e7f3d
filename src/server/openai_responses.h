/// OpenAI's responses: with the whole conversation in each request, or going on from an earlier response.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "forebay/engine.h"

#include "server/reply.h"
#include "server/request.h"

namespace forebay {

/// Conversations by the id of their last response. Bounded: those used longest ago go first. Thread-safe.
class ResponseStore {
 public:
  void put(const std::string& id, Json messages);
  /// Null when it is not known (any more).
  Json find(const std::string& id);

 private:
  using Entries = std::list<std::pair<std::string, Json>>;  // newest first
  std::mutex mutex_;
  Entries entries_;
  std::map<std::string, Entries::iterator> by_id_;
};

struct ResponsesRequest {
  ChatRequest chat;
  bool store = true;
  size_t n_instructions = 0;  // messages in front that are not part of the stored conversation
  Json echo;                  // of the request, for the response
};
/// Errors: kInvalidArgument naming the field, kNotFound for an unknown previous_response_id.
Result<ResponsesRequest> parse_responses_request(const Json& body, const ModelInfo& model,
                                                 ResponseStore& store);

/// Stores the conversation with the answer when it is whole, unless the request says no.
std::unique_ptr<Reply> make_responses_reply(std::string model, ResponsesRequest request,
                                            ResponseStore& store);

}  // namespace forebay
