#include "tokenizer/jinja/heap.h"

#include "tokenizer/jinja/failure.h"

namespace forebay::jinja {

void Object::destroy() {
  heap_->destroy(*this);
}

void Heap::adopt(Object& object) {
  object.heap_ = this;
  object.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &object;
  first_ = &object;
}

void Heap::charge(Object& object, uint64_t n_bytes) {
  if (object.heap_ == nullptr) return;
  object.n_bytes_ += n_bytes;
  held_bytes_ += n_bytes;
  if (held_bytes_ > limit_bytes_) fail("values hold more than {} bytes", limit_bytes_);
}

void Heap::destroy(Object& object) {
  if (object.previous_ != nullptr) object.previous_->next_ = object.next_;
  if (object.next_ != nullptr) object.next_->previous_ = object.previous_;
  if (first_ == &object) first_ = object.next_;
  object.next_ = dying_;
  dying_ = &object;
  if (destroying_) return;
  destroying_ = true;
  while (dying_ != nullptr) {
    Object* next = dying_;
    dying_ = next->next_;
    held_bytes_ -= next->n_bytes_;
    delete next;  // may put its children into dying_
  }
  destroying_ = false;
}

Heap::~Heap() {
  // What is left holds itself in cycles. Once all are empty, nothing is held.
  for (Object* object = first_; object != nullptr;) {
    object->retain();
    object->forget();
    Object* next = object->next_;
    object->release();
    object = next;
  }
}

}  // namespace forebay::jinja
