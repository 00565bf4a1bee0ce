"""C++ for the CPU: 16 logical lanes of the prelude's vector types, tiles shared out by the caller."""

from pathlib import Path

from passkit.dialects.base import Dialect, Vectors, register_dialect

PRELUDE = Path(__file__).with_name("prelude")

CXX = register_dialect(
    Dialect(
        name="cxx",
        kernel=(
            'extern "C" void {name}(void *const *buf, const int64_t *size, int64_t begin, '
            "int64_t end, unsigned char *scratch)"
        ),
        buffer="{const}{type} *{name}",
        unpack="{const}{type} *const {name} = ({const}{type} *)buf[{k}];",
        unpack_size="const int64_t {name} = size[{k}];",
        scratch="{type} *const {name} = ({type} *)(scratch + {offset});",
        grid="for (int64_t {var} = begin; {var} < end; ++{var})",
        lane="for (int64_t {var} = {start}; {var} < {stop}; ++{var})",
        fold="const {type} {name} = fold({acc}, [](auto a, auto b) PK_INLINE {{ return {combine}; }});",
        cast="convert<{type}>({value})",
        infinity="__builtin_inf()",
        bits="__builtin_bit_cast({type}, {bits})",
        prefetch="__builtin_prefetch({at});",
        fence="stream_fence();",
        vectors=Vectors(
            type="{short}x16",
            bool_type="mask",
            loop="lanes({start}, {stop}, [&](int64_t {var}, auto m) PK_INLINE",
            loop4="lanes4({start}, {stop}, [&](int64_t {var}, auto m, auto k) PK_INLINE",
            fixed="fixed_lanes<{stop}>([&](int64_t {var}, auto m, auto k) PK_INLINE",
            loop_end="}});".replace("}}", "}"),
            load="load({at}, {mask})",
            load_strided="load_strided({at}, {stride}, {mask})",
            gather=(
                "gather<{type}>([&](int lane) PK_INLINE {{ const int64_t first = {var}; "
                "{{ const int64_t {var} = first + lane; return {buffer}[{index}]; }} }}, {mask})"
            ),
            store="store({at}, {value}, {mask});",
            stream="stream({at}, {value}, {mask});",
            store_strided="store_strided({at}, {stride}, {value}, {mask});",
            select="select({condition}, {a}, {b})",
            lane_value="({var} + lane_index())",
            both="{mask} & {condition}",
            only="{mask} & ~({condition})",
            divisor="const divisor<{type}> {name}({value});",
            accumulate="{acc} = select({mask}, {value}, {acc});",
        ),
    )
)
