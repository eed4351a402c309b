/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/barrier: holds back the replies of what must be on the disk when it is acknowledged, while a
 * snapshot is taken. */
#ifndef KILN_FEATURES_BARRIER_H
#define KILN_FEATURES_BARRIER_H

#include <stdbool.h>

struct xlator;

/* Switches the barrier of this layer, as `barrier enable` and `barrier disable` of the management do
 * (management 4.9).
 * thread  any, in a read section; may post the replies that were held
 * errors  -EALREADY: it is so already */
int barrier_switch(struct xlator *xl, bool is_on);

#endif
