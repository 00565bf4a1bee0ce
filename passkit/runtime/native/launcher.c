// The launcher: a Program checks feeds, finds or creates the Bound for their shapes, and runs its steps.
//
// Only fast checks are here; feeds that fail them go to Python (feeds.py), which converts them or raises.
// The GIL is held except for long native runs.
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <structmember.h>
#include <numpy/arrayobject.h>
#include <dlfcn.h>

// Functions that run at most once per program: not optimized, which halves the time to compile.
#if defined(__GNUC__) && !defined(__clang__)
#define COLD __attribute__((cold, optimize("O0")))
#else
#define COLD __attribute__((cold))
#endif

#include "gemm.h"
#include "pool.h"
#include "team.h"
#include "row_chain.h"
#include "team_python.h"
#include "memory.h"
#include "bound.h"
#include "parse.h"
#include "run.h"
#include "tensors.h"

// Run on feeds that failed the fast checks: Python converts them to a tuple of arrays, or raises.
COLD static PyObject *run_repaired(Program *p, PyObject *feeds, PyObject *named, PyObject *out) {
    if (!p->repair) {
        PyErr_SetString(PyExc_TypeError, "the feeds do not fit the inputs of the program");
        return NULL;
    }
    PyObject *tuple = PyObject_CallFunctionObjArgs(p->repair, feeds, named, NULL), *results;
    if (!tuple) return NULL;
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != p->num_inputs)
        results = Py_NewRef(Py_NotImplemented);
    else
        results = run_values(p, PySequence_Fast_ITEMS(tuple), out, false);
    if (results == Py_NotImplemented) {
        Py_CLEAR(results);
        PyErr_Format(PyExc_TypeError, "repair must return %d arrays that fit the inputs, got %R",
                     p->num_inputs, tuple);
    }
    Py_DECREF(tuple);
    return results;
}

// Return the index of the input of a name, -1 if there is none; `guess` is tried first.
static int input_named(const Program *p, PyObject *name, int guess) {
    if (guess < p->num_inputs && p->inputs[guess].name == name) return guess;
    for (int i = 0; i < p->num_inputs; i++)
        if (p->inputs[i].name == name) return i;
    for (int i = 0; i < p->num_inputs; i++)
        if (!PyUnicode_Compare(p->inputs[i].name, name)) return i;
    return -1;
}

// Fill `values` from keywords, then from the dict `feeds` (or null); false unless feeds and inputs are in
// one-to-one correspondence. A keyword `out` goes to *out.
static bool pair_up(const Program *p, PyObject *feeds, PyObject *const *args, PyObject *kwnames,
                    PyObject **values, PyObject **out) {
    int num_values = 0, guess = 0;
    for (int i = 0; i < p->num_inputs; i++) values[i] = NULL;
    Py_ssize_t num_names = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t i = 0; i < num_names; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (name == out_name || !PyUnicode_Compare(name, out_name)) {
            *out = args[i];
            continue;
        }
        int k = input_named(p, name, guess);
        if (k < 0 || values[k]) return false;
        values[k] = args[i];
        num_values += 1;
        guess = k + 1;
    }
    if (feeds) {
        if (PyDict_GET_SIZE(feeds) != p->num_inputs - num_values) return false;
        for (int i = 0; i < p->num_inputs; i++) {
            if (values[i]) continue;
            values[i] = PyDict_GetItemWithError(feeds, p->inputs[i].name);
            if (!values[i]) return false;
            num_values += 1;
        }
    }
    return num_values == p->num_inputs;
}

COLD static PyObject *call_repaired(Program *p, PyObject *feeds, PyObject *const *args,
                               PyObject *kwnames, PyObject *out) {
    PyObject *named = PyDict_New();
    Py_ssize_t num_names = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t i = 0; named && i < num_names; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (PyUnicode_Compare(name, out_name) && PyDict_SetItem(named, name, args[i]))
            Py_CLEAR(named);
        else if (!PyUnicode_Compare(name, out_name))
            out = args[i];
    }
    if (!named) return NULL;
    PyObject *results = run_repaired(p, feeds ? feeds : Py_None, named, out);
    Py_DECREF(named);
    return results;
}

// Run on named feeds or a dict; Py_NotImplemented if they must be repaired.
static PyObject *call_pairs(Program *p, PyObject *feeds, PyObject *const *args, PyObject *kwnames,
                            PyObject **out) {
    PyObject *stack_values[STACK_ITEMS], **values = p->num_inputs <= STACK_ITEMS ? stack_values : ZEROED(PyObject *, p->num_inputs);
    if (!values) return NULL;
    PyObject *results = NULL;
    if (pair_up(p, feeds, args, kwnames, values, out))
        results = run_values(p, values, *out, false);
    else if (!PyErr_Occurred())
        results = Py_NewRef(Py_NotImplemented);
    if (values != stack_values) PyMem_Free(values);
    return results;
}

// Run on a tuple of feeds, optionally with out=; Py_NotImplemented if they must be repaired.
static PyObject *call_sequence(Program *p, PyObject *feeds, PyObject *const *args,
                               PyObject *kwnames) {
    bool has_out = kwnames && PyTuple_GET_SIZE(kwnames) == 1 &&
                   !PyUnicode_Compare(PyTuple_GET_ITEM(kwnames, 0), out_name);
    if (!PyTuple_Check(feeds) || PyTuple_GET_SIZE(feeds) != p->num_inputs || (kwnames && !has_out))
        Py_RETURN_NOTIMPLEMENTED;
    return run_values(p, PySequence_Fast_ITEMS(feeds), has_out ? args[0] : NULL, false);
}

// program(x=..., y=..., out=None), program({"x": ...}, out=None) and program((x, y), out=None)
static PyObject *program_call(PyObject *self, PyObject *const *args, size_t nargsf,
                              PyObject *kwnames) {
    Program *p = (Program *)self;
    Py_ssize_t num_args = PyVectorcall_NARGS(nargsf);
    if (num_args > 1) {
        PyErr_Format(PyExc_TypeError, "a program takes one dict or sequence of feeds, or named "
                     "arrays, got %zd positional arguments", num_args);
        return NULL;
    }
    PyObject *feeds = num_args && args[0] != Py_None ? args[0] : NULL, *out = NULL;
    PyObject *const *named = args + num_args;
    PyObject *results = feeds && !PyDict_Check(feeds)
                            ? call_sequence(p, feeds, named, kwnames)
                            : call_pairs(p, feeds, named, kwnames, &out);
    if (results != Py_NotImplemented) return results;
    Py_DECREF(results);
    return call_repaired(p, feeds, named, kwnames, out);
}

COLD static PyObject *program_run(PyObject *self, PyObject *const *args, Py_ssize_t num_args,
                                  PyObject *kwnames) {
    if (num_args != 2 || kwnames) return program_call(self, args, (size_t)num_args, kwnames);
    PyObject *names = PyTuple_Pack(1, out_name);
    if (!names) return NULL;
    PyObject *results = program_call(self, args, 1, names);
    Py_DECREF(names);
    return results;
}

static PyObject *program_run_positional(PyObject *self, PyObject *const *args,
                                        Py_ssize_t num_args) {
    Program *p = (Program *)self;
    if (num_args != p->num_inputs) Py_RETURN_NOTIMPLEMENTED;
    return run_values(p, args, NULL, false);
}

static PyObject *program_run_into(PyObject *self, PyObject *const *args, Py_ssize_t num_args) {
    Program *p = (Program *)self;
    if (num_args != p->num_inputs + 1) Py_RETURN_NOTIMPLEMENTED;
    return run_values(p, args + 1, args[0], true);
}

COLD static PyObject *program_forget(PyObject *self, PyObject *unused) {
    forget_bounds((Program *)self);
    Py_RETURN_NONE;
}

COLD static bool parse_program_inputs(Program *p, PyObject *inputs) {
    Py_ssize_t count = PyTuple_GET_SIZE(inputs);
    p->inputs = ZEROED(Input, count);
    if (!p->inputs) return false;
    for (; p->num_inputs < count; p->num_inputs++) {
        PyObject *item = PyTuple_GET_ITEM(inputs, p->num_inputs), *name;
        int typenum, ndim;
        if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "Uii", &name, &typenum, &ndim)) {
            PyErr_Format(PyExc_TypeError, "an input must be (name, type number, ndim), got %R",
                         item);
            return false;
        }
        if (ndim < 0 || ndim > NPY_MAXDIMS) {
            PyErr_Format(PyExc_ValueError, "input %R needs 0 to %d dimensions, got %d", name,
                         NPY_MAXDIMS, ndim);
            return false;
        }
        Py_INCREF(name);
        if (PyUnicode_CheckExact(name)) PyUnicode_InternInPlace(&name);
        p->inputs[p->num_inputs] = (Input){name, typenum, ndim};
    }
    return true;
}

// Return a new reference to an optional argument, NULL for None.
COLD static PyObject *optional_reference(PyObject *object) {
    if (!object || object == Py_None) return NULL;
    return Py_NewRef(object);
}

COLD static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *names[] = {"inputs", "num_outputs", "bind", "repair", "refuse", "lock",
                                  NULL};
    PyObject *inputs, *bind, *repair = NULL, *refuse = NULL, *lock = NULL;
    int num_outputs;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OiO|OOO", (char **)names, &inputs,
                                     &num_outputs, &bind, &repair, &refuse, &lock))
        return NULL;
    if (!PyCallable_Check(bind) || num_outputs < 0) {
        PyErr_Format(PyExc_TypeError, "a program needs a number of outputs and a callable bind, "
                     "got %d and %R", num_outputs, bind);
        return NULL;
    }
    PyObject *input_tuple = PySequence_Tuple(inputs);
    if (!input_tuple) return NULL;
    Program *p = (Program *)type->tp_alloc(type, 0);
    bool ok = p != NULL;
    if (ok) {
        p->vectorcall = program_call;
        p->num_outputs = num_outputs;
        p->bind = Py_NewRef(bind);
        p->repair = optional_reference(repair);
        p->refuse = optional_reference(refuse);
        p->lock = optional_reference(lock);
        p->bounds = ZEROED(Bound *, MAX_BOUNDS);
        ok = p->bounds && parse_program_inputs(p, input_tuple);
    }
    Py_DECREF(input_tuple);
    if (!ok) Py_CLEAR(p);
    return (PyObject *)p;
}

COLD static int program_traverse(PyObject *self, visitproc visit, void *arg) {
    Program *p = (Program *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(p->bind);
    Py_VISIT(p->repair);
    Py_VISIT(p->refuse);
    Py_VISIT(p->lock);
    for (int i = 0; i < p->num_bounds; i++) Py_VISIT(p->bounds[i]);
    return 0;
}

COLD static int program_clear(PyObject *self) {
    Program *p = (Program *)self;
    forget_bounds(p);
    Py_CLEAR(p->bind);
    Py_CLEAR(p->repair);
    Py_CLEAR(p->refuse);
    Py_CLEAR(p->lock);
    return 0;
}

COLD static void program_dealloc(PyObject *self) {
    Program *p = (Program *)self;
    PyObject_GC_UnTrack(self);
    program_clear(self);
    for (int i = 0; i < p->num_inputs; i++) Py_DECREF(p->inputs[i].name);
    PyMem_Free(p->inputs);
    PyMem_Free(p->bounds);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef program_methods[] = {
    {"run", (PyCFunction)(void (*)(void))program_run, METH_FASTCALL | METH_KEYWORDS,
     "run(feeds, out=None): the results, a list of arrays; feeds is a dict or a tuple."},
    {"run_positional", (PyCFunction)(void (*)(void))program_run_positional, METH_FASTCALL,
     "run_positional(*arrays): the results, or NotImplemented where an array has another type "
     "or rank than its input."},
    {"run_into", (PyCFunction)(void (*)(void))program_run_into, METH_FASTCALL,
     "run_into(out, *arrays): as run_positional, with arrays for the results in the list out, or None "
     "for those to allocate. A result may take the memory of the input that donates to it."},
    {"forget", program_forget, METH_NOARGS, "forget(): drop every Bound, so that bind is called again."},
    {NULL}};

static PyMemberDef program_members[] = {
    {"native_calls", T_LONGLONG, offsetof(Program, native_calls), READONLY,
     "times that native code was entered"},
    {"launches", T_LONGLONG, offsetof(Program, launches), READONLY, "kernels run"},
    {"copies", T_LONGLONG, offsetof(Program, copies), READONLY, "inputs copied to plain memory"},
    {"num_bounds", T_INT, offsetof(Program, num_bounds), READONLY, "input shapes optional_reference"},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Program, vectorcall), READONLY},
    {NULL}};

static PyType_Slot program_slots[] = {
    {Py_tp_doc, (void *)"Program(inputs, num_outputs, bind, repair=None, refuse=None, lock=None): "
                        "a callable that checks feeds and runs a table of steps."},
    {Py_tp_new, (void *)program_new},
    {Py_tp_dealloc, (void *)program_dealloc},
    {Py_tp_traverse, (void *)program_traverse},
    {Py_tp_clear, (void *)program_clear},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_methods, program_methods},
    {Py_tp_members, program_members},
    {0, NULL}};

static PyType_Spec program_spec = {
    "_passkit_launcher.Program", sizeof(Program), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, program_slots};

COLD static PyObject *builtin(PyObject *module, PyObject *name) {
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    static const struct {
        const char *name;
        Kernel entry;
    } kernels[] = {{"gemm_f32", gemm_f32}, {"gemm_f64", gemm_f64},
                 {"gemm_f32_sum", gemm_f32_sum}, {"gemm_f64_sum", gemm_f64_sum},
                 {"gemm_f32_rows", gemm_f32_rows}, {"gemm_f64_rows", gemm_f64_rows},
                 {"gemm_f32_total", gemm_f32_total}, {"gemm_f64_total", gemm_f64_total},
                 {"row_chain", row_chain}};
    for (size_t k = 0; text && k < sizeof kernels / sizeof *kernels; k++)
        if (!strcmp(text, kernels[k].name)) return PyLong_FromVoidPtr((void *)kernels[k].entry);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_LookupError, "there is no built-in kernel %R; there are 'row_chain', "
                     "'gemm_f32' and 'gemm_f64', and the two with '_sum', '_rows' and '_total'", name);
    return NULL;
}

COLD static PyObject *set_pool_limit(PyObject *module, PyObject *number) {
    long long limit = PyLong_AsLongLong(number);
    if (limit == -1 && PyErr_Occurred()) return NULL;
    if (limit < 0) {
        PyErr_Format(PyExc_ValueError, "the pool's limit must be at least 0 bytes, got %lld", limit);
        return NULL;
    }
    pool_collect();
    pool_stats.limit = limit;
    pool_trim(limit);
    Py_RETURN_NONE;
}

COLD static PyObject *get_pool_stats(PyObject *module, PyObject *unused) {
    pool_collect();
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "limit", (long long)pool_stats.limit, "idle_bytes",
                         (long long)pool_stats.idle_bytes, "idle_slabs", (long long)pool_stats.idle_slabs,
                         "live_bytes", (long long)pool_stats.live_bytes, "live_slabs",
                         (long long)pool_stats.live_slabs, "mapped", (long long)pool_stats.mapped, "reused",
                         (long long)pool_stats.reused);
}

static const char library_handle[] = "passkit library";

COLD static void close_library(PyObject *capsule) {
    void *handle = PyCapsule_GetPointer(capsule, library_handle);
    Py_BEGIN_ALLOW_THREADS      // a thread with the loader's lock may wait for the GIL
    dlclose(handle);
    Py_END_ALLOW_THREADS
}

COLD static PyObject *open_library(PyObject *module, PyObject *path) {
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
    void *handle = dlopen(PyBytes_AS_STRING(bytes), RTLD_NOW | RTLD_LOCAL);
    Py_DECREF(bytes);
    if (!handle) {
        PyErr_SetString(PyExc_OSError, dlerror());
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(handle, library_handle, close_library);
    if (!capsule) dlclose(handle);
    return capsule;
}

COLD static PyObject *find_symbol(PyObject *module, PyObject *args) {
    PyObject *capsule;
    const char *name;
    if (!PyArg_ParseTuple(args, "Os", &capsule, &name)) return NULL;
    void *handle = PyCapsule_GetPointer(capsule, library_handle);
    if (!handle) return NULL;
    void *address = dlsym(handle, name);
    if (address) return PyLong_FromVoidPtr(address);
    PyErr_Format(PyExc_LookupError, "the library has no symbol '%s'", name);
    return NULL;
}

static PyMethodDef module_methods[] = {
    {"builtin", builtin, METH_O, "builtin(name): the address of a built-in kernel."},
    {"set_num_threads", set_num_threads, METH_O, "set_num_threads(n): set the number of threads of the team."},
    {"num_threads", num_threads, METH_NOARGS, "num_threads(): the number of threads of the team."},
    {"note_shares", note_shares, METH_O, "note_shares(n): the log of tile ranges since the last call, as (thread, begin, end, "
     "first tile, last); begin and end in nanoseconds. The next n ranges are logged."},
    {"set_pool_limit", set_pool_limit, METH_O, "set_pool_limit(nbytes): the most idle memory."},
    {"pool_stats", get_pool_stats, METH_NOARGS, "pool_stats(): bytes and slabs, idle and live."},
    {"open_library", open_library, METH_O, "open_library(path): a handle, which unloads the "
     "library when it is deallocated."},
    {"find_symbol", find_symbol, METH_VARARGS, "find_symbol(handle, name): an address."},
    {NULL}};

static PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "_passkit_launcher",
                                 "Runs tables of native kernels.", -1, module_methods};

COLD static bool add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type) {
    *type = (PyTypeObject *)PyType_FromSpec(spec);
    return *type && !PyModule_AddType(module, *type);
}

PyMODINIT_FUNC PyInit__passkit_launcher(void) {
    import_array();
    out_name = PyUnicode_InternFromString("out");
    acquire_name = PyUnicode_InternFromString("acquire");
    release_name = PyUnicode_InternFromString("release");
    PyObject *errors = PyImport_ImportModule("passkit.errors");
    capacity_error = errors ? PyObject_GetAttrString(errors, "CapacityError") : NULL;
    Py_XDECREF(errors);
    if (!capacity_error) return NULL;
    PyObject *module = PyModule_Create(&module_def);
    if (!module || !out_name || !acquire_name || !release_name) return NULL;
    if (!add_type(module, &owner_spec, &Owner_type) || !add_type(module, &bound_spec, &Bound_type) ||
        !add_type(module, &program_spec, &Program_type) ||
        !add_type(module, &tensor_program_spec, &TensorProgram_type) ||
        PyObject_SetAttrString((PyObject *)TensorProgram_type, "_boxed_call", Py_True) ||
        pthread_key_create(&thread_key, free_thread_memory) ||
        pthread_atfork(NULL, NULL, team_after_fork)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
