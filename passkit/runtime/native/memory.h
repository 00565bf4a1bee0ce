// Memory owned by arrays and threads: pieces of the pool, scratch memory, small arenas.
#pragma once

// Memory of the pool as a Python object: arrays and views of it hold a reference.
typedef struct {
    PyObject_HEAD
    Piece piece;
} Owner;

static PyTypeObject *Owner_type;
static PyObject *capacity_error;         // passkit.errors.CapacityError, a MemoryError

static void owner_dealloc(PyObject *self) {
    if (((Owner *)self)->piece.slab) pool_give_piece(((Owner *)self)->piece);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static Owner *owner_new(int64_t nbytes) {
    Owner *owner = (Owner *)Owner_type->tp_alloc(Owner_type, 0);
    if (!owner) return NULL;
    owner->piece = pool_take_piece(nbytes);
    if (owner->piece.slab) return owner;
    Py_DECREF(owner);
    PyErr_Format(capacity_error, "no memory for an array of %lld bytes", (long long)nbytes);
    return NULL;
}

static PyType_Slot owner_slots[] = {
    {Py_tp_doc, (void *)"Memory of the pool, returned to it when deallocated."},
    {Py_tp_dealloc, (void *)owner_dealloc},
    {0, NULL}};

static PyType_Spec owner_spec = {"_passkit_launcher.Owner", sizeof(Owner), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 owner_slots};

// Scratch memory and the small arena of the calling thread.
typedef struct {
    Scratch scratch, arena;
} ThreadMemory;

static pthread_key_t thread_key;

COLD static void free_thread_memory(void *memory) {
    ThreadMemory *memory_of_thread = (ThreadMemory *)memory;
    free(memory_of_thread->scratch.data);
    free(memory_of_thread->arena.data);
    free(memory_of_thread);
}

static ThreadMemory *thread_memory(void) {
    ThreadMemory *memory_of_thread = (ThreadMemory *)pthread_getspecific(thread_key);
    if (memory_of_thread) return memory_of_thread;
    memory_of_thread = (ThreadMemory *)calloc(1, sizeof(ThreadMemory));
    if (memory_of_thread) pthread_setspecific(thread_key, memory_of_thread);
    return memory_of_thread;
}
