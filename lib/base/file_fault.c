/* The counter behind file_fault(): from the n-th call on, calls of the chosen name fail. All state is atomic,
 * because files are written in many threads. */
#include "base/file_fault.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/file.h"

static _Atomic(const char *) fault_op;
static atomic_int calls, first_bad, fault_error;

void file_fault(const char *op, int n, int error)
{
    atomic_store(&fault_op, NULL);
    atomic_store(&calls, 0);
    atomic_store(&first_bad, n);
    atomic_store(&fault_error, error);
    atomic_store(&fault_op, op);
}

bool file_fault_hit(const char *op)
{
    const char *wanted = atomic_load(&fault_op);
    if (wanted == NULL || !str_eq(wanted, op) || atomic_fetch_add(&calls, 1) + 1 < atomic_load(&first_bad))
        return false;
    errno = atomic_load(&fault_error);
    return true;
}
