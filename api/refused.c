/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Names that programs may be linked with, and that are not built. A program needs a name only at its start,
 * unless it makes the call. The functions take no arguments and ignore those that are passed. */
#include <errno.h>

#include "api/api-internal.h"
#include "log/log.h"

static void
refuse_call(const char *name, atomic_bool *is_told)
{
    if (!atomic_exchange(is_told, true))
        log_event(LOG_ERROR, NULL, "gfapi-not-built",
                  "%s is not built in Kiln's libgfapi: it fails with ENOTSUP for this program", name);
    errno = ENOTSUP;
}

#define REFUSED_INT(name)                                                                                    \
    GFAPI long name(void);                                                                                   \
    GFAPI long name(void)                                                                                    \
    {                                                                                                        \
        static atomic_bool is_told;                                                                          \
                                                                                                             \
        refuse_call(#name, &is_told);                                                                        \
        return -1;                                                                                           \
    }
#define REFUSED_POINTER(name)                                                                                \
    GFAPI void *name(void);                                                                                  \
    GFAPI void *name(void)                                                                                   \
    {                                                                                                        \
        static atomic_bool is_told;                                                                          \
                                                                                                             \
        refuse_call(#name, &is_told);                                                                        \
        return NULL;                                                                                         \
    }
#include "api/refused.def"

/* ---- versions -------------------------------------------------------------------------------- */

OLD_VERSION(glfs_h_poll_upcall_370, glfs_h_poll_upcall, "3.7.0");
