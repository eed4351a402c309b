/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "stack/fop.h"

#include <assert.h>

const struct fop_info fop_info[FOP_COUNT] = {
#define FOP(fop, wire, profile, prio, fop_traits, ...)                                                       \
    [FOP_##fop] = {                                                                                          \
        .name = #fop, .traits = (fop_traits), .profile_number = (profile), .priority = PRIORITY_##prio},
#include "stack/fops.def"
#undef FOP
};

/* struct xlator_ops has its functions in the order of the rows and is indexed by fop number. */
enum {
#define FOP(name, ...) ROW_##name,
#include "stack/fops.def"
#undef FOP
    ROWS
};
#define FOP(name, ...)                                                                                       \
    static_assert((int)FOP_##name == (int)ROW_##name, "the row of " #name " stands at its wire number");
#include "stack/fops.def"
#undef FOP
static_assert((int)FOP_COUNT == (int)ROWS, "each number has a row");
