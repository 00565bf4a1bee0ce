// What every kernel needs: vectors, masks, memory, loops, arithmetic.
#ifndef PK_CORE_H
#define PK_CORE_H
#ifndef PK_TYPES_H
#include "types.h"
#endif
#ifndef PK_MASKS_H
#include "masks.h"
#endif
#ifndef PK_MEMORY_H
#include "memory.h"
#endif
#ifndef PK_LOOPS_H
#include "loops.h"
#endif
#ifndef PK_ARITHMETIC_H
#include "arithmetic.h"
#endif
#endif
