/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* name-sets: the names that each child of a layer lists in one folder, for the comparison of large folders.
 * A set keeps 8 bytes of hash for a name; two names of the same hash count as one. Plain data; the caller's
 * thread. */
#ifndef KILN_CLUSTER_NAME_SETS_H
#define KILN_CLUSTER_NAME_SETS_H

#include <stdbool.h>

/* Makes a set of names for each child. NULL: out of memory. */
struct name_sets *name_sets_new(unsigned children);
void name_sets_free(struct name_sets *s);
/* Notes a name that child i lists. 0 or -ENOMEM. */
int name_sets_add(struct name_sets *s, unsigned i, const char *name);
/* Ends the adding. */
void name_sets_sort(struct name_sets *s);
/* Returns whether all children list the name. Of a folder with fewer than 10,000 names the answer is no, so
 * that each name is looked up: this finds a name that leads to different objects, too. */
bool name_sets_all_have(const struct name_sets *s, const char *name);

#endif
