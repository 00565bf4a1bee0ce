"""C++ for the CPU: vectors of the prelude, 16 elements each; the caller distributes the tiles."""

from pathlib import Path

from passkit.dialects.base import SCALARS, Dialect, register_dialect
from passkit.dialects.templates import (
    PartTemplates,
    PhaseTemplates,
    RowGroupTemplates,
    RowTemplates,
    VectorTemplates,
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
        vectors=VectorTemplates(
            let="const auto {name} = {value};",
            loop="lanes({start}, {stop}, [&](int64_t {var}, auto m) PK_INLINE",
            whole_loop="whole_lanes({start}, {stop}, [&](int64_t {var}, auto m) PK_INLINE",
            interleaved_loop="lanes<{width}>({start}, {stop}, [&](int64_t {var}, auto m) PK_INLINE",
            aligned_loop=(
                "aligned_lanes<{width}>({at}, {start}, {stop}, [&](int64_t {var}, auto m) PK_INLINE"
            ),
            unrolled_loop="fixed_lanes<{stop}>([&](int64_t {var}, auto m, auto k) PK_INLINE",
            paired_loop="paired_lanes<{stop}>([&](int64_t {var}, auto m, auto k) PK_INLINE",
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
            element_number="({var} + lane_index(m))",
            mask_and="{mask} & {condition}",
            mask_and_not="{mask} & ~({condition})",
            divisor="const divisor<{type}> {name}({value});",
            known_divisor="const known_divisor<{type}> {name}({value}, {high}, {low});",
            masked_divisor="{name}.among({mask})",
            array="vec<{type}> {name}[{count}];",
            accumulator="reduction<{type}, {width}>({identity}, {function})",
            function="[](auto a, auto b) PK_INLINE {{ return {combine}; }}",
            functions={"a + b": "adding{}", "a * b": "multiplying{}"},
            extreme_accumulator="{which}<{type}, {width}>()",
            sum_accumulator="summing<{width}>()",
            declare_accumulator="auto {name} = {accumulator};",
            accumulate="{acc}.take({value}, {mask});",
            finish="const {type} {name} = {acc}.result();",
            block_loop=(
                "for (int64_t {var}_low = {start}; {var}_low < {stop}; {var}_low += {count})"
            ),
            block_end=(
                "const int64_t {var}_high = {var}_low + {count} < {stop} ? "
                "{var}_low + {count} : {stop};"
            ),
            transposed_load=(
                "alignas(64) {type} {name}_block[{block}];\n"
                "turn({name}_block, {at}, {stride}, {count}, m);"
            ),
            wide_transposed_load=(
                "alignas(64) {type} {name}[{max_count} * {width}];\n"
                "turn_rows<{width}>({name}, {at}, {stride}, {count}, {points});"
            ),
            dense_transposed_load=(
                "alignas(64) {type} {name}_block[{vector} * {count}];\n"
                "columns_apart<{count}>({name}_block, {at}, m);"
            ),
            prefetch_rows="ahead({at}, {stride}, {count}, m);",
            transposed_row="const auto {name} = load({name}_block + {vector} * {place}, m);",
            transposed_block="alignas(64) {type} {name}_block[{vector} * {count}];",
            put_row="store({name}_block + {vector} * {place}, {value}, m);",
            transposed_store="columns_together<{count}>({at}, {name}_block, m);",
            declare="auto {name} = {value};",
            scan="auto {name} = running<{type}, {exclusive}, {reversed}>({identity}, {function});",
            scan_vector="const auto {name} = {scan}.take({value}, {mask});",
            columns="const auto {name} = load_columns<{count}>({at}, {mask});",
            column="{name}[{k}]",
            reversed_loop="lanes_down({start}, {stop}, [&](int64_t {var}, auto m) PK_INLINE",
            rows=RowTemplates(
                row_results="auto {name}_rows = reductions_of_rows<{max_rows}>({accumulator});",
                begin_row="auto {name}_lanes = {name}_rows.begin();",
                end_row="{name}_rows.end({row}, {name}_lanes);",
                store_results="{name}_rows.results({to}, {count});",
                reciprocals=(
                    "const divisors_of_rows<{type}, {max_rows}> {name}_rows({buffer}, {count});"
                ),
                reciprocal="const auto {name} = {name}_rows[{row}];",
            ),
            row_groups=RowGroupTemplates(
                rows=RowTemplates(
                    row_results=(
                        "auto {name}_rows = reductions_of_pairs<{max_rows}>({accumulator});"
                    ),
                    begin_row="auto {name}_lanes = {name}_rows.begin(rows);",
                    end_row="{name}_rows.end({row}, {name}_lanes);",
                    store_results="{name}_rows.results({to}, {count});",
                    reciprocals=(
                        "const divisors_of_rows<{type}, {max_rows}> {name}_rows({buffer}, {count});"
                    ),
                    reciprocal="const auto {name} = rows.divisors({name}_rows, {row});",
                ),
                pair_loop=(
                    "pairs_of_rows<{length}{even}>({start}, {rows}, "
                    "[&](int64_t {var}, auto rows) PK_INLINE"
                ),
                any_loop=(
                    "groups_of_rows<{length}>({start}, {rows}, "
                    "[&](int64_t {var}, auto rows) PK_INLINE"
                ),
                even=", true",
                end="});",
                vector_loop="lanes_of_rows(rows, [&](int64_t {var}, auto m, auto k) PK_INLINE",
                values="const auto {name}_pair = rows.values({at});",
                value="const auto {name} = {name}_pair.at(k);",
                load="load_apart({at}, {stride}, {mask}, k)",
                store="store_apart({at}, {stride}, {value}, {mask}, k);",
            ),
        ),
    )
)
