// TensorProgram: calls with tensors of a library that has DLPack's exchange API, such as PyTorch.
//
// Plain tensors are read, and results are handed over, without an array in between. Whatever fails the
// fast checks here goes to `fallback`, which gets the same arguments.
// Source: dlpack.h 1.3, whose structures these are.
#pragma once
#include <stddef.h>

#define DLPACK_MAJOR 1
#define DLPACK_MINOR 3
#define DEVICE_CPU 1
#define RESULT_ALIGNMENT 64

typedef struct {
    int32_t kind, number;
} DLDevice;

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType type;
    int64_t *shape, *strides;    // in elements; strides may be null for a contiguous tensor
    uint64_t offset;             // in bytes
} DLTensor;

typedef struct DLManaged DLManaged;

struct DLManaged {
    uint32_t major, minor;
    void *context;
    void (*deleter)(DLManaged *);
    uint64_t flags;
    DLTensor tensor;
};

typedef struct ExchangeAPI ExchangeAPI;

struct ExchangeAPI {
    uint32_t major, minor;
    const ExchangeAPI *previous;
    void *allocate, *export_object;
    int (*to_object)(DLManaged *tensor, void **object);
    int (*view_object)(void *object, DLTensor *tensor);
    void *current_stream;
};

typedef struct {
    Py_ssize_t position;         // among the arguments
    DLDataType type;
    PyObject *checks;            // tuple of functions; a tensor for which one is true is not plain
} TensorInput;

typedef struct {                 // a result: a computed one, what a function makes of one, an argument, or a value
    int kind;
    Py_ssize_t position;
    PyObject *value;             // of a result that is mapped, the function
    int ndim;                    // the number of `axes`; 0 if they are in order
    int axes[NPY_MAXDIMS];       // the axis of the computed array that each axis of the tensor is
} TensorResult;

enum { COMPUTED, MAPPED, ARGUMENT, VALUE };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Program *program;
    const ExchangeAPI *api;
    PyObject *capsule, *types, *fallback;
    int num_inputs, num_outputs, num_results;
    TensorInput *inputs;
    DLDataType *outputs;
    TensorResult *results;
} TensorProgram;

static PyTypeObject *TensorProgram_type;

// A result with its memory: elements behind the header, an allocation of the pool, or an array.
typedef struct {
    DLManaged managed;
    Returned memory;
    PyObject *array;
    int64_t extents[];           // the shape, then the strides
} OwnedTensor;

#if PY_VERSION_HEX < 0x030D0000
#define Py_IsFinalizing _Py_IsFinalizing
#endif

static void release_tensor(DLManaged *managed) {
    OwnedTensor *owned = (OwnedTensor *)managed;
    if (owned->array) {
        // Once the interpreter ends, other threads that ask for the GIL are ended where they are.
        if (!Py_IsInitialized() || (Py_IsFinalizing() && !PyGILState_Check())) return;
        PyGILState_STATE state = PyGILState_Ensure();
        Py_DECREF(owned->array);
        PyGILState_Release(state);
    } else if (owned->memory.piece.slab && !PyGILState_Check()) {
        owned->memory.memory = owned;
        pool_give_later(&owned->memory);
        return;
    } else if (owned->memory.piece.slab) {
        pool_give_piece(owned->memory.piece);
    }
    free(owned);
}

// Create the tensor of an output: over the memory of `array`, or over new memory if that is null.
static OwnedTensor *new_tensor(const Output *out, DLDataType type, const TensorResult *result,
                               PyArrayObject *array) {
    int64_t header = (int64_t)sizeof(OwnedTensor) + 2 * (int64_t)sizeof(int64_t) * out->ndim;
    bool small = !array && out->nbytes < POOLED_RESULT;
    OwnedTensor *owned = (OwnedTensor *)malloc((size_t)(header + (small ? out->nbytes + RESULT_ALIGNMENT : 0)));
    if (!owned) {
        PyErr_NoMemory();
        return NULL;
    }
    char *data = (char *)(((uintptr_t)owned + (uintptr_t)header + RESULT_ALIGNMENT - 1) & ~(uintptr_t)(RESULT_ALIGNMENT - 1));
    owned->memory.piece = (Piece){NULL, NULL, 0};
    if (array) {
        data = PyArray_BYTES(array);
    } else if (!small) {
        owned->memory.piece = pool_take_piece(out->nbytes);
        data = owned->memory.piece.data;
        if (!owned->memory.piece.slab) {
            free(owned);
            PyErr_Format(capacity_error, "no memory for an array of %lld bytes", (long long)out->nbytes);
            return NULL;
        }
    }
    owned->array = Py_XNewRef((PyObject *)array);
    int64_t *shape = owned->extents, *strides = shape + out->ndim, natural[NPY_MAXDIMS], stride = 1;
    for (int d = out->ndim - 1; d >= 0; d--) {
        natural[d] = stride;
        stride *= out->dims[d] > 1 ? out->dims[d] : 1;
    }
    for (int d = 0; d < out->ndim; d++) {
        int axis = result->ndim ? result->axes[d] : d;
        shape[d] = out->dims[axis];
        strides[d] = natural[axis];
    }
    DLTensor tensor = {data, {DEVICE_CPU, 0}, out->ndim, type, shape, strides, 0};
    owned->managed = (DLManaged){DLPACK_MAJOR, DLPACK_MINOR, NULL, release_tensor, 0, tensor};
    return owned;
}

// Describe an argument; false if it is no tensor of the type, rank and device that the input needs, or
// if its elements are not those in memory.
static bool view_tensor(const TensorProgram *t, int i, PyObject *object, DLTensor *tensor) {
    const TensorInput *input = &t->inputs[i];
    bool known = false;
    for (Py_ssize_t k = 0; !known && k < PyTuple_GET_SIZE(t->types); k++)
        known = (PyObject *)Py_TYPE(object) == PyTuple_GET_ITEM(t->types, k);
    if (!known || t->api->view_object(object, tensor)) {
        PyErr_Clear();
        return false;
    }
    if (tensor->device.kind != DEVICE_CPU || tensor->ndim != t->program->inputs[i].ndim ||
        tensor->type.code != input->type.code || tensor->type.bits != input->type.bits ||
        tensor->type.lanes != 1)
        return false;
    int64_t count = 1;
    for (int d = 0; d < tensor->ndim; d++) count *= tensor->shape[d];
    if (count && !tensor->data) return false;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(input->checks); k++) {
        PyObject *answer = PyObject_CallOneArg(PyTuple_GET_ITEM(input->checks, k), object);
        bool plain = answer == Py_False;
        Py_XDECREF(answer);
        if (plain) continue;
        PyErr_Clear();
        return false;
    }
    tensor->data = (char *)tensor->data + tensor->offset;
    return true;
}

// Return whether a tensor is contiguous and aligned, with its axes in order.
static bool is_plain_tensor(const DLTensor *tensor) {
    if ((uintptr_t)tensor->data % (tensor->type.bits < 64 ? (tensor->type.bits + 7) / 8 : 8)) return false;
    if (!tensor->strides) return true;
    int64_t expected = 1;
    bool plain = true;
    for (int d = tensor->ndim - 1; d >= 0; d--) {
        if (!tensor->shape[d]) return true;
        plain = plain && (tensor->shape[d] == 1 || tensor->strides[d] == expected);
        expected *= tensor->shape[d];
    }
    return plain;
}

// Return an array over the memory of a tensor, which it keeps alive.
static PyArrayObject *array_of_tensor(int typenum, const DLTensor *tensor, PyObject *object) {
    PyArray_Descr *descr = PyArray_DescrFromType(typenum);
    if (!descr) return NULL;
    npy_intp strides[NPY_MAXDIMS];
    for (int d = 0; tensor->strides && d < tensor->ndim; d++)
        strides[d] = tensor->strides[d] * (npy_intp)PyDataType_ELSIZE(descr);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, tensor->ndim, (npy_intp *)tensor->shape,
                                           tensor->strides ? strides : NULL, tensor->data, 0, NULL);
    if (!array) return NULL;
    Py_INCREF(object);
    if (!PyArray_SetBaseObject((PyArrayObject *)array, object)) return (PyArrayObject *)array;
    Py_DECREF(array);
    return NULL;
}

// Return the list of results; `computed` has the tensors of outputs, whose references it takes.
static PyObject *collect_results(const TensorProgram *t, PyObject **computed, PyObject *args) {
    PyObject *list = PyList_New(t->num_results);
    for (int k = 0; list && k < t->num_results; k++) {
        const TensorResult *r = &t->results[k];
        if (r->kind == ARGUMENT && r->position >= PyList_GET_SIZE(args)) {   // by another thread
            PyErr_SetString(PyExc_RuntimeError, "the list of arguments changed during the call");
            Py_CLEAR(list);
            break;
        }
        PyObject *item = r->kind == COMPUTED ? Py_NewRef(computed[r->position])
                         : r->kind == MAPPED ? PyObject_CallOneArg(r->value, computed[r->position])
                         : r->kind == VALUE  ? Py_NewRef(r->value)
                                             : Py_NewRef(PyList_GET_ITEM(args, r->position));
        if (item) PyList_SET_ITEM(list, k, item);
        else Py_CLEAR(list);
    }
    return list;
}

// Return the result that an output is: programs return each output once.
static const TensorResult *result_of(const TensorProgram *t, int output) {
    for (int k = 0; k < t->num_results; k++)
        if (t->results[k].kind == COMPUTED && t->results[k].position == output) return &t->results[k];
    return NULL;
}

// Hand over tensors to the library, which takes each in any case; `computed` gets the objects. After an
// error the rest is released. False with an error.
static bool hand_over(const TensorProgram *t, OwnedTensor **owned, PyObject **computed) {
    bool ok = true;
    for (int k = 0; k < t->num_outputs; k++) {
        void *object = NULL;
        if (!ok) release_tensor(&owned[k]->managed);
        else ok = !t->api->to_object(&owned[k]->managed, &object);
        computed[k] = (PyObject *)object;
    }
    if (!ok && !PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a result could not be made a tensor");
    return ok;
}

// Run on plain tensors, with results in new memory; `computed` gets the tensors. False with an error.
static bool run_plain(const TensorProgram *t, Bound *b, const Feed *feeds, PyObject **computed) {
    Program *p = t->program;
    char *stack_slots[STACK_ITEMS + 2];
    void *stack_ptrs[2 * STACK_ITEMS];
    OwnedTensor *stack_owned[STACK_ITEMS];
    int num_slots = p->num_inputs + p->num_outputs + 2, made = 0;
    char **slots = num_slots <= STACK_ITEMS + 2 ? stack_slots : ZEROED(char *, num_slots);
    void **ptrs = b->num_refs <= 2 * STACK_ITEMS ? stack_ptrs : ZEROED(void *, b->num_refs);
    OwnedTensor **owned = t->num_outputs <= STACK_ITEMS ? stack_owned : ZEROED(OwnedTensor *, t->num_outputs);
    Run run = {p, b, NULL, NULL, slots, ptrs, NULL, NULL, false};
    bool ok = slots && ptrs && owned;
    if (ok) {
        for (int i = 0; i < p->num_inputs; i++) slots[i] = feeds[i].data;
        slots[num_slots - 2] = slots[num_slots - 1] = NULL;
    }
    for (; ok && made < t->num_outputs; made += ok) {
        owned[made] = new_tensor(&b->outputs[made], t->outputs[made], result_of(t, made), NULL);
        ok = owned[made] != NULL;
        if (ok) slots[p->num_inputs + made] = (char *)owned[made]->managed.tensor.data;
    }
    ok = ok && run_with_arena(&run);
    if (ok) ok = hand_over(t, owned, computed);
    else
        for (int k = 0; k < made; k++) release_tensor(&owned[k]->managed);
    if (slots != stack_slots) PyMem_Free(slots);
    if (ptrs != stack_ptrs) PyMem_Free(ptrs);
    if (owned != stack_owned) PyMem_Free(owned);
    return ok;
}

// Run on arrays over the memory of tensors; their results become tensors. False with an error.
COLD static bool run_on_arrays(const TensorProgram *t, const Bound *b, const DLTensor *tensors,
                          PyObject *const *objects, PyObject **computed) {
    Program *p = t->program;
    PyArrayObject **arrays = ZEROED(PyArrayObject *, p->num_inputs);
    OwnedTensor **owned = ZEROED(OwnedTensor *, t->num_outputs);
    PyObject *results = NULL;
    bool ok = arrays && owned;
    for (int i = 0; ok && i < p->num_inputs; i++) {
        arrays[i] = array_of_tensor(p->inputs[i].typenum, &tensors[i], objects[i]);
        ok = arrays[i] != NULL;
    }
    if (ok) results = run_arrays(p, arrays, NULL, false);
    ok = results != NULL;
    int made = 0;
    for (; ok && made < t->num_outputs; made += ok) {
        owned[made] = new_tensor(&b->outputs[made], t->outputs[made], result_of(t, made),
                                 (PyArrayObject *)PyList_GET_ITEM(results, made));
        ok = owned[made] != NULL;
    }
    if (ok) ok = hand_over(t, owned, computed);
    else
        for (int k = 0; k < made; k++) release_tensor(&owned[k]->managed);
    Py_XDECREF(results);
    for (int i = 0; arrays && i < p->num_inputs; i++) Py_XDECREF(arrays[i]);
    PyMem_Free(arrays);
    PyMem_Free(owned);
    return ok;
}

// Run on tensors that passed the checks; `objects` are their arguments.
static PyObject *run_tensors(const TensorProgram *t, const DLTensor *tensors, PyObject *const *objects,
                             PyObject *args, bool plain) {
    Program *p = t->program;
    Feed stack_feeds[STACK_ITEMS];
    PyObject *stack_computed[STACK_ITEMS], *list = NULL;
    Feed *feeds = p->num_inputs <= STACK_ITEMS ? stack_feeds : ZEROED(Feed, p->num_inputs);
    PyObject **computed = t->num_outputs <= STACK_ITEMS ? stack_computed : ZEROED(PyObject *, t->num_outputs);
    if (feeds && computed) {
        for (int k = 0; k < t->num_outputs; k++) computed[k] = NULL;
        for (int i = 0; i < p->num_inputs; i++)
            feeds[i] = (Feed){(char *)tensors[i].data, (const npy_intp *)tensors[i].shape};
        Bound *b = bound_for(p, feeds);
        if (b && (plain && !b->has_python && !p->lock ? run_plain(t, b, feeds, computed)
                                                      : run_on_arrays(t, b, tensors, objects, computed)))
            list = collect_results(t, computed, args);
        for (int k = 0; k < t->num_outputs; k++) Py_XDECREF(computed[k]);
        Py_XDECREF(b);
    }
    if (feeds != stack_feeds) PyMem_Free(feeds);
    if (computed != stack_computed) PyMem_Free(computed);
    return list;
}

// program([tensors and numbers]): the list of results; the argument is empty afterwards.
static PyObject *tensor_program_call(PyObject *self, PyObject *const *call_args, size_t nargsf,
                                     PyObject *kwnames) {
    const TensorProgram *t = (const TensorProgram *)self;
    if (PyVectorcall_NARGS(nargsf) != 1 || kwnames || !PyList_CheckExact(call_args[0])) {
        PyErr_SetString(PyExc_TypeError, "a program of tensors takes one list of arguments");
        return NULL;
    }
    PyObject *args = call_args[0], *results = NULL;
    DLTensor stack_tensors[STACK_ITEMS];
    PyObject *stack_objects[STACK_ITEMS];
    DLTensor *tensors = t->num_inputs <= STACK_ITEMS ? stack_tensors : ZEROED(DLTensor, t->num_inputs);
    PyObject **objects = t->num_inputs <= STACK_ITEMS ? stack_objects : ZEROED(PyObject *, t->num_inputs);
    bool ok = tensors && objects, fits_all = true, plain = true;
    int held = 0;
    for (; ok && fits_all && held < t->num_inputs; held++) {
        Py_ssize_t position = t->inputs[held].position;
        if (position >= PyList_GET_SIZE(args)) {
            fits_all = false;
            break;
        }
        objects[held] = Py_NewRef(PyList_GET_ITEM(args, position));
        fits_all = view_tensor(t, held, objects[held], &tensors[held]);
        plain = fits_all && plain && is_plain_tensor(&tensors[held]);
    }
    for (int k = 0; fits_all && k < t->num_results; k++)
        fits_all = t->results[k].kind != ARGUMENT || t->results[k].position < PyList_GET_SIZE(args);
    if (ok && fits_all) {
        results = run_tensors(t, tensors, objects, args, plain);
        if (PyList_SetSlice(args, 0, PyList_GET_SIZE(args), NULL)) Py_CLEAR(results);
    } else if (ok) {
        results = PyObject_CallOneArg(t->fallback, args);
    }
    for (int i = 0; i < held; i++) Py_DECREF(objects[i]);
    if (tensors != stack_tensors) PyMem_Free(tensors);
    if (objects != stack_objects) PyMem_Free(objects);
    return results;
}

COLD static bool parse_tensor_inputs(TensorProgram *t, PyObject *inputs) {
    t->inputs = ZEROED(TensorInput, PyTuple_GET_SIZE(inputs));
    if (!t->inputs) return false;
    for (; t->num_inputs < PyTuple_GET_SIZE(inputs); t->num_inputs++) {
        TensorInput *input = &t->inputs[t->num_inputs];
        PyObject *checks;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(inputs, t->num_inputs), "nbbO!", &input->position,
                              &input->type.code, &input->type.bits, &PyTuple_Type, &checks))
            return false;
        if (input->position < 0) {
            PyErr_Format(PyExc_ValueError, "a position must not be negative, got %zd", input->position);
            return false;
        }
        input->type.lanes = 1;
        input->checks = Py_NewRef(checks);
    }
    return true;
}

COLD static bool parse_tensor_outputs(TensorProgram *t, PyObject *outputs) {
    t->outputs = ZEROED(DLDataType, PyTuple_GET_SIZE(outputs));
    if (!t->outputs) return false;
    for (; t->num_outputs < PyTuple_GET_SIZE(outputs); t->num_outputs++) {
        DLDataType *type = &t->outputs[t->num_outputs];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(outputs, t->num_outputs), "bb", &type->code, &type->bits))
            return false;
        type->lanes = 1;
    }
    return true;
}

// Parse ("computed", output, axes), ("mapped", output, function), ("argument", position) or ("value", object).
COLD static bool parse_tensor_result(TensorResult *r, PyObject *item, int num_outputs) {
    const char *kind;
    PyObject *value, *axes = NULL;
    if (!PyArg_ParseTuple(item, "sO|O", &kind, &value, &axes)) return false;
    if (!strcmp(kind, "value")) {
        r->kind = VALUE;
        r->value = Py_NewRef(value);
        return true;
    }
    r->kind = !strcmp(kind, "computed") ? COMPUTED : !strcmp(kind, "mapped") ? MAPPED : ARGUMENT;
    r->position = PyLong_AsSsize_t(value);
    if (r->position == -1 && PyErr_Occurred()) return false;
    if (r->kind == MAPPED) {
        r->value = Py_XNewRef(axes);
        axes = NULL;
    }
    r->ndim = axes && PyTuple_Check(axes) ? (int)PyTuple_GET_SIZE(axes) : 0;
    bool valid = r->position >= 0 && r->ndim <= NPY_MAXDIMS &&
                 (r->kind == ARGUMENT ? !strcmp(kind, "argument") : r->position < num_outputs) &&
                 (r->kind != MAPPED || (r->value && PyCallable_Check(r->value)));
    for (int d = 0; valid && d < r->ndim; d++) {
        r->axes[d] = (int)PyLong_AsLong(PyTuple_GET_ITEM(axes, d));
        valid = r->axes[d] >= 0 && r->axes[d] < r->ndim;
    }
    if (valid) return true;
    Py_CLEAR(r->value);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "a result must be ('computed', output, axes), ('mapped', output, function), "
                     "('argument', position) or ('value', object), got %R", item);
    return false;
}

COLD static bool parse_tensor_results(TensorProgram *t, PyObject *results) {
    t->results = ZEROED(TensorResult, PyTuple_GET_SIZE(results));
    if (!t->results) return false;
    for (; t->num_results < PyTuple_GET_SIZE(results); t->num_results++)
        if (!parse_tensor_result(&t->results[t->num_results], PyTuple_GET_ITEM(results, t->num_results),
                                 t->num_outputs))
            return false;
    for (int k = 0; k < t->num_outputs; k++)
        if (!result_of(t, k)) {
            PyErr_Format(PyExc_ValueError, "no result is output %d of the program", k);
            return false;
        }
    return true;
}

// Return the table of functions in a capsule, or an older one that it refers to, of the major version
// that is known here; NULL with an error.
COLD static const ExchangeAPI *exchange_api(PyObject *capsule) {
    const ExchangeAPI *api = (const ExchangeAPI *)PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    if (!api) return NULL;
    uint32_t major = api->major;
    while (api && api->major != DLPACK_MAJOR) api = api->previous;
    if (api && api->view_object && api->to_object) return api;
    PyErr_Format(PyExc_ValueError, "the exchange API needs DLPack %d and views of tensors, got DLPack %u",
                 DLPACK_MAJOR, (unsigned)major);
    return NULL;
}

COLD static PyObject *tensor_program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *names[] = {"program", "api", "types", "inputs", "outputs", "results", "fallback", NULL};
    PyObject *program, *capsule, *types, *inputs, *outputs, *results, *fallback;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO!O!O!O!O", (char **)names, Program_type, &program,
                                     &capsule, &PyTuple_Type, &types, &PyTuple_Type, &inputs, &PyTuple_Type,
                                     &outputs, &PyTuple_Type, &results, &fallback))
        return NULL;
    const ExchangeAPI *api = exchange_api(capsule);
    if (!api) return NULL;
    const Program *p = (const Program *)program;
    if (PyTuple_GET_SIZE(inputs) != p->num_inputs || PyTuple_GET_SIZE(outputs) != p->num_outputs) {
        PyErr_Format(PyExc_ValueError, "the program has %d inputs and %d outputs, got %zd and %zd", p->num_inputs,
                     p->num_outputs, PyTuple_GET_SIZE(inputs), PyTuple_GET_SIZE(outputs));
        return NULL;
    }
    TensorProgram *t = (TensorProgram *)type->tp_alloc(type, 0);
    if (!t) return NULL;
    t->vectorcall = tensor_program_call;
    t->api = api;
    t->program = (Program *)Py_NewRef(program);
    t->capsule = Py_NewRef(capsule);
    t->types = Py_NewRef(types);
    t->fallback = Py_NewRef(fallback);
    if (!parse_tensor_inputs(t, inputs) || !parse_tensor_outputs(t, outputs) || !parse_tensor_results(t, results))
        Py_CLEAR(t);
    return (PyObject *)t;
}

COLD static int tensor_program_traverse(PyObject *self, visitproc visit, void *arg) {
    TensorProgram *t = (TensorProgram *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)t->program);
    Py_VISIT(t->types);
    Py_VISIT(t->fallback);
    return 0;
}

// A call holds no reference to what is cleared here, so that only the fallback, which makes cycles, is.
COLD static int tensor_program_clear(PyObject *self) {
    Py_CLEAR(((TensorProgram *)self)->fallback);
    return 0;
}

COLD static void tensor_program_dealloc(PyObject *self) {
    TensorProgram *t = (TensorProgram *)self;
    PyObject_GC_UnTrack(self);
    tensor_program_clear(self);
    for (int i = 0; t->inputs && i < t->num_inputs; i++) Py_CLEAR(t->inputs[i].checks);
    for (int k = 0; t->results && k < t->num_results; k++) Py_CLEAR(t->results[k].value);
    PyMem_Free(t->inputs);
    PyMem_Free(t->outputs);
    PyMem_Free(t->results);
    Py_CLEAR(t->program);
    Py_CLEAR(t->capsule);
    Py_CLEAR(t->types);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef tensor_program_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TensorProgram, vectorcall), READONLY},
    {NULL}};

static PyType_Slot tensor_program_slots[] = {
    {Py_tp_doc, (void *)"TensorProgram(program, api, types, inputs, outputs, results, fallback): a callable of a "
                        "list of tensors and numbers, which it empties."},
    {Py_tp_new, (void *)tensor_program_new},
    {Py_tp_dealloc, (void *)tensor_program_dealloc},
    {Py_tp_traverse, (void *)tensor_program_traverse},
    {Py_tp_clear, (void *)tensor_program_clear},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_members, tensor_program_members},
    {0, NULL}};

static PyType_Spec tensor_program_spec = {
    "_passkit_launcher.TensorProgram", sizeof(TensorProgram), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, tensor_program_slots};
