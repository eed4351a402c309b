/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* statedump-options: what a statedump shall hold and where it goes, as a file says that glusterd writes for
 * `volume statedump VOL mem iobuf ...` and takes away a second after its signal (management 1.8). */
#ifndef KILN_GLUSTERFSD_STATEDUMP_OPTIONS_H
#define KILN_GLUSTERFSD_STATEDUMP_OPTIONS_H

struct statedump_options {
    unsigned leaves_out; /* enum dump_part's bits; 0: nothing */
    char dir[1024];      /* "": not said */
};

/* From `dir`/glusterdump.options, or if there is none from `dir`/glusterdump.PID.options; with neither, or
 * with no key that is known, everything is wanted. 0, or -errno of a file that cannot be read: then
 * everything, too. */
int statedump_options_read(const char *dir, long pid, struct statedump_options *out);

#endif
