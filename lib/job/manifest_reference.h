/* manifest_reference - docs/manifest.md, written from the tables that parse the manifest (job/fields.h), so that it
 * lists every field with its type, range and default. A unit test fails when the page is not current; `make docs`
 * renews it. */
#ifndef TRAINYARD_JOB_MANIFEST_REFERENCE_H
#define TRAINYARD_JOB_MANIFEST_REFERENCE_H

#include "base/buf.h"

void job_manifest_reference(struct buf *out); /* Markdown */

#endif
