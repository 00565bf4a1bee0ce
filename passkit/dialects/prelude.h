// The whole prelude; see prelude/core.h and its neighbours for the sections.
#pragma once
#include "prelude/core.h"
#include "prelude/math_f32.h"
#include "prelude/math_f64.h"
#include "prelude/integer.h"
#include "prelude/divisor.h"
