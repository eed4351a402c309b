/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* gfid2path: an xattr for each name of a file, symlink or device, by which its paths can be found from its
 * gfid (spec: brick 2.5).
 *
 *   trusted.gfid2path.<XXH64 of the value, 16 hex digits> = "<parent gfid>/<name>"
 *
 * Only reports use these xattrs, so a failure to set or remove one is only logged. The option gfid2path
 * switches them off. Any thread.
 */
#ifndef KILN_POSIX_GFID2PATH_H
#define KILN_POSIX_GFID2PATH_H

#include "xlators/storage/posix/object/handle.h"

#define POSIX_GFID2PATH_KEY_SIZE (sizeof POSIX_XATTR_GFID2PATH + 16)
#define POSIX_GFID2PATH_VALUE_SIZE (GFID_TEXT_SIZE + NAME_MAX + 1)

/* Returns the length of the value (without the NUL behind it). */
size_t posix_gfid2path_pair(const struct gfid *parent, const char *name, char key[POSIX_GFID2PATH_KEY_SIZE],
                            char value[POSIX_GFID2PATH_VALUE_SIZE]);

void posix_gfid2path_set(struct xlator *xl, struct posix_obj *obj, const struct gfid *parent,
                         const char *name);
void posix_gfid2path_remove(struct xlator *xl, struct posix_obj *obj, const struct gfid *parent,
                            const char *name);

#endif
