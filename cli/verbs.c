/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <stddef.h>

#include "cli/kiln.h"

const struct verb verbs[] = {
#define VERB(name, args, text, more, min_args, max_args, run, about)                                         \
    {name, args, text, more, min_args, max_args, run, about},
#include "cli/verbs.def"
#undef VERB
    {0},
};
