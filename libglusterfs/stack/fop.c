/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "stack/fop.h"

const struct fop_info fop_info[FOP_COUNT] = {
#define FOP(fop, profile, fop_traits, req, rep) [FOP_##fop] = {.name = #fop, .traits = (fop_traits), .profile_number = profile},
#include "stack/fops.def"
#undef FOP
};
