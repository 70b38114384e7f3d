/// A parsed template. Plain data: parser.h makes it, scope.h fills in where variables live, interpreter.h
/// reads it.
///
/// Immutable once made, so that renders on several threads share it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/jinja/arithmetic.h"
#include "tokenizer/jinja/value.h"

namespace forebay::jinja {

struct Filter;
struct Test;

/// Where a variable lives: `hops` functions out from the code that names it, slot `index` there.
struct Slot {
  int hops = 0;
  int index = -1;
};

// ---- expressions ----

enum class ExprKind : uint8_t {
  kConstant,
  kName,
  kTuple,
  kList,
  kDict,
  kUnary,
  kArithmetic,
  kLogic,
  kCompare,
  kConcat,
  kConditional,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
};

struct Expr {
  Expr(ExprKind k, int l) : kind(k), line(l) {}
  virtual ~Expr() = default;
  const ExprKind kind;
  const int line;
  int height = 1;  // of the tree below: bounded by the parser
};
using ExprPtr = std::unique_ptr<Expr>;

struct ConstantExpr : Expr {
  ConstantExpr(int l, Value v) : Expr(ExprKind::kConstant, l), value(std::move(v)) {}
  Value value;
};

struct NameExpr : Expr {
  NameExpr(int l, std::string n) : Expr(ExprKind::kName, l), name(std::move(n)) {}
  std::string name;
  Slot slot;
};

struct SequenceExpr : Expr {  // kTuple, kList, kConcat
  SequenceExpr(ExprKind k, int l) : Expr(k, l) {}
  std::vector<ExprPtr> items;
};

struct DictExpr : Expr {
  explicit DictExpr(int l) : Expr(ExprKind::kDict, l) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

struct UnaryExpr : Expr {
  enum class Op : uint8_t { kNot, kNegative, kPositive };
  UnaryExpr(int l, Op o, ExprPtr e) : Expr(ExprKind::kUnary, l), op(o), operand(std::move(e)) {}
  Op op;
  ExprPtr operand;
};

/// first op operand op operand ..., from left to right. One node however long, so that long sums are not
/// deep.
struct ArithmeticExpr : Expr {
  explicit ArithmeticExpr(int l) : Expr(ExprKind::kArithmetic, l) {}
  struct Step {
    Operator op;
    ExprPtr operand;
  };
  ExprPtr first;
  std::vector<Step> steps;
};

struct LogicExpr : Expr {  // operands joined by `and`, or by `or`
  LogicExpr(int l, bool is_or) : Expr(ExprKind::kLogic, l), is_or(is_or) {}
  bool is_or;
  std::vector<ExprPtr> operands;
};

struct CompareExpr : Expr {
  explicit CompareExpr(int l) : Expr(ExprKind::kCompare, l) {}
  enum class Op : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };
  struct Step {
    Op op;
    ExprPtr operand;
  };
  ExprPtr first;
  std::vector<Step> steps;
};

struct ConditionalExpr : Expr {
  explicit ConditionalExpr(int l) : Expr(ExprKind::kConditional, l) {}
  ExprPtr test, if_true, if_false;  // if_false may be null
};

struct AttributeExpr : Expr {
  AttributeExpr(int l, ExprPtr o, std::string n)
      : Expr(ExprKind::kAttribute, l), object(std::move(o)), name(std::move(n)) {}
  ExprPtr object;
  std::string name;
};

struct ItemExpr : Expr {
  ItemExpr(int l, ExprPtr o, ExprPtr k) : Expr(ExprKind::kItem, l), object(std::move(o)), key(std::move(k)) {}
  ExprPtr object, key;
};

struct SliceExpr : Expr {
  explicit SliceExpr(int l) : Expr(ExprKind::kSlice, l) {}
  ExprPtr object, start, stop, step;  // all but the object may be null
};

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr spread, spread_named;  // *x and **x; may be null
};

struct CallExpr : Expr {
  explicit CallExpr(int l) : Expr(ExprKind::kCall, l) {}
  ExprPtr callee;
  CallArguments arguments;
};

struct FilterExpr : Expr {
  FilterExpr(int l, std::string n) : Expr(ExprKind::kFilter, l), name(std::move(n)) {}
  ExprPtr operand;  // null at the start of a filter block: its text
  std::string name;
  const Filter* filter = nullptr;  // null: unknown, an error when evaluated
  CallArguments arguments;
};

struct TestExpr : Expr {
  TestExpr(int l, std::string n) : Expr(ExprKind::kTest, l), name(std::move(n)) {}
  ExprPtr operand;
  std::string name;
  const Test* test = nullptr;  // null: unknown, an error when evaluated
  CallArguments arguments;
};

// ---- statements ----

enum class StatementKind : uint8_t {
  kText,
  kPrint,
  kSet,
  kSetBlock,
  kIf,
  kFor,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kBreak,
  kContinue,
};

struct Statement {
  Statement(StatementKind k, int l) : kind(k), line(l) {}
  virtual ~Statement() = default;
  const StatementKind kind;
  const int line;
};
using Block = std::vector<std::unique_ptr<Statement>>;

/// What happens to the variables of a frame (a loop body, a macro, ...) on its entry.
struct FrameEntry {
  struct Load {
    enum class From : uint8_t { kNothing, kContext, kOuter };
    int index;
    From from;
    std::string name;  // kContext
    Slot outer;        // kOuter
  };
  std::vector<Load> loads;
  std::vector<int> owned;  // slots emptied when the frame is left
};

/// What can be assigned to: a name, an attribute of a namespace, or a tuple of them.
struct Target {
  int line = 0;
  std::string name;
  std::string attribute;      // of the namespace `name`; empty: the variable itself
  std::vector<Target> items;  // when is_tuple
  bool is_tuple = false;
  Slot slot;
};

struct TextStatement : Statement {
  TextStatement(int l, std::string t) : Statement(StatementKind::kText, l), text(std::move(t)) {}
  std::string text;
};

struct PrintStatement : Statement {
  PrintStatement(int l, ExprPtr e) : Statement(StatementKind::kPrint, l), value(std::move(e)) {}
  ExprPtr value;
};

struct SetStatement : Statement {
  explicit SetStatement(int l) : Statement(StatementKind::kSet, l) {}
  Target target;
  ExprPtr value;
};

struct SetBlockStatement : Statement {
  explicit SetBlockStatement(int l) : Statement(StatementKind::kSetBlock, l) {}
  Target target;
  ExprPtr filter;  // chain of FilterExpr over the text; may be null
  Block body;
  FrameEntry entry;
};

struct IfStatement : Statement {
  explicit IfStatement(int l) : Statement(StatementKind::kIf, l) {}
  struct Branch {
    ExprPtr test;
    Block body;
  };
  std::vector<Branch> branches;  // if, elif, elif, ...
  Block otherwise;
};

struct ForStatement : Statement {
  explicit ForStatement(int l) : Statement(StatementKind::kFor, l) {}
  Target target;
  ExprPtr iterable;
  ExprPtr test;  // may be null
  bool recursive = false;
  Block body, otherwise;

  // The test runs as a function of its own, with its own copy of the target.
  Target test_target;
  FrameEntry test_entry;
  int n_test_slots = 0;
  // So does a recursive loop.
  int n_slots = 0;
  Slot loop;  // the variable `loop`
  FrameEntry body_entry, otherwise_entry;
};

/// What macros and call blocks have in common.
struct MacroBody {
  struct Parameter {
    std::string name;
    ExprPtr default_value;  // may be null
    int index = -1;
  };
  std::string name;  // empty: a call block
  std::vector<Parameter> parameters;
  Block body;

  int n_slots = 0;
  FrameEntry entry;
  // Slots of the special variables, when the body uses them.
  int caller = -1, kwargs = -1, varargs = -1;
};

struct MacroStatement : Statement {
  explicit MacroStatement(int l) : Statement(StatementKind::kMacro, l) {}
  MacroBody macro;
  Slot slot;
};

struct CallBlockStatement : Statement {
  explicit CallBlockStatement(int l) : Statement(StatementKind::kCallBlock, l) {}
  ExprPtr call;  // a CallExpr; null: the body is called as it is (a generation tag)
  MacroBody macro;
};

struct FilterBlockStatement : Statement {
  explicit FilterBlockStatement(int l) : Statement(StatementKind::kFilterBlock, l) {}
  ExprPtr filter;  // chain of FilterExpr over the text
  Block body;
  FrameEntry entry;
};

struct WithStatement : Statement {
  explicit WithStatement(int l) : Statement(StatementKind::kWith, l) {}
  std::vector<std::pair<Target, ExprPtr>> bindings;
  Block body;
  FrameEntry entry;
};

struct JumpStatement : Statement {  // kBreak, kContinue
  JumpStatement(StatementKind k, int l) : Statement(k, l) {}
};

struct Template {
  // The strings of constants, which are destroyed after what refers to them. Without a Heap: shared by
  // renders.
  std::vector<std::unique_ptr<String>> strings;
  Block body;
  int n_slots = 0;
  FrameEntry entry;
};

}  // namespace forebay::jinja
