/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* trash-wish: the wishes of features/trash for a removal by storage (HINT_TRASH of stack/fop.h). */
#ifndef KILN_POSIX_TRASH_WISH_H
#define KILN_POSIX_TRASH_WISH_H

#include <stdint.h>

/* If the name is the file's last, storage keeps the file. The texts live as long as the call. */
struct trash_wish {
    const char *dir;       /* name of a folder in the root */
    const char *inner_dir; /* name of a folder inside `dir`; NULL: none */
    const char *eliminate; /* folders whose files are not kept, "a/b,c" */
    uint64_t size_max;     /* largest file that is kept, in bytes */
};

#endif
