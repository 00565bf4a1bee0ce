"""Tables of templates for the statements of loop IR, in languages that have kernels of it.

Placeholders are those of `passkit.dialects.templates`.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from passkit.ir.loop import BarrierScope, Bind, CachePolicy, StorageScope


@frozen(kw_only=True)
class LoopTemplates:
    """The templates of loop IR.

    Attributes:
        kernel: the head of a kernel ``{name}`` with ``{params}``, in blocks of ``{threads}``
            threads, ``{x}`` times ``{y}``, of which ``{blocks}`` run at a time.
        size: the declaration of the argument of size ``{name}``.
        index_types: the types of index arithmetic by their bits.
        threads: the indices of blocks and threads.
        arrays: the declarations of arrays of ``{extent}`` elements, by where they are.
        spaces: the ``{space}`` of a pointer, by where its buffer is.
        loads: the vector loads of ``{width}`` elements from ``{at}`` to ``{to}``.
        store: a vector store of ``{width}`` elements from ``{source}`` to ``{at}``.
        store_stream: one that the caches should evict first.
        load_one: a load of one element; the same as of several if it is empty.
        store_one: a store of one element, in the same way.
        stream_one: the store of a ``{value}`` that the caches should evict first.
        barriers: the barriers by the threads that wait for each other.
        shuffle: the value ``{name}`` of the thread whose index differs by the bits ``{o}``; "" if
            warps exchange none, and wait in blocks only.
        address: the address of a pointer as an integer.
        fence: lets other blocks see what the block has stored.
        counters: the declaration of the counters of blocks.
        last_block: ends all but the last of ``{count}`` blocks that count themselves at
            ``{counter}``.
    """

    kernel: str
    size: str
    index_types: Mapping[int, str]
    threads: Mapping[Bind, str]
    arrays: Mapping[StorageScope, str]
    spaces: Mapping[StorageScope, str]
    loads: Mapping[CachePolicy, str]
    store: str
    store_stream: str
    load_one: str = ""
    store_one: str = ""
    stream_one: str
    barriers: Mapping[BarrierScope, str]
    shuffle: str = ""
    address: str
    fence: str = ""
    counters: str = ""
    last_block: str = ""
