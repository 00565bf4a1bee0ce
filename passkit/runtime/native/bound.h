// Bound: a program for one set of input shapes, in flat tables.
//
// Every pointer of a step is a slot plus an offset. The slots of a run are its inputs, its outputs, its
// arena and null (for absolute addresses), in this order.
#pragma once

typedef struct {
    int64_t slot, offset;
} Ref;

typedef struct {                    // an array that a Python step reads or writes
    Ref ref;
    PyArray_Descr *descr;
    PyObject *keepalive;         // of an address, else null
    int ndim;
    npy_intp dims[NPY_MAXDIMS];
} View;

typedef struct {
    PyObject *callable;
    int num_in, num_out;
    View *views;
} PythonStep;

typedef struct {
    PyArray_Descr *descr;
    int typenum, ndim;
    int donor;                   // the input over whose bytes it may be stored, or -1
    int64_t nbytes;
    npy_intp dims[NPY_MAXDIMS];
} Output;

typedef struct {                 // native steps [first, last), then a Python step or null
    int first, last;
    int parallel_first, parallel_last;       // the steps that a team runs; empty if none
    PythonStep *python;
} Segment;

typedef struct {
    PyObject_HEAD
    int num_inputs, num_outputs, num_steps, num_refs, num_segments, num_dims, num_launches;
    bool has_python, long_running;
    npy_intp *dims;              // of all inputs, one after the other
    int *ranks;
    Output *outputs;
    Step *steps;
    Ref *refs;
    Segment *segments;
    int64_t arena_nbytes, scratch_nbytes;
    double seconds;
    PyObject *shapes;            // of the inputs
    PyObject *keepalive;         // list
} Bound;

// Allocate zeroed memory; NULL with an error.
COLD static void *zeroed(Py_ssize_t count, size_t size) {
    void *memory = PyMem_Calloc((size_t)(count ? count : 1), size);
    if (!memory) PyErr_NoMemory();
    return memory;
}

#define ZEROED(TYPE, COUNT) ((TYPE *)zeroed(COUNT, sizeof(TYPE)))

static PyTypeObject *Bound_type;

COLD static void bound_release(Bound *b) {
    for (int i = 0; b->outputs && i < b->num_outputs; i++) Py_CLEAR(b->outputs[i].descr);
    for (int s = 0; b->segments && s < b->num_segments; s++) {
        PythonStep *step = b->segments[s].python;
        if (!step) continue;
        for (int i = 0; step->views && i < step->num_in + step->num_out; i++) {
            Py_CLEAR(step->views[i].descr);
            Py_CLEAR(step->views[i].keepalive);
        }
        Py_CLEAR(step->callable);
        PyMem_Free(step->views);
        PyMem_Free(step);
        b->segments[s].python = NULL;
    }
}

COLD static void bound_dealloc(PyObject *self) {
    Bound *b = (Bound *)self;
    PyObject_GC_UnTrack(self);
    bound_release(b);
    for (int s = 0; b->steps && s < b->num_steps; s++) PyMem_Free((void *)b->steps[s].sizes);
    PyMem_Free(b->dims);
    PyMem_Free(b->ranks);
    PyMem_Free(b->outputs);
    PyMem_Free(b->steps);
    PyMem_Free(b->refs);
    PyMem_Free(b->segments);
    Py_CLEAR(b->shapes);
    Py_CLEAR(b->keepalive);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

COLD static int bound_traverse(PyObject *self, visitproc visit, void *arg) {
    Bound *b = (Bound *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(b->keepalive);
    for (int s = 0; b->segments && s < b->num_segments; s++) {
        PythonStep *step = b->segments[s].python;
        if (!step) continue;
        Py_VISIT(step->callable);
        for (int i = 0; step->views && i < step->num_in + step->num_out; i++)
            Py_VISIT(step->views[i].keepalive);
    }
    return 0;
}

// A run holds a reference to its Bound, so that the collector clears none that is in use.
COLD static int bound_clear(PyObject *self) {
    Bound *b = (Bound *)self;
    Py_CLEAR(b->keepalive);
    return 0;
}

static PyObject *bound_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);

static PyMemberDef bound_members[] = {
    {"input_shapes", T_OBJECT, offsetof(Bound, shapes), READONLY, "the shapes of the inputs"},
    {"arena_nbytes", T_LONGLONG, offsetof(Bound, arena_nbytes), READONLY, "bytes of the arena"},
    {"scratch_nbytes", T_LONGLONG, offsetof(Bound, scratch_nbytes), READONLY, "bytes of scratch memory per thread"},
    {"seconds", T_DOUBLE, offsetof(Bound, seconds), READONLY, "the estimated time of a run on one thread"},
    {NULL}};

static PyType_Slot bound_slots[] = {
    {Py_tp_doc, (void *)"Bound(input_shapes, outputs, arena_nbytes, scratch_nbytes, steps, "
                        "seconds=0.0): a program for one set of input shapes."},
    {Py_tp_new, (void *)bound_new},
    {Py_tp_dealloc, (void *)bound_dealloc},
    {Py_tp_traverse, (void *)bound_traverse},
    {Py_tp_clear, (void *)bound_clear},
    {Py_tp_members, bound_members},
    {0, NULL}};

static PyType_Spec bound_spec = {"_passkit_launcher.Bound", sizeof(Bound), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, bound_slots};
