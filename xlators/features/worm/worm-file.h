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

/* For fops that would change data or a name of a file: refuses such a fop with EROFS while the file is
 * committed. */
xl_verdict worm_file_change(struct xlator *xl, struct call_stack *stk);
/* Marks a new file as a worm file, which can be committed. */
xl_verdict worm_file_create(struct xlator *xl, struct call_stack *stk);
/* A mode without write permission commits the file. A new access time of a committed file sets the end of its
 * retention. */
xl_verdict worm_file_setattr(struct xlator *xl, struct call_stack *stk);

#endif
