/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* lock-cmd: values of `cmd` in the calls lk, inodelk and entrylk (wire 6.2). A brick answers LK_SET and
 * ENTRYLK_TRY at once. */
#ifndef KILN_STACK_LOCK_CMD_H
#define KILN_STACK_LOCK_CMD_H

/* lk; without LK_GET also inodelk, whose type says whether it locks or unlocks */
enum { LK_GET = 0, LK_SET = 1, LK_SET_WAIT = 2 };
/* entrylk */
enum { ENTRYLK_WAIT = 0, ENTRYLK_UNLOCK = 1, ENTRYLK_TRY = 2 };

#endif
