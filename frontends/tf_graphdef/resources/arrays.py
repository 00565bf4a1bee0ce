"""TensorArrays, as TensorFlow 1 has them: the flow that orders their uses carries the items."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.frontends.tf_graphdef.opaque import Anything
from passkit.frontends.tf_graphdef.resources import lists
from passkit.frontends.tf_graphdef.scope import Site
from passkit.values.dtype import dtype_of


@lists.on_lists("TensorArrayV3", inputs=1)
def _array(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    """The handle, and the flow: both are the list as it is at first."""
    count = site.call.integer(site.value(inputs[0]), "size")
    empty = lists.empty(site, count, site.call.dtype("dtype"), None)
    return empty, empty


@lists.on_lists("TensorArrayWriteV3", inputs=4)
def _write(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    items = lists.the_list(site, inputs[3])
    at = lists.place(site, items, inputs[1], resize=True)
    return (lists.put(site, items, at, site.value(inputs[2])),)


@lists.on_lists("TensorArrayReadV3", inputs=3)
def _read(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    items = lists.the_list(site, inputs[2])
    return (lists.item_of(site, items, lists.place(site, items, inputs[1])),)


@lists.on_lists("TensorArrayScatterV3", inputs=4)
def _scatter(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    items = lists.the_list(site, inputs[3])
    return (lists.scattered(site, items, inputs[1], site.value(inputs[2])),)


@lists.on_lists("TensorArrayGatherV3", inputs=3)
def _gather(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    return (lists.gathered(site, lists.the_list(site, inputs[2]), inputs[1]),)


@lists.on_lists("TensorArraySizeV3", inputs=2)
def _size(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    return (site.call.known(dtype_of("int32"), len(lists.the_list(site, inputs[1]).items)),)


@lists.on_lists("TensorArrayConcatV3", inputs=2)
def _concat(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    return lists.joined(site, lists.the_list(site, inputs[1]))


@lists.on_lists("TensorArraySplitV3", inputs=4)
def _split(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    items = lists.the_list(site, inputs[3])
    return (lists.changed(site, items, lists.split(site, site.value(inputs[1]), inputs[2])),)


@lists.on_lists("TensorArrayCloseV3", inputs=1)
def _close(site: Site, inputs: Sequence[Anything]) -> Sequence[Anything]:
    return ()
