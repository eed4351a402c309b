/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* worm-file: retention of single files (worm-file-level; spec: brick 10.2). */
#ifndef KILN_WORM_FILE_H
#define KILN_WORM_FILE_H

#include "stack/xlator.h"

struct worm_conf {
    bool is_on, is_file_level;
    int retention_mode;                        /* RETENTION_* */
    int64_t retention_period, commit_period; /* seconds */
    bool is_deletable;
};

enum { RETENTION_RELAX, RETENTION_ENTERPRISE };

/* For fops that would change a file's data or a name of it: refused with EROFS while it is committed. */
xl_verdict worm_file_change(struct xlator *xl, struct call_stack *stk);
/* A new file is one of those that will be committed. */
xl_verdict worm_file_create(struct xlator *xl, struct call_stack *stk);
/* Modes without a right to write commit; the access time of a committed file is the end of its retention. */
xl_verdict worm_file_setattr(struct xlator *xl, struct call_stack *stk);

#endif
