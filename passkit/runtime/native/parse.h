// The constructor of Bound: checks tuples of Python and copies them to tables.
#pragma once

// Parse a shape into `dims`; return the number of dimensions, or -1 with an error.
COLD static int parse_shape(PyObject *shape, npy_intp *dims) {
    if (!PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) > NPY_MAXDIMS) {
        PyErr_Format(PyExc_TypeError, "a shape must be a tuple of at limit %d integers, got %R",
                     NPY_MAXDIMS, shape);
        return -1;
    }
    int ndim = (int)PyTuple_GET_SIZE(shape);
    for (int i = 0; i < ndim; i++) {
        dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (dims[i] == -1 && PyErr_Occurred()) return -1;
        if (dims[i] < 0) {
            PyErr_Format(PyExc_ValueError, "a shape must not be negative, got %R", shape);
            return -1;
        }
    }
    return ndim;
}

COLD static int64_t nbytes_of(PyArray_Descr *descr, const npy_intp *dims, int ndim) {
    int64_t nbytes = PyDataType_ELSIZE(descr);
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(nbytes, (int64_t)dims[i], &nbytes)) {
            PyErr_SetString(capacity_error, "an array of a program exceeds 2**63 bytes");
            return -1;
        }
    return nbytes;
}

COLD static PyArray_Descr *parse_descr(PyObject *number) {
    long typenum = PyLong_AsLong(number);
    if (typenum == -1 && PyErr_Occurred()) return NULL;
    PyArray_Descr *descr = typenum < 0 || typenum > INT_MAX
                               ? NULL : PyArray_DescrFromType((int)typenum);
    if (descr && (PyDataType_ELSIZE(descr) == 0 || PyDataType_REFCHK(descr))) {
        Py_DECREF(descr);
        descr = NULL;
    }
    if (!descr) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "a type number must be one of NumPy's, got %ld", typenum);
    }
    return descr;
}

COLD static bool parse_ref(Bound *b, PyObject *item, Ref *ref) {
    const char *kind = PyTuple_Check(item) && PyTuple_GET_SIZE(item) >= 2 &&
                               PyUnicode_Check(PyTuple_GET_ITEM(item, 0))
                           ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0)) : NULL;
    if (!kind) {
        PyErr_Format(PyExc_TypeError, "a reference must be a tuple such as ('input', 0), got %R",
                     item);
        return false;
    }
    PyObject *number = PyTuple_GET_ITEM(item, 1), *third =
        PyTuple_GET_SIZE(item) > 2 ? PyTuple_GET_ITEM(item, 2) : NULL;
    int64_t limit = 0, arena = b->num_inputs + b->num_outputs;
    if (!strcmp(kind, "address")) {
        void *address = PyLong_AsVoidPtr(number);
        if (!address && PyErr_Occurred()) return false;
        *ref = (Ref){arena + 1, (int64_t)(uintptr_t)address};
        return !third || third == Py_None || !PyList_Append(b->keepalive, third);
    }
    int64_t value = PyLong_AsLongLong(number);
    if (value == -1 && PyErr_Occurred()) return false;
    if (!strcmp(kind, "arena")) {
        *ref = (Ref){arena, value};
        limit = b->arena_nbytes + 1;
    } else {
        bool input = !strcmp(kind, "input");
        limit = input ? b->num_inputs : strcmp(kind, "output") ? 0 : b->num_outputs;
        int64_t offset = third ? PyLong_AsLongLong(third) : 0;
        if (offset == -1 && PyErr_Occurred()) return false;
        *ref = (Ref){value + (input ? 0 : b->num_inputs), offset};
    }
    if (value < 0 || value >= limit) {
        PyErr_Format(PyExc_ValueError, "a step refers to %R, but there are %d inputs, %d outputs "
                     "and %lld bytes of arena", item, b->num_inputs, b->num_outputs,
                     (long long)b->arena_nbytes);
        return false;
    }
    return true;
}

COLD static bool parse_view(Bound *b, PyObject *item, View *view) {
    PyObject *ref, *number, *shape;
    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "OOO", &ref, &number, &shape)) {
        PyErr_Format(PyExc_TypeError, "a Python step needs (reference, type number, shape), got %R",
                     item);
        return false;
    }
    if (!parse_ref(b, ref, &view->ref)) return false;
    view->descr = parse_descr(number);
    view->ndim = view->descr ? parse_shape(shape, view->dims) : -1;
    if (view->ndim < 0) return false;
    int64_t nbytes = nbytes_of(view->descr, view->dims, view->ndim);
    int64_t arena = b->num_inputs + b->num_outputs;
    if (nbytes < 0) return false;
    if (view->ref.slot == arena && view->ref.offset > b->arena_nbytes - nbytes) {
        PyErr_Format(PyExc_ValueError, "%R does not fit in %lld bytes of arena", item,
                     (long long)b->arena_nbytes);
        return false;
    }
    if (view->ref.slot == arena + 1 && PyTuple_GET_SIZE(ref) > 2) {
        view->keepalive = PyTuple_GET_ITEM(ref, 2);
        Py_INCREF(view->keepalive);
    }
    return true;
}

COLD static PythonStep *parse_python(Bound *b, PyObject *step) {
    PyObject *kind, *callable, *ins, *outs;
    if (!PyArg_ParseTuple(step, "OOOO", &kind, &callable, &ins, &outs)) return NULL;
    if (!PyCallable_Check(callable) || !PySequence_Check(ins) || !PySequence_Check(outs)) {
        PyErr_Format(PyExc_TypeError, "a Python step needs (callable, inputs, outputs), got %R",
                     step);
        return NULL;
    }
    PyObject *in_tuple = PySequence_Tuple(ins);
    PyObject *out_tuple = in_tuple ? PySequence_Tuple(outs) : NULL;
    PythonStep *parsed = in_tuple && out_tuple ? ZEROED(PythonStep, 1) : NULL;
    if (parsed) {
        int num_in = (int)PyTuple_GET_SIZE(in_tuple), num_out = (int)PyTuple_GET_SIZE(out_tuple);
        parsed->views = ZEROED(View, num_in + num_out);
        parsed->num_in = parsed->views ? num_in : 0;
        parsed->num_out = parsed->views ? num_out : 0;
        Py_INCREF(callable);
        parsed->callable = callable;
        // Registered before its views are parsed, so that the Bound releases it after an error.
        b->segments[b->num_segments - 1].python = parsed;
        bool ok = parsed->views != NULL;
        for (int i = 0; ok && i < num_in + num_out; i++)
            ok = parse_view(b, i < num_in ? PyTuple_GET_ITEM(in_tuple, i)
                                            : PyTuple_GET_ITEM(out_tuple, i - num_in),
                              &parsed->views[i]);
        if (!ok) parsed = NULL;
    }
    Py_XDECREF(in_tuple);
    Py_XDECREF(out_tuple);
    return parsed;
}

// Enlarge the table of references by `more` entries; false with an error.
COLD static bool grow_refs(Bound *b, Py_ssize_t more) {
    Ref *grown = (Ref *)PyMem_Realloc(b->refs, sizeof(Ref) * (size_t)(b->num_refs + more + 1));
    if (!grown) {
        PyErr_NoMemory();
        return false;
    }
    b->refs = grown;
    return true;
}

#define COPY_BLOCK ((int64_t)1 << 18)

static void copy_blocks(void *const *buf, const int64_t *size, int64_t begin, int64_t end,
                        unsigned char *scratch) {
    (void)scratch;
    int64_t first = begin * COPY_BLOCK, last = end * COPY_BLOCK;
    if (last > size[0]) last = size[0];
    if (first < last)
        memmove((char *)buf[1] + first, (const char *)buf[0] + first, (size_t)(last - first));
}

COLD static bool parse_copy(Bound *b, PyObject *item, Step *step) {
    PyObject *kind, *source, *target;
    long long nbytes;
    if (!PyArg_ParseTuple(item, "OOOL", &kind, &source, &target, &nbytes)) return false;
    if (nbytes < 0) {
        PyErr_Format(PyExc_ValueError, "a copy needs a size of at least 0, got %lld", nbytes);
        return false;
    }
    int64_t *sizes = ZEROED(int64_t, 1);
    if (!sizes || !grow_refs(b, 2)) return false;
    sizes[0] = nbytes;
    *step = (Step){copy_blocks, (nbytes + COPY_BLOCK - 1) / COPY_BLOCK, sizes, b->num_refs,
             nbytes >= 4 * COPY_BLOCK};
    bool ok = parse_ref(b, source, &b->refs[b->num_refs]) &&
                parse_ref(b, target, &b->refs[b->num_refs + 1]);
    b->num_refs += 2;
    return ok;
}

COLD static bool parse_launch(Bound *b, PyObject *item, Step *step) {
    PyObject *kind, *entry, *bufs, *sizes;
    long long tiles;
    int parallel;
    if (!PyArg_ParseTuple(item, "OOLpOO", &kind, &entry, &tiles, &parallel, &bufs, &sizes))
        return false;
    void *address = PyLong_AsVoidPtr(entry);
    if (!address) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a launch needs an address, got 0");
        return false;
    }
    // A subclass of int may be an address that keeps its library loaded.
    if (!PyLong_CheckExact(entry) && PyList_Append(b->keepalive, entry)) return false;
    PyObject *ref_tuple = PySequence_Tuple(bufs);
    PyObject *size_tuple = ref_tuple ? PySequence_Tuple(sizes) : NULL;
    bool ok = size_tuple != NULL;
    if (ok) {
        Py_ssize_t num_refs = PyTuple_GET_SIZE(ref_tuple), num_sizes = PyTuple_GET_SIZE(size_tuple);
        int64_t *values = ZEROED(int64_t, num_sizes);
        *step = (Step){(Kernel)address, tiles > 0 ? tiles : 0, values, b->num_refs, parallel != 0};
        ok = values && grow_refs(b, num_refs);
        for (Py_ssize_t i = 0; ok && i < num_refs; i++)
            ok = parse_ref(b, PyTuple_GET_ITEM(ref_tuple, i), &b->refs[b->num_refs++]);
        for (Py_ssize_t i = 0; ok && i < num_sizes; i++) {
            values[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(size_tuple, i));
            ok = values[i] != -1 || !PyErr_Occurred();
        }
    }
    Py_XDECREF(ref_tuple);
    Py_XDECREF(size_tuple);
    return ok;
}

COLD static bool parse_step(Bound *b, PyObject *item) {
    const char *kind = PyTuple_Check(item) && PyTuple_GET_SIZE(item) > 0 &&
                               PyUnicode_Check(PyTuple_GET_ITEM(item, 0))
                           ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0)) : NULL;
    if (kind && !strcmp(kind, "python")) {
        if (!parse_python(b, item)) return false;
        b->has_python = true;
        Segment next = {b->num_steps, b->num_steps, 0, 0, NULL};
        b->segments[b->num_segments++] = next;
        return true;
    }
    // A kernel of several phases is a 'launch' and then 'phase' steps; between steps there is a barrier.
    bool launch = kind && !strcmp(kind, "launch"), copy = kind && !strcmp(kind, "copy");
    if (!launch && !copy && !(kind && !strcmp(kind, "phase"))) {
        PyErr_Format(PyExc_ValueError, "a step must be a 'launch', 'phase', 'copy' or 'python' "
                     "tuple, got %R", item);
        return false;
    }
    Step *step = &b->steps[b->num_steps++];
    if (!(copy ? parse_copy(b, item, step) : parse_launch(b, item, step))) return false;
    b->num_launches += launch;
    Segment *segment = &b->segments[b->num_segments - 1];
    segment->last = b->num_steps;
    if (step->parallel && step->tiles > 1) {
        if (segment->parallel_first == segment->parallel_last)
            segment->parallel_first = b->num_steps - 1;
        segment->parallel_last = b->num_steps;
    }
    return true;
}

COLD static bool parse_inputs(Bound *b, PyObject *shapes) {
    b->num_inputs = (int)PyTuple_GET_SIZE(shapes);
    b->dims = ZEROED(npy_intp, (Py_ssize_t)b->num_inputs * NPY_MAXDIMS);
    b->ranks = ZEROED(int, b->num_inputs);
    if (!b->dims || !b->ranks) return false;
    for (int i = 0; i < b->num_inputs; i++) {
        b->ranks[i] = parse_shape(PyTuple_GET_ITEM(shapes, i), b->dims + b->num_dims);
        if (b->ranks[i] < 0) return false;
        b->num_dims += b->ranks[i];
    }
    return true;
}

COLD static bool parse_outputs(Bound *b, PyObject *outputs) {
    Py_ssize_t count = PyTuple_GET_SIZE(outputs);
    b->outputs = ZEROED(Output, count);
    if (!b->outputs) return false;
    for (; b->num_outputs < count; b->num_outputs++) {
        PyObject *item = PyTuple_GET_ITEM(outputs, b->num_outputs), *number, *shape;
        Output *out = &b->outputs[b->num_outputs];
        out->donor = -1;
        if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "OO|i", &number, &shape, &out->donor)) {
            PyErr_Format(PyExc_TypeError, "an output must be (type number, shape) and, optionally, the "
                         "input that it may overwrite, got %R", item);
            return false;
        }
        PyArray_Descr *descr = parse_descr(number);
        if (!descr) return false;
        out->typenum = descr->type_num;
        out->ndim = parse_shape(shape, out->dims);
        out->nbytes = out->ndim < 0 ? -1 : nbytes_of(descr, out->dims, out->ndim);
        if (out->nbytes < 0) {
            Py_DECREF(descr);
            return false;
        }
        out->descr = descr;
    }
    return true;
}

COLD static PyObject *bound_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *names[] = {"input_shapes", "outputs", "arena_nbytes", "scratch_nbytes",
                                  "steps", "seconds", NULL};
    PyObject *shapes, *outputs, *steps;
    long long arena, scratch;
    double seconds = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOLLO|d", (char **)names, &shapes, &outputs,
                                     &arena, &scratch, &steps, &seconds))
        return NULL;
    if (arena < 0 || scratch < 0 || arena > (int64_t)1 << 56 || scratch > (int64_t)1 << 40) {
        PyErr_Format(PyExc_ValueError, "arena_nbytes and scratch_nbytes must be sizes in bytes, got "
                     "%lld and %lld", arena, scratch);
        return NULL;
    }
    Bound *b = (Bound *)type->tp_alloc(type, 0);
    if (!b) return NULL;
    b->arena_nbytes = arena;
    b->scratch_nbytes = scratch;
    b->seconds = seconds;
    b->long_running = seconds > 10e-6;
    b->keepalive = PyList_New(0);
    b->shapes = b->keepalive ? PySequence_Tuple(shapes) : NULL;
    PyObject *out_tuple = b->shapes ? PySequence_Tuple(outputs) : NULL;
    PyObject *step_tuple = out_tuple ? PySequence_Tuple(steps) : NULL;
    bool ok = step_tuple && parse_inputs(b, b->shapes) &&
                parse_outputs(b, out_tuple);
    if (ok) {
        Py_ssize_t count = PyTuple_GET_SIZE(step_tuple);
        b->steps = ZEROED(Step, count);
        b->segments = ZEROED(Segment, count + 1);
        b->num_segments = 1;
        ok = b->steps && b->segments;
        for (Py_ssize_t s = 0; ok && s < count; s++)
            ok = parse_step(b, PyTuple_GET_ITEM(step_tuple, s));
    }
    Py_XDECREF(out_tuple);
    Py_XDECREF(step_tuple);
    if (ok) return (PyObject *)b;
    Py_DECREF(b);
    return NULL;
}
