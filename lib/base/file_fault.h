/* file_fault - inside of base/file.h: the check before every system call of the file functions.
 *
 *     if (file_fault_hit("rename") || rename(from, to) < 0) ...
 */
#ifndef TRAINYARD_BASE_FILE_FAULT_H
#define TRAINYARD_BASE_FILE_FAULT_H

#include <stdbool.h>

/* True, with errno set, when file_fault() makes this call fail. Costs one load when off. Thread-safe. */
bool file_fault_hit(const char *op);

#endif
