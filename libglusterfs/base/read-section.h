/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* read-section: RCU (liburcu's default flavour), told to ThreadSanitizer.
 *
 * liburcu orders a reader's last access before the return of synchronize_rcu() with membarrier(2), which TSan
 * does not know: it would report every free after a grace period. So in its builds the end of a section is a
 * release and the end of the wait an acquire of one address. That adds an order only between readers and
 * whoever waits, which is the one that is there: two readers that race with each other are still reported. */
#ifndef KILN_BASE_READ_SECTION_H
#define KILN_BASE_READ_SECTION_H

#include <urcu.h>

#if defined(__SANITIZE_THREAD__)
#define READ_SECTION_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define READ_SECTION_TSAN 1
#endif
#endif
#ifdef READ_SECTION_TSAN
#include <sanitizer/tsan_interface.h>
#define READ_SECTION_TELL(what) __tsan_##what((void *)synchronize_rcu) /* any address that all share */
#else
#define READ_SECTION_TELL(what) ((void)0)
#endif

/* Around whatever reads what RCU guards; a thread that is registered with RCU, which nests them as it likes.
 * What was read is valid until the end. */
static inline void
read_section_begin(void)
{
    rcu_read_lock();
}
static inline void
read_section_end(void)
{
    READ_SECTION_TELL(release);
    rcu_read_unlock();
}

/* Every section that is open now has ended when this returns. Not from inside one. */
static inline void
read_sections_wait(void)
{
    synchronize_rcu();
    READ_SECTION_TELL(acquire);
}

#endif
