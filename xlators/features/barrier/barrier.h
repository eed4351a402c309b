/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/barrier: while a snapshot is taken, holds back the replies to operations that must be on disk
 * before they are acknowledged. */
#ifndef KILN_FEATURES_BARRIER_H
#define KILN_FEATURES_BARRIER_H

#include <stdbool.h>

struct xlator;

/* Raises or lowers the barrier of this layer, as the management commands `barrier enable` and `barrier
 * disable` do (management 4.9).
 * thread  any, in a read section; may post the held replies
 * errors  -EALREADY: the barrier is already in this state */
int barrier_switch(struct xlator *xl, bool is_on);

#endif
