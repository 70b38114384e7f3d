/// Reference-counted objects of one render, and the account of the bytes they hold.
///
/// Templates can build cycles (a list appended to itself, a macro kept by the frame it captured), so the Heap
/// knows every object and empties those that are left when the render ends. Dropping the last reference to a
/// long chain frees it in a loop, not by recursion. Objects that belong to a parsed template have no Heap and
/// are not counted: renders on several threads share them.
///
/// Confined to one thread.
#pragma once

#include <cstdint>
#include <utility>

namespace forebay::jinja {

class Heap;

class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  /// Drops every reference held.
  virtual void forget() {}

  void retain() {
    if (heap_ != nullptr) ++n_references_;
  }
  void release() {
    if (heap_ != nullptr && --n_references_ == 0) destroy();
  }

 private:
  friend class Heap;
  void destroy();

  Heap* heap_ = nullptr;
  Object* previous_ = nullptr;
  Object* next_ = nullptr;
  uint64_t n_bytes_ = 0;
  uint32_t n_references_ = 0;
};

/// An owning reference; null only after a move or when default constructed.
template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_ != nullptr) object_->retain();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->release();
  }

  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

class Heap {
 public:
  Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap();

  template <typename T, typename... Args>
  Ref<T> make(Args&&... args) {
    T* object = new T(std::forward<Args>(args)...);
    adopt(*object);
    Ref<T> reference(object);
    charge(*object, sizeof(T));
    return reference;
  }

  /// Adds to what `object` is known to hold. Fails when all objects together hold more than the limit.
  void charge(Object& object, uint64_t n_bytes);

  /// Sets the limit on what is held from now on; before, there is none.
  void limit_growth(uint64_t n_bytes) { limit_bytes_ = held_bytes_ + n_bytes; }

 private:
  friend class Object;
  void adopt(Object& object);
  void destroy(Object& object);

  uint64_t limit_bytes_ = UINT64_MAX;
  uint64_t held_bytes_ = 0;
  Object* first_ = nullptr;
  Object* dying_ = nullptr;  // chained by next_, out of the list of the living
  bool destroying_ = false;
};

}  // namespace forebay::jinja
