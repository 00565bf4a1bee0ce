// The launcher of devices: a call on arrays of a device checks them, takes memory for its results, and enqueues
// kernels by functions of the driver, whose addresses Python tells. One source serves CUDA and OpenCL.
//
// Only calls that were seen before are done here. For every other one Python decides: it transfers arrays, binds
// programs, and raises.
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <structmember.h>
#include <numpy/arrayobject.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { MAX_RANK = 8, FEW = 64, MAX_GRAPHS = 8, NUM_CLASSES = 64 * 8 + 8, BLOCK_NBYTES = 512, MIN_HELD = 3 };

#define ZEROED(type, count) ((type *)PyMem_Calloc((size_t)(count) + 1, sizeof(type)))

static PyObject *acquire_name, *release_name, *call_slowly_name, *enqueue_slowly_name, *run_slowly_name, *out_name, *device_text;
static PyTypeObject *Block_type, *Pool_type, *Array_type, *Driver_type, *Record_type, *Launcher_type, *Runner_type, *Changes_type;
static int num_forks;  // drivers do not work in forked children

static void note_fork(void) { num_forks++; }

// Memory: blocks of size classes, which return to their pool when nothing refers to them

typedef struct {
    uint64_t address;
    PyObject *memory, *readers;
} Idle;

typedef struct {
    Idle *items;
    int count, capacity;
} Heap;

typedef struct Block Block;

typedef struct {
    PyObject_HEAD
    PyObject *allocate, *free, *wait;
    Block *live;                // a list of the blocks in use
    long long active_nbytes;
    Heap heaps[NUM_CLASSES];    // the lowest address first, so that equal calls get equal addresses
} Pool;

struct Block {
    PyObject_HEAD
    uint64_t address;
    long long size;
    int class;
    PyObject *memory, *readers;
    Pool *pool;
    Block *previous, *next;
};

// Return the number of the size class of a block; set its size: up to a quarter more than `nbytes`.
static int size_class(long long nbytes, long long *size) {
    if (nbytes <= BLOCK_NBYTES) {
        *size = BLOCK_NBYTES;
        return 0;
    }
    int bits = 64 - __builtin_clzll((unsigned long long)nbytes - 1), shift = bits - 3;
    long long parts = (nbytes + (1LL << shift) - 1) >> shift;
    *size = parts << shift;
    return bits * 8 + (int)(parts - 1);
}

static bool heap_push(Heap *heap, Idle idle) {
    if (heap->count == heap->capacity) {
        int capacity = heap->capacity ? 2 * heap->capacity : 4;
        Idle *items = PyMem_Realloc(heap->items, capacity * sizeof(Idle));
        if (!items) return false;
        heap->items = items, heap->capacity = capacity;
    }
    int k = heap->count++;
    for (; k && heap->items[(k - 1) / 2].address > idle.address; k = (k - 1) / 2) heap->items[k] = heap->items[(k - 1) / 2];
    heap->items[k] = idle;
    return true;
}

static Idle heap_pop(Heap *heap) {
    Idle first = heap->items[0], last = heap->items[--heap->count];
    int k = 0, child;
    while ((child = 2 * k + 1) < heap->count) {
        if (child + 1 < heap->count && heap->items[child + 1].address < heap->items[child].address) child++;
        if (heap->items[child].address >= last.address) break;
        heap->items[k] = heap->items[child];
        k = child;
    }
    heap->items[k] = last;
    return first;
}

static void block_dealloc(Block *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (self->pool) {
        Pool *pool = self->pool;
        if (self->previous) self->previous->next = self->next;
        else pool->live = self->next;
        if (self->next) self->next->previous = self->previous;
        pool->active_nbytes -= self->size;
        if (!heap_push(&pool->heaps[self->class], (Idle){self->address, self->memory, self->readers})) {
            Py_XDECREF(self->memory);  // lost
            Py_XDECREF(self->readers);
        }
        Py_DECREF(pool);
    }
    PyObject_Free(self);
    Py_DECREF(type);
}

// Return a new block, NULL with an error. The driver's context must be current.
static Block *pool_take(Pool *pool, long long nbytes) {
    Block *block = PyObject_New(Block, Block_type);
    if (!block) return NULL;
    block->pool = NULL;
    Idle idle = {0, NULL, NULL};
    block->class = size_class(nbytes, &block->size);
    Heap *heap = &pool->heaps[block->class];
    if (heap->count) {
        idle = heap_pop(heap);
        if (idle.readers) {  // another stream may still read the block
            PyObject *done = PyObject_CallOneArg(pool->wait, idle.readers);
            if (!done) {
                if (!heap_push(heap, idle)) Py_XDECREF(idle.memory), Py_DECREF(idle.readers);
                Py_DECREF(block);
                return NULL;
            }
            Py_DECREF(done);
            Py_CLEAR(idle.readers);
        }
    } else {
        PyObject *given = PyObject_CallFunction(pool->allocate, "L", block->size);
        if (given && PyTuple_Check(given)) {
            if (!PyArg_ParseTuple(given, "KO", &idle.address, &idle.memory)) Py_CLEAR(given);
            else Py_INCREF(idle.memory);
        } else if (given) {
            idle.address = PyLong_AsUnsignedLongLong(given);
            if (PyErr_Occurred()) Py_CLEAR(given);
        }
        if (!given) {
            Py_DECREF(block);
            return NULL;
        }
        Py_DECREF(given);
    }
    block->address = idle.address;
    block->memory = idle.memory;
    block->readers = NULL;
    block->previous = NULL;
    block->next = pool->live;
    if (block->next) block->next->previous = block;
    pool->live = block;
    pool->active_nbytes += block->size;
    block->pool = (Pool *)Py_NewRef((PyObject *)pool);
    return block;
}

static PyObject *block_get_memory(Block *self, void *closure) { return Py_NewRef(self->memory ? self->memory : Py_None); }

static PyObject *block_get_readers(Block *self, void *closure) { return Py_NewRef(self->readers ? self->readers : Py_None); }

static int block_set_readers(Block *self, PyObject *value, void *closure) {
    if (value == Py_None) value = NULL;
    Py_XINCREF(value);
    Py_XSETREF(self->readers, value);
    return 0;
}

static PyMemberDef block_members[] = {
    {"address", T_ULONGLONG, offsetof(Block, address), READONLY, "the address of its first byte, or the driver's handle"},
    {"size", T_LONGLONG, offsetof(Block, size), READONLY, "its bytes"},
    {NULL}};

static PyGetSetDef block_getset[] = {
    {"memory", (getter)block_get_memory, NULL, "the object that `allocate` returned with the address, or None"},
    {"readers", (getter)block_get_readers, (setter)block_set_readers,
     "what `wait` gets before the block is used again, or None"},
    {NULL}};

static PyType_Slot block_slots[] = {
    {Py_tp_doc, (void *)"Memory of a device, which returns to its pool when nothing refers to it."},
    {Py_tp_dealloc, (void *)block_dealloc},
    {Py_tp_members, block_members},
    {Py_tp_getset, block_getset},
    {0, NULL}};

static PyType_Spec block_spec = {"_passkit_device_launcher.Block", sizeof(Block), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, block_slots};

static PyObject *pool_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *allocate, *free, *wait;
    if (!PyArg_ParseTuple(args, "OOO", &allocate, &free, &wait)) return NULL;
    Pool *self = (Pool *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->allocate = Py_NewRef(allocate);
    self->free = Py_NewRef(free);
    self->wait = Py_NewRef(wait);
    return (PyObject *)self;
}

static void pool_dealloc(Pool *self) {
    PyTypeObject *type = Py_TYPE(self);
    for (int k = 0; k < NUM_CLASSES; k++) {  // the memory is the driver's as long as the process lives
        for (int i = 0; i < self->heaps[k].count; i++) {
            Py_XDECREF(self->heaps[k].items[i].memory);
            Py_XDECREF(self->heaps[k].items[i].readers);
        }
        PyMem_Free(self->heaps[k].items);
    }
    Py_XDECREF(self->allocate);
    Py_XDECREF(self->free);
    Py_XDECREF(self->wait);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *pool_allocate(Pool *self, PyObject *nbytes) {
    long long number = PyLong_AsLongLong(nbytes);
    return number == -1 && PyErr_Occurred() ? NULL : (PyObject *)pool_take(self, number);
}

static PyObject *pool_free_idle(Pool *self, PyObject *unused) {
    for (int k = 0; k < NUM_CLASSES; k++) {
        Heap *heap = &self->heaps[k];
        while (heap->count) {
            Idle idle = heap->items[--heap->count];
            PyObject *done = PyObject_CallFunction(self->free, "K", idle.address);
            Py_XDECREF(idle.memory);
            Py_XDECREF(idle.readers);
            if (!done) return NULL;
            Py_DECREF(done);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *pool_active(Pool *self, void *closure) {
    PyObject *active = PyDict_New();
    for (Block *block = self->live; active && block; block = block->next) {
        PyObject *key = PyLong_FromUnsignedLongLong(block->address), *size = PyLong_FromLongLong(block->size);
        if (!key || !size || PyDict_SetItem(active, key, size)) Py_CLEAR(active);
        Py_XDECREF(key);
        Py_XDECREF(size);
    }
    return active;
}

static PyObject *pool_idle_nbytes(Pool *self, void *closure) {
    long long total = 0;
    for (int k = 0; k < NUM_CLASSES; k++) {
        long long size = k ? (long long)(k % 8 + 1) << (k / 8 - 3) : BLOCK_NBYTES;
        total += self->heaps[k].count * size;
    }
    return PyLong_FromLongLong(total);
}

static PyMethodDef pool_methods[] = {
    {"allocate", (PyCFunction)pool_allocate, METH_O, "allocate(nbytes): a block of at least so many bytes."},
    {"free_idle", (PyCFunction)pool_free_idle, METH_NOARGS, "free_idle(): free all blocks that nothing refers to."},
    {NULL}};

static PyMemberDef pool_members[] = {
    {"active_nbytes", T_LONGLONG, offsetof(Pool, active_nbytes), READONLY, "the bytes of the blocks in use"}, {NULL}};

static PyGetSetDef pool_getset[] = {
    {"active", (getter)pool_active, NULL, "the size of each block in use by its address, as a new dict"},
    {"idle_nbytes", (getter)pool_idle_nbytes, NULL, "the bytes of the blocks that nothing refers to"},
    {NULL}};

static PyType_Slot pool_slots[] = {
    {Py_tp_doc, (void *)"Pool(allocate, free, wait): blocks by size class; see `FreeListAllocator`."},
    {Py_tp_new, (void *)pool_new},
    {Py_tp_dealloc, (void *)pool_dealloc},
    {Py_tp_methods, pool_methods},
    {Py_tp_members, pool_members},
    {Py_tp_getset, pool_getset},
    {0, NULL}};

static PyType_Spec pool_spec = {"_passkit_device_launcher.Pool", sizeof(Pool), 0, Py_TPFLAGS_DEFAULT, pool_slots};

// Arrays

typedef struct {
    PyObject_HEAD
    PyObject *dtype, *shape, *block, *device, *weakrefs;
    uint64_t address;
    int rank;  // -1 where it exceeds MAX_RANK: then no call here takes the array
    int64_t extents[MAX_RANK];
} Array;

static bool set_extents(Array *self) {
    Py_ssize_t rank = PyTuple_GET_SIZE(self->shape);
    self->rank = rank <= MAX_RANK ? (int)rank : -1;
    for (int k = 0; k < self->rank; k++) {
        self->extents[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(self->shape, k));
        if (self->extents[k] == -1 && PyErr_Occurred()) return false;
    }
    return true;
}

static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *dtype, *shape, *block, *device;
    if (!PyArg_ParseTuple(args, "O!O!OO", &PyArrayDescr_Type, &dtype, &PyTuple_Type, &shape, &block, &device)) return NULL;
    uint64_t address;
    if (Py_TYPE(block) == Block_type)
        address = ((Block *)block)->address;
    else {
        PyObject *number = PyObject_GetAttrString(block, "address");
        if (!number) return NULL;
        address = PyLong_AsUnsignedLongLong(number);
        Py_DECREF(number);
        if (PyErr_Occurred()) return NULL;
    }
    Array *self = (Array *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->dtype = Py_NewRef(dtype);
    self->shape = Py_NewRef(shape);
    self->block = Py_NewRef(block);
    self->device = Py_NewRef(device);
    self->address = address;
    if (!set_extents(self)) Py_CLEAR(self);
    return (PyObject *)self;
}

static void array_dealloc(Array *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (self->weakrefs) PyObject_ClearWeakRefs((PyObject *)self);
    Py_XDECREF(self->dtype);
    Py_XDECREF(self->shape);
    Py_XDECREF(self->block);
    Py_XDECREF(self->device);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *array_nbytes(Array *self, void *closure) {
    PyObject *total = PyLong_FromSsize_t(PyDataType_ELSIZE((PyArray_Descr *)self->dtype));
    for (Py_ssize_t k = 0; total && k < PyTuple_GET_SIZE(self->shape); k++)
        Py_SETREF(total, PyNumber_Multiply(total, PyTuple_GET_ITEM(self->shape, k)));
    return total;
}

static PyMemberDef array_members[] = {
    {"dtype", T_OBJECT, offsetof(Array, dtype), READONLY, "the type of an element"},
    {"shape", T_OBJECT, offsetof(Array, shape), READONLY, "the extents in elements"},
    {"block", T_OBJECT, offsetof(Array, block), READONLY, "the memory, which is reused when nothing refers to it"},
    {"device", T_OBJECT, offsetof(Array, device), READONLY, "the device that it is on"},
    {"address", T_ULONGLONG, offsetof(Array, address), READONLY, "the address of the block, or the driver's handle of it"},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Array, weakrefs), READONLY},
    {NULL}};

static PyGetSetDef array_getset[] = {{"nbytes", (getter)array_nbytes, NULL, "the size of the elements in bytes"}, {NULL}};

static PyType_Slot array_slots[] = {
    {Py_tp_doc, (void *)"DeviceArrayBase(dtype, shape, block, device): a C-contiguous array on a device."},
    {Py_tp_new, (void *)array_new},
    {Py_tp_dealloc, (void *)array_dealloc},
    {Py_tp_members, array_members},
    {Py_tp_getset, array_getset},
    {0, NULL}};

static PyType_Spec array_spec = {"_passkit_device_launcher.DeviceArrayBase", sizeof(Array), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, array_slots};

// How often the copies of variables on a device changed otherwise than by calls here

typedef struct {
    PyObject_HEAD
    long long changes;
} Changes;

static PyMemberDef changes_members[] = {
    {"changes", T_LONGLONG, offsetof(Changes, changes), 0, "how often copies of variables were moved or discarded"}, {NULL}};

static PyType_Slot changes_slots[] = {
    {Py_tp_doc, (void *)"The base of the variables on a device."}, {Py_tp_members, changes_members}, {0, NULL}};

static PyType_Spec changes_spec = {"_passkit_device_launcher.ChangesBase", sizeof(Changes), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, changes_slots};

// Drivers: the functions by which work is enqueued

typedef struct {
    uint64_t function;
    int num_dims;           // of OpenCL
    size_t grid[3], block[3];  // blocks and threads in CUDA, all items and those of a group in OpenCL
    unsigned shared;
    int is_cooperative;
    int first_word, num_words;
} Launch;

typedef struct {
    int base;               // which address is added to the value, -1 for none
    uint64_t value;
} Word;

typedef struct {
    PyObject_HEAD
    bool is_cuda, holds;
    void *stream, *context;
    int forks;
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    int (*launch_cooperative)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **);
    int (*graph_launch)(void *, void *);
    int (*synchronize)(void *);
    int (*upload)(uint64_t, const void *, size_t, void *);
    int (*download)(void *, uint64_t, size_t, void *);
    int (*get_current)(void **);
    int (*set_current)(void *);
    int (*push_current)(void *);
    int (*pop_current)(void **);
    int (*set_argument)(void *, unsigned, size_t, const void *);
    int (*enqueue)(void *, void *, unsigned, const size_t *, const size_t *, const size_t *, unsigned, void *const *, void **);
    int (*flush)(void *);
    int (*write_buffer)(void *, void *, unsigned, size_t, size_t, const void *, unsigned, void *const *, void **);
    int (*read_buffer)(void *, void *, unsigned, size_t, size_t, void *, unsigned, void *const *, void **);
    void *(*new_event)(void *, int *);
    int (*set_event)(void *, int);
    int (*release_event)(void *);
} Driver;

static const struct {
    const char *name;
    bool is_cuda;
    size_t offset;
} functions[] = {
    {"cuLaunchKernel", true, offsetof(Driver, launch)},
    {"cuLaunchCooperativeKernel", true, offsetof(Driver, launch_cooperative)},
    {"cuGraphLaunch", true, offsetof(Driver, graph_launch)},
    {"cuStreamSynchronize", true, offsetof(Driver, synchronize)},
    {"cuMemcpyHtoDAsync_v2", true, offsetof(Driver, upload)},
    {"cuMemcpyDtoHAsync_v2", true, offsetof(Driver, download)},
    {"cuCtxGetCurrent", true, offsetof(Driver, get_current)},
    {"cuCtxSetCurrent", true, offsetof(Driver, set_current)},
    {"cuCtxPushCurrent_v2", true, offsetof(Driver, push_current)},
    {"cuCtxPopCurrent_v2", true, offsetof(Driver, pop_current)},
    {"clSetKernelArg", false, offsetof(Driver, set_argument)},
    {"clEnqueueNDRangeKernel", false, offsetof(Driver, enqueue)},
    {"clFlush", false, offsetof(Driver, flush)},
    {"clFinish", false, offsetof(Driver, synchronize)},
    {"clEnqueueWriteBuffer", false, offsetof(Driver, write_buffer)},
    {"clEnqueueReadBuffer", false, offsetof(Driver, read_buffer)},
    {"clCreateUserEvent", false, offsetof(Driver, new_event)},
    {"clSetUserEventStatus", false, offsetof(Driver, set_event)},
    {"clReleaseEvent", false, offsetof(Driver, release_event)},
};

static PyObject *driver_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *addresses;
    unsigned long long stream, context;
    int is_cuda, holds;
    if (!PyArg_ParseTuple(args, "pO!KKp", &is_cuda, &PyDict_Type, &addresses, &stream, &context, &holds)) return NULL;
    Driver *self = (Driver *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->is_cuda = is_cuda, self->holds = holds;
    self->stream = (void *)(uintptr_t)stream, self->context = (void *)(uintptr_t)context;
    self->forks = num_forks;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        if (functions[k].is_cuda != is_cuda) continue;
        PyObject *number = PyDict_GetItemString(addresses, functions[k].name);
        void *address = number ? PyLong_AsVoidPtr(number) : NULL;
        if (!address) {
            if (!PyErr_Occurred()) PyErr_Format(PyExc_LookupError, "the driver has no function '%s'", functions[k].name);
            Py_DECREF(self);
            return NULL;
        }
        memcpy((char *)self + functions[k].offset, &address, sizeof address);
    }
    return (PyObject *)self;
}

static void plain_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// Make the context current; return 0, 1 where `leave` has to restore another one, -1 for an error.
static int enter(Driver *d) {
    if (!d->is_cuda) return 0;
    void *current = NULL;
    if (d->get_current(&current)) return -1;
    if (current == d->context) return 0;
    if (!current) return d->set_current(d->context) ? -1 : 0;  // once in each thread
    return d->push_current(d->context) ? -1 : 1;
}

static void leave(Driver *d, int state) {
    void *context;
    if (state == 1) d->pop_current(&context);
}

// A transfer between an array of the host and a block.
typedef struct {
    PyArrayObject *array;
    uint64_t address;
} Transfer;

static int transfer(Driver *d, const Transfer *t, bool is_upload) {
    size_t nbytes = (size_t)PyArray_NBYTES(t->array);
    void *data = PyArray_DATA(t->array), *memory = (void *)(uintptr_t)t->address;
    if (!nbytes) return 0;
    if (d->is_cuda)
        return is_upload ? d->upload(t->address, data, nbytes, d->stream) : d->download(data, t->address, nbytes, d->stream);
    return is_upload ? d->write_buffer(d->stream, memory, 0, 0, nbytes, data, 0, NULL, NULL)
                     : d->read_buffer(d->stream, memory, 0, 0, nbytes, data, 0, NULL, NULL);
}

static PyObject *driver_finish(Driver *self, PyObject *unused) {
    int entered = self->forks == num_forks ? enter(self) : -1, status = 1;
    if (entered >= 0) {
        Py_BEGIN_ALLOW_THREADS
        status = self->synchronize(self->stream);
        Py_END_ALLOW_THREADS
        leave(self, entered);
    }
    return PyLong_FromLong(status);
}

static PyObject *driver_read(Driver *self, PyObject *args) {
    PyObject *source, *target;
    if (!PyArg_ParseTuple(args, "O!O!", Array_type, &source, &PyArray_Type, &target)) return NULL;
    PyArrayObject *array = (PyArrayObject *)target;
    if (!PyArray_ISCARRAY(array)) {
        PyErr_SetString(PyExc_ValueError, "read needs a contiguous array");
        return NULL;
    }
    int entered = self->forks == num_forks ? enter(self) : -1, status = 1;
    if (entered >= 0) {
        const Transfer download = {array, ((Array *)source)->address};
        Py_BEGIN_ALLOW_THREADS
        status = transfer(self, &download, false);
        if (!status) status = self->synchronize(self->stream);
        Py_END_ALLOW_THREADS
        leave(self, entered);
        if (status) Py_INCREF(array);  // for ever: the driver may still write to it
    }
    return PyLong_FromLong(status);
}

static PyMethodDef driver_methods[] = {
    {"read", (PyCFunction)driver_read, METH_VARARGS,
     "read(array, target): copy an array of the device to a NumPy array of its size, and wait; return the driver's status, "
     "0 for success."},
    {"finish", (PyCFunction)driver_finish, METH_NOARGS,
     "finish(): wait until all enqueued work is done; return the driver's status, 0 for success."},
    {NULL}};

static PyType_Slot driver_slots[] = {
    {Py_tp_doc, (void *)"DriverCalls(is_cuda, addresses, stream, context, holds): functions of a driver by their addresses.\n\n"
                        "`holds`: whether several launches begin only when all are enqueued."},
    {Py_tp_new, (void *)driver_new},
    {Py_tp_dealloc, (void *)plain_dealloc},
    {Py_tp_methods, driver_methods},
    {0, NULL}};

static PyType_Spec driver_spec = {"_passkit_device_launcher.DriverCalls", sizeof(Driver), 0, Py_TPFLAGS_DEFAULT, driver_slots};

// Records: all that a call needs to enqueue a program for known shapes

typedef struct {
    uint64_t *bases;
    uint64_t graph;
    PyObject *owner;        // of the graph; NULL without one
    bool is_seen;
    uint64_t stamp;
} GraphSlot;

typedef struct {
    PyObject *dtype, *shape;
    long long nbytes;
    Array form;     // of which rank and extents are used
} Output;

typedef struct {
    PyObject_HEAD
    Driver *driver;
    Pool *pool;
    PyTypeObject *array_type;
    PyObject *device, *owner, *lock, *build_graph;
    Changes *variables;
    long long expected;
    int num_inputs, num_outputs, num_temps, num_launches, num_words, max_words;
    int *ranks;             // of the inputs
    int64_t *extents;       // MAX_RANK for each input
    Output *outputs;
    long long *temps;       // the bytes of temporary blocks
    Launch *launches;
    Word *words;
    GraphSlot slots[MAX_GRAPHS];
    uint64_t stamp;
} Record;

static bool parse_shape(PyObject *shape, int *rank, int64_t *extents) {
    if (!PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) > MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "a record takes shapes of at most %d axes, got %R", MAX_RANK, shape);
        return false;
    }
    *rank = (int)PyTuple_GET_SIZE(shape);
    for (int k = 0; k < *rank; k++) extents[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, k));
    return !PyErr_Occurred();
}

static bool parse_launches(Record *self, PyObject *launches) {
    int num_bases = self->num_inputs + self->num_outputs + self->num_temps;
    for (int k = 0; k < self->num_launches; k++) {
        PyObject *words;
        unsigned long long function;
        Py_ssize_t grid[3], block[3];
        Launch *launch = &self->launches[k];
        PyObject *item = PyTuple_GET_ITEM(launches, k);
        if (!PyTuple_Check(item) ||
            !PyArg_ParseTuple(item, "Ki(nnn)(nnn)IpO!", &function, &launch->num_dims, &grid[0], &grid[1], &grid[2], &block[0],
                              &block[1], &block[2], &launch->shared, &launch->is_cooperative, &PyTuple_Type, &words)) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a launch must be a tuple");
            return false;
        }
        launch->function = function;
        for (int d = 0; d < 3; d++) launch->grid[d] = grid[d], launch->block[d] = block[d];
        launch->first_word = self->num_words;
        launch->num_words = (int)PyTuple_GET_SIZE(words);
        if (launch->num_words > self->max_words) self->max_words = launch->num_words;
        Word *resized = PyMem_Realloc(self->words, (self->num_words + launch->num_words + 1) * sizeof(Word));
        if (!resized) return PyErr_NoMemory(), false;
        self->words = resized;
        for (int w = 0; w < launch->num_words; w++) {
            int base;
            unsigned long long value;
            PyObject *pair = PyTuple_GET_ITEM(words, w);
            if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "iK", &base, &value)) return false;
            if (base < -1 || base >= num_bases) {
                PyErr_Format(PyExc_ValueError, "a word needs a base from -1 to %d, got %d", num_bases - 1, base);
                return false;
            }
            self->words[self->num_words++] = (Word){base, value};
        }
    }
    return true;
}

static PyObject *record_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *names[] = {"driver", "pool", "array_type", "device", "inputs", "outputs", "temps", "launches", "owner",
                                  "variables", "lock", "build_graph", NULL};
    PyObject *driver, *pool, *array_type, *device, *inputs, *outputs, *temps, *launches, *owner;
    PyObject *variables = Py_None, *lock = Py_None, *build_graph = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!OO!O!O!O!O|OOO", (char **)names, Driver_type, &driver, Pool_type, &pool,
                                     &PyType_Type, &array_type, &device, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs,
                                     &PyTuple_Type, &temps, &PyTuple_Type, &launches, &owner, &variables, &lock, &build_graph))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)array_type, Array_type)) {
        PyErr_Format(PyExc_TypeError, "array_type must be a subclass of DeviceArrayBase, got %R", array_type);
        return NULL;
    }
    Record *self = (Record *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->driver = (Driver *)Py_NewRef(driver);
    self->pool = (Pool *)Py_NewRef(pool);
    self->array_type = (PyTypeObject *)Py_NewRef(array_type);
    self->device = Py_NewRef(device);
    self->owner = Py_NewRef(owner);
    if (lock != Py_None) self->lock = Py_NewRef(lock);
    if (build_graph != Py_None) self->build_graph = Py_NewRef(build_graph);
    if (variables != Py_None && PyObject_TypeCheck(variables, Changes_type)) {
        self->variables = (Changes *)Py_NewRef(variables);
        self->expected = self->variables->changes;
    }
    self->num_inputs = (int)PyTuple_GET_SIZE(inputs);
    self->num_outputs = (int)PyTuple_GET_SIZE(outputs);
    self->num_temps = (int)PyTuple_GET_SIZE(temps);
    self->num_launches = (int)PyTuple_GET_SIZE(launches);
    self->ranks = ZEROED(int, self->num_inputs);
    self->extents = ZEROED(int64_t, MAX_RANK * (self->num_inputs + 1));
    self->outputs = ZEROED(Output, self->num_outputs);
    self->temps = ZEROED(long long, self->num_temps);
    self->launches = ZEROED(Launch, self->num_launches);
    if (!self->ranks || !self->extents || !self->outputs || !self->temps || !self->launches) {
        PyErr_NoMemory();
        goto failed;
    }
    for (int k = 0; k < self->num_inputs; k++)
        if (!parse_shape(PyTuple_GET_ITEM(inputs, k), &self->ranks[k], &self->extents[k * MAX_RANK])) goto failed;
    for (int k = 0; k < self->num_outputs; k++) {
        PyObject *item = PyTuple_GET_ITEM(outputs, k), *dtype, *shape;
        Output *output = &self->outputs[k];
        if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "O!O!L", &PyArrayDescr_Type, &dtype, &PyTuple_Type, &shape, &output->nbytes))
            goto failed;
        output->dtype = Py_NewRef(dtype);
        output->shape = Py_NewRef(shape);
        if (!parse_shape(shape, &output->form.rank, output->form.extents)) goto failed;
    }
    for (int k = 0; k < self->num_temps; k++) self->temps[k] = PyLong_AsLongLong(PyTuple_GET_ITEM(temps, k));
    if (PyErr_Occurred() || !parse_launches(self, launches)) goto failed;
    return (PyObject *)self;
failed:
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a record has a malformed part");
    Py_DECREF(self);
    return NULL;
}

static int record_traverse(Record *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->owner);
    Py_VISIT(self->build_graph);
    Py_VISIT(self->lock);
    Py_VISIT(self->variables);
    for (int k = 0; k < MAX_GRAPHS; k++) Py_VISIT(self->slots[k].owner);
    return 0;
}

static int record_clear(Record *self) {
    Py_CLEAR(self->owner);
    Py_CLEAR(self->build_graph);
    return 0;
}

static void record_dealloc(Record *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    record_clear(self);
    Py_XDECREF(self->driver);
    Py_XDECREF(self->pool);
    Py_XDECREF(self->array_type);
    Py_XDECREF(self->device);
    Py_XDECREF(self->lock);
    Py_XDECREF(self->variables);
    for (int k = 0; k < MAX_GRAPHS; k++) {
        PyMem_Free(self->slots[k].bases);
        Py_XDECREF(self->slots[k].owner);
    }
    for (int k = 0; self->outputs && k < self->num_outputs; k++) {
        Py_XDECREF(self->outputs[k].dtype);
        Py_XDECREF(self->outputs[k].shape);
    }
    PyMem_Free(self->ranks);
    PyMem_Free(self->extents);
    PyMem_Free(self->outputs);
    PyMem_Free(self->temps);
    PyMem_Free(self->launches);
    PyMem_Free(self->words);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef record_members[] = {
    {"expected", T_LONGLONG, offsetof(Record, expected), 0, "the changes of the variables for which the record is valid"},
    {"owner", T_OBJECT, offsetof(Record, owner), READONLY, "what the record keeps alive"},
    {NULL}};

static PyType_Slot record_slots[] = {
    {Py_tp_doc, (void *)"Record(driver, pool, array_type, device, inputs, outputs, temps, launches, owner, variables=None, "
                        "lock=None, build_graph=None): a program bound to shapes; see `launch_records.record_of`."},
    {Py_tp_new, (void *)record_new},
    {Py_tp_dealloc, (void *)record_dealloc},
    {Py_tp_traverse, (void *)record_traverse},
    {Py_tp_clear, (void *)record_clear},
    {Py_tp_members, record_members},
    {0, NULL}};

static PyType_Spec record_spec = {"_passkit_device_launcher.Record", sizeof(Record), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                  record_slots};

// Enqueue one launch; return the driver's status.
static int launch_cuda(Driver *d, const Launch *launch, const Word *words, const uint64_t *bases, uint64_t *values, void **places) {
    for (int w = 0; w < launch->num_words; w++) {
        values[w] = words[w].value + (words[w].base < 0 ? 0 : bases[words[w].base]);
        places[w] = &values[w];
    }
    const size_t *grid = launch->grid, *block = launch->block;
    void *function = (void *)(uintptr_t)launch->function;
    if (launch->is_cooperative)
        return d->launch_cooperative(function, (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2], (unsigned)block[0],
                                     (unsigned)block[1], (unsigned)block[2], launch->shared, d->stream, places);
    return d->launch(function, (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2], (unsigned)block[0], (unsigned)block[1],
                     (unsigned)block[2], launch->shared, d->stream, places, NULL);
}

static int launch_opencl(Driver *d, const Launch *launch, const Word *words, const uint64_t *bases, void **gate) {
    void *kernel = (void *)(uintptr_t)launch->function;
    for (int w = 0; w < launch->num_words; w++) {
        void *memory = (void *)(uintptr_t)(words[w].value + (words[w].base < 0 ? 0 : bases[words[w].base]));
        int status = d->set_argument(kernel, (unsigned)w, sizeof memory, &memory);
        if (status) return status;
    }
    return d->enqueue(d->stream, kernel, (unsigned)launch->num_dims, NULL, launch->grid, launch->block, gate ? 1 : 0, gate, NULL);
}

// What a call enqueues: uploads, the launches of a record or a graph of them, downloads.
typedef struct {
    Record *record;
    const uint64_t *bases;
    uint64_t *values;
    void **places;
    uint64_t graph;         // 0 for none
    Transfer *uploads, *downloads;
    int num_uploads, num_downloads;
    int num_launched;       // how many launches and downloads the driver has accepted
} Work;

static int launch_all(Work *w) {
    Record *r = w->record;
    Driver *d = r->driver;
    int status = 0;
    void *gate = NULL;
    if (!d->is_cuda && d->holds && r->num_launches >= MIN_HELD) gate = d->new_event(d->context, &status);
    for (int k = 0; k < r->num_launches && !status; k++) {
        const Launch *launch = &r->launches[k];
        const Word *words = r->words + launch->first_word;
        status = d->is_cuda ? launch_cuda(d, launch, words, w->bases, w->values, w->places)
                            : launch_opencl(d, launch, words, w->bases, gate && !k ? &gate : NULL);
        w->num_launched += !status;
    }
    if (gate) {
        d->set_event(gate, 0);
        d->release_event(gate);
    }
    return status;
}

// Enqueue all work; wait for it where arrays of the host take part. Return the driver's status.
static int enqueue_work(Work *w, bool *is_waited) {
    Driver *d = w->record->driver;
    int status = 0;
    for (int k = 0; k < w->num_uploads && !status; k++) status = transfer(d, &w->uploads[k], true);
    if (!status && w->graph) {
        status = d->graph_launch((void *)(uintptr_t)w->graph, d->stream);
        w->num_launched += !status;
    } else if (!status) {
        status = launch_all(w);
    }
    for (int k = 0; k < w->num_downloads && !status; k++) {
        status = transfer(d, &w->downloads[k], false);
        w->num_launched += !status;
    }
    if (!status && !d->is_cuda) status = d->flush(d->stream);
    *is_waited = w->num_uploads || w->num_downloads;
    return status;
}

// The same; set *waited to the status of waiting.
static int enqueue_and_wait(Work *w, int *waited) {
    Driver *d = w->record->driver;
    int status;
    bool is_waited = false;
    *waited = 0;
    if (d->is_cuda) {
        Py_BEGIN_ALLOW_THREADS      // a driver whose queue is full blocks
        status = enqueue_work(w, &is_waited);
        if (is_waited) *waited = d->synchronize(d->stream);
        Py_END_ALLOW_THREADS
        return status;
    }
    status = enqueue_work(w, &is_waited);  // with the GIL, as arguments belong to kernels
    if (is_waited) {
        Py_BEGIN_ALLOW_THREADS
        *waited = d->synchronize(d->stream);
        Py_END_ALLOW_THREADS
    }
    return status;
}

// Return the slot of the graph for these addresses: a new one without graph if there is none, NULL with an error.
static GraphSlot *graph_slot(Record *r, const uint64_t *bases, int num_bases) {
    GraphSlot *oldest = &r->slots[0];
    for (int k = 0; k < MAX_GRAPHS; k++) {
        GraphSlot *slot = &r->slots[k];
        if (slot->bases && !memcmp(slot->bases, bases, num_bases * sizeof *bases)) {
            slot->stamp = ++r->stamp;
            return slot;
        }
        if (slot->stamp < oldest->stamp) oldest = slot;
    }
    if (!oldest->bases && !(oldest->bases = ZEROED(uint64_t, num_bases))) return (GraphSlot *)PyErr_NoMemory();
    memcpy(oldest->bases, bases, num_bases * sizeof *bases);
    oldest->is_seen = false;
    Py_CLEAR(oldest->owner);
    oldest->stamp = ++r->stamp;
    return oldest;
}

// Build a graph for addresses that are seen again; false with an error. Where none can be built, none is tried again.
static bool build_graph(Record *r, GraphSlot *slot, int num_bases) {
    PyObject *bases = PyTuple_New(num_bases), *graph = NULL;
    for (int k = 0; bases && k < num_bases; k++) {
        PyObject *number = PyLong_FromUnsignedLongLong(slot->bases[k]);
        if (!number) Py_CLEAR(bases);
        else PyTuple_SET_ITEM(bases, k, number);
    }
    if (bases) graph = PyObject_CallOneArg(r->build_graph, bases);
    Py_XDECREF(bases);
    if (!graph) return false;
    if (graph == Py_None) {
        Py_CLEAR(r->build_graph);
    } else if (PyArg_ParseTuple(graph, "KO", &slot->graph, &slot->owner)) {
        Py_INCREF(slot->owner);
    } else {
        slot->owner = NULL;
    }
    Py_DECREF(graph);
    return !PyErr_Occurred();
}

// The launcher of a program: its base class

typedef struct {
    PyObject_HEAD
    PyObject *names, *dtypes, *records;
    vectorcallfunc vectorcall;
    long long fast_calls, replays, uploaded, downloaded;
    char was_fast;
} Launcher;

static PyObject *launcher_vectorcall(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames);

static PyObject *launcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Launcher *self = (Launcher *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->vectorcall = launcher_vectorcall;
    self->records = PyList_New(0);
    self->names = PyTuple_New(0);
    self->dtypes = PyTuple_New(0);
    if (!self->records || !self->names || !self->dtypes) Py_CLEAR(self);
    return (PyObject *)self;
}

static int launcher_traverse(Launcher *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->records);
    return 0;
}

static int launcher_clear(Launcher *self) {
    Py_CLEAR(self->records);
    return 0;
}

static void launcher_dealloc(Launcher *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->names);
    Py_XDECREF(self->dtypes);
    Py_XDECREF(self->records);
    type->tp_free(self);
    Py_DECREF(type);
}

// Return a feed as an array on a device, or of the host where it can be copied as it is: a borrowed reference, NULL
// without an error where it is neither. `numbers` has arrays on the device for arrays of the host without axes.
static PyObject *array_of(PyObject *value, PyObject *numbers) {
    if (PyObject_TypeCheck(value, Array_type)) return value;
    if (!PyArray_CheckExact(value)) return NULL;
    PyArrayObject *array = (PyArrayObject *)value;
    if (!PyArray_ISCARRAY_RO(array)) return NULL;
    if (!numbers || PyArray_NDIM(array)) return value;
    PyObject *bytes = PyBytes_FromStringAndSize(PyArray_BYTES(array), PyArray_ITEMSIZE(array));
    PyObject *key = bytes ? PyTuple_Pack(2, PyArray_DESCR(array), bytes) : NULL;
    PyObject *number = key ? PyDict_GetItemWithError(numbers, key) : NULL;
    Py_XDECREF(bytes);
    Py_XDECREF(key);
    return number && PyObject_TypeCheck(number, Array_type) ? number : NULL;
}

static bool same_dtype(PyObject *x, PyObject *y) {
    return x == y || PyArray_EquivTypes((PyArray_Descr *)x, (PyArray_Descr *)y);
}

static bool fits(const Record *r, PyObject *const *arrays) {
    for (int i = 0; i < r->num_inputs; i++) {
        if (PyArray_CheckExact(arrays[i])) {
            const PyArrayObject *array = (const PyArrayObject *)arrays[i];
            if (PyArray_NDIM(array) != r->ranks[i]) return false;
            for (int k = 0; k < r->ranks[i]; k++)
                if (PyArray_DIM(array, k) != r->extents[i * MAX_RANK + k]) return false;
            continue;
        }
        const Array *array = (const Array *)arrays[i];
        if (Py_TYPE(array) != r->array_type || array->device != r->device || array->rank != r->ranks[i]) return false;
        for (int k = 0; k < array->rank; k++)
            if (array->extents[k] != r->extents[i * MAX_RANK + k]) return false;
    }
    return true;
}

// Return the record for these arrays: a borrowed reference, NULL without an error if there is none.
static Record *find_record(Launcher *self, PyObject *const *arrays) {
    Py_ssize_t count = PyList_GET_SIZE(self->records);
    for (Py_ssize_t k = 0; k < count; k++) {
        Record *record = (Record *)PyList_GET_ITEM(self->records, k);
        if (!fits(record, arrays)) continue;
        if (k) {  // sooner next time
            PyObject *first = PyList_GET_ITEM(self->records, 0);
            PyList_SET_ITEM(self->records, 0, (PyObject *)record);
            PyList_SET_ITEM(self->records, k, first);
        }
        return record->driver->forks == num_forks ? record : NULL;
    }
    return NULL;
}

static PyObject *new_result(Record *r, const Output *output) {
    Block *block = pool_take(r->pool, output->nbytes);
    if (!block) return NULL;
    Array *array = (Array *)r->array_type->tp_alloc(r->array_type, 0);
    if (!array) {
        Py_DECREF(block);
        return NULL;
    }
    array->dtype = Py_NewRef(output->dtype);
    array->shape = Py_NewRef(output->shape);
    array->block = (PyObject *)block;
    array->device = Py_NewRef(r->device);
    array->address = block->address;
    array->rank = output->form.rank;
    memcpy(array->extents, output->form.extents, sizeof array->extents);
    return (PyObject *)array;
}

// Return whether an array of `out` can take a result, which must not share memory with others if `checks`.
static bool takes(const Record *r, const Output *output, PyObject *given, PyObject *const *inputs, PyObject *const *before,
                  int num_before, bool checks) {
    if (Py_TYPE(given) != r->array_type) return false;
    const Array *array = (const Array *)given;
    if (array->device != r->device || array->rank != output->form.rank || !same_dtype(array->dtype, output->dtype)) return false;
    for (int k = 0; k < array->rank; k++)
        if (array->extents[k] != output->form.extents[k]) return false;
    for (int i = 0; checks && i < r->num_inputs; i++)
        if (!PyArray_CheckExact(inputs[i]) && ((const Array *)inputs[i])->address == array->address) return false;
    for (int k = 0; checks && k < num_before; k++)
        if (((const Array *)before[k])->address == array->address) return false;
    return true;
}

// Forget an error of a driver that refuses memory: Python tries again, and raises.
static void clear_refusal(void) {
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
}

// Where the results of a call are.
typedef enum { NEW_ON_HOST, NEW_ON_DEVICE, GIVEN } Results;

static PyObject *new_host_array(const Output *output) {
    npy_intp extents[MAX_RANK];
    for (int k = 0; k < output->form.rank; k++) extents[k] = output->form.extents[k];
    Py_INCREF(output->dtype);
    return PyArray_Empty(output->form.rank, extents, (PyArray_Descr *)output->dtype, 0);
}

// Memory for a call; that of small calls is on the stack.
typedef struct {
    uint64_t few_words[6 * FEW], *words;
    Block *few_blocks[FEW], **blocks;
    Transfer few_transfers[FEW], *transfers;
    int num_blocks;
} Room;

static bool room_open(Room *room, int num_words, int num_blocks, int num_transfers) {
    room->words = num_words <= 6 * FEW ? room->few_words : PyMem_Malloc(num_words * sizeof(uint64_t));
    room->blocks = num_blocks <= FEW ? room->few_blocks : PyMem_Malloc(num_blocks * sizeof(Block *));
    room->transfers = num_transfers <= FEW ? room->few_transfers : PyMem_Malloc(num_transfers * sizeof(Transfer));
    room->num_blocks = 0;
    if (room->words && room->blocks && room->transfers) return true;
    PyErr_NoMemory();
    return false;
}

static void room_close(Room *room) {
    while (room->num_blocks) Py_DECREF(room->blocks[--room->num_blocks]);
    if (room->words != room->few_words) PyMem_Free(room->words);
    if (room->blocks != room->few_blocks) PyMem_Free(room->blocks);
    if (room->transfers != room->few_transfers) PyMem_Free(room->transfers);
}

// Take a block for the time of a call; return whether there is one, with its address.
static bool room_take(Room *room, Pool *pool, long long nbytes, uint64_t *address) {
    Block *block = pool_take(pool, nbytes);
    if (!block) return false;
    room->blocks[room->num_blocks++] = block;
    *address = block->address;
    return true;
}

// Get the arrays of a call ready: their addresses, its results and transfers. Return whether all are there.
static bool prepare(Record *r, Work *w, Room *room, PyObject *const *arrays, PyObject *const *out, Results kind, bool checks,
                    PyObject *results, uint64_t *bases) {
    int num_blocks = r->num_inputs + r->num_outputs;
    for (int i = 0; i < r->num_inputs; i++) {
        if (!PyArray_CheckExact(arrays[i])) {
            bases[i] = ((Array *)arrays[i])->address;
            continue;
        }
        PyArrayObject *array = (PyArrayObject *)arrays[i];
        bases[i] = 0;
        if (!PyArray_SIZE(array)) continue;
        if (!room_take(room, r->pool, PyArray_NBYTES(array), &bases[i])) return false;
        w->uploads[w->num_uploads++] = (Transfer){array, bases[i]};
    }
    for (int k = 0; k < r->num_outputs; k++) {
        const Output *output = &r->outputs[k];
        uint64_t *base = &bases[r->num_inputs + k];
        PyObject *given = kind == GIVEN ? out[k] : Py_None, *array;
        if (given != Py_None && !takes(r, output, given, arrays, PySequence_Fast_ITEMS(results), k, checks)) return false;
        if (given != Py_None)
            array = Py_NewRef(given);
        else
            array = kind == NEW_ON_HOST ? new_host_array(output) : new_result(r, output);
        if (!array) return false;
        PyList_SET_ITEM(results, k, array);
        if (kind != NEW_ON_HOST) {
            *base = ((Array *)array)->address;
            continue;
        }
        if (!room_take(room, r->pool, output->nbytes, base)) return false;
        w->downloads[w->num_downloads++] = (Transfer){(PyArrayObject *)array, *base};
    }
    for (int k = 0; k < r->num_temps; k++)
        if (!room_take(room, r->pool, r->temps[k], &bases[num_blocks + k])) return false;
    return true;
}

// Enqueue the program of a record; return the list of its results, NULL without an error where Python has to do it.
static PyObject *enqueue_record(Launcher *self, Record *r, PyObject *const *arrays, PyObject *const *out, Results kind, bool checks) {
    int num_bases = r->num_inputs + r->num_outputs + r->num_temps, status = 0, waited = 0;
    Room room;
    Work w = {.record = r};
    PyObject *results = NULL, *owner = NULL;
    int entered = enter(r->driver);
    bool is_done = false;
    if (entered < 0) return NULL;
    if (!room_open(&room, num_bases + 2 * r->max_words, num_bases, r->num_inputs + r->num_outputs)) goto done;
    uint64_t *bases = room.words;
    w.bases = bases, w.values = bases + num_bases, w.places = (void **)(w.values + r->max_words);
    w.uploads = room.transfers, w.downloads = room.transfers + r->num_inputs;
    if (!(results = PyList_New(r->num_outputs))) goto done;
    if (!prepare(r, &w, &room, arrays, out, kind, checks, results, bases)) {
        clear_refusal();
        goto done;
    }
    if (r->build_graph) {
        GraphSlot *slot = graph_slot(r, bases, num_bases);
        if (!slot || (!slot->owner && slot->is_seen && !build_graph(r, slot, num_bases))) goto done;
        slot->is_seen = true;  // a graph is built when the addresses come again
        if (slot->owner) {
            w.graph = slot->graph;
            owner = Py_NewRef(slot->owner);
        }
    }
    status = enqueue_and_wait(&w, &waited);
    if (waited) {  // the driver may still use arrays of the host, which live for ever
        for (int k = 0; k < w.num_uploads; k++) Py_INCREF(w.uploads[k].array);
        for (int k = 0; k < w.num_downloads; k++) Py_INCREF(w.downloads[k].array);
    }
    is_done = !status && !waited;
    if (is_done) {
        self->replays += w.graph != 0;
        self->uploaded = self->downloaded = 0;
        for (int k = 0; k < w.num_uploads; k++) self->uploaded += PyArray_NBYTES(w.uploads[k].array);
        for (int k = 0; k < w.num_downloads; k++) self->downloaded += PyArray_NBYTES(w.downloads[k].array);
    } else if (w.num_launched) {  // the call must not be done again
        PyObject *raised = PyObject_CallMethod((PyObject *)self, "call_failed", "Oii", r->owner, status ? w.num_launched : -1,
                                               status ? status : waited);
        Py_XDECREF(raised);
        if (raised) PyErr_SetString(PyExc_RuntimeError, "a call failed, and no error was raised");
    }
done:
    room_close(&room);
    leave(r->driver, entered);
    Py_XDECREF(owner);
    if (!is_done) Py_CLEAR(results);
    return results;
}

// Return the list of the results of a call whose arrays can be taken as they are, NULL without an error where Python
// has to do it. `out` has an array on the device or None for each result, if these are given.
static PyObject *call_fast(Launcher *self, PyObject *const *values, Py_ssize_t count, Results kind, PyObject *out, PyObject *numbers,
                           bool checks) {
    if (!self->records || !PyList_GET_SIZE(self->records) || PyTuple_GET_SIZE(self->dtypes) != count) return NULL;
    PyObject *few[FEW], **arrays = few;
    if (count > FEW && !(arrays = PyMem_Malloc(count * sizeof(PyObject *)))) return PyErr_NoMemory();
    PyObject *results = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!(arrays[i] = array_of(values[i], numbers))) goto done;
        PyObject *dtype = PyArray_CheckExact(arrays[i]) ? (PyObject *)PyArray_DESCR((PyArrayObject *)arrays[i]) : ((Array *)arrays[i])->dtype;
        if (!same_dtype(dtype, PyTuple_GET_ITEM(self->dtypes, i))) goto done;
    }
    Record *record = find_record(self, arrays);
    if (!record) goto done;
    PyObject *const *targets = NULL;
    if (kind == GIVEN) {
        if (!(PyList_Check(out) || PyTuple_Check(out)) || PySequence_Fast_GET_SIZE(out) != record->num_outputs) goto done;
        targets = PySequence_Fast_ITEMS(out);
    }
    Py_INCREF(record);
    PyObject *lock = record->lock;
    if (lock) {
        PyObject *acquired = PyObject_CallMethodNoArgs(lock, acquire_name);
        if (!acquired) {
            Py_DECREF(record);
            goto done;
        }
        Py_DECREF(acquired);
    }
    if (!record->variables || record->variables->changes == record->expected)
        results = enqueue_record(self, record, arrays, targets, kind, checks);
    if (lock) {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        PyObject *released = PyObject_CallMethodNoArgs(lock, release_name);
        if (released) {
            PyErr_Restore(type, error, traceback);
            Py_DECREF(released);
        } else {
            Py_CLEAR(results);
            Py_XDECREF(type);
            Py_XDECREF(error);
            Py_XDECREF(traceback);
        }
    }
    Py_DECREF(record);
done:
    if (arrays != few) PyMem_Free(arrays);
    if (results) {
        self->fast_calls++;
        self->was_fast = 1;
    }
    return results;
}

static int input_named(const Launcher *self, PyObject *name) {
    Py_ssize_t count = PyTuple_GET_SIZE(self->names);
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyTuple_GET_ITEM(self->names, i) == name) return (int)i;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyUnicode_Compare(PyTuple_GET_ITEM(self->names, i), name)) return (int)i;
    return -1;
}

// Call on feeds in any form; NULL without an error where Python has to do it.
static PyObject *call_feeds(Launcher *self, PyObject *const *args, Py_ssize_t num_args, PyObject *kwnames) {
    Py_ssize_t count = PyTuple_GET_SIZE(self->dtypes), num_names = kwnames ? PyTuple_GET_SIZE(kwnames) : 0, num_values = 0;
    if (num_args > 1 || !self->records || !PyList_GET_SIZE(self->records)) return NULL;
    PyObject *feeds = num_args && args[0] != Py_None ? args[0] : NULL, *out = NULL, *results = NULL;
    PyObject *few[FEW], **values = few, *const *named = args + num_args;
    if (count > FEW && !(values = PyMem_Malloc(count * sizeof(PyObject *)))) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) values[i] = NULL;
    for (Py_ssize_t i = 0; i < num_names; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (name == out_name || !PyUnicode_Compare(name, out_name)) {
            out = named[i];
            continue;
        }
        int k = input_named(self, name);
        if (k < 0 || values[k]) goto done;
        values[k] = named[i];
        num_values++;
    }
    Results kind = !out || out == Py_None ? NEW_ON_HOST : PyUnicode_Check(out) ? NEW_ON_DEVICE : GIVEN;
    if (kind == NEW_ON_DEVICE && PyUnicode_Compare(out, device_text)) goto done;
    if (kind == GIVEN) {
        if (!PyList_Check(out) && !PyTuple_Check(out)) goto done;
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(out); k++)
            if (PySequence_Fast_GET_ITEM(out, k) == Py_None) goto done;  // a new array on the host
    }
    if (feeds && PyDict_CheckExact(feeds)) {
        if (PyDict_GET_SIZE(feeds) + num_values != count) goto done;
        for (Py_ssize_t i = 0; i < count; i++) {
            if (values[i]) continue;
            if (!(values[i] = PyDict_GetItemWithError(feeds, PyTuple_GET_ITEM(self->names, i)))) goto done;
            num_values++;
        }
    } else if (feeds) {
        if (num_values || !(PyTuple_CheckExact(feeds) || PyList_CheckExact(feeds)) || PySequence_Fast_GET_SIZE(feeds) != count) goto done;
        for (; num_values < count; num_values++) values[num_values] = PySequence_Fast_GET_ITEM(feeds, num_values);
    }
    if (num_values == count) results = call_fast(self, values, count, kind, out, NULL, true);
done:
    if (values != few) PyMem_Free(values);
    return results;
}

static PyObject *launcher_vectorcall(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    PyObject *results = call_feeds((Launcher *)object, args, PyVectorcall_NARGS(nargsf), kwnames);
    if (results || PyErr_Occurred()) return results;
    PyObject *method = PyObject_GetAttr(object, call_slowly_name);
    if (!method) return NULL;
    results = PyObject_Vectorcall(method, args, PyVectorcall_NARGS(nargsf), kwnames);
    Py_DECREF(method);
    return results;
}

static PyObject *launcher_run_into(PyObject *object, PyObject *const *args, Py_ssize_t num_args) {
    Results kind = num_args && args[0] != Py_None ? GIVEN : NEW_ON_DEVICE;
    PyObject *results = num_args ? call_fast((Launcher *)object, args + 1, num_args - 1, kind, args[0], NULL, false) : NULL;
    if (results || PyErr_Occurred()) return results;
    PyObject *method = PyObject_GetAttr(object, enqueue_slowly_name);
    if (!method) return NULL;
    results = PyObject_Vectorcall(method, args, num_args, NULL);
    Py_DECREF(method);
    return results;
}

static PyObject *launcher_run_positional(PyObject *object, PyObject *const *args, Py_ssize_t num_args) {
    PyObject *results = call_fast((Launcher *)object, args, num_args, NEW_ON_HOST, NULL, NULL, false);
    if (results || PyErr_Occurred()) return results;
    PyObject *method = PyObject_GetAttr(object, run_slowly_name);
    if (!method) return NULL;
    results = PyObject_Vectorcall(method, args, num_args, NULL);
    Py_DECREF(method);
    return results;
}

static PyObject *launcher_describe(Launcher *self, PyObject *args) {
    PyObject *names, *dtypes;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &names, &PyTuple_Type, &dtypes)) return NULL;
    Py_INCREF(names);
    Py_XSETREF(self->names, names);
    Py_INCREF(dtypes);
    Py_XSETREF(self->dtypes, dtypes);
    Py_RETURN_NONE;
}

static PyMethodDef launcher_methods[] = {
    {"describe", (PyCFunction)launcher_describe, METH_VARARGS, "describe(names, dtypes): the inputs, as two tuples."},
    {"run_positional", (PyCFunction)(void (*)(void))launcher_run_positional, METH_FASTCALL,
     "run_positional(*arrays): run the program; return the results, NumPy arrays."},
    {"run_into", (PyCFunction)(void (*)(void))launcher_run_into, METH_FASTCALL,
     "run_into(out, *arrays): enqueue the program; return the results, which are on the device."},
    {NULL}};

static PyMemberDef launcher_members[] = {
    {"records", T_OBJECT, offsetof(Launcher, records), READONLY, "the records of the shapes that were called, a list"},
    {"fast_calls", T_LONGLONG, offsetof(Launcher, fast_calls), READONLY, "calls that ran no Python"},
    {"replays", T_LONGLONG, offsetof(Launcher, replays), READONLY, "launches of graphs in such calls"},
    {"uploaded", T_LONGLONG, offsetof(Launcher, uploaded), READONLY, "the bytes that the last such call uploaded"},
    {"downloaded", T_LONGLONG, offsetof(Launcher, downloaded), READONLY, "the bytes that the last such call downloaded"},
    {"was_fast", T_BOOL, offsetof(Launcher, was_fast), 0, "whether the last call ran no Python"},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launcher, vectorcall), READONLY},
    {NULL}};

static PyType_Slot launcher_slots[] = {
    {Py_tp_doc, (void *)"The base of programs on a device: does calls that a record describes, and leaves others to Python."},
    {Py_tp_new, (void *)launcher_new},
    {Py_tp_dealloc, (void *)launcher_dealloc},
    {Py_tp_traverse, (void *)launcher_traverse},
    {Py_tp_clear, (void *)launcher_clear},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_methods, launcher_methods},
    {Py_tp_members, launcher_members},
    {0, NULL}};

static PyType_Spec launcher_spec = {"_passkit_device_launcher.LauncherBase", sizeof(Launcher), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                                    launcher_slots};

// Runners: what a stream calls

typedef struct {
    PyObject_HEAD
    Launcher *launcher;
    PyObject *slow, *numbers;
    bool takes_out;
    vectorcallfunc vectorcall;
} Runner;

static PyObject *runner_vectorcall(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Runner *self = (Runner *)object;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (!kwnames && count >= self->takes_out) {
        PyObject *out = self->takes_out ? args[0] : Py_None;
        Results kind = out == Py_None ? NEW_ON_DEVICE : GIVEN;
        PyObject *results = call_fast(self->launcher, args + self->takes_out, count - self->takes_out, kind, out, self->numbers, false);
        if (results || PyErr_Occurred()) return results;
    }
    return PyObject_Vectorcall(self->slow, args, count, kwnames);
}

static PyObject *runner_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *launcher, *slow, *numbers;
    int takes_out;
    if (!PyArg_ParseTuple(args, "O!OO!p", Launcher_type, &launcher, &slow, &PyDict_Type, &numbers, &takes_out)) return NULL;
    Runner *self = (Runner *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->launcher = (Launcher *)Py_NewRef(launcher);
    self->slow = Py_NewRef(slow);
    self->numbers = Py_NewRef(numbers);
    self->takes_out = takes_out;
    self->vectorcall = runner_vectorcall;
    return (PyObject *)self;
}

static int runner_traverse(Runner *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->launcher);
    Py_VISIT(self->slow);
    Py_VISIT(self->numbers);
    return 0;
}

static int runner_clear(Runner *self) {
    Py_CLEAR(self->slow);
    return 0;
}

static void runner_dealloc(Runner *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->launcher);
    Py_XDECREF(self->slow);
    Py_XDECREF(self->numbers);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef runner_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Runner, vectorcall), READONLY}, {NULL}};

static PyType_Slot runner_slots[] = {
    {Py_tp_doc, (void *)"Runner(launcher, slow, numbers, takes_out): `run_into` of a launcher for a stream.\n\n"
                        "`numbers` has arrays of the device by the dtype and bytes of numbers; `slow` does the calls that "
                        "the launcher cannot do."},
    {Py_tp_new, (void *)runner_new},
    {Py_tp_dealloc, (void *)runner_dealloc},
    {Py_tp_traverse, (void *)runner_traverse},
    {Py_tp_clear, (void *)runner_clear},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_members, runner_members},
    {0, NULL}};

static PyType_Spec runner_spec = {"_passkit_device_launcher.Runner", sizeof(Runner), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, runner_slots};

static PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "_passkit_device_launcher", "Enqueues programs on devices.", -1, NULL};

static bool add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type) {
    *type = (PyTypeObject *)PyType_FromSpec(spec);
    return *type && !PyModule_AddType(module, *type);
}

PyMODINIT_FUNC PyInit__passkit_device_launcher(void) {
    import_array();
    acquire_name = PyUnicode_InternFromString("acquire");
    release_name = PyUnicode_InternFromString("release");
    call_slowly_name = PyUnicode_InternFromString("call_slowly");
    enqueue_slowly_name = PyUnicode_InternFromString("enqueue_slowly");
    run_slowly_name = PyUnicode_InternFromString("run_slowly");
    out_name = PyUnicode_InternFromString("out");
    device_text = PyUnicode_InternFromString("device");
    PyObject *module = PyModule_Create(&module_def);
    if (!module || !acquire_name || !release_name || !call_slowly_name || !enqueue_slowly_name || !run_slowly_name || !out_name ||
        !device_text)
        return NULL;
    if (!add_type(module, &block_spec, &Block_type) || !add_type(module, &pool_spec, &Pool_type) ||
        !add_type(module, &array_spec, &Array_type) || !add_type(module, &driver_spec, &Driver_type) ||
        !add_type(module, &changes_spec, &Changes_type) || !add_type(module, &record_spec, &Record_type) ||
        !add_type(module, &launcher_spec, &Launcher_type) || !add_type(module, &runner_spec, &Runner_type) ||
        pthread_atfork(NULL, NULL, note_fork)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
