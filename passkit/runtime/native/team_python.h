// Functions of the module about the team: the number of threads, and the log of shares.
#pragma once

COLD static PyObject *set_num_threads(PyObject *module, PyObject *number) {
    long size = PyLong_AsLong(number);
    if (size == -1 && PyErr_Occurred()) return NULL;
    if (size < 1 || size > MAX_THREADS) {
        PyErr_Format(PyExc_ValueError, "the number of threads must be 1 to %d, got %ld",
                     MAX_THREADS, size);
        return NULL;
    }
    team_resize((int)size);
    Py_RETURN_NONE;
}

COLD static PyObject *num_threads(PyObject *module, PyObject *unused) {
    return PyLong_FromLong(team_size);
}

#define MAX_SHARE_LOG (1 << 20)

static PyObject *share_list(const ShareLog *log) {
    int count = log->count < log->capacity ? log->count : log->capacity;
    PyObject *list = PyList_New(count);
    for (int i = 0; list && i < count; i++) {
        const Share *s = &log->entries[i];
        PyObject *item = Py_BuildValue("(iLLLL)", s->thread, (long long)s->begin,
                                       (long long)s->end, (long long)s->first, (long long)s->last);
        if (item) PyList_SET_ITEM(list, i, item);
        else Py_CLEAR(list);
    }
    return list;
}

// Return the log of shares and start a new one with the given capacity; 0 ends logging. No region runs
// meanwhile, so that every logged share is complete.
COLD static PyObject *note_shares(PyObject *module, PyObject *number) {
    long capacity = PyLong_AsLong(number);
    if (capacity == -1 && PyErr_Occurred()) return NULL;
    if (capacity < 0 || capacity > MAX_SHARE_LOG) {
        PyErr_Format(PyExc_ValueError, "a log of shares has a capacity from 0 to %d, got %ld",
                     MAX_SHARE_LOG, capacity);
        return NULL;
    }
    Share *entries = capacity ? (Share *)malloc(sizeof(Share) * (size_t)capacity) : NULL;
    if (capacity && !entries) return PyErr_NoMemory();
    while (__atomic_exchange_n(&team_busy, 1, __ATOMIC_ACQUIRE)) sched_yield();
    ShareLog log = share_log;
    share_log = (ShareLog){entries, (int)capacity, 0};
    __atomic_store_n(&team_busy, 0, __ATOMIC_RELEASE);
    PyObject *list = share_list(&log);
    free(log.entries);
    return list;
}
