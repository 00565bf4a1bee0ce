"""OpenCL C 1.2. A CUDA block is a work-group here, shared memory is local memory.

A work-group executes the rows of its tile one after the other, because sub-groups are optional. A
work-item accesses 16 bytes at a time; on a CPU it computes with vectors of the device's width. sin,
cos and tan of vectors are wrong below 1e-38 in PoCL 3, and not used.
"""

from itertools import product

from attrs import evolve

from passkit.dialects.base import NARROW_CASTS, Dialect, register_dialect
from passkit.dialects.loop_templates import LoopTemplates
from passkit.dialects.philox import PHILOX
from passkit.dialects.scalar_special import GAMMA, INVERSE_ERF, SERIES
from passkit.dialects.templates import AccessTemplates, PhaseTemplates, ThreadVectorTemplates
from passkit.dialects.vector_special import gamma_functions
from passkit.ir.features import MAXIMUM_NUMBER
from passkit.ir.loop import BarrierScope, Bind, CachePolicy, StorageScope

FLOATS = """\
static inline {t} absolute_{t}({t} x) {{ return as_{t}(as_{m}(x) & {magnitude}); }}
static inline {t} maximum_{t}({t} a, {t} b) {{ return a != a || a > b ? a : b; }}
static inline {t} minimum_{t}({t} a, {t} b) {{ return a != a || a < b ? a : b; }}
static inline {t} sigmoid_{t}({t} x) {{
  const {t} e = exp(-absolute_{t}(x));  // at most 1: the quotient may be denormal
  return (x < 0 ? e : 1) / (1 + e);
}}
static inline {t} scaled_{t}({t} x, {t} n) {{
  return ldexp(x, n > 5000 ? 5000 : n < -5000 ? -5000 : (int)n);
}}
"""

INTEGERS = """\
static inline {t} absolute_{t}({t} a) {{ return ({t})abs(a); }}
static inline {t} maximum_{t}({t} a, {t} b) {{ return a > b ? a : b; }}
static inline {t} minimum_{t}({t} a, {t} b) {{ return a < b ? a : b; }}
static inline {t} wrapped_add_{t}({t} a, {t} b) {{ return ({t})((ulong)a + (ulong)b); }}
static inline {t} wrapped_sub_{t}({t} a, {t} b) {{ return ({t})((ulong)a - (ulong)b); }}
static inline {t} wrapped_mul_{t}({t} a, {t} b) {{ return ({t})((ulong)a * (ulong)b); }}
static inline {t} cut_divide_{t}({t} a, {t} b) {{
  return b == 0 ? 0 : ({t})-1 < 0 && b == ({t})-1 ? 0 - a : a / b;
}}
static inline {t} fmod_{t}({t} a, {t} b) {{
  return b == 0 || (({t})-1 < 0 && b == ({t})-1) ? 0 : a % b;
}}
static inline {t} gcd_{t}({t} a, {t} b) {{
  ulong u = a < 0 ? 0 - (ulong)a : (ulong)a, v = b < 0 ? 0 - (ulong)b : (ulong)b;
  while (v) {{
    const ulong rest = u % v;
    u = v;
    v = rest;
  }}
  return ({t})u;
}}
static inline {t} whole_power_{t}({t} a, {t} n) {{
  if (n < 0) return a == 1 || a == ({t})-1 ? (n & 1 ? a : 1) : 0;
  ulong out = 1, factor = (ulong)a;
  for (ulong k = (ulong)n; k; k >>= 1) {{
    if (k & 1) out *= factor;
    factor *= factor;
  }}
  return ({t})out;
}}
static inline {t} left_shift_{t}({t} a, {t} n) {{
  return n < 0 || n >= 8 * sizeof({t}) ? 0 : ({t})((ulong)a << n);
}}
static inline {t} right_shift_{t}({t} a, {t} n) {{
  return n < 0 || n >= 8 * sizeof({t}) ? (a < 0 ? -1 : 0) : a >> n;
}}
"""

SATURATED = """\
static inline {t} saturated_{t}_{f}({f} x) {{ return x != x ? 0 : convert_{t}_sat(x); }}
"""

NARROW = """\
static inline float widen_f16(ushort u) { return vload_half(0, (const half *)&u); }
static inline ushort narrow_f16(float x) {
  ushort u;
  vstore_half_rte(x, 0, (half *)&u);
  return u;
}
static inline ushort narrow_f16_double(double x) {
  ushort u;
  vstore_half_rte(x, 0, (half *)&u);
  return u;
}
static inline float widen_bf16(ushort u) { return as_float((uint)u << 16); }
static inline ushort narrow_bf16(float x) {
  const uint u = as_uint(x);
  return (x != x ? u | 0x400000u : u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
static inline float rounded_f16(float x) { return widen_f16(narrow_f16(x)); }
static inline float rounded_bf16(float x) { return widen_bf16(narrow_bf16(x)); }
"""

SERIES_HEAD = """\
#define PK_SCALAR static inline
#define PK_TABLE __constant
#define PK_INFINITY INFINITY
#define PK_NAN NAN
"""

WHOLE = {
    "int8": "char",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "uint8": "uchar",
    "uint16": "ushort",
    "uint32": "uint",
    "uint64": "ulong",
}
REAL = {"float32": "float", "float64": "double"}


def _each(types: dict[str, str], *names: str) -> dict[str, str]:
    """Return the preamble's functions for each type."""
    return {f"{name}/{k}": f"{name}_{t}" for k, t in types.items() for name in names}


SPACES = ("global", "local")
COUNTS = (2, 4, 8, 16)
"""Elements that a vector may have."""
# By pointers to vectors that may lie anywhere: PoCL 3 makes single accesses of vload and vstore.
VECTOR = """\
static inline {t}{n} take_{space}_{t}{n}(__{space} const {t} *from, long left) {{
  typedef {t}{n} __attribute__((aligned(sizeof({t})))) anywhere;
  if (left >= {n}) return *(__{space} const anywhere *)from;
  {t}{n} some = {{ {zeros} }};
  for (int k = 0; k < left; ++k) (({t} *)&some)[k] = from[k];
  return some;
}}
static inline void put_{space}_{t}{n}(__{space} {t} *to, {t}{n} x, long left) {{
  typedef {t}{n} __attribute__((aligned(sizeof({t})))) anywhere;
  if (left >= {n}) {{
    *(__{space} anywhere *)to = x;
  }} else {{
    for (int k = 0; k < left; ++k) to[k] = (({t} *)&x)[k];
  }}
}}
"""
# Operators rather than fabs, min and select, which PoCL 3 does not inline.
FLOAT_VECTOR = """\
static inline {t}{n} absolute_{t}{n}({t}{n} x) {{
  return as_{t}{n}(as_{m}{n}(x) & {magnitude});
}}
static inline {t}{n} maximum_{t}{n}({t}{n} a, {t}{n} b) {{
  return (a != a) | (a > b) ? a : b;
}}
static inline {t}{n} minimum_{t}{n}({t}{n} a, {t}{n} b) {{
  return (a != a) | (a < b) ? a : b;
}}
static inline {t}{n} sigmoid_{t}{n}({t}{n} x) {{
  const {t}{n} e = exp(-absolute_{t}{n}(x));
  return (x < 0 ? e : ({t}{n})(1)) / (1 + e);
}}
"""
KEPT_VECTOR = """\
static inline {t}{n} keep_{t}{n}({t}{n} old, {t}{n} new, long left) {{
  return left >= {n} ? new : ({m}{n})({numbers}) < ({m}{n})(({m})left) ? new : old;
}}
"""
LONG_VECTOR = """\
static inline long{n} maximum_long{n}(long{n} a, long{n} b) {{ return a > b ? a : b; }}
static inline long{n} minimum_long{n}(long{n} a, long{n} b) {{ return a < b ? a : b; }}
"""
BITS = {"float": ("int", "0x7fffffff"), "double": ("long", "0x7fffffffffffffffl")}
"""The integers of a float's width, and the mask of all bits but the sign."""

# Local memory begins where numbers of its type may: bytes would begin anywhere, on a GPU off those.
KERNEL = "__kernel void {name}({params}, __local ulong2 *scratch, __local ulong2 *joined)"


def _vector_functions() -> str:
    """Return functions of vectors, with loads and stores of which some elements do not exist."""
    types = product({**WHOLE, **REAL}.values(), COUNTS, SPACES)
    texts = [
        VECTOR.format(t=t, n=n, space=space, zeros=", ".join("0" * n)) for t, n, space in types
    ]
    for n in COUNTS:
        numbers = ", ".join(map(str, range(n)))
        for t, (m, magnitude) in BITS.items():
            texts.append(FLOAT_VECTOR.format(t=t, n=n, m=m, magnitude=magnitude))
        texts.append(LONG_VECTOR.format(n=n))
        for t, m in (("float", "int"), ("double", "long"), ("long", "long")):
            texts.append(KEPT_VECTOR.format(t=t, n=n, m=m, numbers=numbers))
    return "".join(texts)


MASKS = {1: "char", 2: "short", 4: "int", 8: "long"}
TAKE = "take_{space}_{type}{count}({at}, {remaining})"
VECTORS = ThreadVectorTemplates(
    kind="{type}{count}",
    splat="({type}{count})({value})",
    convert="convert_{type}{count}({value})",
    select="({condition} ? {a} : {b})",
    load=TAKE,
    store="put_{space}_{type}{count}({at}, {value}, {remaining})",
    spaces=SPACES,
    element_numbers="{first} + ({type}{count})({numbers})",
    masked_update="keep_{type}{count}({old}, {new}, {remaining})",
    reduce_elements=(
        "{type} {name}_each[{count}];\n"
        "vstore{count}({name}, 0, {name}_each);\n"
        "for (int k = 0; k < {count}; ++k) {{\n"
        "  const {type} b = {name}_each[k];\n"
        "  {acc} = {combine};\n"
        "}}"
    ),
    masks=MASKS,
    calls={
        **{f: f for f in ("exp", "exp2", "expm1", "log", "log1p", "log2", "tanh", "erf", "sqrt")},
        **{f: f for f in ("rsqrt", "floor", "ceil", "trunc", "rint")},
        "exp_nonpositive": "exp",
        "abs": "absolute_{type}{count}",
        **{f: f + "_{type}{count}" for f in ("maximum", "minimum", "sigmoid")},
        # digamma has none: LLVM 14 takes forever, or has no code, for its conversion to float.
        "lgamma": "lgamma_{type}{count}",
    },
)
ACCESSES = AccessTemplates(
    whole="const long {name}_vectors = {value};",
    first="const long {name}_first = {at};",
    array="{type} {name}[{count}];",
    load="vstore{count}(*(__{space} const {type}{count} *)({at}), 0, {name});",
    load_any="vstore{count}(vload{count}(0, {at}), 0, {name});",
    load_some=f"vstore{{count}}({TAKE}, 0, {{name}});",
    store="*(__{space} {type}{count} *)({at}) = vload{count}(0, {name});",
    store_any="vstore{count}(vload{count}(0, {name}), 0, {at});",
    store_some="put_{space}_{type}{count}({at}, vload{count}(0, {name}), {remaining});",
    unroll="#pragma unroll",
    each="for (int {name}_k = 0; {name}_k < {count}; ++{name}_k)",
    element="const long {name} = {name}_first + {name}_k;",
    within="if ({name} < {stop})",
    rest="const long {name}_rest = {value};",
    aligned="(size_t)({at}) % sizeof({type}{count}) == 0",
    spaces=SPACES,
    vectors=VECTORS,
)

# Sub-groups are optional, and have no size that all devices agree upon: work-groups wait together.
LOOPS = LoopTemplates(
    kernel=("__kernel __attribute__((reqd_work_group_size({x}, {y}, 1))) void {name}({params})"),
    size="const long {name}_arg",
    index_types={32: "int", 64: "long"},
    threads={
        Bind.GRID: "(int)get_group_id(0)",
        Bind.THREAD_Y: "(int)get_local_id(1)",
        Bind.THREAD_X: "(int)get_local_id(0)",
    },
    arrays={
        StorageScope.SHARED: "__local {type} {name}[{extent}] __attribute__((aligned(16)));",
        StorageScope.REGISTER: "{type} {name}[{extent}];",
    },
    spaces={StorageScope.SHARED: "__local", StorageScope.GLOBAL: "__global"},
    loads=dict.fromkeys(
        CachePolicy, "vstore{width}(*({space} const {type}{width} *)({at}), 0, {to});"
    ),
    load_one="*({to}) = *({at});",
    store="*({space} {type}{width} *)({at}) = vload{width}(0, {source});",
    store_stream="*({space} {type}{width} *)({at}) = vload{width}(0, {source});",
    store_one="*({at}) = *({source});",
    stream_one="*({at}) = {value};",
    barriers={
        BarrierScope.BLOCK: "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    },
    address="(ulong){name}",
)

# For devices whose sub-groups are known to have the items of a warp.
SHUFFLE_LOOPS = evolve(
    LOOPS,
    barriers={
        BarrierScope.WARP: "sub_group_barrier(CLK_LOCAL_MEM_FENCE);",
        **LOOPS.barriers,
    },
    shuffle="sub_group_shuffle_xor({name}, {o})",
)

OPENCL = register_dialect(
    Dialect(
        name="opencl",
        language="opencl",
        kernel=KERNEL,
        phases=PhaseTemplates(function=KERNEL),
        buffer="__global {const}{type} *restrict {name}",
        aliased="__global {const}{type} *{name}",
        size="const long {name}",
        scratch=(
            "__local {type} *const {name} = "
            "(__local {type} *)((__local uchar *)scratch + {offset});"
        ),
        grid="for (long {var} = get_group_id(0); {var} < {stop}; {var} += get_num_groups(0))",
        lane=(
            "for (long {var} = {start} + get_local_id(0); {var} < {stop}; "
            "{var} += get_local_size(0))"
        ),
        thread="for (long {var} = {start}; {var} < {stop}; ++{var})",
        fold=(
            "__local {type} *{name}_all = (__local {type} *)joined;\n"
            "{name}_all[get_local_id(0)] = {acc};\n"
            "for (uint o = get_local_size(0) / 2; o; o >>= 1) {{\n"
            "  barrier(CLK_LOCAL_MEM_FENCE);\n"
            "  if (get_local_id(0) < o) {{\n"
            "    const {type} a = {name}_all[get_local_id(0)];\n"
            "    const {type} b = {name}_all[get_local_id(0) + o];\n"
            "    {name}_all[get_local_id(0)] = {combine};\n"
            "  }}\n"
            "}}\n"
            "barrier(CLK_LOCAL_MEM_FENCE);\n"
            "const {type} {name} = {name}_all[0];\n"
            "barrier(CLK_LOCAL_MEM_FENCE);"
        ),
        first="if (get_local_id(0) == 0)",
        wait="barrier({memory});",
        memory=("CLK_LOCAL_MEM_FENCE", "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE"),
        accesses=ACCESSES,
        loops=LOOPS,
        shuffle_loops=SHUFFLE_LOOPS,
        saturate="saturated_{type}_{source}({value})",
        wide="l",  # a long long has 128 bits
        truth="(({value}) != 0)",
        bits="as_{type}({bits})",
        casts={**NARROW_CASTS, "float64/float16": "narrow_f16_double({value})"},
        rounded="rounded_{short}({value})",
        wraps=True,
        # A bool is no type of a buffer's element, and a half only of a pointer's.
        scalars={"bool": "uchar", **WHOLE, **REAL, "float16": "ushort", "bfloat16": "ushort"},
        calls={
            **{f"abs/{k}": f"absolute_{t}" for k, t in WHOLE.items()},  # abs is unsigned
            f"{MAXIMUM_NUMBER}/float32": "fmax",
            "maximum": "max",
            "minimum": "min",
            **{f"abs/{k}": f"absolute_{t}" for k, t in REAL.items()},
            **_each(WHOLE, "maximum", "minimum"),
            **_each(REAL, "maximum", "minimum", "sigmoid"),
            **_each(REAL, "digamma", "trigamma", "erfinv", "erfcinv"),
            **_each(REAL, "igamma", "igammac", "betainc", "zeta"),
            "lgamma/float64": "lgamma_double",
            **{f"ldexp/{k}": f"scaled_{t}" for k, t in REAL.items()},
            **_each(WHOLE, "cut_divide", "fmod", "gcd", "whole_power", "left_shift", "right_shift"),
            **_each(WHOLE, "wrapped_add", "wrapped_sub", "wrapped_mul"),
        },
        preamble=NARROW
        + "".join(FLOATS.format(t=t, m=m, magnitude=bits) for t, (m, bits) in BITS.items())
        + "".join(INTEGERS.format(t=t) for t in WHOLE.values())
        + _vector_functions()
        + gamma_functions(COUNTS)
        + "".join(SATURATED.format(t=t, f=f) for t in WHOLE.values() for f in REAL.values())
        + (GAMMA + INVERSE_ERF).format(fn="static inline")
        + SERIES_HEAD
        + SERIES
        + PHILOX.format(fn="static inline", word="ulong", long="long"),
    )
)
