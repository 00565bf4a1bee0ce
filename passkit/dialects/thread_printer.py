"""The printer of loops over threads: a template for each statement of `passkit.ir.threads`.

It takes no decisions: the text follows from the statements alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from passkit.ast.stage import Dot, Let, Loop, Matrix, Prefetch, Store
from passkit.dialects.body import Body
from passkit.dialects.expressions import ATOM
from passkit.dialects.templates import AccessTemplates
from passkit.dialects.thread_vector_printer import ThreadVectorPrinter
from passkit.ir.loop import Assign, Declare
from passkit.ir.rewrite import substitute
from passkit.ir.threads import (
    AccessArray,
    AccessFor,
    Block,
    ElementFor,
    ExtentLet,
    FinishReduction,
    MatrixProduct,
    OpenArray,
    RowFor,
    SequentialFor,
    StoreArray,
    StoreOnce,
    ThreadFor,
    ThreadStmt,
    VectorThreadFor,
    first_of,
    rest_of,
)


class ThreadPrinter:
    """Adds statements of threads to the body of a kernel.

    ``access`` is the `AccessFor` around the current statement.
    """

    def __init__(self, body: Body) -> None:
        self.body, self.scalars, self.dialect = body, body.scalars, body.dialect
        self.access: AccessFor | None = None

    def print(self, statements: Iterable[ThreadStmt]) -> None:
        """Add statements in order."""
        for s in statements:
            self._statement(s)

    def _statement(self, s: ThreadStmt) -> None:
        """Add a statement."""
        body = self.body
        match s:
            case Let():
                body.let(s)
            case ExtentLet(var, value):
                body.let(Let(var, value))
                self.scalars.extents.add(var.name)
            case Store():
                body.store(s)
            case StoreOnce(store):
                body.store_once(store)
            case Prefetch():
                pass  # other threads compute while one waits for memory
            case Declare(var, value):
                kind = self.dialect.type_of(var.dtype)
                body.line(f"{kind} {var.name} = {self.scalars.expr(value)};")
            case Assign(var, value):
                body.line(f"{var.name} = {self.scalars.expr(value)};")
            case FinishReduction():
                self._finish(s)
            case OpenArray() | StoreArray():
                self._array(s)
            case MatrixProduct(dot):
                self._product(dot)
            case VectorThreadFor():
                ThreadVectorPrinter(body, s).print()
            case _:
                self._nested(s)

    def _nested(self, s: ThreadStmt) -> None:
        """Add a statement that has others inside."""
        body = self.body
        match s:
            case RowFor():
                self._rows(s)
            case SequentialFor(loop, inside, unroll):
                if unroll:
                    body.line(f"{self._templates.unroll} {unroll}")
                body.loop(self.dialect.thread_reversed if loop.down else self.dialect.thread, loop)
                self.print(inside)
                body.close()
            case ThreadFor():
                self._threads(s)
            case AccessFor():
                self._access_loop(s)
            case ElementFor():
                self._elements(s)
            case Block(inside):
                body.scope()
                self.print(inside)
                body.close()

    # Loops.

    def _rows(self, s: RowFor) -> None:
        """Add loops over rows, which all threads execute one after the other."""
        for x in s.loops:
            self.body.loop(self.dialect.thread, x)
        self.print(s.body)
        for _ in s.loops:
            self.body.close()

    def _threads(self, s: ThreadFor) -> None:
        """Add a loop whose iterations are shared out over threads."""
        body, loop = self.body, s.loop
        body.scalars.positions.add(loop.var.name)
        start, stop = self.scalars.expr(loop.start), self.scalars.expr(loop.stop)
        body.open_loop(self.dialect.lane, var=loop.var.name, start=start, stop=stop)
        self.print(s.body)
        body.close()

    def _access_loop(self, s: AccessFor) -> None:
        """Add a loop with vector accesses and the rest of its elements, in a scope of its own."""
        body, t, loop = self.body, self._templates, s.loop
        around, self.access = self.access, s
        name, count = loop.var.name, s.count
        body.scalars.positions.add(name)
        start, stop = self._ends(loop)
        length = stop if start == "0" else f"{stop} - {start}"
        length += f" + {count - 1}" * s.is_ragged
        whole = f"{length} / {count}" if length == stop else f"({length}) / {count}"
        body.scope()
        body.line(t.whole.format(name=name, value=self._tested(s, whole)))
        lane = self.dialect.lane
        body.open_loop(lane, var=f"{name}_vector", start="0", stop=f"{name}_vectors")
        body.scalars.positions.add(first_of(loop).name)
        first = f"{name}_vector * {count}"
        at = first if start == "0" else f"{start} + {first}"
        body.line(t.first.format(name=name, at=at))
        self.print(s.body)
        body.close()
        covered = f"{name}_vectors * {count}"
        value = covered if start == "0" else f"{start} + {covered}"
        if s.is_ragged:
            value = f"{name}_vectors ? {stop} : {start}"
        body.line(t.rest.format(name=name, value=value))
        self.access = around
        self._rest(s)
        body.close()

    def _rest(self, s: AccessFor) -> None:
        """Add the loop over the elements that are in no access."""
        assert s.rest.loop.start == rest_of(s.loop)
        self._threads(s.rest)

    def _elements(self, s: ElementFor) -> None:
        """Add the loop over the elements of an iteration."""
        body, t, access = self.body, self._templates, self._access
        name = access.loop.var.name
        body.line(t.unroll)
        body.open(t.each.format(name=name, count=access.count))
        if s.is_numbered:
            body.line(t.element.format(name=name))
        if access.is_ragged:
            body.open(t.within.format(name=name, stop=self._ends(access.loop)[1]))
        self.print(s.body)
        if access.is_ragged:
            body.close()
        body.close()

    def _ends(self, loop: Loop) -> tuple[str, str]:
        """Return the first value of a loop's variable and its end."""
        start, stop = (self.scalars.expr(x, ATOM) for x in (loop.start, loop.stop))
        return start, stop

    def _tested(self, s: AccessFor, whole: str) -> str:
        """Return the number of iterations: none where they would not begin as accesses need."""
        t = self._templates
        if s.is_by_size:
            texts = [self.scalars.expr(x, ATOM) for x in s.multiples]
            sizes = f"({' | '.join(texts)})" if texts[1:] else "".join(texts)
            return f"{sizes} % {s.count} == 0 ? {whole} : 0" if texts else whole
        tests = dict.fromkeys(
            t.aligned.format(at=self.scalars.address(a.buffer, a.index), **self._texts(a))
            for a in s.starts
        )
        return f"{' && '.join(tests)} ? {whole} : 0"

    # Arrays.

    def _array(self, s: OpenArray | StoreArray) -> None:
        """Add a statement about an array of an iteration."""
        body, t = self.body, self._templates
        match s:
            case OpenArray(array, loads):
                body.line(t.array.format(name=array.name, **self._texts(array)))
                if loads:
                    body.line(self._load(array))
            case StoreArray(array):
                body.line(self._accessed(array, (t.store, t.store_any, t.store_some)))

    def _load(self, array: AccessArray) -> str:
        """Return the load of an array."""
        t = self._templates
        return self._accessed(array, (t.load, t.load_any, t.load_some))

    def _accessed(self, array: AccessArray, templates: tuple[str, str, str]) -> str:
        """Return an access: at an aligned address, at any, or at any and of some elements."""
        s = self._access
        first = first_of(s.loop)
        index = substitute(array.index, {s.loop.var.name: first})
        at = self.scalars.address(array.buffer, index)
        template = templates[s.is_by_size + s.is_ragged]
        remaining = f"{self._ends(s.loop)[1]} - {first.name}"
        return template.format(name=array.name, at=at, remaining=remaining, **self._texts(array))

    def _texts(self, array: AccessArray) -> dict[str, str | int]:
        """Return the values of placeholders for the elements of an array."""
        space = self._templates.spaces[array.buffer in self.scalars.scratch]
        kind = self.dialect.type_of(array.dtype)
        return {"type": kind, "count": self._access.count, "space": space}

    # Reductions and products.

    def _finish(self, s: FinishReduction) -> None:
        """Add the end of a reduction: one number of those of all threads."""
        text = self.dialect.fold.format(
            type=self.dialect.type_of(s.var.dtype),
            name=s.var.name,
            acc=s.partial.name,
            combine=self.scalars.expr(s.combine),
        )
        for line in text.splitlines():
            self.body.line(line)

    def _product(self, dot: Dot) -> None:
        """Add a product of matrices."""
        matrices = {name: self._matrix(getattr(dot, name)) for name in "abc"}
        sizes = {name: self.scalars.expr(getattr(dot, name)) for name in "mnk"}
        self.body.line(self.dialect.product.format(**matrices, **sizes))

    def _matrix(self, x: Matrix) -> str:
        """Return where a matrix begins, and its strides."""
        strides = ", ".join(map(self.scalars.expr, (x.down, x.along)))
        return f"{self.scalars.address(x.buffer, x.start)}, {strides}"

    # Templates of the language.

    @property
    def _access(self) -> AccessFor:
        """The loop with vector accesses around the current statement."""
        assert self.access is not None
        return self.access

    @property
    def _templates(self) -> AccessTemplates:
        """The templates of accesses."""
        assert self.dialect.accesses is not None  # else no pass makes statements of them
        return self.dialect.accesses
