/// Decides which variable every name means, before anything runs.
///
/// Jinja compiles a template to Python functions, and scopes follow from that: the template, every macro and
/// call block, every recursive loop and every loop's test is a function with variables of its own that sees
/// those of the functions around it as they are when it runs. Within one, loop bodies, `with` and capturing
/// blocks are frames: a name assigned in a frame is another variable than the same name outside, and begins
/// with the outer one's value each time the frame is entered. A name that no frame assigns is looked up in
/// the context.
#pragma once

#include "tokenizer/jinja/ast.h"

namespace forebay::jinja {

/// Fills in the slots, frame entries, filters and tests of `result`.
/// Fails for unknown filters and tests (but those inside conditions, which fail when evaluated), jumps
/// outside of loops, and assignments to `loop`.
void resolve_names(Template& result);

}  // namespace forebay::jinja
