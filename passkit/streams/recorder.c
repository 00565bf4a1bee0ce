// The recorder: what runs for every operation on an array, in C.
//
// It holds the types of which streams consist, and three actions: an operation on small computed arrays is
// computed at once in NumPy; any other operation is appended to the queue of the thread's stream; and the
// position in the trie of plans advances with it. Whatever is rare (a first type, a full queue, another
// stream's value, an operation without kernel) goes to the Python functions given to `connect`.
//
// recorder.py has the same in Python, for machines without a compiler, and documents the attributes.
// The GIL protects all state: a record runs no Python code between its first and last change of a queue.
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <float.h>
#include <math.h>
#include <numpy/arrayobject.h>
#include <stdint.h>
#include <structmember.h>

#define MAX_OPERANDS 16
#define MAX_ARGUMENTS 64
#define MAX_SCALARS 1024
#define MAX_FEW 6

typedef struct {
    PyObject_HEAD
    PyObject *dtype, *shape, *band, *device;
    PyObject *scalars;  // values of Python numbers, by number; NULL for none
    PyObject *recent_number, *recent_scalar;  // the number that was met last, and its value
    PyObject *scalar_type;                    // the type of these values; NULL as long as there was none
    Py_ssize_t size, nbytes;
    Py_ssize_t eager_size;  // the size that decides whether operations run at once: they never do on a device
} ArrayType;

// Counters that each execution changes; `passkit.xp.stats` explains them.
enum { RECORDED, CACHE_HITS, EXECUTED_PLANS, LAUNCHES, BYTES_READ, BYTES_WRITTEN, BYTES_ALLOCATED, ALIASES, NUM_COUNTS };
static const char *const count_names[NUM_COUNTS] = {"recorded",   "cache_hits",    "executed_plans",  "launches",
                                                    "bytes_read", "bytes_written", "bytes_allocated", "aliases"};

typedef struct Array Array;

typedef struct Value {
    PyObject_HEAD
    PyObject *type;  // an ArrayType, or a tuple of them
    PyObject *buffer, *operation, *origin, *stream;  // NULL for none
    PyObject *operands;   // a tuple; NULL for none, and where there are few
    struct Value *few[MAX_FEW];  // operands where there is no tuple
    int num_few;
    Array *array;  // borrowed: the array object that holds the value, which resets this when it dies
    uint64_t segment;  // the queue contents in which `number` holds
    int number, age;
    char is_scalar, is_owned, is_exposed;
    char is_marked;  // within one function: a set of values; 0 outside
} Value;

struct Array {
    PyObject_HEAD
    Value *value;
};

typedef struct {
    PyObject_HEAD
    PyObject *generic, *extents, *result_types, *on_arrays;
    PyObject *last_types[2], *last_result;  // the entry of result_types that was read last
    int num_operators;                      // of a program: how many operators it stands for; else 0
    char is_direct;                         // on_arrays takes the arrays and nothing else
} Operation;

// A key as numbers, in one piece of memory: comparing the objects of which it consists would fetch several cache lines,
// and a program whose other work empties the caches waits for each of them.
#define MAX_WORDS 12
typedef struct {
    int64_t count;  // 0 for a key that is longer, or that was not compared yet
    int64_t words[MAX_WORDS];
} Words;

#define STEPS_AHEAD 4

typedef struct TrieNode {
    PyObject_HEAD
    PyObject *key, *children, *plan, *fire;
    struct TrieNode *recent;  // borrowed: the child that was entered last
    void *ahead;              // where the node was that was entered STEPS_AHEAD later; only to fetch it early
    Words words;              // the key
    PyObject *program;        // what `remember_program` stored: (number, num_arguments, extents, operation, types)
} TrieNode;

typedef struct {
    PyObject_HEAD
    TrieNode *trie, *position;  // position: NULL when the queue is not in the trie
    TrieNode **path;            // the positions after each of the first operations, as far as these are in the trie
    Py_ssize_t length, capacity;
    PyObject *rest;  // the list of the keys of later operations
    PyObject *hit;
} TrieCursor;

typedef struct {
    PyObject_HEAD
    PyObject *queue, *inputs;
    PyObject *lock, *watched, *inspectors, *counts;  // set by the stream
    PyObject *device, *others;  // set by the stream: its device, and the streams of other devices by these
    TrieCursor *processor;
    int64_t *symbols;    // extents by symbol
    int *input_numbers;  // the number of each of the inputs
    Py_ssize_t num_symbols, symbol_capacity, input_capacity, pending_bytes;
    uint64_t segment;
    int count, num_new, busy;
    char traces, keeps_inputs;    // see `recording.Queue`
    PyObject *stand_ins;          // of a queue that traces: the pending values that stand for others, by these
    PyObject *argument_operation;  // of a queue that traces: the operation of stand-ins
    PyObject *purpose, *outer;     // see `TracingStream`, as the next one
    PyObject *held;                // see `ProgramStream`; NULL for nothing
    char is_open;
    int num_arguments;  // of a queue that traces: how many of its first inputs are arguments
} Queue;

typedef struct {
    PyObject_HEAD
    PyObject *operation;  // of a slot method: the Python function
    int swap;
    vectorcallfunc vectorcall;
} Method;

static PyTypeObject *ArrayType_Type, *Value_Type, *Array_Type, *Operation_Type, *TrieNode_Type, *Cursor_Type, *Queue_Type,
    *UnaryMethod_Type, *BinaryMethod_Type, *SlotMethod_Type;
static PyTypeObject *array_class;  // the subclass of Array_Type of which arrays are
static PyObject *apply_function, *operand_function, *thread_function, *type_function, *state_object, *empty_tuple;
static struct {
    PyObject *record, *stream, *acquire, *release, *known, *equal_inputs, *needs_extents, *write_eagerly, *dtype, *shape;
    PyObject *zeros[2];  // names of 0.0 and -0.0 in the scalars of a type
    PyObject *counts[NUM_COUNTS];
} interned;
static Py_ssize_t max_small = 256, max_ops = 256, max_pending_bytes = (Py_ssize_t)2 << 30;
static int remembers = 1, has_views;
static uint64_t last_segment;
// Of this thread; both are owned by the object that `thread_function` keeps for the thread.
static __thread Queue *current_queue;
static __thread PyObject *quiet_context;

static void replace(PyObject **field, PyObject *value) {
    PyObject *old = *field;
    *field = value;
    Py_XDECREF(old);
}

static void free_instance(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// Array types

static int array_type_init(ArrayType *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"dtype", "shape", "band", "device", NULL};
    PyObject *dtype, *shape, *band = Py_None, *device = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!|OO", names, &dtype, &PyTuple_Type, &shape, &band, &device)) return -1;
    if (!PyArray_DescrCheck(dtype)) {
        PyErr_Format(PyExc_TypeError, "ArrayType needs a NumPy dtype, got %R", dtype);
        return -1;
    }
    Py_ssize_t size = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++) {
        Py_ssize_t extent = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (extent == -1 && PyErr_Occurred()) return -1;
        size *= extent;
    }
    Py_INCREF(dtype), replace(&self->dtype, dtype);
    Py_INCREF(shape), replace(&self->shape, shape);
    Py_INCREF(band), replace(&self->band, band);
    Py_INCREF(device), replace(&self->device, device);
    self->size = size;
    self->eager_size = device == Py_None ? size : PY_SSIZE_T_MAX;
    self->nbytes = size * PyDataType_ELSIZE((PyArray_Descr *)dtype);
    return 0;
}

static int array_type_traverse(ArrayType *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->dtype);
    Py_VISIT(self->shape);
    Py_VISIT(self->scalars);
    Py_VISIT(self->recent_scalar);
    Py_VISIT(self->scalar_type);
    Py_VISIT(self->band);
    Py_VISIT(self->device);
    return 0;
}

static int array_type_clear(ArrayType *self) {
    Py_CLEAR(self->scalars);
    Py_CLEAR(self->recent_number);
    Py_CLEAR(self->recent_scalar);
    Py_CLEAR(self->scalar_type);
    Py_CLEAR(self->band);
    Py_CLEAR(self->device);
    return 0;
}

static void array_type_dealloc(ArrayType *self) {
    PyObject_GC_UnTrack(self);
    array_type_clear(self);
    Py_CLEAR(self->dtype);
    Py_CLEAR(self->shape);
    free_instance((PyObject *)self);
}

static PyObject *array_type_repr(ArrayType *self) {
    PyObject *list = PySequence_List(self->shape), *text;
    if (list == NULL) return NULL;
    text = PyUnicode_FromFormat("%S%R", self->dtype, list);
    Py_DECREF(list);
    return text;
}

static PyMemberDef array_type_members[] = {
    {"dtype", T_OBJECT, offsetof(ArrayType, dtype), READONLY},
    {"shape", T_OBJECT, offsetof(ArrayType, shape), READONLY},
    {"band", T_OBJECT, offsetof(ArrayType, band), READONLY},
    {"device", T_OBJECT, offsetof(ArrayType, device), READONLY},
    {"size", T_PYSSIZET, offsetof(ArrayType, size), READONLY},
    {"nbytes", T_PYSSIZET, offsetof(ArrayType, nbytes), READONLY},
    {NULL},
};

static int is_array_type(PyObject *type) { return Py_TYPE(type) == ArrayType_Type; }

// Values

static int value_traverse(Value *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->type);
    Py_VISIT(self->buffer);
    Py_VISIT(self->operation);
    Py_VISIT(self->operands);
    for (int i = 0; i < self->num_few; i++) Py_VISIT(self->few[i]);
    Py_VISIT(self->origin);
    Py_VISIT(self->stream);
    return 0;
}

static void value_clear_operands(Value *self) {
    Py_CLEAR(self->operands);
    while (self->num_few) {
        Value *operand = self->few[--self->num_few];
        Py_DECREF(operand);
    }
}

static Py_ssize_t value_num_operands(Value *self) {
    return self->operands ? PyTuple_GET_SIZE(self->operands) : self->num_few;
}

static Value *value_operand(Value *self, Py_ssize_t index) {
    return self->operands ? (Value *)PyTuple_GET_ITEM(self->operands, index) : self->few[index];
}

static int value_clear(Value *self) {
    value_clear_operands(self);
    Py_CLEAR(self->origin);
    Py_CLEAR(self->stream);
    return 0;
}

// Values are made and freed for every operation, so the memory of some is kept.
#define MAX_FREE_VALUES 1024
static Value *free_values[MAX_FREE_VALUES];
static int num_free_values;

static void value_dealloc(Value *self) {
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, value_dealloc)
    value_clear(self);
    Py_CLEAR(self->type);
    Py_CLEAR(self->buffer);
    Py_CLEAR(self->operation);
    if (num_free_values < MAX_FREE_VALUES) {
        PyTypeObject *type = Py_TYPE(self);
        free_values[num_free_values++] = self;
        Py_DECREF(type);
    } else free_instance((PyObject *)self);
    Py_TRASHCAN_END
}

static Value *new_value(PyObject *type) {
    Value *value;
    if (num_free_values) {
        value = free_values[--num_free_values];
        memset((char *)value + sizeof(PyObject), 0, sizeof(Value) - sizeof(PyObject));
        PyObject_Init((PyObject *)value, Value_Type);
        PyObject_GC_Track(value);
    } else value = (Value *)Value_Type->tp_alloc(Value_Type, 0);
    if (value != NULL) value->type = Py_NewRef(type);
    return value;
}

static int value_init(Value *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"type", "buffer", NULL};
    PyObject *type, *buffer = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", names, &type, &buffer)) return -1;
    if (buffer == Py_None) buffer = NULL;
    Py_INCREF(type), replace(&self->type, type);
    Py_XINCREF(buffer), replace(&self->buffer, buffer);
    return 0;
}

static PyObject *value_repr(Value *self) {
    if (self->operation == NULL) return PyUnicode_FromFormat("Value(%S, computed)", self->type);
    return PyUnicode_FromFormat("Value(%S, pending %S)", self->type, self->operation);
}

static PyObject *value_operands(Value *self, void *closure) {
    if (self->operands) return Py_NewRef(self->operands);
    PyObject *operands = PyTuple_New(self->num_few);
    for (int i = 0; operands != NULL && i < self->num_few; i++)
        PyTuple_SET_ITEM(operands, i, Py_NewRef((PyObject *)self->few[i]));
    return operands;
}

static int value_set_operands(Value *self, PyObject *operands, void *closure) {
    if (operands != NULL && !PyTuple_Check(operands)) {
        PyErr_Format(PyExc_TypeError, "operands must be a tuple, got %R", operands);
        return -1;
    }
    Py_XINCREF(operands);
    value_clear_operands(self);
    self->operands = operands;
    return 0;
}

// Attributes for which NULL stands for None.
static PyObject *get_optional(PyObject *self, void *offset) {
    PyObject *value = *(PyObject **)((char *)self + (intptr_t)offset);
    return Py_NewRef(value ? value : Py_None);
}

static int set_optional(PyObject *self, PyObject *value, void *offset) {
    if (value == Py_None) value = NULL;
    Py_XINCREF(value), replace((PyObject **)((char *)self + (intptr_t)offset), value);
    return 0;
}

static PyObject *value_array(Value *self, void *closure) {
    return Py_NewRef(self->array ? (PyObject *)self->array : Py_None);
}

static PyObject *value_is_alive(Value *self, void *closure) { return PyBool_FromLong(self->array != NULL); }

#define OPTIONAL(struct, name) {#name, get_optional, set_optional, NULL, (void *)offsetof(struct, name)}

static PyGetSetDef value_getset[] = {
    {"operands", (getter)value_operands, (setter)value_set_operands},
    {"array", (getter)value_array},
    {"is_alive", (getter)value_is_alive},
    OPTIONAL(Value, buffer),
    OPTIONAL(Value, operation),
    OPTIONAL(Value, origin),
    OPTIONAL(Value, stream),
    {NULL},
};

static PyMemberDef value_members[] = {
    {"type", T_OBJECT, offsetof(Value, type)},
    {"age", T_INT, offsetof(Value, age)},
    {"is_scalar", T_BOOL, offsetof(Value, is_scalar)},
    {"is_owned", T_BOOL, offsetof(Value, is_owned)},
    {"is_exposed", T_BOOL, offsetof(Value, is_exposed)},
    {NULL},
};

// Arrays

static void array_bind(Array *self, Value *value) {  // steals the reference to value
    Value *old = self->value;
    self->value = value;
    if (value != NULL) value->array = self;
    if (old != NULL) {
        if (old->array == self && old != value) old->array = NULL;
        Py_DECREF(old);
    }
}

static void array_dealloc(Array *self) {
    array_bind(self, NULL);
    free_instance((PyObject *)self);
}

static PyObject *array_value(Array *self, void *closure) {
    if (self->value != NULL) return Py_NewRef((PyObject *)self->value);
    PyErr_SetString(PyExc_AttributeError, "_value");
    return NULL;
}

static int array_set_value(Array *self, PyObject *value, void *closure) {
    if (value == NULL || Py_TYPE(value) != Value_Type) {
        PyErr_SetString(PyExc_TypeError, "an array holds a Value");
        return -1;
    }
    array_bind(self, (Value *)Py_NewRef(value));
    return 0;
}

static PyGetSetDef array_getset[] = {
    {"_value", (getter)array_value, (setter)array_set_value},
    {NULL},
};

// Return a new array that holds a value, whose reference is stolen; NULL passes an error on.
static PyObject *wrap_value(Value *value) {
    if (value == NULL) return NULL;
    Array *array = (Array *)array_class->tp_alloc(array_class, 0);
    if (array == NULL) {
        Py_DECREF(value);
        return NULL;
    }
    array_bind(array, value);
    return (PyObject *)array;
}

static PyObject *wrap(PyObject *module, PyObject *value) {
    if (Py_TYPE(value) != Value_Type) {
        PyErr_Format(PyExc_TypeError, "wrap needs a Value, got %R", value);
        return NULL;
    }
    return wrap_value((Value *)Py_NewRef(value));
}

// Operations

static int operation_traverse(Operation *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->generic);
    Py_VISIT(self->extents);
    Py_VISIT(self->result_types);
    Py_VISIT(self->on_arrays);
    Py_VISIT(self->last_types[0]);
    Py_VISIT(self->last_types[1]);
    Py_VISIT(self->last_result);
    return 0;
}

static int operation_clear(Operation *self) {
    Py_CLEAR(self->generic);
    Py_CLEAR(self->extents);
    Py_CLEAR(self->result_types);
    Py_CLEAR(self->on_arrays);
    Py_CLEAR(self->last_result);
    Py_CLEAR(self->last_types[0]);
    Py_CLEAR(self->last_types[1]);
    return 0;
}

static void operation_dealloc(Operation *self) {
    PyObject_GC_UnTrack(self);
    operation_clear(self);
    free_instance((PyObject *)self);
}

static PyGetSetDef operation_getset[] = {
    OPTIONAL(Operation, generic),
    OPTIONAL(Operation, extents),
    OPTIONAL(Operation, result_types),
    OPTIONAL(Operation, on_arrays),
    {NULL},
};

static PyMemberDef operation_members[] = {
    {"is_direct", T_BOOL, offsetof(Operation, is_direct)},
    {"num_operators", T_INT, offsetof(Operation, num_operators)},
    {NULL},
};

// The trie and the position in it

static int node_traverse(TrieNode *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->key);
    Py_VISIT(self->children);
    Py_VISIT(self->plan);
    Py_VISIT(self->fire);
    Py_VISIT(self->program);
    return 0;
}

static int node_clear(TrieNode *self) {
    self->recent = NULL;
    self->words.count = 0;
    Py_CLEAR(self->key);
    Py_CLEAR(self->children);
    Py_CLEAR(self->plan);
    Py_CLEAR(self->fire);
    Py_CLEAR(self->program);
    return 0;
}

static void node_dealloc(TrieNode *self) {
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, node_dealloc)
    node_clear(self);
    free_instance((PyObject *)self);
    Py_TRASHCAN_END
}

static int node_init(TrieNode *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"key", NULL};
    PyObject *key = Py_None, *children;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &key)) return -1;
    if ((children = PyDict_New()) == NULL) return -1;
    Py_INCREF(key), replace(&self->key, key);
    self->recent = NULL;
    replace(&self->children, children);
    return 0;
}

static PyObject *node_drop_children(TrieNode *self, PyObject *unused) {
    self->recent = NULL;
    PyDict_Clear(self->children);
    Py_RETURN_NONE;
}

static PyMethodDef node_methods[] = {
    {"drop_children", (PyCFunction)node_drop_children, METH_NOARGS, "drop_children(): Remove all next positions."},
    {NULL},
};

static PyMemberDef node_members[] = {
    {"key", T_OBJECT, offsetof(TrieNode, key), READONLY},
    {"children", T_OBJECT, offsetof(TrieNode, children), READONLY},
    {NULL},
};

static PyGetSetDef node_getset[] = {
    OPTIONAL(TrieNode, plan),
    OPTIONAL(TrieNode, fire),
    OPTIONAL(TrieNode, program),
    {NULL},
};

static int cursor_traverse(TrieCursor *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->trie);
    Py_VISIT(self->position);
    for (Py_ssize_t i = 0; i < self->length; i++) Py_VISIT(self->path[i]);
    Py_VISIT(self->rest);
    Py_VISIT(self->hit);
    return 0;
}

static void cursor_forget_path(TrieCursor *self) {
    while (self->length) Py_DECREF(self->path[--self->length]);
}

static int cursor_clear(TrieCursor *self) {
    Py_CLEAR(self->trie);
    Py_CLEAR(self->position);
    cursor_forget_path(self);
    Py_CLEAR(self->rest);
    Py_CLEAR(self->hit);
    return 0;
}

static void cursor_dealloc(TrieCursor *self) {
    PyObject_GC_UnTrack(self);
    cursor_clear(self);
    PyMem_Free(self->path);
    free_instance((PyObject *)self);
}

// Move the position to a child of it; a node whose plan fires is remembered, the first one only.
static int cursor_enter(TrieCursor *self, TrieNode *child) {
    if (self->length == self->capacity) {
        Py_ssize_t capacity = self->capacity ? 2 * self->capacity : 64;
        TrieNode **path = PyMem_Realloc(self->path, capacity * sizeof(TrieNode *));
        if (path == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        self->path = path;
        self->capacity = capacity;
    }
    for (int offset = 0; offset < (int)sizeof(TrieNode); offset += 64) __builtin_prefetch((char *)child->ahead + offset);
    if (self->length >= STEPS_AHEAD) self->path[self->length - STEPS_AHEAD]->ahead = child;
    self->path[self->length++] = (TrieNode *)Py_NewRef(child);
    self->position->recent = child;
    Py_INCREF(child), replace((PyObject **)&self->position, (PyObject *)child);
    if (child->fire != NULL && self->hit == NULL) self->hit = Py_NewRef(child->fire);
    return 0;
}

// Append an operation in relative form.
static int cursor_append(TrieCursor *self, PyObject *key) {
    if (self->position != NULL) {
        PyObject *child = PyDict_GetItemWithError(self->position->children, key);
        if (child != NULL) return cursor_enter(self, (TrieNode *)child);
        if (PyErr_Occurred()) return -1;
        replace((PyObject **)&self->position, NULL);
    }
    return PyList_Append(self->rest, key);
}

#define MAX_EXTRA_NODES (1 << 14)
static int num_extra_nodes;

// Add positions without a plan for the queued operations to the trie, so that their keys need not be made again when the
// same operations are queued. There are at most MAX_EXTRA_NODES such positions.
static int cursor_extend_trie(TrieCursor *self) {
    Py_ssize_t count = PyList_GET_SIZE(self->rest);
    if (num_extra_nodes + count > MAX_EXTRA_NODES) return 0;
    PyObject *node = (PyObject *)(self->length ? self->path[self->length - 1] : self->trie);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *key = PyList_GET_ITEM(self->rest, i), *children = ((TrieNode *)node)->children;
        PyObject *child = PyDict_GetItemWithError(children, key);
        if (child == NULL && PyErr_Occurred()) return -1;
        if (child == NULL) {
            if ((child = PyObject_CallOneArg((PyObject *)TrieNode_Type, key)) == NULL) return -1;
            int status = PyDict_SetItem(children, key, child);
            Py_DECREF(child);  // the trie keeps it
            if (status < 0) return -1;
            num_extra_nodes++;
        }
        node = child;
    }
    return 0;
}

static PyObject *cursor_keys(TrieCursor *self, void *closure) {
    PyObject *keys = PyList_New(self->length);
    for (Py_ssize_t i = 0; keys != NULL && i < self->length; i++) PyList_SET_ITEM(keys, i, Py_NewRef(self->path[i]->key));
    if (keys != NULL && PyList_SetSlice(keys, self->length, self->length, self->rest) < 0) Py_CLEAR(keys);
    return keys;
}

static PyObject *cursor_add(TrieCursor *self, PyObject *key) {
    if (cursor_append(self, key) < 0) return NULL;
    Py_RETURN_NONE;
}

static int cursor_restart(TrieCursor *self) {
    if (self->rest == NULL || PyList_GET_SIZE(self->rest)) {
        PyObject *rest = PyList_New(0);
        if (rest == NULL) return -1;
        replace(&self->rest, rest);
    }
    cursor_forget_path(self);
    Py_XINCREF(self->trie), replace((PyObject **)&self->position, (PyObject *)self->trie);
    Py_CLEAR(self->hit);
    return 0;
}

static PyObject *cursor_reset(TrieCursor *self, PyObject *keys) {
    PyObject *sequence = PySequence_Tuple(keys);
    if (sequence == NULL || cursor_restart(self) < 0) {
        Py_XDECREF(sequence);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence); i++)
        if (cursor_append(self, PyTuple_GET_ITEM(sequence, i)) < 0) {
            Py_DECREF(sequence);
            return NULL;
        }
    Py_DECREF(sequence);
    Py_RETURN_NONE;
}

static int cursor_init(TrieCursor *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"trie", NULL};
    PyObject *trie;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!", names, TrieNode_Type, &trie)) return -1;
    Py_INCREF(trie), replace((PyObject **)&self->trie, trie);
    return cursor_restart(self);
}

static PyMethodDef cursor_methods[] = {
    {"add", (PyCFunction)cursor_add, METH_O, "add(key): Queue an operation, and move to its position in the trie."},
    {"reset", (PyCFunction)cursor_reset, METH_O,
     "reset(keys): Replace the queue, and move to the position of its operations."},
    {NULL},
};

static PyMemberDef cursor_members[] = {
    {"trie", T_OBJECT, offsetof(TrieCursor, trie), READONLY},
    {NULL},
};

static PyGetSetDef cursor_getset[] = {
    {"keys", (getter)cursor_keys, NULL, "A new list of the queued operations in relative form."},
    OPTIONAL(TrieCursor, position),
    OPTIONAL(TrieCursor, hit),
    {NULL},
};

// Queues

static int queue_traverse(Queue *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->queue);
    Py_VISIT(self->inputs);
    Py_VISIT(self->lock);
    Py_VISIT(self->watched);
    Py_VISIT(self->inspectors);
    Py_VISIT(self->device);
    Py_VISIT(self->others);
    Py_VISIT(self->counts);
    Py_VISIT(self->stand_ins);
    Py_VISIT(self->argument_operation);
    Py_VISIT(self->purpose);
    Py_VISIT(self->outer);
    Py_VISIT(self->held);
    Py_VISIT(self->processor);
    return 0;
}

static int queue_clear(Queue *self) {
    Py_CLEAR(self->queue);
    Py_CLEAR(self->inputs);
    Py_CLEAR(self->lock);
    Py_CLEAR(self->watched);
    Py_CLEAR(self->inspectors);
    Py_CLEAR(self->device);
    Py_CLEAR(self->others);
    Py_CLEAR(self->counts);
    Py_CLEAR(self->stand_ins);
    Py_CLEAR(self->argument_operation);
    Py_CLEAR(self->purpose);
    Py_CLEAR(self->outer);
    Py_CLEAR(self->held);
    Py_CLEAR(self->processor);
    return 0;
}

static void queue_dealloc(Queue *self) {
    PyObject_GC_UnTrack(self);
    if (current_queue == self) current_queue = NULL;
    queue_clear(self);
    PyMem_Free(self->symbols);
    PyMem_Free(self->input_numbers);
    free_instance((PyObject *)self);
}

static int queue_restart(Queue *self) {
    PyObject *queue = PyList_New(0), *inputs = PyList_New(0);
    if (queue == NULL || inputs == NULL) {
        Py_XDECREF(queue);
        Py_XDECREF(inputs);
        return -1;
    }
    self->segment = ++last_segment;
    self->count = self->num_new = 0;
    self->num_symbols = self->pending_bytes = 0;
    replace(&self->inputs, inputs);
    replace(&self->queue, queue);
    return self->processor ? cursor_restart(self->processor) : 0;
}

static int queue_init(Queue *self, PyObject *args, PyObject *kwargs) {
    if (!PyArg_ParseTuple(args, "")) return -1;
    return queue_restart(self);
}

// Return the dim of an extent: its symbol, or its literal if it is short.
static int queue_dim(Queue *self, int64_t extent, int64_t longest_literal, int64_t *dim) {
    if (extent <= longest_literal) {
        *dim = -extent - 1;
        return 0;
    }
    for (Py_ssize_t k = 0; k < self->num_symbols; k++)
        if (self->symbols[k] == extent) {
            *dim = k;
            return 0;
        }
    if (self->num_symbols == self->symbol_capacity) {
        Py_ssize_t capacity = self->symbol_capacity ? 2 * self->symbol_capacity : 16;
        int64_t *symbols = PyMem_Realloc(self->symbols, capacity * sizeof(int64_t));
        if (symbols == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        self->symbols = symbols;
        self->symbol_capacity = capacity;
    }
    self->symbols[self->num_symbols] = extent;
    *dim = self->num_symbols++;
    return 0;
}

#define SHORT_ROW 16  // recording.py has the same

// Compute the dims of a new input; its last axes are literals as long as they have few elements together.
static int queue_dims(Queue *self, PyObject *shape, int64_t *dims) {
    Py_ssize_t rank = PyTuple_GET_SIZE(shape), first_literal = rank;
    for (int64_t size = 1; first_literal > 0; first_literal--) {
        int64_t extent = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, first_literal - 1));
        if (extent > SHORT_ROW || (size *= extent) > SHORT_ROW) break;
    }
    for (Py_ssize_t i = 0; i < rank; i++) {
        int64_t extent = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
        if (queue_dim(self, extent, i >= first_literal ? SHORT_ROW : 1, dims + i) < 0) return -1;
    }
    return 0;
}

static PyObject *int_tuple(const int64_t *numbers, Py_ssize_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (number == NULL) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

static int equals_ints(PyObject *tuple, const int64_t *numbers, Py_ssize_t count) {
    if (PyTuple_GET_SIZE(tuple) != count) return 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)) != numbers[i]) return 0;
    return 1;
}

// The relative form of an operand: the number of an array that appeared before, or a new input.
typedef struct {
    int64_t number;  // -1 for a new input
    ArrayType *type;
    int64_t *dims;
} Operand;

#define MAX_RANK 64

// Append a value to the inputs of the queue, under the next number.
static int queue_add_input(Queue *self, Value *value) {
    Py_ssize_t count = PyList_GET_SIZE(self->inputs);
    if (count == self->input_capacity) {
        Py_ssize_t capacity = count ? 2 * count : 32;
        int *numbers = PyMem_Realloc(self->input_numbers, capacity * sizeof(int));
        if (numbers == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        self->input_numbers = numbers;
        self->input_capacity = capacity;
    }
    if (PyList_Append(self->inputs, (PyObject *)value) < 0) return -1;
    self->input_numbers[count] = self->count++;
    return 0;
}

// Number an operand; a value that appears for the first time becomes an input of the queue.
static int queue_operand(Queue *self, Value *value, Operand *operand, int64_t *dims) {
    if (value->segment == self->segment && !value->is_scalar) {
        operand->number = value->number;
        return 0;
    }
    int is_shared = value->stream != NULL && value->stream != (PyObject *)self && !value->is_scalar;
    for (Py_ssize_t i = 0; is_shared && i < PyList_GET_SIZE(self->inputs); i++)
        if (PyList_GET_ITEM(self->inputs, i) == (PyObject *)value) {  // another stream has numbered it since
            operand->number = self->input_numbers[i];
            return 0;
        }
    if (!is_array_type(value->type)) {
        PyErr_SetString(PyExc_TypeError, "an operand has several results");
        return -1;
    }
    operand->number = -1;
    operand->type = (ArrayType *)value->type;
    operand->dims = dims;
    if (PyTuple_GET_SIZE(operand->type->shape) > MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "arrays have at most %d axes", MAX_RANK);
        return -1;
    }
    int number = self->count;
    if (queue_dims(self, operand->type->shape, dims) < 0 || queue_add_input(self, value) < 0) return -1;
    if (value->is_scalar) return 0;
    value->segment = self->segment;
    value->number = number;
    self->pending_bytes += PyTuple_GET_SIZE(operand->type->shape) ? operand->type->nbytes : 0;
    if (value->stream == NULL) value->stream = Py_NewRef((PyObject *)self);
    else if (is_shared) value->is_owned = 0;
    return 0;
}

static PyObject *key_of(Operation *operation, const int64_t *extents, const Operand *operands, Py_ssize_t count) {
    PyObject *key = PyTuple_New(2 + count);
    if (key == NULL) return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(operation->generic ? operation->generic : (PyObject *)operation));
    PyObject *item = operation->extents ? int_tuple(extents, PyTuple_GET_SIZE(operation->extents)) : Py_NewRef(Py_None);
    for (Py_ssize_t i = 0; item != NULL; i++) {
        PyTuple_SET_ITEM(key, 1 + i, item);
        if (i == count) return key;
        if (operands[i].number >= 0) item = PyLong_FromLongLong(operands[i].number);
        else {
            PyObject *dims = int_tuple(operands[i].dims, PyTuple_GET_SIZE(operands[i].type->shape));
            item = dims ? PyTuple_Pack(2, operands[i].type->dtype, dims) : NULL;
            Py_XDECREF(dims);
        }
    }
    Py_DECREF(key);
    return NULL;
}

// Return whether the relative form of an operation is a given one.
static int equals_key(PyObject *key, Operation *operation, const int64_t *extents, const Operand *operands, Py_ssize_t count) {
    if (!PyTuple_Check(key) || PyTuple_GET_SIZE(key) != 2 + count) return 0;
    if (PyTuple_GET_ITEM(key, 0) != (operation->generic ? operation->generic : (PyObject *)operation)) return 0;
    PyObject *key_extents = PyTuple_GET_ITEM(key, 1);
    if (operation->extents == NULL ? key_extents != Py_None
                                   : key_extents == Py_None ||
                                         !equals_ints(key_extents, extents, PyTuple_GET_SIZE(operation->extents)))
        return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(key, 2 + i);
        if (operands[i].number >= 0) {
            if (!PyLong_CheckExact(item) || PyLong_AsLongLong(item) != operands[i].number) return 0;
        } else if (PyLong_CheckExact(item) || PyTuple_GET_ITEM(item, 0) != operands[i].type->dtype ||
                   !equals_ints(PyTuple_GET_ITEM(item, 1), operands[i].dims, PyTuple_GET_SIZE(operands[i].type->shape)))
            return 0;
    }
    return 1;
}

// Write the relative form of an operation as numbers; the count stays 0 if they are too many.
static void write_words(Words *words, Operation *operation, const int64_t *extents, const Operand *operands, Py_ssize_t count) {
    Py_ssize_t num_extents = operation->extents ? PyTuple_GET_SIZE(operation->extents) : -1;
    int n = 0;
    words->count = 0;
    if (num_extents + count + 2 > MAX_WORDS) return;
    words->words[n++] = (int64_t)(intptr_t)(operation->generic ? operation->generic : (PyObject *)operation);
    words->words[n++] = num_extents;
    for (Py_ssize_t i = 0; i < num_extents; i++) words->words[n++] = extents[i];
    for (Py_ssize_t i = 0; i < count; i++) {
        const Operand *operand = operands + i;
        Py_ssize_t rank = operand->number >= 0 ? 0 : PyTuple_GET_SIZE(operand->type->shape);
        if (n + rank + 2 > MAX_WORDS) return;
        words->words[n++] = operand->number >= 0 ? operand->number : -1 - rank;
        if (operand->number >= 0) continue;
        words->words[n++] = (int64_t)(intptr_t)operand->type->dtype;
        for (Py_ssize_t k = 0; k < rank; k++) words->words[n++] = operand->dims[k];
    }
    words->count = n;
}

// Append a value, whose operands are set, to the queue and its relative form to the processor's.
static int queue_append_value(Queue *self, Value *value) {
    Operation *operation = (Operation *)value->operation;
    Py_ssize_t count = value_num_operands(value);
    Py_ssize_t num_extents = operation->extents ? PyTuple_GET_SIZE(operation->extents) : 0;
    Operand few[MAX_OPERANDS], *operands = few;
    int64_t few_dims[4 * MAX_RANK], *dims = few_dims, few_extents[MAX_RANK], *extents = few_extents;
    int status = -1;
    if (count > 4 || num_extents > MAX_RANK) {  // rare: a concatenation of many arrays
        operands = PyMem_Malloc(count * sizeof(Operand) + 1);
        dims = PyMem_Malloc(count * MAX_RANK * sizeof(int64_t) + 1);
        extents = PyMem_Malloc(num_extents * sizeof(int64_t) + 1);
        if (operands == NULL || dims == NULL || extents == NULL) {
            PyErr_NoMemory();
            goto done;
        }
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (queue_operand(self, value_operand(value, i), operands + i, dims + i * MAX_RANK) < 0) goto done;
    }
    for (Py_ssize_t i = 0; i < num_extents; i++) {
        int64_t extent = PyLong_AsLongLong(PyTuple_GET_ITEM(operation->extents, i));
        extents[i] = -extent - 1;
        for (Py_ssize_t k = 0; k < self->num_symbols; k++)
            if (self->symbols[k] == extent) extents[i] = k;
    }
    if (PyList_Append(self->queue, (PyObject *)value) < 0) goto done;
    value->segment = self->segment;
    value->number = self->count++;
    if (!value->age) self->num_new++;
    TrieCursor *cursor = self->processor;
    TrieNode *child = cursor->position ? cursor->position->recent : NULL;
    Words words;
    write_words(&words, operation, extents, operands, count);
    if (child != NULL && words.count && words.count == child->words.count &&
        memcmp(words.words, child->words.words, words.count * sizeof(int64_t)) == 0) {
        status = cursor_enter(cursor, child);
        goto done;
    }
    if (child != NULL && equals_key(child->key, operation, extents, operands, count)) status = cursor_enter(cursor, child);
    else {
        PyObject *key = key_of(operation, extents, operands, count);
        if (key != NULL) {
            status = cursor_append(cursor, key);
            Py_DECREF(key);
        }
    }
    if (status == 0 && cursor->position != NULL) cursor->position->words = words;
done:
    if (operands != few) {
        PyMem_Free(operands);
        PyMem_Free(dims);
        PyMem_Free(extents);
    }
    return status;
}

// Finalizers that the garbage collector calls must not record while a record changes the queue.
static int queue_append_undisturbed(Queue *self, Value *value) {
    if (value->operation == NULL) {
        PyErr_Format(PyExc_TypeError, "append needs a pending Value, got %R", value);
        return -1;
    }
    int was_enabled = PyGC_Disable();
    int status = queue_append_value(self, value);
    if (was_enabled) PyGC_Enable();
    return status;
}

static PyObject *queue_append(Queue *self, PyObject *value) {
    if (Py_TYPE(value) != Value_Type) {
        PyErr_Format(PyExc_TypeError, "append needs a Value, got %R", value);
        return NULL;
    }
    if (queue_append_undisturbed(self, (Value *)value) < 0) return NULL;
    Py_RETURN_NONE;
}

static Value *queue_record(Queue *self, Operation *operation, PyObject *const *operands, Py_ssize_t count, PyObject *type);

static PyObject *queue_put(Queue *self, PyObject *args) {
    PyObject *operation, *operands, *type;
    if (!PyArg_ParseTuple(args, "O!O!O", Operation_Type, &operation, &PyTuple_Type, &operands, &type)) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(operands);
    for (Py_ssize_t i = 0; i < count; i++)
        if (Py_TYPE(PyTuple_GET_ITEM(operands, i)) != Value_Type) {
            PyErr_Format(PyExc_TypeError, "put needs values, got %R", PyTuple_GET_ITEM(operands, i));
            return NULL;
        }
    return (PyObject *)queue_record(self, (Operation *)operation, &PyTuple_GET_ITEM(operands, 0), count, type);
}

static PyObject *queue_number_of(Queue *self, PyObject *value) {
    if (Py_TYPE(value) != Value_Type || ((Value *)value)->segment != self->segment) Py_RETURN_NONE;
    return PyLong_FromLong(((Value *)value)->number);
}

static PyObject *queue_add_argument(Queue *self, PyObject *args) {
    Value *value, *stand_in;
    if (!PyArg_ParseTuple(args, "O!O!", Value_Type, &value, Value_Type, &stand_in)) return NULL;
    int number = self->count;
    if (queue_add_input(self, value) < 0) return NULL;
    stand_in->segment = self->segment;
    stand_in->number = number;
    Py_RETURN_NONE;
}

static int queue_is_full(Queue *self) {
    return self->pending_bytes > max_pending_bytes || PyList_GET_SIZE(self->queue) >= max_ops;
}

// Return the queue of a device that goes with a queue, or that queue itself if there is none: a borrowed reference.
static Queue *queue_on(Queue *self, PyObject *device) {
    if (self->traces || self->others == NULL || !PyDict_Check(self->others)) return self;
    if (device == Py_None || device == self->device) return self;
    PyObject *other = PyDict_GetItemWithError(self->others, device);
    return other != NULL && PyObject_TypeCheck(other, Queue_Type) ? (Queue *)other : self;
}

// Return a new pending value of a queue that traces, which stands for another value: an input of the queue.
static Value *queue_stand_in(Queue *self, Value *value, PyObject *type) {
    Value *stand_in = new_value(type);
    if (stand_in == NULL) return NULL;
    stand_in->operation = Py_NewRef(self->argument_operation);
    stand_in->stream = Py_NewRef((PyObject *)self);
    stand_in->segment = self->segment;
    stand_in->number = self->count;
    if (queue_add_input(self, value) < 0) Py_CLEAR(stand_in);
    return stand_in;
}

static int is_pending_in(const Value *value, const Queue *queue) {
    return value->operation != NULL && value->stream == (PyObject *)queue;
}

// Return what a queue that traces reads in place of an operand: a Python number or a value of the queue itself, else the
// value that stands for it; a borrowed reference. NULL without an error where Python has to decide.
static Value *queue_own_value(Queue *self, Value *value) {
    if (value->is_scalar || is_pending_in(value, self)) return value;
    PyObject *known = PyDict_GetItemWithError(self->stand_ins, (PyObject *)value);
    if (known != NULL || PyErr_Occurred()) return (Value *)known;
    // Nobody may store a result over an input before the program is recorded.
    if (value->operation != NULL || !is_array_type(value->type)) return NULL;
    if (value->array == NULL && value->is_owned && !self->keeps_inputs) return NULL;
    Value *stand_in = queue_stand_in(self, value, value->type);
    if (stand_in == NULL) return NULL;
    value->is_owned = 0;
    int status = PyDict_SetItem(self->stand_ins, (PyObject *)value, (PyObject *)stand_in);
    Py_DECREF(stand_in);  // the dict keeps it
    return status < 0 ? NULL : stand_in;
}

// Replace the operands of an operation that a queue traces by what it reads in their place: return 1, or 0 where Python has
// to do it, -1 with an error. An operation without a value of the queue belongs to the stream around it.
static int queue_replace_operands(Queue *self, PyObject *const *operands, Py_ssize_t count, PyObject **replaced) {
    Py_ssize_t num_own = 0;
    for (Py_ssize_t i = 0; i < count; i++) num_own += is_pending_in((Value *)operands[i], self);
    if (!num_own || self->stand_ins == NULL || !PyDict_Check(self->stand_ins) || self->argument_operation == NULL) return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        replaced[i] = (PyObject *)queue_own_value(self, (Value *)operands[i]);
        if (replaced[i] == NULL) return PyErr_Occurred() ? -1 : 0;
    }
    return 1;
}

// Queue an operation; return its value. The stream's Python method does it where values of another stream, a full
// queue or memory that NumPy may write to are involved, or another thread executes this one.
static Value *queue_record(Queue *self, Operation *operation, PyObject *const *operands, Py_ssize_t count, PyObject *type) {
    PyObject *first = is_array_type(type) ? type : PyTuple_GET_ITEM(type, 0);
    if (is_array_type(first)) self = queue_on(self, ((ArrayType *)first)->device);
    if (PyErr_Occurred()) return NULL;
    PyObject *replaced[MAX_OPERANDS];
    int is_simple;
    if (self->traces) {
        is_simple = count <= MAX_OPERANDS ? queue_replace_operands(self, operands, count, replaced) : 0;
        if (is_simple < 0) return NULL;
        if (is_simple) operands = replaced;
    } else {
        PyObject *device = self->device == NULL ? Py_None : self->device;
        int is_here = is_array_type(first) && ((ArrayType *)first)->device == device;
        is_simple = !self->busy && is_here && !queue_is_full(self);
        for (Py_ssize_t i = 0; i < count; i++) {
            Value *operand = (Value *)operands[i];
            is_simple &= is_pending_in(operand, self) || (operand->operation == NULL && !operand->is_exposed);
        }
    }
    PyObject *tuple = NULL;
    if (count > MAX_FEW || !is_simple) {
        if ((tuple = PyTuple_New(count)) == NULL) return NULL;
        for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(operands[i]));
    }
    if (!is_simple) {
        PyObject *args[] = {(PyObject *)self, (PyObject *)operation, tuple, type};
        PyObject *value = PyObject_VectorcallMethod(interned.record, args, 4 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        Py_DECREF(tuple);
        if (value != NULL && Py_TYPE(value) != Value_Type) {
            PyErr_Format(PyExc_TypeError, "record must return a Value, got %R", value);
            Py_CLEAR(value);
        }
        return (Value *)value;
    }
    Value *value = new_value(type);
    if (value == NULL) {
        Py_XDECREF(tuple);
        return NULL;
    }
    value->operands = tuple;
    if (tuple == NULL)
        for (Py_ssize_t i = 0; i < count; i++) value->few[value->num_few++] = (Value *)Py_NewRef(operands[i]);
    value->operation = Py_NewRef((PyObject *)operation);
    value->stream = Py_NewRef((PyObject *)self);
    if (queue_append_undisturbed(self, value) < 0) Py_CLEAR(value);
    return value;
}

// Tracing functions, and recording them as programs

static int begin_tracing(Queue *self, PyObject *trie, PyObject *operation, int keeps_inputs) {
    PyObject *stand_ins = PyDict_New(), *cursor = stand_ins ? PyObject_CallOneArg((PyObject *)Cursor_Type, trie) : NULL;
    if (cursor == NULL) {
        Py_XDECREF(stand_ins);
        return -1;
    }
    replace(&self->stand_ins, stand_ins);
    replace((PyObject **)&self->processor, cursor);
    Py_INCREF(operation), replace(&self->argument_operation, operation);
    self->traces = self->is_open = 1;
    self->keeps_inputs = keeps_inputs;
    return 0;
}

static PyObject *queue_begin_tracing(Queue *self, PyObject *args) {
    PyObject *trie, *operation;
    int keeps_inputs;
    if (!PyArg_ParseTuple(args, "O!O!p", TrieNode_Type, &trie, Operation_Type, &operation, &keeps_inputs)) return NULL;
    if (begin_tracing(self, trie, operation, keeps_inputs) < 0) return NULL;
    Py_RETURN_NONE;
}

// Return new arrays that stand for others, inputs of a queue that traces; None unless all are arrays of floats without a band.
static PyObject *queue_add_arguments(Queue *self, PyObject *arrays) {
    if (!PyList_Check(arrays) || !self->traces || self->argument_operation == NULL) {
        PyErr_SetString(PyExc_TypeError, "add_arguments needs a list of arrays, and a queue that traces");
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(arrays);
    for (Py_ssize_t i = 0; i < count; i++) {
        Array *array = (Array *)PyList_GET_ITEM(arrays, i);
        if (Py_TYPE(array) != array_class || array->value == NULL || !is_array_type(array->value->type)) Py_RETURN_NONE;
        ArrayType *type = (ArrayType *)array->value->type;
        if (type->band != Py_None || ((PyArray_Descr *)type->dtype)->kind != 'f') Py_RETURN_NONE;
    }
    PyObject *result = PyList_New(count);
    for (Py_ssize_t i = 0; result != NULL && i < count; i++) {
        Value *value = ((Array *)PyList_GET_ITEM(arrays, i))->value;
        PyObject *array = wrap_value(queue_stand_in(self, value, value->type));
        if (array == NULL) Py_CLEAR(result);
        else PyList_SET_ITEM(result, i, array);
    }
    self->num_arguments += count;
    return result;
}

// Return the extents that are parameters of the queued operations, one operation after the other.
static PyObject *queue_extents(Queue *self, void *closure) {
    Py_ssize_t count = PyList_GET_SIZE(self->queue), num_extents = 0, n = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Operation *operation = (Operation *)((Value *)PyList_GET_ITEM(self->queue, i))->operation;
        if (operation != NULL && operation->extents) num_extents += PyTuple_GET_SIZE(operation->extents);
    }
    PyObject *result = PyTuple_New(num_extents);
    for (Py_ssize_t i = 0; result != NULL && i < count; i++) {
        Operation *operation = (Operation *)((Value *)PyList_GET_ITEM(self->queue, i))->operation;
        for (Py_ssize_t k = 0; operation != NULL && operation->extents && k < PyTuple_GET_SIZE(operation->extents); k++)
            PyTuple_SET_ITEM(result, n++, Py_NewRef(PyTuple_GET_ITEM(operation->extents, k)));
    }
    return result;
}

static PyObject *queue_run_known(Queue *self, PyObject *values);

#define LARGE 24  // recording.py has the same

// Execute the queue where a program would make the next plan large, or begins a new iteration of a loop.
static int queue_make_room(Queue *self, Operation *operation, PyObject *const *operands, Py_ssize_t count) {
    PyObject *generic = operation->generic ? operation->generic : (PyObject *)operation, *result;
    int num_operators = PyObject_TypeCheck(generic, Operation_Type) ? ((Operation *)generic)->num_operators : 0;
    Py_ssize_t total = num_operators, num_queued = PyList_GET_SIZE(self->queue);
    int has_same = 0;
    for (Py_ssize_t i = 0; i < num_queued; i++) {
        Operation *queued = (Operation *)((Value *)PyList_GET_ITEM(self->queue, i))->operation;
        PyObject *of = queued == NULL ? NULL : queued->generic ? queued->generic : (PyObject *)queued;
        if (of != NULL && PyObject_TypeCheck(of, Operation_Type)) total += ((Operation *)of)->num_operators;
        has_same |= of == generic;
    }
    const char *reason = "the next iteration begins";
    if (has_same && num_operators >= LARGE) {
        PyObject *pending = PyList_New(0);
        for (Py_ssize_t i = 0; pending != NULL && i < count; i++)
            if (is_pending_in((Value *)operands[i], self) && PyList_Append(pending, operands[i]) < 0) Py_CLEAR(pending);
        if (pending == NULL) return -1;
        // What else is alive, such as old gradients, may not be needed any more.
        if (PyList_GET_SIZE(pending)) {
            result = queue_run_known(self, pending);
            if (result == Py_False) {
                Py_DECREF(result);
                result = PyObject_CallMethod((PyObject *)self, "sync", "Os", pending, reason);
            }
        } else result = PyObject_CallMethod((PyObject *)self, "flush", "s", reason);
        Py_DECREF(pending);
    } else if (total > max_ops && num_queued) result = PyObject_CallMethod((PyObject *)self, "flush", "s", reason);
    else return 0;
    Py_XDECREF(result);
    return result ? 0 : -1;
}

// Record an operation with results of given types, and return a list of new arrays of them.
static PyObject *put_program(Queue *self, PyObject *operation, PyObject *const *operands, Py_ssize_t count, PyObject *types,
                             PyObject *projections) {
    Py_ssize_t num_results = PyTuple_GET_SIZE(types);
    if (!num_results || num_results > PyList_GET_SIZE(projections)) {
        PyErr_Format(PyExc_ValueError, "put_program needs 1 to %zd types, got %zd", PyList_GET_SIZE(projections), num_results);
        return NULL;
    }
    if (!self->traces && queue_make_room(self, (Operation *)operation, operands, count) < 0) return NULL;
    PyObject *type = num_results == 1 ? PyTuple_GET_ITEM(types, 0) : types, *arrays = NULL;
    Value *value = queue_record(self, (Operation *)operation, operands, count, type);
    if (value == NULL || (arrays = PyList_New(num_results)) == NULL) goto failed;
    if (num_results == 1) {
        PyObject *array = wrap_value(value);
        if (array == NULL) Py_CLEAR(arrays);
        else PyList_SET_ITEM(arrays, 0, array);
        return arrays;
    }
    for (Py_ssize_t i = 0; i < num_results; i++) {
        PyObject *projection = PyList_GET_ITEM(projections, i), *stream = value->stream, *result;
        if (stream != NULL && PyObject_TypeCheck(stream, Queue_Type) && PyObject_TypeCheck(projection, Operation_Type)) {
            PyObject *operand = (PyObject *)value;
            result = (PyObject *)queue_record((Queue *)stream, (Operation *)projection, &operand, 1, PyTuple_GET_ITEM(types, i));
        } else result = PyObject_CallMethod((PyObject *)self, "project", "On", value, i);
        if (result != NULL && Py_TYPE(result) != Value_Type) {
            PyErr_Format(PyExc_TypeError, "project must return a Value, got %R", result);
            Py_CLEAR(result);
        }
        PyObject *array = wrap_value((Value *)result);
        if (array == NULL) goto failed;
        PyList_SET_ITEM(arrays, i, array);
    }
    Py_DECREF(value);
    return arrays;
failed:
    Py_XDECREF(arrays);
    Py_XDECREF(value);
    return NULL;
}

static PyObject *queue_put_program(Queue *self, PyObject *args) {
    PyObject *operation, *operands, *types, *projections;
    if (!PyArg_ParseTuple(args, "O!O!O!O!", Operation_Type, &operation, &PyTuple_Type, &operands, &PyTuple_Type, &types,
                          &PyList_Type, &projections))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); i++)
        if (Py_TYPE(PyTuple_GET_ITEM(operands, i)) != Value_Type) {
            PyErr_Format(PyExc_TypeError, "a program reads values, got %R", PyTuple_GET_ITEM(operands, i));
            return NULL;
        }
    return put_program(self, operation, &PyTuple_GET_ITEM(operands, 0), PyTuple_GET_SIZE(operands), types, projections);
}

enum { ALIVE = 1, REQUIRED = 2, AGED = 4, HAS_ORIGIN = 8 };

static PyObject *queue_state(Queue *self, PyObject *required) {
    PyObject *values = PySequence_Fast(required, "state needs a sequence of values");
    if (values == NULL) return NULL;
    Py_ssize_t count = PyList_GET_SIZE(self->queue);
    PyObject *state = PyBytes_FromStringAndSize(NULL, count);
    if (state != NULL) {
        char *flags = PyBytes_AS_STRING(state);
        for (Py_ssize_t i = 0; i < count; i++) {
            Value *value = (Value *)PyList_GET_ITEM(self->queue, i);
            flags[i] = (value->array ? ALIVE : 0) | (value->age ? AGED : 0) | (value->origin ? HAS_ORIGIN : 0);
        }
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); i++) {
            PyObject *item = PySequence_Fast_GET_ITEM(values, i);
            for (Py_ssize_t k = 0; Py_TYPE(item) == Value_Type && k < count; k++)
                if (PyList_GET_ITEM(self->queue, k) == item) flags[k] |= REQUIRED;
        }
    }
    Py_DECREF(values);
    return state;
}

// Set the marks of the operands of a value.
static void mark_operands(Value *value, char is_marked) {
    for (Py_ssize_t i = 0; i < value_num_operands(value); i++) value_operand(value, i)->is_marked = is_marked;
}

// Drop values that an earlier run left pending and that nobody needs; return -1 with an error.
static int queue_drop_unneeded(Queue *self, PyObject *const *required, Py_ssize_t num_required) {
    Py_ssize_t count = PyList_GET_SIZE(self->queue), num_aged = 0, num_kept = 0;
    Value **values = (Value **)((PyListObject *)self->queue)->ob_item;
    while (num_aged < count && values[num_aged]->age) num_aged++;
    if (!num_aged) return 0;
    int was_enabled = PyGC_Disable();  // no finalizer must record meanwhile
    // What is new is needed, and so are its operands.
    for (Py_ssize_t i = 0; i < num_required; i++)
        if (Py_TYPE(required[i]) == Value_Type) ((Value *)required[i])->is_marked = 1;
    for (Py_ssize_t i = num_aged; i < count; i++) mark_operands(values[i], 1);
    for (Py_ssize_t i = num_aged - 1; i >= 0; i--) {
        if (!values[i]->is_marked && values[i]->array == NULL) continue;
        values[i]->is_marked = 1;
        mark_operands(values[i], 1);
        num_kept++;
    }
    PyObject *queue = NULL;
    int status = 0;
    if (num_kept < num_aged) {
        queue = Py_NewRef(self->queue);
        if (self->processor->position == NULL) status = cursor_extend_trie(self->processor);
        if (status == 0) status = queue_restart(self);
        for (Py_ssize_t i = 0; status == 0 && i < count; i++)
            if (i >= num_aged || values[i]->is_marked) status = queue_append_undisturbed(self, values[i]);
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        values[i]->is_marked = 0;
        mark_operands(values[i], 0);
    }
    for (Py_ssize_t i = 0; i < num_required; i++)
        if (Py_TYPE(required[i]) == Value_Type) ((Value *)required[i])->is_marked = 0;
    if (was_enabled) PyGC_Enable();
    Py_XDECREF(queue);  // frees the values that were dropped
    return status;
}

static PyObject *queue_prune(Queue *self, PyObject *required) {
    PyObject *values = PySequence_Fast(required, "prune needs a sequence of values");
    if (values == NULL) return NULL;
    int status = queue_drop_unneeded(self, PySequence_Fast_ITEMS(values), PySequence_Fast_GET_SIZE(values));
    Py_DECREF(values);
    if (status < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *queue_arguments(Queue *self, PyObject *positions) {
    if (!PyTuple_Check(positions)) {
        PyErr_SetString(PyExc_TypeError, "arguments needs a tuple of positions");
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(positions), nbytes = 0;
    PyObject *arrays = PyTuple_New(count);
    for (Py_ssize_t i = 0; arrays != NULL && i < count; i++) {
        Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, i));
        if (position < 0 || position >= PyList_GET_SIZE(self->inputs)) {
            PyErr_Format(PyExc_IndexError, "the queue has no input %zd", position);
            Py_CLEAR(arrays);
            break;
        }
        Value *value = (Value *)PyList_GET_ITEM(self->inputs, position);
        ArrayType *type = (ArrayType *)value->type;
        if (PyTuple_GET_SIZE(type->shape)) nbytes += type->nbytes;
        PyTuple_SET_ITEM(arrays, i, Py_NewRef(value->buffer ? value->buffer : Py_None));
    }
    return arrays ? Py_BuildValue("Nn", arrays, nbytes) : NULL;
}

static void settle_value(Value *value, PyObject *array) {
    Py_INCREF(array), replace(&value->buffer, array);
    replace(&value->operation, NULL);
    value_clear_operands(value);
    replace(&value->stream, NULL);
    replace(&value->origin, NULL);
    value->is_owned = 1;
}

// Give queued values their buffers; return the bytes, or -1 with an error.
static Py_ssize_t settle_values(Queue *self, PyObject *positions, PyObject *arrays) {
    PyObject *sequence = PySequence_Fast(arrays, "settle needs a sequence of arrays");
    if (sequence == NULL) return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(positions), nbytes = 0;
    if (count != PySequence_Fast_GET_SIZE(sequence)) {
        PyErr_SetString(PyExc_ValueError, "settle needs an array for each position");
        Py_DECREF(sequence);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, i));
        if (position < 0 || position >= PyList_GET_SIZE(self->queue)) {
            PyErr_Format(PyExc_IndexError, "the queue has no operation %zd", position);
            Py_DECREF(sequence);
            return -1;
        }
        Value *value = (Value *)PyList_GET_ITEM(self->queue, position);
        if (is_array_type(value->type)) nbytes += ((ArrayType *)value->type)->nbytes;
        settle_value(value, PySequence_Fast_GET_ITEM(sequence, i));
    }
    Py_DECREF(sequence);
    return nbytes;
}

static PyObject *queue_settle(Queue *self, PyObject *args) {
    PyObject *positions, *arrays;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &positions, &arrays)) return NULL;
    Py_ssize_t nbytes = settle_values(self, positions, arrays);
    return nbytes < 0 ? NULL : PyLong_FromSsize_t(nbytes);
}

// No signal handler runs between the two: a result may lie over an operand, and cannot be computed again.
static PyObject *queue_run(Queue *self, PyObject *args) {
    PyObject *function, *arguments, *positions;
    if (!PyArg_ParseTuple(args, "OO!O!", &function, &PyTuple_Type, &arguments, &PyTuple_Type, &positions)) return NULL;
    PyObject *arrays = PyObject_Call(function, arguments, NULL);
    if (arrays == NULL) return NULL;
    Py_ssize_t nbytes = settle_values(self, positions, arrays);
    Py_DECREF(arrays);
    return nbytes < 0 ? NULL : PyLong_FromSsize_t(nbytes);
}

// Return whether two inputs are Python numbers with the same bits.
static int are_same_numbers(Value *x, Value *y) {
    if (x == y) return 1;
    if (!x->is_scalar || !y->is_scalar || !PyArray_CheckExact(x->buffer) || !PyArray_CheckExact(y->buffer)) return 0;
    PyArrayObject *a = (PyArrayObject *)x->buffer, *b = (PyArrayObject *)y->buffer;
    return PyArray_DESCR(a) == PyArray_DESCR(b) && memcmp(PyArray_DATA(a), PyArray_DATA(b), PyArray_ITEMSIZE(a)) == 0;
}

// Return whether the inputs of each pair are the same numbers.
static int queue_has_equal_inputs(Queue *self, PyObject *pairs) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); i++) {
        PyObject *pair = PyTuple_GET_ITEM(pairs, i);
        Py_ssize_t count = PyList_GET_SIZE(self->inputs);
        Py_ssize_t later = PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 0)), earlier = PyLong_AsSsize_t(PyTuple_GET_ITEM(pair, 1));
        if (later < 0 || later >= count || earlier < 0 || earlier >= count) return 0;
        if (!are_same_numbers((Value *)PyList_GET_ITEM(self->inputs, later), (Value *)PyList_GET_ITEM(self->inputs, earlier)))
            return 0;
    }
    return 1;
}

// Return the execution that is remembered for the queue when ``values`` are waited for: a borrowed reference,
// which the plan holds; NULL without an error if there is none.
static PyObject *queue_known(Queue *self, PyObject *values) {
    TrieNode *position = self->processor ? self->processor->position : NULL;
    if (position == NULL || position->plan == NULL || self->processor->hit != NULL) return NULL;
    PyObject *plan = position->plan, *result = NULL, *key = NULL;
    PyObject *pairs = PyObject_GetAttr(plan, interned.equal_inputs);
    PyObject *known = pairs ? PyObject_GetAttr(plan, interned.known) : NULL;
    PyObject *needs_extents = known ? PyObject_GetAttr(plan, interned.needs_extents) : NULL;
    if (needs_extents == NULL || !PyDict_Check(known) || !PyDict_GET_SIZE(known)) goto done;
    if (!queue_has_equal_inputs(self, pairs)) goto done;
    if ((key = queue_state(self, values)) == NULL) goto done;
    if (needs_extents == Py_True) {
        PyObject *dims = PyBytes_FromStringAndSize((char *)self->symbols, self->num_symbols * sizeof(int64_t));
        PyBytes_ConcatAndDel(&key, dims);
        if (key == NULL) goto done;
    }
    result = PyDict_GetItemWithError(known, key);
done:
    Py_XDECREF(pairs);
    Py_XDECREF(known);
    Py_XDECREF(needs_extents);
    Py_XDECREF(key);
    return result;
}

// Return whether an array can take a result of a type, -1 with an error: one of its dtype and shape, which is
// C-contiguous. For a type of a device that is one of the device's arrays, all of which are contiguous.
static int holds_result(PyObject *buffer, ArrayType *type) {
    if (type->device == Py_None) {
        if (!PyArray_CheckExact(buffer)) return 0;
        PyArrayObject *array = (PyArrayObject *)buffer;
        int rank = PyArray_NDIM(array);
        int64_t extents[NPY_MAXDIMS];
        for (int k = 0; k < rank; k++) extents[k] = PyArray_DIMS(array)[k];
        return (PyObject *)PyArray_DESCR(array) == type->dtype && equals_ints(type->shape, extents, rank) &&
               PyArray_ISCARRAY(array);
    }
    if (PyArray_CheckExact(buffer) || PyTuple_Check(buffer)) return 0;
    PyObject *dtype = PyObject_GetAttr(buffer, interned.dtype), *shape = NULL;
    int holds = dtype == NULL ? -1 : PyObject_RichCompareBool(dtype, type->dtype, Py_EQ);
    Py_XDECREF(dtype);
    if (holds <= 0) return holds;
    shape = PyObject_GetAttr(buffer, interned.shape);
    holds = shape == NULL ? -1 : PyObject_RichCompareBool(shape, type->shape, Py_EQ);
    Py_XDECREF(shape);
    return holds;
}

// Return the queued value whose position is item ``index`` of a tuple: a borrowed reference. `Plan` made the tuple for a
// queue of this length.
static Value *queued_at(Queue *self, PyObject *positions, Py_ssize_t index) {
    return (Value *)PyList_GET_ITEM(self->queue, PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, index)));
}

// Return the list of arrays for results: that of an input that nothing refers to and that no operation at the positions
// ``kept`` reads, or None.
static PyObject *queue_donated(Queue *self, PyObject *inputs, PyObject *outputs, PyObject *donors, PyObject *kept,
                               Py_ssize_t *nbytes, Py_ssize_t *aliases) {
    Py_ssize_t count = PyTuple_GET_SIZE(donors), num_kept = PyTuple_GET_SIZE(kept);
    for (Py_ssize_t i = 0; i < num_kept; i++) mark_operands(queued_at(self, kept, i), 1);
    PyObject *out = PyList_New(count);
    for (Py_ssize_t i = 0; out != NULL && i < count; i++) {
        Py_ssize_t donor = PyLong_AsSsize_t(PyTuple_GET_ITEM(donors, i));
        PyObject *array = Py_None;
        if (donor >= 0) {
            Py_ssize_t input = PyLong_AsSsize_t(PyTuple_GET_ITEM(inputs, donor));
            Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GET_ITEM(outputs, i));
            Value *value = (Value *)PyList_GET_ITEM(self->inputs, input);
            ArrayType *type = (ArrayType *)((Value *)PyList_GET_ITEM(self->queue, position))->type;
            int is_free = value->is_owned && value->array == NULL && !value->is_marked;
            if (is_free && value->buffer != NULL && is_array_type((PyObject *)type)) {
                int holds = holds_result(value->buffer, type);
                if (holds < 0) {
                    Py_CLEAR(out);
                    break;
                }
                if (holds) {
                    array = value->buffer;
                    *nbytes += type->nbytes;
                    ++*aliases;
                }
            }
        }
        PyList_SET_ITEM(out, i, Py_NewRef(array));
    }
    for (Py_ssize_t i = 0; i < num_kept; i++) mark_operands(queued_at(self, kept, i), 0);
    return out;
}

static int add_counts(PyObject *counts, const Py_ssize_t *amounts) {
    for (int k = 0; k < NUM_COUNTS; k++) {
        if (!amounts[k]) continue;
        PyObject *old = PyDict_GetItemWithError(counts, interned.counts[k]);
        if (old == NULL && PyErr_Occurred()) return -1;
        PyObject *sum = PyLong_FromSsize_t(amounts[k] + (old ? PyLong_AsSsize_t(old) : 0));
        int status = sum ? PyDict_SetItem(counts, interned.counts[k], sum) : -1;
        Py_XDECREF(sum);
        if (status < 0) return -1;
    }
    return 0;
}

// A value is used that an earlier run left pending at first: its plan is to write it from now on.
static int write_eagerly(Value *value) {
    if (value->origin == NULL) return 0;
    PyObject *plan, *position, *origin = value->origin, *result = NULL;
    value->origin = NULL;
    if (PyArg_ParseTuple(origin, "OO", &plan, &position))
        result = PyObject_CallMethodOneArg(plan, interned.write_eagerly, position);
    Py_DECREF(origin);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

// Run a remembered execution; return 1 if it ran, 0 where Python has to decide, -1 with an error. The queue keeps what the
// execution leaves pending, and what a finalizer records meanwhile.
static int queue_run_execution(Queue *self, PyObject *execution) {
    PyObject *function, *inputs, *outputs, *donors, *few[MAX_ARGUMENTS + 1], **args = few, *out = NULL;
    PyObject *kept, *unwritten, *origins, *used, *aged, *aged_origins = NULL;
    Py_ssize_t amounts[NUM_COUNTS] = {0}, num_args = 0, donated_bytes = 0;
    if (!PyArg_ParseTuple(execution, "OO!O!OnO!O!O!O!O!", &function, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs,
                          &donors, &amounts[LAUNCHES], &PyTuple_Type, &kept, &PyTuple_Type, &unwritten, &PyTuple_Type,
                          &origins, &PyTuple_Type, &used, &PyTuple_Type, &aged))
        return -1;
    Py_ssize_t num_inputs = PyTuple_GET_SIZE(inputs), count = PyList_GET_SIZE(self->queue);
    uint64_t segment = self->segment;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(used); i++) {
        if (write_eagerly(queued_at(self, used, i)) < 0) return -1;
        if (self->segment != segment) return 0;  // a finalizer has executed the queue
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(self->inputs); i++) {
        if (write_eagerly((Value *)PyList_GET_ITEM(self->inputs, i)) < 0) return -1;
        if (self->segment != segment) return 0;
    }
    if (num_inputs > MAX_ARGUMENTS && (args = PyMem_Malloc((num_inputs + 1) * sizeof(PyObject *))) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *arrays = NULL, *queue = NULL;
    int status = -1;
    if (donors != Py_None) {
        out = queue_donated(self, inputs, outputs, donors, kept, &donated_bytes, &amounts[ALIASES]);
        if (out == NULL) goto done;
        args[num_args++] = out;
    }
    for (Py_ssize_t i = 0; i < num_inputs; i++) {
        Value *value = (Value *)PyList_GET_ITEM(self->inputs, PyLong_AsSsize_t(PyTuple_GET_ITEM(inputs, i)));
        ArrayType *type = (ArrayType *)value->type;
        if (PyTuple_GET_SIZE(type->shape)) amounts[BYTES_READ] += type->nbytes;
        args[num_args++] = value->buffer;
    }
    Py_ssize_t num_aged = PyTuple_GET_SIZE(aged);
    if ((aged_origins = PyTuple_New(num_aged)) == NULL) goto done;
    for (Py_ssize_t i = 0; i < num_aged; i++) {
        PyObject *origin = queued_at(self, aged, i)->origin;
        PyTuple_SET_ITEM(aged_origins, i, Py_NewRef(origin ? origin : Py_None));
    }
    amounts[RECORDED] = self->num_new;
    amounts[CACHE_HITS] = amounts[EXECUTED_PLANS] = 1;
    self->busy++;
    arrays = PyObject_Vectorcall(function, args, num_args, NULL);
    self->busy--;
    if (arrays == NULL) goto done;
    amounts[BYTES_WRITTEN] = settle_values(self, outputs, arrays);
    if (amounts[BYTES_WRITTEN] < 0) goto done;
    amounts[BYTES_ALLOCATED] = amounts[BYTES_WRITTEN] - donated_bytes;
    // Written because they aged; nobody has used them yet.
    for (Py_ssize_t i = 0; i < num_aged; i++) {
        PyObject *origin = PyTuple_GET_ITEM(aged_origins, i);
        if (origin != Py_None) Py_INCREF(origin), replace(&queued_at(self, aged, i)->origin, origin);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(unwritten); i++) {
        PyObject *origin = PyTuple_GET_ITEM(origins, i);
        Py_INCREF(origin), replace(&queued_at(self, unwritten, i)->origin, origin);
    }
    queue = Py_NewRef(self->queue);
    if (queue_restart(self) < 0) goto done;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kept); i++) {
        Value *value = (Value *)PyList_GET_ITEM(queue, PyLong_AsSsize_t(PyTuple_GET_ITEM(kept, i)));
        value->age++;
        if (queue_append_undisturbed(self, value) < 0) goto done;
    }
    for (Py_ssize_t i = count; i < PyList_GET_SIZE(queue); i++)
        if (queue_append_undisturbed(self, (Value *)PyList_GET_ITEM(queue, i)) < 0) goto done;
    status = add_counts(self->counts, amounts) < 0 ? -1 : 1;
done:
    if (args != few) PyMem_Free(args);
    Py_XDECREF(out);
    Py_XDECREF(arrays);
    Py_XDECREF(queue);
    Py_XDECREF(aged_origins);
    return status;
}

// Execute what values need as it was executed before; return 1 if they are computed now, 0 where Python has to
// decide, -1 with an error.
static int queue_sync(Queue *self, PyObject *values) {
    if (self->busy || PyList_GET_SIZE(self->watched) || PyList_GET_SIZE(self->inspectors)) return 0;
    int is_pending = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); i++) {
        Value *value = (Value *)PySequence_Fast_GET_ITEM(values, i);
        if (Py_TYPE(value) != Value_Type) return 0;
        if (value->operation == NULL) continue;
        if (value->stream != (PyObject *)self) return 0;
        is_pending = 1;
    }
    if (!is_pending) return 1;
    if (queue_drop_unneeded(self, PySequence_Fast_ITEMS(values), PySequence_Fast_GET_SIZE(values)) < 0) return -1;
    PyObject *execution = queue_known(self, values);
    if (execution == NULL) return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(execution);
    int status = queue_run_execution(self, execution);
    Py_DECREF(execution);
    return status;
}

static PyObject *queue_run_known(Queue *self, PyObject *values) {
    // What is needed may be in the queue of a device.
    for (Py_ssize_t i = 0; (PyList_Check(values) || PyTuple_Check(values)) && i < PySequence_Fast_GET_SIZE(values); i++) {
        Value *value = (Value *)PySequence_Fast_GET_ITEM(values, i);
        if (Py_TYPE(value) != Value_Type || value->operation == NULL) continue;
        if (value->stream != NULL && PyObject_TypeCheck(value->stream, Queue_Type)) self = (Queue *)value->stream;
        break;
    }
    int is_ready = remembers && self->lock && self->watched && PyList_Check(self->watched) && self->inspectors &&
                   PyList_Check(self->inspectors) && self->counts && PyDict_Check(self->counts);
    if (!is_ready || !(PyList_Check(values) || PyTuple_Check(values))) Py_RETURN_FALSE;
    PyObject *lock = Py_NewRef(self->lock), *result = PyObject_CallMethodNoArgs(lock, interned.acquire);
    if (result == NULL) {
        Py_DECREF(lock);
        return NULL;
    }
    Py_DECREF(result);
    int status = queue_sync(self, values);
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    result = PyObject_CallMethodNoArgs(lock, interned.release);
    Py_DECREF(lock);
    if (result == NULL) {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
        return NULL;
    }
    Py_DECREF(result);
    PyErr_Restore(type, error, traceback);
    return status < 0 ? NULL : PyBool_FromLong(status);
}

static PyObject *queue_empty(Queue *self, PyObject *unused) {
    if (queue_restart(self) < 0) return NULL;
    if (self->stand_ins != NULL && PyDict_Check(self->stand_ins)) PyDict_Clear(self->stand_ins);
    Py_RETURN_NONE;
}

static PyObject *queue_dims_list(Queue *self, void *closure) {
    PyObject *list = PyList_New(self->num_symbols);
    for (Py_ssize_t i = 0; list != NULL && i < self->num_symbols; i++) {
        PyObject *extent = PyLong_FromLongLong(self->symbols[i]);
        if (extent == NULL) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, extent);
    }
    return list;
}

static PyObject *queue_get_full(Queue *self, void *closure) { return PyBool_FromLong(queue_is_full(self)); }

static PyMethodDef queue_methods[] = {
    {"append", (PyCFunction)queue_append, METH_O,
     "append(value): Put a pending value at the end of the queue, and tell the processor its relative form."},
    {"put", (PyCFunction)queue_put, METH_VARARGS,
     "put(operation, operands, type): Queue an operation; return its pending value."},
    {"number_of", (PyCFunction)queue_number_of, METH_O,
     "number_of(value): Return the number of a value in relative form; None if it has none."},
    {"add_argument", (PyCFunction)queue_add_argument, METH_VARARGS,
     "add_argument(value, stand_in): Add a value to the inputs, under the number of another one."},
    {"state", (PyCFunction)queue_state, METH_O,
     "state(required): Return a byte of flags for each queued value: ALIVE, REQUIRED, AGED, HAS_ORIGIN."},
    {"prune", (PyCFunction)queue_prune, METH_O,
     "prune(required): Drop operations that an earlier run left pending and that nobody needs any more."},
    {"arguments", (PyCFunction)queue_arguments, METH_O,
     "arguments(positions): Return a tuple of the buffers of inputs, and how many bytes those with axes have."},
    {"settle", (PyCFunction)queue_settle, METH_VARARGS,
     "settle(positions, arrays): Give queued values their buffers, which they own; return the bytes."},
    {"run", (PyCFunction)queue_run, METH_VARARGS,
     "run(function, arguments, positions): Call a function, settle values by its results; return the bytes."},
    {"run_known", (PyCFunction)queue_run_known, METH_O,
     "run_known(values): Execute what values need as it was executed before; return whether they are computed."},
    {"clear", (PyCFunction)queue_empty, METH_NOARGS, "clear(): Empty the queue and its relative form."},
    {"begin_tracing", (PyCFunction)queue_begin_tracing, METH_VARARGS,
     "begin_tracing(trie, operation, keeps_inputs): Let the queue record what a function does, and never execute it."},
    {"add_arguments", (PyCFunction)queue_add_arguments, METH_O,
     "add_arguments(arrays): Return new arrays that stand for these inputs; None unless all are arrays of floats."},
    {"put_program", (PyCFunction)queue_put_program, METH_VARARGS,
     "put_program(operation, operands, types, projections): Queue an operation that stands for many; return its results."},
    {NULL},
};

static PyMemberDef queue_members[] = {
    {"queue", T_OBJECT, offsetof(Queue, queue), READONLY},
    {"inputs", T_OBJECT, offsetof(Queue, inputs), READONLY},
    {"processor", T_OBJECT, offsetof(Queue, processor)},
    {"lock", T_OBJECT, offsetof(Queue, lock)},
    {"watched", T_OBJECT, offsetof(Queue, watched)},
    {"inspectors", T_OBJECT, offsetof(Queue, inspectors)},
    {"device", T_OBJECT, offsetof(Queue, device)},
    {"others", T_OBJECT, offsetof(Queue, others)},
    {"counts", T_OBJECT, offsetof(Queue, counts)},
    {"num_new", T_INT, offsetof(Queue, num_new), READONLY},
    {"busy", T_INT, offsetof(Queue, busy)},
    {"count", T_INT, offsetof(Queue, count), READONLY},
    {"traces", T_BOOL, offsetof(Queue, traces)},
    {"keeps_inputs", T_BOOL, offsetof(Queue, keeps_inputs), READONLY},
    {"purpose", T_OBJECT, offsetof(Queue, purpose)},
    {"outer", T_OBJECT, offsetof(Queue, outer)},
    {"is_open", T_BOOL, offsetof(Queue, is_open)},
    {"num_arguments", T_INT, offsetof(Queue, num_arguments)},
    {"stand_ins", T_OBJECT, offsetof(Queue, stand_ins), READONLY},
    {NULL},
};

static PyGetSetDef queue_getset[] = {
    {"dims", (getter)queue_dims_list, NULL, "The extents by symbol."},
    OPTIONAL(Queue, held),
    {"extents", (getter)queue_extents, NULL, "The extents that are parameters of queued operations."},
    {"is_full", (getter)queue_get_full, NULL, "Whether the queue has to be executed before an operation is recorded."},
    {NULL},
};

// Applying operations

// Make sure that this thread has a context in which NumPy does not warn, and a stream. A stream that is no
// queue, as those that trace functions, is left to Python.
static int enter_thread(void) {
    PyObject *pair = PyObject_CallNoArgs(thread_function), *stream, *context;
    if (pair == NULL) return -1;
    if (!PyArg_ParseTuple(pair, "OO", &stream, &context)) {
        Py_DECREF(pair);
        return -1;
    }
    current_queue = PyObject_TypeCheck(stream, Queue_Type) ? (Queue *)stream : NULL;
    quiet_context = context;
    Py_DECREF(pair);  // the thread's object keeps both
    return 0;
}

// Compute an operation on small arrays. Return NULL without an error where Python has to do it.
static Value *evaluate_small(Operation *operation, PyObject *const *operands, Py_ssize_t count, ArrayType *type) {
    if (operation->on_arrays == NULL || !operation->is_direct || count > MAX_OPERANDS) return NULL;
    PyObject *arrays[MAX_OPERANDS];
    for (Py_ssize_t i = 0; i < count; i++) arrays[i] = ((Value *)operands[i])->buffer;
    if (quiet_context == NULL && enter_thread() < 0) return NULL;
    PyObject *context = Py_NewRef(quiet_context);
    if (PyContext_Enter(context) < 0) {  // nested in itself
        PyErr_Clear();
        Py_DECREF(context);
        return NULL;
    }
    PyObject *array = PyObject_Vectorcall(operation->on_arrays, arrays, count, NULL);
    PyContext_Exit(context);
    Py_DECREF(context);
    if (array != NULL && PyArray_IsScalar(array, Generic)) replace(&array, PyArray_FromScalar(array, NULL));
    if (array == NULL) return NULL;
    Value *value = NULL;
    if (PyArray_CheckExact(array) && (PyObject *)PyArray_DESCR((PyArrayObject *)array) == type->dtype &&
        (value = new_value((PyObject *)type)) != NULL) {
        value->is_owned = PyArray_BASE((PyArrayObject *)array) == NULL;
        for (Py_ssize_t i = 0; i < count; i++) value->is_owned &= arrays[i] != array;
        value->buffer = Py_NewRef(array);
    }
    Py_DECREF(array);
    return value;
}

static PyObject *result_type(Operation *operation, PyObject *const *operands, Py_ssize_t count) {
    PyObject *first = ((Value *)operands[0])->type, *second = count > 1 ? ((Value *)operands[1])->type : NULL;
    if (count <= 2 && first == operation->last_types[0] && second == operation->last_types[1]) return operation->last_result;
    PyObject *types = PyTuple_New(count);
    if (types == NULL) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(types, i, Py_NewRef(((Value *)operands[i])->type));
    PyObject *type = PyDict_GetItemWithError(operation->result_types, types);
    Py_DECREF(types);
    if (type != NULL && count <= 2) {
        Py_INCREF(first), replace(&operation->last_types[0], first);
        Py_XINCREF(second), replace(&operation->last_types[1], second);
        Py_INCREF(type), replace(&operation->last_result, type);
    }
    return type;
}

// Apply an operation with one result to values: compute it at once, queue it, or leave it to Python.
static Value *apply_values(Operation *operation, PyObject *const *operands, Py_ssize_t count) {
    PyObject *type = count ? result_type(operation, operands, count) : NULL;
    if (type != NULL && is_array_type(type)) {
        int is_small = ((ArrayType *)type)->eager_size <= max_small;
        for (Py_ssize_t i = 0; is_small && i < count; i++) {
            Value *operand = (Value *)operands[i];
            is_small = operand->operation == NULL && is_array_type(operand->type) && ((ArrayType *)operand->type)->eager_size <= max_small;
        }
        Py_INCREF(type);
        Value *value = NULL;
        if (is_small) value = evaluate_small(operation, operands, count, (ArrayType *)type);
        else if (current_queue != NULL || (enter_thread() == 0 && current_queue != NULL))
            value = queue_record(current_queue, operation, operands, count, type);
        Py_DECREF(type);
        if (value != NULL || PyErr_Occurred()) return value;
    }
    if (PyErr_Occurred()) return NULL;
    PyObject *few[MAX_OPERANDS + 1], **args = few;
    if (count > MAX_OPERANDS && (args = PyMem_Malloc((count + 1) * sizeof(PyObject *))) == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    args[0] = (PyObject *)operation;
    for (Py_ssize_t i = 0; i < count; i++) args[1 + i] = operands[i];
    PyObject *value = PyObject_Vectorcall(apply_function, args, count + 1, NULL);
    if (args != few) PyMem_Free(args);
    if (value != NULL && Py_TYPE(value) != Value_Type) {
        PyErr_SetString(PyExc_TypeError, "applying an operation did not return a Value");
        Py_CLEAR(value);
    }
    return (Value *)value;
}

static PyObject *apply(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count == 0 || !PyObject_TypeCheck(args[0], Operation_Type)) {
        PyErr_SetString(PyExc_TypeError, "apply needs an operation and values");
        return NULL;
    }
    for (Py_ssize_t i = 1; i < count; i++)
        if (Py_TYPE(args[i]) != Value_Type) {
            PyErr_Format(PyExc_TypeError, "apply needs values, got %R", args[i]);
            return NULL;
        }
    return (PyObject *)apply_values((Operation *)args[0], args + 1, count - 1);
}

// Return the value of a Python float beside an array of floats, or NULL without an error where Python has to make it.
static PyObject *float_value(PyObject *number, ArrayType *type) {
    PyArray_Descr *dtype = (PyArray_Descr *)type->dtype;
    double x = PyFloat_AS_DOUBLE(number);
    int is_single = dtype->type_num == NPY_FLOAT;
    if (type->scalar_type == NULL || !PyArray_ISNBO(dtype->byteorder)) return NULL;
    if (!is_single && dtype->type_num != NPY_DOUBLE) return NULL;
    if (is_single && isfinite(x) && fabs(x) > FLT_MAX) return NULL;
    Py_INCREF(dtype);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, dtype, 0, NULL, NULL, NULL, 0, NULL);
    if (array == NULL) return NULL;
    void *data = PyArray_DATA((PyArrayObject *)array);
    if (is_single) *(float *)data = (float)x;
    else *(double *)data = x;
    Value *value = new_value(type->scalar_type);
    if (value == NULL) {
        Py_DECREF(array);
        return NULL;
    }
    value->buffer = array;
    value->is_scalar = 1;
    return (PyObject *)value;
}

// Return the value of an operand beside an array of a type: a new reference; NotImplemented for no operand.
static PyObject *operand_value(PyObject *operand, Value *beside) {
    if (Py_TYPE(operand) == array_class) return Py_NewRef((PyObject *)((Array *)operand)->value);
    ArrayType *type = (ArrayType *)beside->type;
    if (operand == type->recent_number) return Py_NewRef(type->recent_scalar);
    char kind = PyDataType_HASFIELDS((PyArray_Descr *)type->dtype) ? 'V' : ((PyArray_Descr *)type->dtype)->kind;
    int is_cached = kind == 'f' ? PyFloat_CheckExact(operand) || PyLong_CheckExact(operand)
                                : (kind == 'i' || kind == 'u') && PyLong_CheckExact(operand);
    // 0.0 and -0.0 are equal keys of different values, and equal to the key 0.
    PyObject *key = operand;
    if (PyFloat_CheckExact(operand) && PyFloat_AS_DOUBLE(operand) == 0.0)
        key = interned.zeros[signbit(PyFloat_AS_DOUBLE(operand)) != 0];
    if (is_cached && type->scalars != NULL) {
        PyObject *value = PyDict_GetItemWithError(type->scalars, key);
        if (value != NULL) {
            Py_INCREF(operand), replace(&type->recent_number, operand);
            Py_INCREF(value), replace(&type->recent_scalar, value);
        }
        if (value != NULL || PyErr_Occurred()) return Py_XNewRef(value);
    }
    PyObject *value = is_cached && kind == 'f' && PyFloat_CheckExact(operand) ? float_value(operand, type) : NULL;
    if (value == NULL && PyErr_Occurred()) return NULL;
    if (value == NULL) value = PyObject_CallFunctionObjArgs(operand_function, operand, type->dtype, NULL);
    if (value == NULL || value == Py_NotImplemented) return value;
    if (Py_TYPE(value) != Value_Type) {
        PyErr_Format(PyExc_TypeError, "an operand's value must be a Value, got %R", value);
        Py_DECREF(value);
        return NULL;
    }
    if (is_cached && ((Value *)value)->is_scalar && ((ArrayType *)((Value *)value)->type)->dtype == type->dtype) {
        if (type->scalars == NULL) type->scalars = PyDict_New();
        else if (PyDict_GET_SIZE(type->scalars) >= MAX_SCALARS) PyDict_Clear(type->scalars);
        if (type->scalars == NULL || PyDict_SetItem(type->scalars, key, value) < 0) Py_CLEAR(value);
        else if (type->scalar_type == NULL) type->scalar_type = Py_NewRef(((Value *)value)->type);
    }
    return value;
}

static PyObject *operand_beside(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || Py_TYPE(args[1]) != Value_Type || !is_array_type(((Value *)args[1])->type)) {
        PyErr_SetString(PyExc_TypeError, "operand_beside needs an operand and a value with one result");
        return NULL;
    }
    return operand_value(args[0], (Value *)args[1]);
}

// Nested containers of arrays, as `passkit.values.trees` describes them. Only lists, tuples, dicts and None are handled here.

#define MAX_DEPTH 32

static int is_leaf_structure(PyObject *structure) { return PyUnicode_Check(structure); }

// Return whether the keys of a dict are those of a structure, in its order; 0 also if comparing them failed.
static int has_keys(PyObject *dict, PyObject *names) {
    Py_ssize_t position = 0, k = 0;
    PyObject *key;
    if (!PyTuple_Check(names) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(names)) return 0;
    while (PyDict_Next(dict, &position, &key, NULL)) {
        PyObject *name = PyTuple_GET_ITEM(names, k++);
        if (key == name) continue;
        if (!PyUnicode_CheckExact(key) || !PyUnicode_CheckExact(name)) return 0;  // no Python code may change the dict
        if (PyUnicode_Compare(key, name) != 0) return 0;
    }
    return k == PyTuple_GET_SIZE(names);
}

// Append the leaves of a value to a list: return 1; 0 if it has another structure, or one that Python has to take apart, -1
// with an error.
static int append_leaves(PyObject *structure, PyObject *value, PyObject *leaves, int depth) {
    if (is_leaf_structure(structure)) {
        PyTypeObject *type = Py_TYPE(value);
        int is_known = type == array_class || type == &PyArray_Type || PyFloat_CheckExact(value) || PyLong_CheckExact(value) ||
                       PyBool_Check(value) || PyUnicode_CheckExact(value);
        return !is_known ? 0 : PyList_Append(leaves, value) < 0 ? -1 : 1;
    }
    if (depth > MAX_DEPTH || !PyTuple_Check(structure) || PyTuple_GET_SIZE(structure) != 3) return 0;
    PyObject *kind = PyTuple_GET_ITEM(structure, 0), *parts = PyTuple_GET_ITEM(structure, 2);
    if ((PyObject *)Py_TYPE(value) != kind || !PyTuple_Check(parts)) return 0;
    Py_ssize_t count = PyTuple_GET_SIZE(parts);
    if (value == Py_None) return count == 0;
    if (PyDict_CheckExact(value)) {
        Py_ssize_t position = 0, k = 0;
        PyObject *part;
        if (!has_keys(value, PyTuple_GET_ITEM(structure, 1))) return 0;
        while (k < count && PyDict_Next(value, &position, NULL, &part)) {
            int status = append_leaves(PyTuple_GET_ITEM(parts, k++), part, leaves, depth + 1);
            if (status <= 0) return status;
        }
        return 1;
    }
    if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value)) return 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        if (PySequence_Fast_GET_SIZE(value) != count) return 0;
        int status = append_leaves(PyTuple_GET_ITEM(parts, k), PySequence_Fast_GET_ITEM(value, k), leaves, depth + 1);
        if (status <= 0) return status;
    }
    return PySequence_Fast_GET_SIZE(value) == count;
}

static PyObject *leaves_like(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 2) {
        PyErr_Format(PyExc_TypeError, "leaves_like needs a structure and a value, got %zd arguments", count);
        return NULL;
    }
    PyObject *leaves = PyList_New(0);
    int status = leaves ? append_leaves(args[0], args[1], leaves, 0) : -1;
    if (status == 1) return leaves;
    Py_XDECREF(leaves);
    if (status < 0) return NULL;
    Py_RETURN_NONE;
}

// Return whether an argument that is no array is the same as one before: the same object, or an equal number or text.
static int is_same_constant(PyObject *leaf, PyObject *form) {
    if (!PyTuple_Check(form) || PyTuple_GET_SIZE(form) != 2) return 0;
    PyObject *constant = PyTuple_GET_ITEM(form, 1);
    if (leaf == constant) return 1;
    if (Py_TYPE(leaf) != Py_TYPE(constant)) return 0;
    int is_plain = PyFloat_CheckExact(leaf) || PyLong_CheckExact(leaf) || PyUnicode_CheckExact(leaf);
    return is_plain && PyObject_RichCompareBool(leaf, constant, Py_EQ) == 1;
}

static PyObject *values_like(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "values_like needs a structure, a tuple of forms and a value");
        return NULL;
    }
    PyObject *leaves = PyList_New(0), *result = NULL;
    int status = leaves ? append_leaves(args[0], args[2], leaves, 0) : -1;
    Py_ssize_t num_leaves = status == 1 ? PyList_GET_SIZE(leaves) : 0, num_values = 0;
    if (status == 1 && num_leaves != PyTuple_GET_SIZE(args[1])) status = 0;
    for (Py_ssize_t i = 0; status == 1 && i < num_leaves; i++) {
        PyObject *leaf = PyList_GET_ITEM(leaves, i), *form = PyTuple_GET_ITEM(args[1], i);
        if (Py_TYPE(leaf) == array_class) {
            status = ((Array *)leaf)->value != NULL && ((Array *)leaf)->value->type == form;
            num_values++;
        } else status = is_same_constant(leaf, form);
    }
    if (status == 1 && (result = PyTuple_New(num_values)) != NULL)
        for (Py_ssize_t i = 0, k = 0; i < num_leaves; i++) {
            PyObject *leaf = PyList_GET_ITEM(leaves, i);
            if (Py_TYPE(leaf) == array_class) PyTuple_SET_ITEM(result, k++, Py_NewRef((PyObject *)((Array *)leaf)->value));
        }
    Py_XDECREF(leaves);
    return status == 0 ? Py_NewRef(Py_None) : result;
}

// Return the value that has a structure and the next of the leaves; NULL without an error where Python has to make it.
static PyObject *value_of_leaves(PyObject *structure, PyObject *leaves, Py_ssize_t *position, int depth) {
    if (is_leaf_structure(structure)) {
        if (*position < PyList_GET_SIZE(leaves)) return Py_NewRef(PyList_GET_ITEM(leaves, (*position)++));
        PyErr_SetNone(PyExc_StopIteration);
        return NULL;
    }
    if (depth > MAX_DEPTH || !PyTuple_Check(structure) || PyTuple_GET_SIZE(structure) != 3) return NULL;
    PyObject *kind = PyTuple_GET_ITEM(structure, 0), *names = PyTuple_GET_ITEM(structure, 1), *parts = PyTuple_GET_ITEM(structure, 2);
    if (kind == (PyObject *)Py_TYPE(Py_None)) return Py_NewRef(Py_None);
    Py_ssize_t count = PyTuple_GET_SIZE(parts);
    int is_list = kind == (PyObject *)&PyList_Type, is_tuple = kind == (PyObject *)&PyTuple_Type;
    if (!is_list && !is_tuple && kind != (PyObject *)&PyDict_Type) return NULL;
    PyObject *result = is_list ? PyList_New(count) : is_tuple ? PyTuple_New(count) : PyDict_New();
    for (Py_ssize_t k = 0; result != NULL && k < count; k++) {
        PyObject *part = value_of_leaves(PyTuple_GET_ITEM(parts, k), leaves, position, depth + 1);
        if (part == NULL) Py_CLEAR(result);
        else if (is_list) PyList_SET_ITEM(result, k, part);
        else if (is_tuple) PyTuple_SET_ITEM(result, k, part);
        else {
            if (PyDict_SetItem(result, PyTuple_GET_ITEM(names, k), part) < 0) Py_CLEAR(result);
            Py_DECREF(part);
        }
    }
    return result;
}

static PyObject *with_leaves(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyList_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "with_leaves needs a structure and a list of leaves");
        return NULL;
    }
    Py_ssize_t position = 0;
    PyObject *result = value_of_leaves(args[0], args[1], &position, 0);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_NotImplemented);
}

// Return a new array of the same computed value, which is shared; NULL without an error where Python has to copy it.
static PyObject *shared_array(Array *array) {
    Value *value = array->value;
    if (value == NULL || value->operation != NULL || value->buffer == NULL || value->is_exposed) return NULL;
    Value *copy = new_value(value->type);
    if (copy == NULL) return NULL;
    value->is_owned = 0;
    copy->buffer = Py_NewRef(value->buffer);
    return wrap_value(copy);
}

static PyObject *with_new_arrays(PyObject *module, PyObject *value) {
    PyObject *result = NULL;
    if (Py_TYPE(value) == array_class) result = shared_array((Array *)value);
    else if (PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value) || PyUnicode_CheckExact(value) ||
             value == Py_None)
        return Py_NewRef(value);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_NotImplemented);
}

// Calls of differentiated functions

// Return whether the extents that are parameters of the queued operations are given ones.
static int queue_has_extents(Queue *self, PyObject *extents) {
    Py_ssize_t n = 0, num_extents = PyTuple_GET_SIZE(extents);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(self->queue); i++) {
        Operation *operation = (Operation *)((Value *)PyList_GET_ITEM(self->queue, i))->operation;
        if (operation == NULL || operation->extents == NULL) continue;
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(operation->extents); k++, n++) {
            if (n >= num_extents) return 0;
            PyObject *extent = PyTuple_GET_ITEM(operation->extents, k), *other = PyTuple_GET_ITEM(extents, n);
            if (extent != other && PyLong_AsLongLong(extent) != PyLong_AsLongLong(other)) return 0;
        }
    }
    return n == num_extents;
}

// Return what a function returns that is called with a queue as the stream of this thread.
static PyObject *call_traced(Queue *queue, PyObject *function, PyObject *const *args, Py_ssize_t count, PyObject *kwargs) {
    Queue *previous = (Queue *)Py_NewRef((PyObject *)current_queue);
    PyObject *result = NULL, *type, *error, *traceback;
    if (PyObject_SetAttr(state_object, interned.stream, (PyObject *)queue) == 0) {
        current_queue = queue;
        result = PyObject_VectorcallDict(function, args, count, kwargs);
    }
    PyErr_Fetch(&type, &error, &traceback);
    int status = PyObject_SetAttr(state_object, interned.stream, (PyObject *)previous);
    current_queue = status == 0 && quiet_context != NULL ? previous : NULL;
    Py_DECREF(previous);  // the thread keeps it
    queue->is_open = 0;
    if (status == 0) {
        PyErr_Restore(type, error, traceback);
        return result;
    }
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    Py_XDECREF(result);
    return NULL;
}

// Return a new argument for a function that may change it.
static PyObject *new_argument(PyObject *argument, PyObject *copied) {
    PyObject *result = with_new_arrays(NULL, argument);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    return PyObject_CallOneArg(copied, argument);
}

// Return whether all inputs that a queue holds are computed: then none has left its queue.
static int queue_holds_computed(Queue *self) {
    if (self->held == NULL) return 1;
    if (!PyTuple_Check(self->held)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->held); i++) {
        PyObject *pair = PyTuple_GET_ITEM(self->held, i);
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 || Py_TYPE(PyTuple_GET_ITEM(pair, 0)) != Value_Type) return 0;
        if (((Value *)PyTuple_GET_ITEM(pair, 0))->operation != NULL) return 0;
    }
    return 1;
}

// Return the arrays of the value and the gradients of a program that was found before, and forget the queue; NULL without an
// error where Python has to find it. The queue has recorded the function whose value is ``result``.
static PyObject *remembered_results(Queue *queue, PyObject *result, Queue *outer, PyObject *projections) {
    TrieNode *position = queue->processor->position;
    Value *head = Py_TYPE(result) == array_class ? ((Array *)result)->value : NULL;
    if (head == NULL || head->segment != queue->segment || position == NULL) return NULL;
    if (position->program == NULL || !queue_holds_computed(queue)) return NULL;
    int number, num_arguments;
    PyObject *extents, *operation, *types;
    if (!PyArg_ParseTuple(position->program, "iiO!O!O!", &number, &num_arguments, &PyTuple_Type, &extents, Operation_Type,
                          &operation, &PyTuple_Type, &types))
        return NULL;
    if (head->number != number || queue->num_arguments != num_arguments || PyTuple_GET_SIZE(types) != 1 + num_arguments) return NULL;
    if (head->type != PyTuple_GET_ITEM(types, 0) || !queue_has_extents(queue, extents)) return NULL;
    for (int k = 0; k < num_arguments; k++)
        if (((Value *)PyList_GET_ITEM(queue->inputs, k))->type != PyTuple_GET_ITEM(types, 1 + k)) return NULL;
    if (!outer->traces) {
        PyObject *device = ((ArrayType *)head->type)->device;
        outer = queue_on(outer, device);
        if (PyErr_Occurred() || (outer->device == NULL ? Py_None : outer->device) != device) return NULL;
    }
    PyObject *inputs = Py_NewRef(queue->inputs), *arrays = NULL, *program = Py_NewRef(position->program);
    PyObject *empty = queue_empty(queue, NULL);
    Py_XDECREF(empty);
    if (empty != NULL)
        arrays = put_program(outer, operation, ((PyListObject *)inputs)->ob_item, PyList_GET_SIZE(inputs), types, projections);
    Py_DECREF(inputs);
    Py_DECREF(program);
    return arrays;
}

static PyObject *differentiated_call(PyObject *module, PyObject *const *given, Py_ssize_t num_given) {
    if (num_given != 6 || !PyTuple_Check(given[1]) || !PyDict_Check(given[2]) || !PyTuple_Check(given[3]) || !PyTuple_Check(given[5])) {
        PyErr_SetString(PyExc_TypeError, "differentiated_call needs a function, args, kwargs, a form, a purpose and a context");
        return NULL;
    }
    PyObject *function = given[0], *args = given[1], *kwargs = given[2], *purpose = given[4];
    PyObject *positions, *structure, *class, *trie, *operation, *projections, *copied;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(given[3], "nO!O!", &count, &PyTuple_Type, &positions, &PyTuple_Type, &structure)) return NULL;
    if (!PyArg_ParseTuple(given[5], "O!O!O!O!O", &PyType_Type, &class, TrieNode_Type, &trie, Operation_Type, &operation, &PyList_Type,
                          &projections, &copied))
        return NULL;
    PyObject *parts = PyTuple_GET_SIZE(structure) == 3 ? PyTuple_GET_ITEM(structure, 2) : NULL;
    Py_ssize_t num_parts = PyTuple_GET_SIZE(positions);
    if (parts == NULL || !PyTuple_Check(parts) || PyTuple_GET_SIZE(parts) != num_parts || count != PyTuple_GET_SIZE(args) ||
        count > MAX_ARGUMENTS || state_object == NULL)
        Py_RETURN_NONE;
    if (current_queue == NULL && enter_thread() < 0) return NULL;
    if (current_queue == NULL) Py_RETURN_NONE;
    PyObject *new_args[MAX_ARGUMENTS] = {NULL}, *leaves = PyList_New(0), *stand_ins = NULL, *new_kwargs = NULL;
    PyObject *result = NULL, *value = NULL, *arrays = NULL, *gradients = NULL;
    Queue *queue = NULL, *outer = (Queue *)Py_NewRef((PyObject *)current_queue);
    int status = leaves == NULL ? -1 : 1;
    for (Py_ssize_t k = 0; status == 1 && k < num_parts; k++) {
        Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, k));
        if (position < 0 || position >= count) status = 0;
        else status = append_leaves(PyTuple_GET_ITEM(parts, k), PyTuple_GET_ITEM(args, position), leaves, 0);
    }
    if (status == 0) result = Py_NewRef(Py_None);
    if (status != 1) goto done;
    queue = (Queue *)((PyTypeObject *)class)->tp_alloc((PyTypeObject *)class, 0);
    if (queue == NULL || queue_restart(queue) < 0 || begin_tracing(queue, trie, operation, 0) < 0) goto done;
    queue->purpose = Py_NewRef(purpose);
    queue->outer = Py_NewRef((PyObject *)outer);
    if ((stand_ins = queue_add_arguments(queue, leaves)) == NULL) goto done;
    if (stand_ins == Py_None) {
        result = Py_NewRef(Py_None);
        goto done;
    }
    Py_ssize_t position = 0;
    for (Py_ssize_t k = 0; k < num_parts; k++) {
        PyObject **place = new_args + PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, k));
        PyObject *part = value_of_leaves(PyTuple_GET_ITEM(parts, k), stand_ins, &position, 0);
        if (part == NULL) goto done;
        replace(place, part);
    }
    for (Py_ssize_t k = 0; k < count; k++)
        if (new_args[k] == NULL && (new_args[k] = new_argument(PyTuple_GET_ITEM(args, k), copied)) == NULL) goto done;
    if (PyDict_GET_SIZE(kwargs)) {
        PyObject *name, *argument;
        Py_ssize_t place = 0;
        if ((new_kwargs = PyDict_New()) == NULL) goto done;
        while (PyDict_Next(kwargs, &place, &name, &argument)) {
            PyObject *copy = new_argument(argument, copied);
            status = copy ? PyDict_SetItem(new_kwargs, name, copy) : -1;
            Py_XDECREF(copy);
            if (status < 0) goto done;
        }
    }
    value = call_traced(queue, function, new_args, count, new_kwargs);
    if (value == NULL) goto done;
    arrays = remembered_results(queue, value, outer, projections);
    if (arrays == NULL) {
        if (!PyErr_Occurred()) result = PyTuple_Pack(3, Py_None, queue, value);
        goto done;
    }
    position = 1;
    gradients = value_of_leaves(structure, arrays, &position, 0);
    if (gradients != NULL) result = PyTuple_Pack(2, PyList_GET_ITEM(arrays, 0), gradients);
done:
    if (result == NULL && queue != NULL && queue->queue != NULL) {  // its values and the queue refer to each other
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        Py_XDECREF(queue_empty(queue, NULL));
        PyErr_Restore(type, error, traceback);
    }
    for (Py_ssize_t k = 0; k < count; k++) Py_XDECREF(new_args[k]);
    Py_XDECREF(leaves);
    Py_XDECREF(stand_ins);
    Py_XDECREF(new_kwargs);
    Py_XDECREF(value);
    Py_XDECREF(arrays);
    Py_XDECREF(gradients);
    Py_XDECREF((PyObject *)queue);
    Py_DECREF(outer);
    return result;
}

// Methods of arrays

static void method_dealloc(Method *self) {
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->operation);
    free_instance((PyObject *)self);
}

static int method_traverse(Method *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->operation);
    return 0;
}

static int method_clear(Method *self) {
    Py_CLEAR(self->operation);
    return 0;
}

static PyObject *method_get(PyObject *self, PyObject *instance, PyObject *owner) {
    if (instance == NULL || instance == Py_None) return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

static int check_arguments(PyObject *const *args, Py_ssize_t count, size_t num_args, PyObject *names) {
    if (PyVectorcall_NARGS(num_args) != count || (names != NULL && PyTuple_GET_SIZE(names))) {
        PyErr_Format(PyExc_TypeError, "the operator takes %zd operands, got %zd", count, PyVectorcall_NARGS(num_args));
        return -1;
    }
    if (!PyObject_TypeCheck(args[0], Array_Type) || ((Array *)args[0])->value == NULL) {
        PyErr_Format(PyExc_TypeError, "the operator needs an Array, got %R", args[0]);
        return -1;
    }
    return 0;
}

static PyObject *unary_call(PyObject *self, PyObject *const *args, size_t num_args, PyObject *names) {
    if (check_arguments(args, 1, num_args, names) < 0) return NULL;
    PyObject *operand = Py_NewRef((PyObject *)((Array *)args[0])->value);
    Value *value = apply_values((Operation *)((Method *)self)->operation, &operand, 1);
    Py_DECREF(operand);
    return wrap_value(value);
}

// Apply a binary operation to the value of an array and another operand, which is the left one if ``swap``.
static PyObject *apply_binary(PyObject *operation, PyObject *array, PyObject *other, int swap) {
    PyObject *value = Py_NewRef((PyObject *)((Array *)array)->value);
    PyObject *other_value = operand_value(other, (Value *)value), *result = other_value;
    if (other_value != NULL && other_value != Py_NotImplemented) {
        PyObject *operands[] = {swap ? other_value : value, swap ? value : other_value};
        result = wrap_value(apply_values((Operation *)operation, operands, 2));
        Py_DECREF(other_value);
    }
    Py_DECREF(value);
    return result;
}

static PyObject *binary_call(PyObject *self, PyObject *const *args, size_t num_args, PyObject *names) {
    if (check_arguments(args, 2, num_args, names) < 0) return NULL;
    Method *method = (Method *)self;
    return apply_binary(method->operation, args[0], args[1], method->swap);
}

// Arithmetic operators without a look-up of the method: the number slots of the array class. Its methods are what
// counts for all else, and ``inherited``, the slot that calls them, for subclasses.
enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, NUM_SLOTS };
static const char *const slot_methods[NUM_SLOTS][2] = {
    {"__add__", "__radd__"}, {"__sub__", "__rsub__"}, {"__mul__", "__rmul__"}, {"__truediv__", "__rtruediv__"}};
static struct {
    Method *forward, *reflected;
    binaryfunc inherited;
} number_slots[NUM_SLOTS];

static PyObject *call_slot(PyObject *left, PyObject *right, int slot) {
    int is_left = Py_TYPE(left) == array_class;
    PyObject *array = is_left ? left : right;
    if (Py_TYPE(array) != array_class || ((Array *)array)->value == NULL) return number_slots[slot].inherited(left, right);
    Method *method = is_left ? number_slots[slot].forward : number_slots[slot].reflected;
    return apply_binary(method->operation, array, is_left ? right : left, method->swap);
}

static PyObject *slot_add(PyObject *x, PyObject *y) { return call_slot(x, y, ADD); }
static PyObject *slot_subtract(PyObject *x, PyObject *y) { return call_slot(x, y, SUBTRACT); }
static PyObject *slot_multiply(PyObject *x, PyObject *y) { return call_slot(x, y, MULTIPLY); }
static PyObject *slot_divide(PyObject *x, PyObject *y) { return call_slot(x, y, DIVIDE); }

// In-place operators of the array class: the array gets the value of the operation if its type stays. ``inherited_in_place`` does
// the rest, and all where slices are views. It is the method of the class that Python calls.
static binaryfunc inherited_in_place[NUM_SLOTS];

static PyObject *call_in_place(PyObject *left, PyObject *right, int slot) {
    if (has_views || Py_TYPE(left) != array_class || ((Array *)left)->value == NULL) return inherited_in_place[slot](left, right);
    Value *value = (Value *)Py_NewRef((PyObject *)((Array *)left)->value), *result = NULL;
    PyObject *other = operand_value(right, value), *operation = number_slots[slot].forward->operation;
    // The type that the recorder knows for the operands decides whether the general way is needed.
    if (other != NULL && other != Py_NotImplemented) {
        PyObject *operands[] = {(PyObject *)value, other}, *type = result_type((Operation *)operation, operands, 2);
        if (type != NULL && type == value->type) result = apply_values((Operation *)operation, operands, 2);
    }
    Py_XDECREF(other);
    Py_DECREF(value);
    if (PyErr_Occurred()) return NULL;
    if (result == NULL) return inherited_in_place[slot](left, right);
    array_bind((Array *)left, result);
    return Py_NewRef(left);
}

static PyObject *slot_in_place_add(PyObject *x, PyObject *y) { return call_in_place(x, y, ADD); }
static PyObject *slot_in_place_subtract(PyObject *x, PyObject *y) { return call_in_place(x, y, SUBTRACT); }
static PyObject *slot_in_place_multiply(PyObject *x, PyObject *y) { return call_in_place(x, y, MULTIPLY); }
static PyObject *slot_in_place_divide(PyObject *x, PyObject *y) { return call_in_place(x, y, DIVIDE); }

// Set the number slots of a class whose methods are of `binary_method`; leave others.
static void set_number_slots(PyTypeObject *class) {
    PyNumberMethods *number = class->tp_as_number;
    binaryfunc functions[NUM_SLOTS] = {slot_add, slot_subtract, slot_multiply, slot_divide};
    binaryfunc *slots[NUM_SLOTS] = {&number->nb_add, &number->nb_subtract, &number->nb_multiply, &number->nb_true_divide};
    binaryfunc in_place_functions[NUM_SLOTS] = {slot_in_place_add, slot_in_place_subtract, slot_in_place_multiply,
                                                slot_in_place_divide};
    binaryfunc *in_place[NUM_SLOTS] = {&number->nb_inplace_add, &number->nb_inplace_subtract, &number->nb_inplace_multiply,
                                       &number->nb_inplace_true_divide};
    for (int k = 0; k < NUM_SLOTS; k++) {
        PyObject *forward = PyObject_GetAttrString((PyObject *)class, slot_methods[k][0]);
        PyObject *reflected = forward ? PyObject_GetAttrString((PyObject *)class, slot_methods[k][1]) : NULL;
        if (reflected != NULL && Py_TYPE(forward) == BinaryMethod_Type && Py_TYPE(reflected) == BinaryMethod_Type) {
            Py_INCREF(forward), replace((PyObject **)&number_slots[k].forward, forward);
            Py_INCREF(reflected), replace((PyObject **)&number_slots[k].reflected, reflected);
            if (*slots[k] != functions[k]) number_slots[k].inherited = *slots[k];
            *slots[k] = functions[k];
            if (*in_place[k] != in_place_functions[k]) inherited_in_place[k] = *in_place[k];
            if (inherited_in_place[k] != NULL) *in_place[k] = in_place_functions[k];
        }
        Py_XDECREF(forward);
        Py_XDECREF(reflected);
        PyErr_Clear();  // a class without the operator
    }
}

// Subscripts: ``x[key]`` and ``x[key] = y`` for keys of ints, slices, None and ``...`` that were met before.
//
// The Python functions that the class inherits do everything, and tell by `remember_subscript` which operations they
// record for a key and an array type. What was remembered is recorded here.

#define MAX_PARTS 32
#define MAX_SUBSCRIPTS 4096
#define NUM_BUCKETS (2 * MAX_SUBSCRIPTS)

typedef struct {
    ArrayType *type, *part;  // of the array and of what the key selects
    PyObject *slice, *assign, *inputs;  // the operations; the tuple of the values that they read besides
    int is_everything;                  // the key selects the whole array: slice copies it, and reads no inputs
    uint64_t hash;
    Py_ssize_t num_words;
    int64_t words[];  // the key
} Subscript;

typedef struct {
    uint64_t hash;
    Py_ssize_t num_words;
    int64_t words[4 * MAX_PARTS];
} Key;

static Subscript *subscripts[NUM_BUCKETS];
static int num_subscripts;
static binaryfunc inherited_subscript;
static objobjargproc inherited_assignment;

// Append a bound of a slice; bit ``flag`` of the slice's first word says that it is None.
static int key_add_bound(Key *key, PyObject *bound, int64_t *head, int flag) {
    int64_t number = 0;
    if (bound == Py_None) *head |= flag;
    else {
        if (!PyLong_CheckExact(bound)) return 0;
        int overflow;
        number = PyLong_AsLongLongAndOverflow(bound, &overflow);
        if (overflow) return 0;
    }
    key->words[key->num_words++] = number;
    return 1;
}

enum { KEY_NONE = 0, KEY_DOTS = 1, KEY_INT = 2, KEY_SLICE = 8 };

static int key_add(Key *key, PyObject *part) {
    int64_t *head = key->words + key->num_words++;
    if (part == Py_None) *head = KEY_NONE;
    else if (part == Py_Ellipsis) *head = KEY_DOTS;
    else if (PySlice_Check(part)) {
        PySliceObject *slice = (PySliceObject *)part;
        *head = KEY_SLICE;
        return key_add_bound(key, slice->start, head, 1) && key_add_bound(key, slice->stop, head, 2) &&
               key_add_bound(key, slice->step, head, 4);
    } else {
        *head = KEY_INT;
        return part != Py_None && PyLong_CheckExact(part) && key_add_bound(key, part, head, 0);
    }
    return 1;
}

// Read a subscript of an array type; return whether it has no other parts than ints, slices, None and ``...``.
static int read_key(Key *key, PyObject *subscript, ArrayType *type) {
    key->num_words = 0;
    if (PyTuple_CheckExact(subscript)) {
        Py_ssize_t count = PyTuple_GET_SIZE(subscript);
        if (count > MAX_PARTS) return 0;
        for (Py_ssize_t i = 0; i < count; i++)
            if (!key_add(key, PyTuple_GET_ITEM(subscript, i))) return 0;
    } else if (!key_add(key, subscript)) return 0;
    uint64_t hash = (uint64_t)(uintptr_t)type >> 4;
    for (Py_ssize_t i = 0; i < key->num_words; i++) hash = (hash ^ (uint64_t)key->words[i]) * 0x9E3779B97F4A7C15u ^ hash >> 29;
    key->hash = hash ^ hash >> 32;
    return 1;
}

// Return the place of a subscript in the table: that of the one remembered, or a free one.
static Subscript **find_subscript(const Key *key, ArrayType *type) {
    for (uint64_t k = key->hash;; k++) {
        Subscript **place = subscripts + k % NUM_BUCKETS, *item = *place;
        if (item == NULL || (item->hash == key->hash && item->type == type && item->num_words == key->num_words &&
                             memcmp(item->words, key->words, key->num_words * sizeof(int64_t)) == 0))
            return place;
    }
}

static void forget_subscripts(void) {
    num_subscripts = 0;
    for (int k = 0; k < NUM_BUCKETS; k++) {
        Subscript *item = subscripts[k];
        subscripts[k] = NULL;
        if (item == NULL) continue;
        Py_DECREF(item->type);
        Py_DECREF(item->part);
        Py_DECREF(item->slice);
        Py_DECREF(item->assign);
        Py_DECREF(item->inputs);
        PyMem_Free(item);
    }
}

static PyObject *remember_subscript(PyObject *module, PyObject *args) {
    PyObject *subscript, *slice, *assign, *inputs;
    ArrayType *type, *part;
    int is_everything;
    if (!PyArg_ParseTuple(args, "O!OO!O!O!O!p", ArrayType_Type, &type, &subscript, ArrayType_Type, &part, Operation_Type,
                          &slice, Operation_Type, &assign, &PyTuple_Type, &inputs, &is_everything))
        return NULL;
    int is_usable = PyTuple_GET_SIZE(inputs) + 2 <= MAX_OPERANDS && type->band == Py_None && type->device == Py_None;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++) is_usable &= Py_TYPE(PyTuple_GET_ITEM(inputs, i)) == Value_Type;
    Key key;
    if (!is_usable || PyDataType_ISCOMPLEX((PyArray_Descr *)type->dtype) || !read_key(&key, subscript, type)) Py_RETURN_NONE;
    if (num_subscripts >= MAX_SUBSCRIPTS) forget_subscripts();
    Subscript **place = find_subscript(&key, type);
    if (*place != NULL) Py_RETURN_NONE;
    Subscript *item = PyMem_Malloc(sizeof(Subscript) + key.num_words * sizeof(int64_t));
    if (item == NULL) return PyErr_NoMemory();
    item->type = (ArrayType *)Py_NewRef((PyObject *)type);
    item->part = (ArrayType *)Py_NewRef((PyObject *)part);
    item->slice = Py_NewRef(slice);
    item->is_everything = is_everything;
    item->assign = Py_NewRef(assign);
    item->inputs = Py_NewRef(inputs);
    item->hash = key.hash;
    item->num_words = key.num_words;
    memcpy(item->words, key.words, key.num_words * sizeof(int64_t));
    *place = item;
    num_subscripts++;
    Py_RETURN_NONE;
}

// Return the type of an array without band and device: a new reference.
static ArrayType *type_of_array(PyArrayObject *array) {
    int rank = PyArray_NDIM(array);
    int64_t extents[NPY_MAXDIMS];
    for (int k = 0; k < rank; k++) extents[k] = PyArray_DIMS(array)[k];
    PyObject *shape = int_tuple(extents, rank);
    PyObject *type = shape ? PyObject_CallFunctionObjArgs(type_function, (PyObject *)PyArray_DESCR(array), shape, NULL) : NULL;
    Py_XDECREF(shape);
    if (type != NULL && !is_array_type(type)) {
        PyErr_Format(PyExc_TypeError, "an array's type must be an ArrayType, got %R", type);
        Py_CLEAR(type);
    }
    return (ArrayType *)type;
}

// Copy a small part of a computed array, or any if NumPy may write to it. The key is one of `read_key`. Return NULL
// without an error where Python has to do it.
static Value *copied_part(Value *value, PyObject *subscript, ArrayType *part) {
    if (value->buffer == NULL || !PyArray_CheckExact(value->buffer)) return NULL;
    PyObject *view = PyObject_GetItem(value->buffer, subscript), *copy = NULL;
    if (view == NULL) {
        PyErr_Clear();  // Python has a better message
        return NULL;
    }
    if (PyArray_CheckExact(view)) {
        if (PyArray_SIZE((PyArrayObject *)view) <= max_small || value->is_exposed)
            copy = PyArray_NewCopy((PyArrayObject *)view, NPY_CORDER);
    } else if (PyArray_IsScalar(view, Generic)) copy = PyArray_FromScalar(view, NULL);
    Py_DECREF(view);
    if (copy == NULL) return NULL;
    Value *result = NULL;
    if ((PyObject *)PyArray_DESCR((PyArrayObject *)copy) == ((ArrayType *)value->type)->dtype) {
        part = part ? (ArrayType *)Py_NewRef((PyObject *)part) : type_of_array((PyArrayObject *)copy);
        if (part != NULL && (result = new_value((PyObject *)part)) != NULL) {
            result->buffer = Py_NewRef(copy);
            result->is_owned = 1;
        }
        Py_XDECREF(part);
    }
    Py_DECREF(copy);
    return result;
}

// Queue an operation on ``count`` values and on ``inputs``, which the operation of a subscript reads besides. NULL without
// an error: Python has to do it.
static Value *record_subscript(PyObject *operation, PyObject **operands, Py_ssize_t count, PyObject *inputs, PyObject *type) {
    if (current_queue == NULL && (enter_thread() < 0 || current_queue == NULL)) return NULL;
    Py_ssize_t num_inputs = PyTuple_GET_SIZE(inputs);
    for (Py_ssize_t i = 0; i < num_inputs; i++) operands[count + i] = PyTuple_GET_ITEM(inputs, i);
    // The table of subscripts may change meanwhile, by a finalizer or where Python records.
    Py_INCREF(inputs);
    Py_INCREF(operation);
    Py_INCREF(type);
    Value *value = queue_record(current_queue, (Operation *)operation, operands, count + num_inputs, type);
    Py_DECREF(type);
    Py_DECREF(operation);
    Py_DECREF(inputs);
    return value;
}

// Return what is remembered of a subscript of an array, NULL for nothing. ``is_plain`` is whether it has a key of
// `read_key` and the array neither view nor device.
static Subscript *subscript_of(PyObject *array, PyObject *subscript, int *is_plain) {
    *is_plain = 0;
    if (has_views || Py_TYPE(array) != array_class || ((Array *)array)->value == NULL) return NULL;
    ArrayType *type = (ArrayType *)((Array *)array)->value->type;
    Key key;
    if (!is_array_type((PyObject *)type) || type->band != Py_None || type->device != Py_None) return NULL;
    *is_plain = read_key(&key, subscript, type);
    return *is_plain ? *find_subscript(&key, type) : NULL;
}

static PyObject *subscript_read(PyObject *array, PyObject *subscript) {
    int is_plain;
    Subscript *item = subscript_of(array, subscript, &is_plain);
    if (!is_plain) return inherited_subscript(array, subscript);
    Value *value = (Value *)Py_NewRef((PyObject *)((Array *)array)->value), *result = NULL;
    int is_copied = item == NULL || item->part->size <= max_small || value->is_exposed;
    if (value->operation == NULL && is_copied) result = copied_part(value, subscript, item ? item->part : NULL);
    else if (item != NULL && !(item->is_everything && value->operation == NULL)) {  // Python shares a computed array
        PyObject *operands[MAX_OPERANDS] = {(PyObject *)value}, *inputs = item->is_everything ? empty_tuple : item->inputs;
        result = record_subscript(item->slice, operands, 1, inputs, (PyObject *)item->part);
    }
    Py_DECREF(value);
    if (result != NULL) return wrap_value(result);
    return PyErr_Occurred() ? NULL : inherited_subscript(array, subscript);
}

// Return whether an array of a shape is broadcast to another one without losing axes.
static int is_broadcast(PyObject *shape, PyObject *target) {
    Py_ssize_t rank = PyTuple_GET_SIZE(shape), excess = PyTuple_GET_SIZE(target) - rank;
    for (Py_ssize_t i = 0; i < rank; i++) {
        if (excess < 0) return 0;
        int64_t extent = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
        if (extent != 1 && extent != PyLong_AsLongLong(PyTuple_GET_ITEM(target, excess + i))) return 0;
    }
    return excess >= 0;
}

static int subscript_write(PyObject *array, PyObject *subscript, PyObject *operand) {
    int is_plain;
    Subscript *item = operand == NULL ? NULL : subscript_of(array, subscript, &is_plain);
    if (item == NULL || item->part->size == 0) return inherited_assignment(array, subscript, operand);
    Value *value = (Value *)Py_NewRef((PyObject *)((Array *)array)->value), *result = NULL, *source = NULL;
    ArrayType *type = (ArrayType *)value->type;
    if (Py_TYPE(operand) == array_class || PyFloat_CheckExact(operand) || PyLong_CheckExact(operand))
        source = (Value *)operand_value(operand, value);
    PyErr_Clear();  // Python has better messages
    // Few elements of a computed array are written in place.
    int is_queued = source != NULL && (PyObject *)source != Py_NotImplemented && is_array_type(source->type) &&
                    (value->operation != NULL || source->operation != NULL || item->part->size > max_small);
    // Operands may have run finalizers, which change the table.
    if (is_queued && (item = subscript_of(array, subscript, &is_plain)) != NULL && ((Array *)array)->value == value) {
        ArrayType *source_type = (ArrayType *)source->type;
        if (source_type->dtype == type->dtype && source_type->band == Py_None && source_type->device == Py_None &&
            is_broadcast(source_type->shape, item->part->shape)) {
            PyObject *operands[MAX_OPERANDS] = {(PyObject *)value, (PyObject *)source};
            result = record_subscript(item->assign, operands, 2, item->inputs, (PyObject *)type);
        }
    }
    Py_XDECREF(source);
    Py_DECREF(value);
    if (result == NULL) return PyErr_Occurred() ? -1 : inherited_assignment(array, subscript, operand);
    array_bind((Array *)array, result);
    return 0;
}

static void set_subscript_slots(PyTypeObject *class) {
    PyMappingMethods *mapping = class->tp_as_mapping;
    if (mapping->mp_subscript != subscript_read) inherited_subscript = mapping->mp_subscript;
    if (mapping->mp_ass_subscript != subscript_write) inherited_assignment = mapping->mp_ass_subscript;
    mapping->mp_subscript = subscript_read;
    mapping->mp_ass_subscript = subscript_write;
}

static PyObject *method_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"operation", "swap", NULL};
    PyObject *operation;
    int swap = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|p", names, Operation_Type, &operation, &swap)) return NULL;
    Method *self = (Method *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->operation = Py_NewRef(operation);
    self->swap = swap;
    self->vectorcall = type == UnaryMethod_Type ? unary_call : binary_call;
    return (PyObject *)self;
}

// The interpreter calls a `__getitem__` that is a Python function without the slot of the class, once it has specialized
// the bytecode. A method of another type leaves it the slot only.
static PyObject *slot_method_call(PyObject *self, PyObject *const *args, size_t num_args, PyObject *names) {
    return PyObject_Vectorcall(((Method *)self)->operation, args, num_args, names);
}

static PyObject *slot_method_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"function", NULL};
    PyObject *function;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!", names, &PyFunction_Type, &function)) return NULL;
    Method *self = (Method *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->operation = Py_NewRef(function);
    self->vectorcall = slot_method_call;
    return (PyObject *)self;
}

static PyMemberDef slot_method_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Method, vectorcall), READONLY},
    {"__wrapped__", T_OBJECT, offsetof(Method, operation), READONLY},
    {NULL},
};

static PyMemberDef method_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Method, vectorcall), READONLY},
    {"operation", T_OBJECT, offsetof(Method, operation), READONLY},
    {NULL},
};

// The module

static PyObject *connect(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"array_class", "apply", "operand", "thread", "array_type", "state", NULL};
    PyObject *class, *apply, *operand, *thread, *array_type, *state;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOOOO", names, &PyType_Type, &class, &apply, &operand, &thread, &array_type,
                                     &state))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)class, Array_Type)) {
        PyErr_Format(PyExc_TypeError, "connect needs a subclass of ArrayBase, got %R", class);
        return NULL;
    }
    set_number_slots((PyTypeObject *)class);
    set_subscript_slots((PyTypeObject *)class);
    Py_INCREF(class), replace((PyObject **)&array_class, class);
    Py_INCREF(apply), replace(&apply_function, apply);
    Py_INCREF(operand), replace(&operand_function, operand);
    Py_INCREF(thread), replace(&thread_function, thread);
    Py_INCREF(array_type), replace(&type_function, array_type);
    Py_INCREF(state), replace(&state_object, state);
    Py_RETURN_NONE;
}

static PyObject *enter_stream(PyObject *module, PyObject *stream) {
    current_queue = quiet_context != NULL && PyObject_TypeCheck(stream, Queue_Type) ? (Queue *)stream : NULL;
    Py_RETURN_NONE;
}

static PyObject *set_limits(PyObject *module, PyObject *args) {
    if (!PyArg_ParseTuple(args, "nnnpp", &max_small, &max_ops, &max_pending_bytes, &remembers, &has_views)) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"apply", (PyCFunction)(void (*)(void))apply, METH_FASTCALL,
     "apply(operation, *values): Apply an operation with one result to values; return the result."},
    {"operand_beside", (PyCFunction)(void (*)(void))operand_beside, METH_FASTCALL,
     "operand_beside(operand, beside): Return the value of an operand of an operation that also reads another value; "
     "NotImplemented for no operand."},
    {"wrap", wrap, METH_O, "wrap(value): Return a new array that holds a value, which no other array holds."},
    {"connect", (PyCFunction)(void (*)(void))connect, METH_VARARGS | METH_KEYWORDS,
     "connect(array_class, apply, operand, thread, array_type, state): Set the class of arrays, and what is done in Python."},
    {"enter_stream", enter_stream, METH_O,
     "enter_stream(stream): Record the operations of this thread in a stream, which the thread keeps."},
    {"leaves_like", (PyCFunction)(void (*)(void))leaves_like, METH_FASTCALL,
     "leaves_like(structure, value): Return the leaves of a value of a structure; None if Python has to find them."},
    {"values_like", (PyCFunction)(void (*)(void))values_like, METH_FASTCALL,
     "values_like(structure, forms, value): Return the values of the arrays in a value of a structure and of forms, else None."},
    {"differentiated_call", (PyCFunction)(void (*)(void))differentiated_call, METH_FASTCALL,
     "differentiated_call(function, args, kwargs, form, purpose, context): Call a function, and return its value and gradients."},
    {"with_leaves", (PyCFunction)(void (*)(void))with_leaves, METH_FASTCALL,
     "with_leaves(structure, leaves): Return the value of a structure; NotImplemented if Python has to make it."},
    {"with_new_arrays", with_new_arrays, METH_O,
     "with_new_arrays(value): Return an array as a new one, a number itself; NotImplemented if Python has to copy it."},
    {"set_limits", set_limits, METH_VARARGS,
     "set_limits(small, max_ops, max_pending_bytes, remembers, has_views): Set when operations run at once, when a queue "
     "is full, whether executions are repeated without Python, and whether slices are views."},
    {"remember_subscript", remember_subscript, METH_VARARGS,
     "remember_subscript(type, key, part, slice, assign, inputs, is_everything): Let subscripts of arrays of a type be "
     "recorded here."},
    {NULL},
};

#define GC_SLOTS(prefix, ...)                                              \
    static PyType_Slot prefix##_slots[] = {{Py_tp_traverse, prefix##_traverse}, \
                                           {Py_tp_clear, prefix##_clear},       \
                                           {Py_tp_dealloc, prefix##_dealloc},   \
                                           __VA_ARGS__,                         \
                                           {0, NULL}}


GC_SLOTS(array_type, {Py_tp_new, PyType_GenericNew}, {Py_tp_init, array_type_init}, {Py_tp_repr, array_type_repr},
        {Py_tp_members, array_type_members});
GC_SLOTS(value, {Py_tp_new, PyType_GenericNew}, {Py_tp_init, value_init}, {Py_tp_repr, value_repr},
        {Py_tp_members, value_members}, {Py_tp_getset, value_getset});
GC_SLOTS(operation, {Py_tp_new, PyType_GenericNew}, {Py_tp_members, operation_members},
        {Py_tp_getset, operation_getset});
GC_SLOTS(node, {Py_tp_new, PyType_GenericNew}, {Py_tp_init, node_init}, {Py_tp_methods, node_methods},
        {Py_tp_members, node_members}, {Py_tp_getset, node_getset});
GC_SLOTS(cursor, {Py_tp_new, PyType_GenericNew}, {Py_tp_init, cursor_init}, {Py_tp_methods, cursor_methods},
        {Py_tp_members, cursor_members}, {Py_tp_getset, cursor_getset});
GC_SLOTS(queue, {Py_tp_new, PyType_GenericNew}, {Py_tp_init, queue_init}, {Py_tp_methods, queue_methods},
        {Py_tp_members, queue_members}, {Py_tp_getset, queue_getset});
GC_SLOTS(method, {Py_tp_new, method_new}, {Py_tp_call, PyVectorcall_Call}, {Py_tp_descr_get, method_get},
        {Py_tp_members, method_members});
static PyType_Slot slot_method_slots[] = {{Py_tp_traverse, method_traverse},
                                          {Py_tp_clear, method_clear},
                                          {Py_tp_dealloc, method_dealloc},
                                          {Py_tp_new, slot_method_new},
                                          {Py_tp_call, PyVectorcall_Call},
                                          {Py_tp_descr_get, method_get},
                                          {Py_tp_members, slot_method_members},
                                          {0, NULL}};
static PyType_Slot array_slots[] = {{Py_tp_dealloc, array_dealloc}, {Py_tp_getset, array_getset}, {0, NULL}};

static PyTypeObject *add_type(PyObject *module, const char *name, int size, unsigned long flags, PyType_Slot *slots) {
    char qualified[64];
    snprintf(qualified, sizeof qualified, "_passkit_recorder.%s", name);
    char *kept = PyMem_Malloc(strlen(qualified) + 1);  // types keep a pointer to it
    if (kept == NULL) return NULL;
    strcpy(kept, qualified);
    PyType_Spec spec = {kept, size, 0, Py_TPFLAGS_DEFAULT | flags, slots};
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (type == NULL || PyModule_AddObjectRef(module, name, (PyObject *)type) < 0) return NULL;
    return type;
}

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_passkit_recorder", "Records operations on arrays.", -1, functions};

#define GC Py_TPFLAGS_HAVE_GC
#define BASE Py_TPFLAGS_BASETYPE
#define CALLED (Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR)

__attribute__((visibility("default"))) PyObject *PyInit__passkit_recorder(void) {
    import_array();
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || (empty_tuple = PyTuple_New(0)) == NULL) return NULL;
    if (!(interned.record = PyUnicode_InternFromString("record")) || !(interned.stream = PyUnicode_InternFromString("stream")) || !(interned.acquire = PyUnicode_InternFromString("acquire")) ||
        !(interned.release = PyUnicode_InternFromString("release")) || !(interned.known = PyUnicode_InternFromString("known")) ||
        !(interned.equal_inputs = PyUnicode_InternFromString("equal_inputs")) ||
        !(interned.write_eagerly = PyUnicode_InternFromString("write_eagerly")) ||
        !(interned.dtype = PyUnicode_InternFromString("dtype")) ||
        !(interned.shape = PyUnicode_InternFromString("shape")) ||
        !(interned.zeros[0] = PyUnicode_InternFromString("0.0")) || !(interned.zeros[1] = PyUnicode_InternFromString("-0.0")) ||
        !(interned.needs_extents = PyUnicode_InternFromString("needs_extents")))
        return NULL;
    for (int k = 0; k < NUM_COUNTS; k++)
        if (!(interned.counts[k] = PyUnicode_InternFromString(count_names[k]))) return NULL;
    if (!(ArrayType_Type = add_type(module, "ArrayType", sizeof(ArrayType), GC, array_type_slots)) ||
        !(Value_Type = add_type(module, "Value", sizeof(Value), GC, value_slots)) ||
        !(Array_Type = add_type(module, "ArrayBase", sizeof(Array), BASE, array_slots)) ||
        !(Operation_Type = add_type(module, "OperationBase", sizeof(Operation), GC | BASE, operation_slots)) ||
        !(TrieNode_Type = add_type(module, "TrieNode", sizeof(TrieNode), GC, node_slots)) ||
        !(Cursor_Type = add_type(module, "TrieCursor", sizeof(TrieCursor), GC | BASE, cursor_slots)) ||
        !(Queue_Type = add_type(module, "Queue", sizeof(Queue), GC | BASE, queue_slots)) ||
        !(UnaryMethod_Type = add_type(module, "unary_method", sizeof(Method), GC | CALLED, method_slots)) ||
        !(BinaryMethod_Type = add_type(module, "binary_method", sizeof(Method), GC | CALLED, method_slots)) ||
        !(SlotMethod_Type = add_type(module, "slot_method", sizeof(Method), GC | CALLED, slot_method_slots)))
        return NULL;
    return module;
}
