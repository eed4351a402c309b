/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/disperse/child-options.h"

#include <errno.h>
#include <string.h>

#include "data/option.h"

int
disperse_quorum_check(int64_t value, unsigned count, unsigned data, struct reason *why)
{
    if (value == 0 || (value >= data && value <= count))
        return 0;
    return reason_set(why, -EINVAL, "0, or %u to %u are possible with %u bricks of which %u are redundant",
                      data, count, count, count - data);
}

enum { INDEX_BYTES = 16 }; /* room for the text of an index */

int
disperse_mask_parse(const char *text, unsigned count, unsigned data, child_set *out, struct reason *why)
{
    child_set mask = 0;

    for (const char *at = text; *at; at += *at == ':') {
        size_t len = strcspn(at, ":");
        char part[INDEX_BYTES] = "";
        int64_t index;

        if (!len)
            continue;
        if (len < sizeof part)
            memcpy(part, at, len);
        if (option_int(part, &index))
            return reason_set(why, -EINVAL, "'%.*s' is not a number", (int)(len < 64 ? len : 64), at);
        if (index < 0 || index >= count)
            return reason_set(why, -EINVAL, "%lld is not the index of a brick: 0 to %u are possible",
                              (long long)index, count - 1);
        mask |= CHILD((unsigned)index);
        at += len;
    }
    if (children_count(mask) < data)
        return reason_set(why, -EINVAL, "%u bricks are too few: a read needs %u", children_count(mask), data);
    *out = mask;
    return 0;
}
