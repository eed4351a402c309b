/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* zero: clears an object by a call of libc's memset. For a memset (or an initialiser) of known length
 * above 64 bytes gcc 12 makes a string store, whose start alone costs more than the call: 88 bytes take
 * 4.4 ns instead of 1.6, 1720 bytes 16 instead of 8. */
#ifndef KILN_BASE_ZERO_H
#define KILN_BASE_ZERO_H

#include <string.h>

/* Clears `bytes` bytes. thread: the owner of the object. */
static inline void
zero(void *object, size_t bytes)
{
    __asm__("" : "+r"(bytes)); /* hides the value from the compiler */
    memset(object, 0, bytes);
}

#endif
