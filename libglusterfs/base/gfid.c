/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/gfid.h"

#include <errno.h>
#include <uuid/uuid.h>

const struct gfid gfid_root = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
const struct gfid gfid_null;

char *
gfid_text(const struct gfid *g, char text[GFID_TEXT_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    char *p = text;

    for (int i = 0; i < GFID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = hex[g->b[i] >> 4];
        *p++ = hex[g->b[i] & 15];
    }
    *p = '\0';
    return text;
}

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int
gfid_parse(const char *text, size_t len, struct gfid *out)
{
    struct gfid g;
    const char *p = text;

    if (len != GFID_TEXT_SIZE - 1)
        return -EINVAL;
    for (int i = 0; i < GFID_BYTES; i++) {
        if ((i == 4 || i == 6 || i == 8 || i == 10) && *p++ != '-')
            return -EINVAL;
        int high = hex_digit(*p++), low = hex_digit(*p++);
        if (high < 0 || low < 0)
            return -EINVAL;
        g.b[i] = (uint8_t)(high << 4 | low);
    }
    *out = g;
    return 0;
}

void
gfid_random(struct gfid *out)
{
    /* libuuid falls back to other sources when the kernel has no random numbers yet */
    uuid_generate_random(out->b);
}
