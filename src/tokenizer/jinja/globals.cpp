#include "tokenizer/jinja/globals.h"

#include <algorithm>
#include <ctime>

#include "tokenizer/jinja/dict_update.h"
#include "tokenizer/jinja/objects.h"
#include "tokenizer/jinja/repr.h"

namespace forebay::jinja {

namespace {

Value range(Runtime& runtime, Arguments& arguments) {
  const std::vector<Value> bound = bind("range", arguments, {"", "", ""}, 1);
  Int numbers[3];
  for (size_t i = 0; i < 3; ++i) {
    if (bound[i].is_none()) fail("range: 'NoneType' object cannot be interpreted as an integer");
    numbers[i] = int_or(bound[i], i == 2 ? 1 : 0, "range");
    if (numbers[i] < INT64_MIN || numbers[i] > INT64_MAX) fail("range: {} is beyond 64 bits", numbers[i]);
  }
  if (numbers[2] == 0) fail("range() arg 3 must not be zero");
  if (bound[1].is_missing()) return runtime.heap().make<Range>(0, numbers[0], 1);
  return runtime.heap().make<Range>(numbers[0], numbers[1], numbers[2]);
}

/// dict(mapping or pairs, name=value, ...)
Ref<Dict> dict_of(Runtime& runtime, Arguments& arguments, std::string_view function) {
  if (arguments.positional.size() > 1) fail("{} takes at most one mapping", function);
  const Ref<Dict> result = runtime.dict();
  if (!arguments.positional.empty()) update_dict(runtime, *result, arguments.positional[0]);
  for (const auto& [name, value] : arguments.named) result->set(runtime, runtime.string(name), value);
  return result;
}

Value dict(Runtime& runtime, Arguments& arguments) {
  return dict_of(runtime, arguments, "dict");
}

Value make_namespace(Runtime& runtime, Arguments& arguments) {
  return runtime.heap().make<Namespace>(dict_of(runtime, arguments, "namespace"));
}

Value cycler(Runtime& runtime, Arguments& arguments) {
  if (!arguments.named.empty()) fail("cycler takes no argument '{}'", arguments.named[0].first);
  if (arguments.positional.empty()) fail("cycler: at least one item has to be provided");
  return runtime.heap().make<Cycler>(arguments.positional);
}

Value joiner(Runtime& runtime, Arguments& arguments) {
  const std::vector<Value> bound = bind("joiner", arguments, {"sep"}, 0);
  return runtime.heap().make<Joiner>(bound[0].is_missing() ? runtime.string(", ") : bound[0]);
}

Value raise_exception(Runtime& runtime, Arguments& arguments) {
  fail("{}", str_of(runtime, bind("raise_exception", arguments, {"message"}, 1)[0]));
}

/// How much of `format`, behind a percent sign, belongs to the directive: glibc's flags, width and modifier,
/// and the letter.
size_t directive_size(std::string_view format) {
  size_t n = std::min(format.find_first_not_of("-_0^#+123456789EO"), format.size());
  return std::min(n + 1, format.size());
}

/// As strftime in the C locale, for the render's time in UTC.
Value strftime_now(Runtime& runtime, Arguments& arguments) {
  const std::vector<Value> bound = bind("strftime_now", arguments, {"format"}, 1);
  if (!bound[0].is_string()) fail("strftime_now of '{}', expected str", type_name(bound[0]));
  const auto seconds = static_cast<std::time_t>(runtime.now_unix());
  std::tm now{};
  if (gmtime_r(&seconds, &now) == nullptr)
    fail("strftime_now: the time {} is out of range", runtime.now_unix());
  std::string out;
  for (std::string_view format = bound[0].text(); !format.empty();) {
    const size_t n_plain = std::min(format.find('%'), format.size());
    out += format.substr(0, n_plain);
    format.remove_prefix(n_plain);
    if (format.empty()) break;
    const std::string directive(format.substr(0, 1 + directive_size(format.substr(1))));
    format.remove_prefix(directive.size());
    runtime.spend();
    if (directive == "%f") {
      out += "000000";  // microseconds
    } else if (directive == "%") {
      out += '%';
    } else if (directive != "%z" && directive != "%Z") {  // a time without a zone prints none
      char buffer[256];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
      const size_t n = std::strftime(buffer, sizeof buffer, directive.c_str(), &now);
#pragma GCC diagnostic pop
      out.append(buffer, n);
    }
    runtime.check_text(out.size());
  }
  return runtime.string(repaired(out));
}

struct Global {
  std::string_view name;
  Value (*call)(Runtime& runtime, Arguments& arguments);
};

constexpr Global kGlobals[] = {
    {"cycler", cycler},
    {"dict", dict},
    {"joiner", joiner},
    {"namespace", make_namespace},
    {"raise_exception", raise_exception},
    {"range", range},
    {"strftime_now", strftime_now},
};

}  // namespace

Value make_global(Runtime& runtime, std::string_view name) {
  for (const Global& global : kGlobals)
    if (global.name == name) return runtime.heap().make<Function>(global.name, global.call);
  return {};
}

}  // namespace forebay::jinja
