// One run: inputs made plain, the Bound for their shapes, results, arena, and the steps.
#pragma once

#define POOLED ((int64_t)1 << 20)        // arenas of this size come from the pool,
#define POOLED_RESULT ((int64_t)1 << 16) // and results of this size
#define MOST_BOUNDS 64
#define FEW 24                           // arrays and pointers of small programs live on the stack

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

// Subclasses such as masked arrays are left to `repair`, which knows what they mean.
static bool fits(const Input *input, PyObject *value) {
    if (!PyArray_CheckExact(value)) return false;
    PyArrayObject *array = (PyArrayObject *)value;
    return PyArray_NDIM(array) == input->ndim &&
           (PyArray_TYPE(array) == input->typenum ||
            PyArray_EquivTypenums(PyArray_TYPE(array), input->typenum));
}

static bool is_plain(PyArrayObject *array) {
    const int wanted = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    return (PyArray_FLAGS(array) & wanted) == wanted && PyArray_ISNOTSWAPPED(array);
}

COLD static PyArrayObject *plain_copy(Program *p, int typenum, PyArrayObject *array) {
    p->copies += 1;
    return (PyArrayObject *)PyArray_FromArray(array, PyArray_DescrFromType(typenum),
                                              NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED);
}

static bool bound_serves(const Program *p, const Bound *b, PyArrayObject *const *arrays) {
    const npy_intp *dims = b->dims;
    for (int i = 0; i < p->num_inputs; i++) {
        const npy_intp *found = PyArray_DIMS(arrays[i]);
        int ndim = p->inputs[i].ndim;
        for (int d = 0; d < ndim; d++)
            if (found[d] != dims[d]) return false;
        dims += ndim;
    }
    return true;
}

static Bound *known_bound(Program *p, PyArrayObject *const *arrays) {
    for (int i = 0; i < p->num_bounds; i++) {
        Bound *b = p->bounds[i];
        if (!bound_serves(p, b, arrays)) continue;
        if (i) {
            memmove(p->bounds + 1, p->bounds, sizeof(Bound *) * (size_t)i);
            p->bounds[0] = b;
        }
        Py_INCREF(b);
        return b;
    }
    return NULL;
}

COLD static Bound *make_bound(Program *p, PyArrayObject *const *arrays) {
    PyObject *shapes = PyTuple_New(p->num_inputs);
    for (int i = 0; shapes && i < p->num_inputs; i++) {
        PyObject *shape = PyArray_IntTupleFromIntp(PyArray_NDIM(arrays[i]), PyArray_DIMS(arrays[i]));
        if (!shape) Py_CLEAR(shapes);
        else PyTuple_SET_ITEM(shapes, i, shape);
    }
    if (!shapes) return NULL;
    PyObject *made = PyObject_CallOneArg(p->bind, shapes);
    Py_DECREF(shapes);
    if (!made) return NULL;
    Bound *b = (Bound *)made;
    bool right = Py_IS_TYPE(made, Bound_type) && b->num_inputs == p->num_inputs &&
                 b->num_outputs == p->num_outputs;
    for (int i = 0; right && i < p->num_inputs; i++) right = b->ranks[i] == p->inputs[i].ndim;
    if (!right || !bound_serves(p, b, arrays)) {
        PyErr_Format(PyExc_TypeError, "bind must return a Bound for the shapes it was given, with "
                     "%d outputs, got %R", p->num_outputs, made);
        Py_DECREF(made);
        return NULL;
    }
    Bound *other = known_bound(p, arrays);       // another thread may have been here meanwhile
    if (other) {
        Py_DECREF(made);
        return other;
    }
    Bound *last = p->num_bounds == MOST_BOUNDS ? p->bounds[--p->num_bounds] : NULL;
    memmove(p->bounds + 1, p->bounds, sizeof(Bound *) * (size_t)p->num_bounds);
    p->bounds[0] = b;
    p->num_bounds += 1;
    Py_INCREF(b);
    Py_XDECREF(last);
    return b;
}

COLD static void forget_bounds(Program *p) {
    while (p->num_bounds) Py_DECREF(p->bounds[--p->num_bounds]);
}

typedef struct {
    Program *program;
    Bound *bound;
    PyArrayObject *const *arrays;
    PyObject *results;                   // list
    char **slots;
    void **ptrs;
    unsigned char *scratch;
    PyObject *arena_owner;
} Run;

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
    bool good = ins && outs;
    for (int i = 0; good && i < step->num_in + step->num_out; i++) {
        PyObject *array = view_of(run, &step->views[i], i >= step->num_in);
        good = array != NULL;
        if (good && i < step->num_in) PyList_SET_ITEM(ins, i, array);
        else if (good) PyList_SET_ITEM(outs, i - step->num_in, array);
    }
    if (good) answer = PyObject_CallFunctionObjArgs(step->callable, ins, outs, NULL);
    Py_XDECREF(ins);
    Py_XDECREF(outs);
    Py_XDECREF(answer);
    return answer != NULL;
}

// All segments with their memory: pointers resolved, arena and scratch at hand.
static bool run_segments(Run *run, ThreadMemory *mine) {
    Bound *b = run->bound;
    if (b->scratch_nbytes && !(run->scratch = scratch_atleast(&mine->scratch, b->scratch_nbytes))) {
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
        if (b->scratch_nbytes) run->scratch = mine->scratch.data;     // a nested run may grow it
    }
    run->program->launches += b->num_launches;
    return true;
}

static bool run_with_arena(Run *run) {
    Bound *b = run->bound;
    ThreadMemory *mine = thread_memory();
    if (!mine) {
        PyErr_NoMemory();
        return false;
    }
    char **arena = &run->slots[b->num_inputs + b->num_outputs];
    if (!b->arena_nbytes) return run_segments(run, mine);
    if (b->has_python || b->arena_nbytes >= POOLED || mine->arena.busy) {
        Owner *owner = owner_new(b->arena_nbytes);
        if (!owner) return false;
        *arena = owner->piece.data;
        run->arena_owner = (PyObject *)owner;
        bool good = run_segments(run, mine);
        Py_DECREF(owner);
        return good;
    }
    *arena = (char *)scratch_atleast(&mine->arena, b->arena_nbytes);
    if (!*arena) {
        PyErr_NoMemory();
        return false;
    }
    mine->arena.busy = true;
    bool good = run_segments(run, mine);
    mine->arena.busy = false;
    return good;
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

// Whether a caller's array can take result k: it is like the result, and no input or earlier
// result shares its memory.
static bool takes_result(const Run *run, int k, PyObject *given) {
    const Output *out = &run->bound->outputs[k];
    PyArrayObject *array = (PyArrayObject *)given;
    if (!PyArray_Check(given) || PyArray_NDIM(array) != out->ndim || !is_plain(array) ||
        !PyArray_ISWRITEABLE(array) || !PyArray_EquivTypenums(PyArray_TYPE(array), out->typenum))
        return false;
    for (int d = 0; d < out->ndim; d++)
        if (PyArray_DIM(array, d) != out->dims[d]) return false;
    for (int i = 0; i < run->bound->num_inputs; i++)
        if (overlap(PyArray_BYTES(array), out->nbytes, PyArray_BYTES(run->arrays[i]),
                    PyArray_NBYTES(run->arrays[i])))
            return false;
    for (int i = 0; i < k; i++)
        if (overlap(PyArray_BYTES(array), out->nbytes, run->slots[run->bound->num_inputs + i],
                    run->bound->outputs[i].nbytes))
            return false;
    return true;
}

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

static bool make_results(Run *run, PyObject *out) {
    Bound *b = run->bound;
    bool given = out && out != Py_None;
    if (given && (!(PyList_Check(out) || PyTuple_Check(out)) ||
                  PySequence_Fast_GET_SIZE(out) != b->num_outputs)) {
        refuse_out(run, out, -1);
        return false;
    }
    for (int k = 0; k < b->num_outputs; k++) {
        PyObject *result = given ? PySequence_Fast_GET_ITEM(out, k) : Py_None;
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

static PyObject *run_bound(Program *p, Bound *b, PyArrayObject *const *arrays, PyObject *out) {
    char *few_slots[FEW + 2];
    void *few_ptrs[2 * FEW];
    int num_slots = p->num_inputs + p->num_outputs + 2;
    char **slots = num_slots <= FEW + 2 ? few_slots : ZEROED(char *, num_slots);
    void **ptrs = b->num_refs <= 2 * FEW ? few_ptrs : ZEROED(void *, b->num_refs);
    Run run = {p, b, arrays, PyList_New(b->num_outputs), slots, ptrs, NULL, NULL};
    bool good = run.results && slots && ptrs;
    if (good) {
        for (int i = 0; i < p->num_inputs; i++) slots[i] = PyArray_BYTES(arrays[i]);
        slots[num_slots - 2] = slots[num_slots - 1] = NULL;
        good = make_results(&run, out) && run_with_arena(&run);
    }
    if (!good) Py_CLEAR(run.results);
    if (slots != few_slots) PyMem_Free(slots);
    if (ptrs != few_ptrs) PyMem_Free(ptrs);
    return run.results;
}

// Run on arrays of the right type and rank, whose references are stolen and replaced by copies
// where memory is not plain.
static PyObject *run_arrays(Program *p, PyArrayObject **arrays, PyObject *out) {
    for (int i = 0; i < p->num_inputs; i++) {
        if (is_plain(arrays[i])) continue;
        PyArrayObject *copy = plain_copy(p, p->inputs[i].typenum, arrays[i]);
        if (!copy) return NULL;
        Py_DECREF(arrays[i]);
        arrays[i] = copy;
    }
    Bound *b = known_bound(p, arrays);
    if (!b && !(b = make_bound(p, arrays))) return NULL;
    if (!p->lock) {
        PyObject *results = run_bound(p, b, arrays, out);
        Py_DECREF(b);
        return results;
    }
    PyObject *results = NULL, *taken = PyObject_CallMethodNoArgs(p->lock, acquire_name);
    if (taken) {
        results = run_bound(p, b, arrays, out);
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyObject *released = PyObject_CallMethodNoArgs(p->lock, release_name);
        if (!released) Py_CLEAR(results);
        if (type) PyErr_Restore(type, value, trace);
        Py_XDECREF(released);
        Py_DECREF(taken);
    }
    Py_DECREF(b);
    return results;
}

// Run on values in the order of the inputs; Py_NotImplemented where one does not fit its input->
static PyObject *run_values(Program *p, PyObject *const *values, PyObject *out) {
    for (int i = 0; i < p->num_inputs; i++)
        if (!fits(&p->inputs[i], values[i])) Py_RETURN_NOTIMPLEMENTED;
    PyArrayObject *few[FEW];
    PyArrayObject **arrays = p->num_inputs <= FEW ? few : ZEROED(PyArrayObject *, p->num_inputs);
    if (!arrays) return NULL;
    for (int i = 0; i < p->num_inputs; i++) {
        arrays[i] = (PyArrayObject *)values[i];
        Py_INCREF(arrays[i]);
    }
    PyObject *results = run_arrays(p, arrays, out);
    for (int i = 0; i < p->num_inputs; i++) Py_DECREF(arrays[i]);
    if (arrays != few) PyMem_Free(arrays);
    return results;
}
