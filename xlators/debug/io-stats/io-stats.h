/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* debug/io-stats: what `volume profile` and `volume top` ask a brick (management 4.7, 4.8). */
#ifndef KILN_IO_STATS_H
#define KILN_IO_STATS_H

struct dict;
struct xlator;

/* Answers a request of the management: `input` and `output` are the dicts of brick operation XLATOR_INFO.
 * thread  any, in a read section
 * errors  -EINVAL: neither profile nor top, -ENOMEM */
int io_stats_info(struct xlator *xl, const struct dict *input, struct dict *output);

#endif
