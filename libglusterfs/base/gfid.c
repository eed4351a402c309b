/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/gfid.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/random.h>
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

/* ---- random gfids ---------------------------------------------------------------------------- */

/* A system call brings the random bytes of several gfids. Each thread has separate bytes, so no lock is
 * needed. They are few, because a program that loads libgfapi at run time has little room for the variables
 * of threads. A child process drops the bytes that fork() has copied, because the parent uses the same
 * bytes. */
enum { GFIDS_A_READ = 16 };

static __thread struct {
    struct gfid gfids[GFIDS_A_READ];
    unsigned left;
    unsigned forks; /* value of `forks` when the bytes were read */
} drawn;
static atomic_uint forks; /* of which this process is the child */

static void
gfid_note_fork(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void
gfid_watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, gfid_note_fork);
}

/* Returns false if the kernel has no random numbers yet. */
static bool
gfid_draw(void)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;

    pthread_once(&watched, gfid_watch_forks);
    drawn.forks = atomic_load_explicit(&forks, memory_order_relaxed);
    ssize_t n = getrandom(drawn.gfids, sizeof drawn.gfids, GRND_NONBLOCK);
    drawn.left = n > 0 ? (unsigned)((size_t)n / sizeof drawn.gfids[0]) : 0;
    return drawn.left > 0;
}

void
gfid_random(struct gfid *out)
{
    if (drawn.forks != atomic_load_explicit(&forks, memory_order_relaxed))
        drawn.left = 0;
    if (!drawn.left && !gfid_draw()) {
        uuid_generate_random(out->b); /* falls back to other sources */
        return;
    }
    *out = drawn.gfids[--drawn.left];
    out->b[6] = (uint8_t)((out->b[6] & 0x0f) | 0x40); /* version 4 */
    out->b[8] = (uint8_t)((out->b[8] & 0x3f) | 0x80); /* variant of RFC 4122 */
}
