/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/rights.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    unsigned number;
    const char *name;
} wanted[] = {
    {CAP_CHOWN, "CAP_CHOWN"},               /* new objects get the client's user as their owner */
    {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"}, /* access-control checks permissions, not the kernel */
    {CAP_FOWNER, "CAP_FOWNER"},             /* modes, times, xattrs of other users' files */
    {CAP_FSETID, "CAP_FSETID"},             /* set-gid stays where the client has set it */
    {CAP_MKNOD, "CAP_MKNOD"},               /* device files */
    {CAP_SETFCAP, "CAP_SETFCAP"},           /* security.capability */
    {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},       /* trusted.* xattrs */
};

bool
rights_are_enough(char *missing, size_t size)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3] = {0};
    size_t len = 0;

    /* fails for versions that the kernel does not know; version 3 is of 2.6.26 */
    if (syscall(SYS_capget, &head, has) < 0)
        memset(has, 0, sizeof has);
    missing[0] = '\0';
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && len < size; i++) {
        if (!(has[CAP_TO_INDEX(wanted[i].number)].effective & CAP_TO_MASK(wanted[i].number)))
            len += (size_t)snprintf(missing + len, size - len, "%s%s", len ? " " : "", wanted[i].name);
    }
    return len == 0;
}
