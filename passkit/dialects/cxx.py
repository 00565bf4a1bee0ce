"""C++ for the CPU: 16 lanes of the prelude's vector types, tiles shared out by the caller."""

from pathlib import Path

from passkit.dialects.base import (
    SCALARS,
    Dialect,
    PairTemplates,
    PartTemplates,
    PhaseTemplates,
    RowTemplates,
    Vectors,
    register_dialect,
)

PRELUDE = Path(__file__).with_name("prelude")

CXX = register_dialect(
    Dialect(
        name="cxx",
        language="cxx",
        kernel=(
            'extern "C" void {name}(void *const *buf, const int64_t *size, int64_t begin, '
            "int64_t end, unsigned char *scratch)"
        ),
        buffer="{const}{type} *{name}",
        unpack="{const}{type} *const {name} = ({const}{type} *)buf[{k}];",
        unpack_size="const int64_t {name} = size[{k}];",
        scratch="{type} *const {name} = ({type} *)(scratch + {offset});",
        whole_tiles="assume_tiles(begin, end);",
        grid="for (int64_t {var} = begin; {var} < end; ++{var})",
        counter="{type} {name} = {value};",
        lane="for (int64_t {var} = {start}; {var} < {stop}; ++{var})",
        cast="convert<{type}>({value})",
        casts={
            **dict.fromkeys(["float16/float32", "bfloat16/float32"], "widen({value})"),
            **dict.fromkeys(["float32/float16", "float64/float16"], "narrow<{type}>({value})"),
            "float32/bfloat16": "narrow<{type}>({value})",
        },
        rounded="rounded<{type}>({value})",
        calls={
            "nextafter_f16": "neighbour<half>",
            "nextafter_bf16": "neighbour<bfloat>",
            "exp_nonpositive/float32": "exp_nonpositive",
        },
        scalars={**SCALARS, "float16": "half", "bfloat16": "bfloat"},
        infinity="__builtin_inf{suffix}()",
        bits="__builtin_bit_cast({type}, {bits})",
        product="dot(matrix{{{c}}}, matrix{{{a}}}, matrix{{{b}}}, {m}, {n}, {k});",
        parts=PartTemplates(
            function=(
                "static void {name}(void *const *buf, const int64_t *size, int64_t begin, "
                "int64_t end, unsigned char *scratch)"
            ),
            call=(
                "if (begin < {last} && end > {first}) {{\n"
                "  void *const bufs[] = {{{buffers}}};\n"
                "  const int64_t sizes[] = {{{sizes}}};\n"
                "  {name}(bufs, sizes, {begin}, {end}, scratch);\n"
                "}}"
            ),
            buffer="buf[{k}]",
            size="size[{k}]",
        ),
        phases=PhaseTemplates(
            function=(
                "static void {name}(void *const *buf, const int64_t *size, int64_t begin, "
                "int64_t end, unsigned char *scratch)"
            ),
            turn="if (size[{k}] == {phase}) {function}(buf, size, begin, end, scratch);",
        ),
        prefetch="prefetch({at}, {mask});",
        fence="stream_fence();",
        compiled_here=True,
        vectors=Vectors(
            local="const auto {name} = {value};",
            loop="lanes({start}, {stop}, [&](int64_t {var}, auto m) PK_INLINE",
            whole_loop="whole_lanes({start}, {stop}, [&](int64_t {var}, auto m) PK_INLINE",
            pack_loop="lanes<{lanes}>({start}, {stop}, [&](int64_t {var}, auto m) PK_INLINE",
            aligned_loop=(
                "aligned_lanes<{lanes}>({at}, {start}, {stop}, [&](int64_t {var}, auto m) PK_INLINE"
            ),
            fixed="fixed_lanes<{stop}>([&](int64_t {var}, auto m, auto k) PK_INLINE",
            paired="paired_lanes<{stop}>([&](int64_t {var}, auto m, auto k) PK_INLINE",
            loop_end="});",
            load="load({at}, {mask})",
            load_one="load_one({at}, {mask})",
            load_second="load_second({at}, {mask})",
            load_back="load_back({at}, {mask})",
            load_strided="load_strided({at}, {stride}, {mask})",
            gather=(
                "gather<{type}>([&](int lane) PK_INLINE {{ const int64_t first = {var}; "
                "{{ const int64_t {var} = first + lane; return {buffer}[{index}]; }} }}, {mask})"
            ),
            gather_at="gather_at({buffer}, {index}, {mask})",
            store="store({at}, {value}, {mask});",
            stream="stream({at}, {value}, {mask});",
            store_strided="store_strided({at}, {stride}, {value}, {mask});",
            select="select({condition}, {a}, {b})",
            branch="({condition} ? {a} : {b})",
            splat="splat<{type}>({value}, {like})",
            lane_value="({var} + lane_index(m))",
            both="{mask} & {condition}",
            only="{mask} & ~({condition})",
            divisor="const divisor<{type}> {name}({value});",
            known_divisor="const known_divisor<{type}> {name}({value}, {high}, {low});",
            among="{name}.among({mask})",
            array="vec<{type}> {name}[{count}];",
            folding="folding<{type}, {lanes}>({identity}, {function})",
            function="[](auto a, auto b) PK_INLINE {{ return {combine}; }}",
            functions={"a + b": "adding{}", "a * b": "multiplying{}"},
            extreme="{which}<{type}, {lanes}>()",
            summing="summing<{lanes}>()",
            begin="auto {name} = {fold};",
            take="{acc}.take({value}, {mask});",
            result="const {type} {name} = {acc}.result();",
            block="for (int64_t {var}_low = {start}; {var}_low < {stop}; {var}_low += {turns})",
            block_end=(
                "const int64_t {var}_high = {var}_low + {turns} < {stop} ? "
                "{var}_low + {turns} : {stop};"
            ),
            turn=(
                "alignas(64) {type} {name}_block[{block}];\n"
                "turn({name}_block, {at}, {stride}, {turns}, m);"
            ),
            turn_rows=(
                "alignas(64) {type} {name}[{most} * {width}];\n"
                "turn_rows<{width}>({name}, {at}, {stride}, {turns}, {lanes});"
            ),
            apart=(
                "alignas(64) {type} {name}_block[{vector} * {turns}];\n"
                "columns_apart<{turns}>({name}_block, {at}, m);"
            ),
            ahead="ahead({at}, {stride}, {turns}, m);",
            turned="const auto {name} = load({name}_block + {vector} * {place}, m);",
            room="alignas(64) {type} {name}_block[{vector} * {turns}];",
            put="store({name}_block + {vector} * {place}, {value}, m);",
            together="columns_together<{turns}>({at}, {name}_block, m);",
            total="auto {name} = {value};",
            running="auto {name} = running<{type}, {exclusive}, {down}>({identity}, {function});",
            scan="const auto {name} = {running}.take({value}, {mask});",
            columns="const auto {name} = load_columns<{count}>({at}, {mask});",
            column="{name}[{k}]",
            down_loop="lanes_down({start}, {stop}, [&](int64_t {var}, auto m) PK_INLINE",
            rows=RowTemplates(
                folds="auto {name}_rows = folds_of_rows<{most}>({fold});",
                begin="auto {name}_lanes = {name}_rows.begin();",
                end="{name}_rows.end({row}, {name}_lanes);",
                results="{name}_rows.results({to}, {rows});",
                divisors="const divisors_of_rows<{type}, {most}> {name}_rows({buffer}, {rows});",
                divisor="const auto {name} = {name}_rows[{row}];",
            ),
            pairs=PairTemplates(
                rows=RowTemplates(
                    folds="auto {name}_rows = folds_of_pairs<{most}>({fold});",
                    begin="auto {name}_lanes = {name}_rows.begin(rows);",
                    end="{name}_rows.end({row}, {name}_lanes);",
                    results="{name}_rows.results({to}, {rows});",
                    divisors=(
                        "const divisors_of_rows<{type}, {most}> {name}_rows({buffer}, {rows});"
                    ),
                    divisor="const auto {name} = rows.divisors({name}_rows, {row});",
                ),
                loop=(
                    "pairs_of_rows<{length}{even}>({start}, {rows}, "
                    "[&](int64_t {var}, auto rows) PK_INLINE"
                ),
                bundles=(
                    "bundles_of_rows<{length}>({start}, {rows}, "
                    "[&](int64_t {var}, auto rows) PK_INLINE"
                ),
                even=", true",
                end="});",
                fixed="lanes_of_rows(rows, [&](int64_t {var}, auto m, auto k) PK_INLINE",
                values="const auto {name}_pair = rows.values({at});",
                value="const auto {name} = {name}_pair.at(k);",
                load="load_apart({at}, {stride}, {mask}, k)",
                store="store_apart({at}, {stride}, {value}, {mask}, k);",
            ),
        ),
    )
)
