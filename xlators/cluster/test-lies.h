/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Lies of bricks in memory (scene.lie): a brick serves a call, and its answer is then wrong in one way, as
 * from a brick of another version, a damaged disk or a hostile peer behind protocol/client, which checks the
 * form of replies only. */
#ifndef KILN_CLUSTER_TEST_LIES_H
#define KILN_CLUSTER_TEST_LIES_H

#include "xlators/cluster/test-children.h"

enum lie {
    LIE_NO_XDATA,
    LIE_NO_DICT,
    LIE_OTHER_GFID,
    LIE_NO_GFID,
    LIE_OTHER_TYPE,
    LIE_ZERO_STAT,     /* all attributes are 0 */
    LIE_HUGE_STAT,     /* all attributes are as large as possible */
    LIE_SHORT,         /* half of the bytes of a READ or WRITE */
    LIE_ERRNO_HUGE,
    LIE_ERRNO_EAGAIN,
    LIE_SUCCESS,       /* a refused call has succeeded, with an empty reply */
    LIE_UNREAD,        /* this process had no memory for the reply */
    LIE_SHORT_XATTRS,  /* each xattr of the reply has three bytes */
    LIE_NUMBER_XATTRS, /* each xattr of the reply is a number */
    LIE_ODD_NAMES,     /* a listing of "", "..", a name with a slash, and names that repeat */
    LIES
};
extern const char *const lie_names[LIES];

/* Lets the child's call number `at` from now on (from 0) be answered with the lie; `times`: and so many
 * further calls. */
void lie_begin(unsigned child, unsigned at, unsigned times, enum lie lie);
/* Ends all lies. Returns whether a lie was told. */
bool lie_end(void);

#endif
