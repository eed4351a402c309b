/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* statedump-options: the parts and the folder of a statedump, from a file that glusterd writes for `volume
 * statedump VOL mem iobuf ...` and removes a second after its signal (management 1.8). */
#ifndef KILN_DAEMON_STATEDUMP_OPTIONS_H
#define KILN_DAEMON_STATEDUMP_OPTIONS_H

struct statedump_options {
    unsigned leaves_out; /* enum dump_part's bits; 0: nothing */
    char dir[1024];      /* "": not set */
};

/* From `dir`/glusterdump.options, or without that file from `dir`/glusterdump.PID.options. With neither file,
 * or with no known key, the dump has all parts. 0, or -errno of a file that cannot be read: then all parts,
 * too. */
int statedump_options_read(const char *dir, long pid, struct statedump_options *out);

#endif
