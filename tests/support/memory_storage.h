#pragma once

#include "core/memory_storage.h"
