// What Python sees of the team: how many threads it has, and what each of them did.
#pragma once

COLD static PyObject *set_num_threads(PyObject *module, PyObject *number) {
    long size = PyLong_AsLong(number);
    if (size == -1 && PyErr_Occurred()) return NULL;
    if (size < 1 || size > MOST_THREADS) {
        PyErr_Format(PyExc_ValueError, "the number of threads must be 1 to %d, got %ld",
                     MOST_THREADS, size);
        return NULL;
    }
    team_resize((int)size);
    Py_RETURN_NONE;
}

COLD static PyObject *num_threads(PyObject *module, PyObject *unused) {
    return PyLong_FromLong(team_size);
}

#define MOST_NOTED (1 << 20)

static PyObject *noted_shares(const ShareLog *log) {
    int count = log->count < log->capacity ? log->count : log->capacity;
    PyObject *found = PyList_New(count);
    for (int i = 0; found && i < count; i++) {
        const Share *s = &log->entries[i];
        PyObject *item = Py_BuildValue("(iLLLL)", s->thread, (long long)s->begin,
                                       (long long)s->end, (long long)s->first, (long long)s->last);
        if (item) PyList_SET_ITEM(found, i, item);
        else Py_CLEAR(found);
    }
    return found;
}

// Give out what was noted and begin anew, with place for so many shares; none ends it. No region
// runs meanwhile: a share that is noted is done before its region ends.
COLD static PyObject *note_shares(PyObject *module, PyObject *number) {
    long capacity = PyLong_AsLong(number);
    if (capacity == -1 && PyErr_Occurred()) return NULL;
    if (capacity < 0 || capacity > MOST_NOTED) {
        PyErr_Format(PyExc_ValueError, "a log of shares has place for 0 to %d, got %ld",
                     MOST_NOTED, capacity);
        return NULL;
    }
    Share *entries = capacity ? (Share *)malloc(sizeof(Share) * (size_t)capacity) : NULL;
    if (capacity && !entries) return PyErr_NoMemory();
    while (__atomic_exchange_n(&team_busy, 1, __ATOMIC_ACQUIRE)) sched_yield();
    ShareLog old = share_log;
    share_log = (ShareLog){entries, (int)capacity, 0};
    __atomic_store_n(&team_busy, 0, __ATOMIC_RELEASE);
    PyObject *found = noted_shares(&old);
    free(old.entries);
    return found;
}
