// One run of a program: plain inputs, the Bound for their shapes, results, arena, and the steps.
#pragma once

#define POOLED ((int64_t)1 << 20)        // arenas of at least this size come from the pool
#define POOLED_RESULT ((int64_t)1 << 16) // results of at least this size come from the pool
#define MAX_BOUNDS 64
#define STACK_ITEMS 24                   // programs of up to this many arrays need no heap memory

typedef struct {
    PyObject *name;
    int typenum, ndim;
} Input;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    int num_inputs, num_outputs, num_bounds;
    Input *inputs;
    Bound **bounds;                      // most recently used first
    PyObject *bind, *repair, *refuse, *lock;
    long long native_calls, launches, copies;
} Program;

static PyTypeObject *Program_type;
static PyObject *out_name, *acquire_name, *release_name;

// Return whether a value is an array of the input's type and rank. Subclasses such as masked arrays do
// not: `repair` converts them.
static bool fits(const Input *input, PyObject *value) {
    if (!PyArray_CheckExact(value)) return false;
    PyArrayObject *array = (PyArrayObject *)value;
    return PyArray_NDIM(array) == input->ndim &&
           (PyArray_TYPE(array) == input->typenum ||
            PyArray_EquivTypenums(PyArray_TYPE(array), input->typenum));
}

// Return whether an array is C-contiguous, aligned, and in native byte order.
static bool is_plain(PyArrayObject *array) {
    const int wanted = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    return (PyArray_FLAGS(array) & wanted) == wanted && PyArray_ISNOTSWAPPED(array);
}

COLD static PyArrayObject *plain_copy(Program *p, int typenum, PyArrayObject *array) {
    p->copies += 1;
    return (PyArrayObject *)PyArray_FromArray(array, PyArray_DescrFromType(typenum),
                                              NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED);
}

typedef struct {                         // an input of a run: plain memory, and its extents
    char *data;
    const npy_intp *dims;
} Feed;

// Return whether a Bound is for the shapes of these feeds.
static bool bound_serves(const Program *p, const Bound *b, const Feed *feeds) {
    const npy_intp *dims = b->dims;
    for (int i = 0; i < p->num_inputs; i++) {
        int ndim = p->inputs[i].ndim;
        for (int d = 0; d < ndim; d++)
            if (feeds[i].dims[d] != dims[d]) return false;
        dims += ndim;
    }
    return true;
}

// Return a new reference to the cached Bound for these feeds, and move it to the front; NULL if none.
static Bound *find_bound(Program *p, const Feed *feeds) {
    for (int i = 0; i < p->num_bounds; i++) {
        Bound *b = p->bounds[i];
        if (!bound_serves(p, b, feeds)) continue;
        if (i) {
            memmove(p->bounds + 1, p->bounds, sizeof(Bound *) * (size_t)i);
            p->bounds[0] = b;
        }
        Py_INCREF(b);
        return b;
    }
    return NULL;
}

// Call `bind` for the shapes of these feeds, and cache its result; NULL with an error.
COLD static Bound *make_bound(Program *p, const Feed *feeds) {
    PyObject *shapes = PyTuple_New(p->num_inputs);
    for (int i = 0; shapes && i < p->num_inputs; i++) {
        PyObject *shape = PyArray_IntTupleFromIntp(p->inputs[i].ndim, feeds[i].dims);
        if (!shape) Py_CLEAR(shapes);
        else PyTuple_SET_ITEM(shapes, i, shape);
    }
    if (!shapes) return NULL;
    PyObject *object = PyObject_CallOneArg(p->bind, shapes);
    Py_DECREF(shapes);
    if (!object) return NULL;
    Bound *b = (Bound *)object;
    bool valid = Py_IS_TYPE(object, Bound_type) && b->num_inputs == p->num_inputs &&
                 b->num_outputs == p->num_outputs;
    for (int i = 0; valid && i < p->num_inputs; i++) valid = b->ranks[i] == p->inputs[i].ndim;
    if (!valid || !bound_serves(p, b, feeds)) {
        PyErr_Format(PyExc_TypeError, "bind must return a Bound for the shapes of its argument, with "
                     "%d outputs, got %R", p->num_outputs, object);
        Py_DECREF(object);
        return NULL;
    }
    Bound *other = find_bound(p, feeds);       // another thread may have bound the same shapes
    if (other) {
        Py_DECREF(object);
        return other;
    }
    Bound *last = p->num_bounds == MAX_BOUNDS ? p->bounds[--p->num_bounds] : NULL;
    memmove(p->bounds + 1, p->bounds, sizeof(Bound *) * (size_t)p->num_bounds);
    p->bounds[0] = b;
    p->num_bounds += 1;
    Py_INCREF(b);
    Py_XDECREF(last);
    return b;
}

// Return a new reference to the Bound for these feeds; NULL with an error.
static Bound *bound_for(Program *p, const Feed *feeds) {
    Bound *b = find_bound(p, feeds);
    return b ? b : make_bound(p, feeds);
}

COLD static void forget_bounds(Program *p) {
    while (p->num_bounds) Py_DECREF(p->bounds[--p->num_bounds]);
}

typedef struct {
    Program *program;
    Bound *bound;
    PyArrayObject *const *arrays;        // the inputs; null where none is needed, as for tensors
    PyObject *results;                   // list; null where results are no arrays
    char **slots;
    void **ptrs;
    unsigned char *scratch;
    PyObject *arena_owner;
    bool donates;                        // results may be stored over the inputs that donate to them
} Run;

// Run the native steps of a segment, parallel ones on the team if it is free.
static void run_steps(Run *run, const Segment *segment) {
    Bound *b = run->bound;
    for (int s = segment->first; s < segment->last; s++) {
        if (s == segment->parallel_first && s < segment->parallel_last) {
            Region region = {b->steps + s, run->ptrs, segment->parallel_last - s};
            if (team_run(&region, b->scratch_nbytes, run->scratch)) {
                s = segment->parallel_last - 1;
                continue;
            }
        }
        const Step *step = &b->steps[s];
        if (step->tiles)
            step->kernel(run->ptrs + step->first_ptr, step->sizes, 0, step->tiles, run->scratch);
    }
}

// Run the native steps of a segment; long ones without the GIL.
static void run_native(Run *run, const Segment *segment) {
    if (segment->first == segment->last) return;
    run->program->native_calls += 1;
    if (!run->bound->long_running) {
        run_steps(run, segment);
        return;
    }
    PyThreadState *state = PyEval_SaveThread();
    run_steps(run, segment);
    PyEval_RestoreThread(state);
}

// Return an array over memory of the run, for a step in Python.
COLD static PyObject *view_of(Run *run, const View *view, bool writeable) {
    PyObject *base = view->keepalive;
    int64_t num_inputs = run->bound->num_inputs, num_outputs = run->bound->num_outputs;
    if (view->ref.slot < num_inputs)
        base = (PyObject *)run->arrays[view->ref.slot];
    else if (view->ref.slot < num_inputs + num_outputs)
        base = PyList_GET_ITEM(run->results, view->ref.slot - num_inputs);
    else if (view->ref.slot == num_inputs + num_outputs)
        base = run->arena_owner;
    char *data = run->slots[view->ref.slot] + view->ref.offset;
    Py_INCREF(view->descr);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, view->descr, view->ndim, view->dims, NULL,
                                           data, writeable ? NPY_ARRAY_CARRAY : NPY_ARRAY_CARRAY_RO,
                                           NULL);
    if (!array || !base) return array;
    Py_INCREF(base);
    if (!PyArray_SetBaseObject((PyArrayObject *)array, base)) return array;
    Py_DECREF(array);
    return NULL;
}

COLD static bool run_python(Run *run, const PythonStep *step) {
    PyObject *ins = PyList_New(step->num_in), *outs = PyList_New(step->num_out), *answer = NULL;
    bool ok = ins && outs;
    for (int i = 0; ok && i < step->num_in + step->num_out; i++) {
        PyObject *array = view_of(run, &step->views[i], i >= step->num_in);
        ok = array != NULL;
        if (ok && i < step->num_in) PyList_SET_ITEM(ins, i, array);
        else if (ok) PyList_SET_ITEM(outs, i - step->num_in, array);
    }
    if (ok) answer = PyObject_CallFunctionObjArgs(step->callable, ins, outs, NULL);
    Py_XDECREF(ins);
    Py_XDECREF(outs);
    Py_XDECREF(answer);
    return answer != NULL;
}

// Run all segments, whose memory is allocated; false with an error.
static bool run_segments(Run *run, ThreadMemory *memory) {
    Bound *b = run->bound;
    if (b->scratch_nbytes && !(run->scratch = scratch_atleast(&memory->scratch, b->scratch_nbytes))) {
        PyErr_NoMemory();
        return false;
    }
    for (int i = 0; i < b->num_refs; i++)
        run->ptrs[i] = run->slots[b->refs[i].slot] + b->refs[i].offset;
    for (int s = 0; s < b->num_segments; s++) {
        const Segment *segment = &b->segments[s];
        run_native(run, segment);
        if (!segment->python) continue;
        if (!run_python(run, segment->python)) return false;
        if (b->scratch_nbytes) run->scratch = memory->scratch.data;     // a nested run may have grown it
    }
    run->program->launches += b->num_launches;
    return true;
}

// Allocate the arena, from this thread's memory if it is small, and run all segments.
static bool run_with_arena(Run *run) {
    Bound *b = run->bound;
    ThreadMemory *memory = thread_memory();
    if (!memory) {
        PyErr_NoMemory();
        return false;
    }
    char **arena = &run->slots[b->num_inputs + b->num_outputs];
    if (!b->arena_nbytes) return run_segments(run, memory);
    if (b->has_python || b->arena_nbytes >= POOLED || memory->arena.busy) {
        Owner *owner = owner_new(b->arena_nbytes);
        if (!owner) return false;
        *arena = owner->piece.data;
        run->arena_owner = (PyObject *)owner;
        bool ok = run_segments(run, memory);
        Py_DECREF(owner);
        return ok;
    }
    *arena = (char *)scratch_atleast(&memory->arena, b->arena_nbytes);
    if (!*arena) {
        PyErr_NoMemory();
        return false;
    }
    memory->arena.busy = true;
    bool ok = run_segments(run, memory);
    memory->arena.busy = false;
    return ok;
}

static PyObject *new_result(const Output *out) {
    Py_INCREF(out->descr);
    if (out->nbytes < POOLED_RESULT)
        return PyArray_NewFromDescr(&PyArray_Type, out->descr, out->ndim, out->dims, NULL, NULL,
                                    0, NULL);
    Owner *owner = owner_new(out->nbytes);
    if (!owner) {
        Py_DECREF(out->descr);
        return NULL;
    }
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, out->descr, out->ndim, out->dims, NULL,
                                           owner->piece.data, NPY_ARRAY_CARRAY, NULL);
    if (!array) {
        Py_DECREF(owner);
        return NULL;
    }
    if (!PyArray_SetBaseObject((PyArrayObject *)array, (PyObject *)owner)) return array;
    Py_DECREF(array);
    return NULL;
}

static bool overlap(const char *a, int64_t a_nbytes, const char *b, int64_t b_nbytes) {
    return a_nbytes && b_nbytes && a < b + b_nbytes && b < a + a_nbytes;
}

// Return whether a caller's array can take result k: it has the same type and shape, and shares no
// memory with inputs and earlier results; `run_into` also takes the input that donates to the result.
static bool takes_result(const Run *run, int k, PyObject *object) {
    const Output *out = &run->bound->outputs[k];
    PyArrayObject *array = (PyArrayObject *)object;
    if (!PyArray_Check(object) || PyArray_NDIM(array) != out->ndim || !is_plain(array) ||
        !PyArray_ISWRITEABLE(array) || !PyArray_EquivTypenums(PyArray_TYPE(array), out->typenum))
        return false;
    for (int d = 0; d < out->ndim; d++)
        if (PyArray_DIM(array, d) != out->dims[d]) return false;
    for (int i = 0; i < run->bound->num_inputs; i++)
        if (!(run->donates && i == out->donor && PyArray_BYTES(array) == PyArray_BYTES(run->arrays[i])) &&
            overlap(PyArray_BYTES(array), out->nbytes, PyArray_BYTES(run->arrays[i]),
                    PyArray_NBYTES(run->arrays[i])))
            return false;
    for (int i = 0; i < k; i++)
        if (overlap(PyArray_BYTES(array), out->nbytes, run->slots[run->bound->num_inputs + i],
                    run->bound->outputs[i].nbytes))
            return false;
    return true;
}

// Raise an error for out[k], or for out itself if k is -1.
COLD static void refuse_out(const Run *run, PyObject *out, int k) {
    PyObject *outputs = PyList_New(0), *inputs = PyList_New(0);
    for (int i = 0; outputs && i < run->bound->num_outputs; i++) {
        const Output *o = &run->bound->outputs[i];
        PyObject *shape = PyArray_IntTupleFromIntp(o->ndim, o->dims);
        PyObject *item = shape ? Py_BuildValue("(ON)", o->descr, shape) : NULL;
        if (!item || PyList_Append(outputs, item)) Py_CLEAR(outputs);
        Py_XDECREF(item);
    }
    for (int i = 0; inputs && i < run->bound->num_inputs; i++)
        if (PyList_Append(inputs, (PyObject *)run->arrays[i])) Py_CLEAR(inputs);
    if (outputs && inputs && run->program->refuse) {
        PyObject *answer = PyObject_CallFunction(run->program->refuse, "OiOO", out, k, outputs,
                                                 inputs);
        Py_XDECREF(answer);
    }
    Py_XDECREF(outputs);
    Py_XDECREF(inputs);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "out[%d] cannot take the result: %R", k, out);
}

// Allocate the results, or take them from `out`; false with an error.
static bool make_results(Run *run, PyObject *out) {
    Bound *b = run->bound;
    bool has_out = out && out != Py_None;
    if (has_out && (!(PyList_Check(out) || PyTuple_Check(out)) ||
                  PySequence_Fast_GET_SIZE(out) != b->num_outputs)) {
        refuse_out(run, out, -1);
        return false;
    }
    for (int k = 0; k < b->num_outputs; k++) {
        PyObject *result = has_out ? PySequence_Fast_GET_ITEM(out, k) : Py_None;
        if (result != Py_None) {
            if (!takes_result(run, k, result)) {
                refuse_out(run, out, k);
                return false;
            }
            Py_INCREF(result);
        } else {
            result = new_result(&b->outputs[k]);
            if (!result) return false;
        }
        PyList_SET_ITEM(run->results, k, result);
        run->slots[b->num_inputs + k] = PyArray_BYTES((PyArrayObject *)result);
    }
    return true;
}

static PyObject *run_bound(Program *p, Bound *b, const Feed *feeds, PyArrayObject *const *arrays,
                           PyObject *out, bool donates) {
    char *stack_slots[STACK_ITEMS + 2];
    void *stack_ptrs[2 * STACK_ITEMS];
    int num_slots = p->num_inputs + p->num_outputs + 2;
    char **slots = num_slots <= STACK_ITEMS + 2 ? stack_slots : ZEROED(char *, num_slots);
    void **ptrs = b->num_refs <= 2 * STACK_ITEMS ? stack_ptrs : ZEROED(void *, b->num_refs);
    Run run = {p, b, arrays, PyList_New(b->num_outputs), slots, ptrs, NULL, NULL, donates};
    bool ok = run.results && slots && ptrs;
    if (ok) {
        for (int i = 0; i < p->num_inputs; i++) slots[i] = feeds[i].data;
        slots[num_slots - 2] = slots[num_slots - 1] = NULL;
        ok = make_results(&run, out) && run_with_arena(&run);
    }
    if (!ok) Py_CLEAR(run.results);
    if (slots != stack_slots) PyMem_Free(slots);
    if (ptrs != stack_ptrs) PyMem_Free(ptrs);
    return run.results;
}

// Run while the program's lock is held.
static PyObject *run_locked(Program *p, Bound *b, const Feed *feeds, PyArrayObject *const *arrays,
                            PyObject *out, bool donates) {
    PyObject *taken = PyObject_CallMethodNoArgs(p->lock, acquire_name);
    if (!taken) return NULL;
    PyObject *results = run_bound(p, b, feeds, arrays, out, donates);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *released = PyObject_CallMethodNoArgs(p->lock, release_name);
    if (!released) Py_CLEAR(results);
    if (type) PyErr_Restore(type, value, trace);
    Py_XDECREF(released);
    Py_DECREF(taken);
    return results;
}

// Run on arrays of the right type and rank. Those that are not plain are replaced by copies in
// `arrays`, whose references the caller owns.
static PyObject *run_arrays(Program *p, PyArrayObject **arrays, PyObject *out, bool donates) {
    for (int i = 0; i < p->num_inputs; i++) {
        if (is_plain(arrays[i])) continue;
        PyArrayObject *copy = plain_copy(p, p->inputs[i].typenum, arrays[i]);
        if (!copy) return NULL;
        Py_DECREF(arrays[i]);
        arrays[i] = copy;
    }
    Feed stack_feeds[STACK_ITEMS];
    Feed *feeds = p->num_inputs <= STACK_ITEMS ? stack_feeds : ZEROED(Feed, p->num_inputs);
    if (!feeds) return NULL;
    for (int i = 0; i < p->num_inputs; i++)
        feeds[i] = (Feed){PyArray_BYTES(arrays[i]), PyArray_DIMS(arrays[i])};
    Bound *b = bound_for(p, feeds);
    PyObject *results = !b ? NULL
                        : p->lock ? run_locked(p, b, feeds, arrays, out, donates)
                                  : run_bound(p, b, feeds, arrays, out, donates);
    Py_XDECREF(b);
    if (feeds != stack_feeds) PyMem_Free(feeds);
    return results;
}

// Run on values in the order of the inputs; Py_NotImplemented if one does not match its input.
static PyObject *run_values(Program *p, PyObject *const *values, PyObject *out, bool donates) {
    for (int i = 0; i < p->num_inputs; i++)
        if (!fits(&p->inputs[i], values[i])) Py_RETURN_NOTIMPLEMENTED;
    PyArrayObject *stack_arrays[STACK_ITEMS];
    PyArrayObject **arrays = p->num_inputs <= STACK_ITEMS ? stack_arrays : ZEROED(PyArrayObject *, p->num_inputs);
    if (!arrays) return NULL;
    for (int i = 0; i < p->num_inputs; i++) {
        arrays[i] = (PyArrayObject *)values[i];
        Py_INCREF(arrays[i]);
    }
    PyObject *results = run_arrays(p, arrays, out, donates);
    for (int i = 0; i < p->num_inputs; i++) Py_DECREF(arrays[i]);
    if (arrays != stack_arrays) PyMem_Free(arrays);
    return results;
}
