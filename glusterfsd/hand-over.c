/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Where Kiln stands in the place of /usr/sbin/glusterfsd, glusterd and scripts start that program for other
 * things than bricks, too: the snapshot daemon, the proxy, `glusterfsd --version`. The stock program does
 * these (management 1.1). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "glusterfsd/kilnd.h"

/* extras/use-kiln.sh makes this link to the stock file, so that the process is called glusterfsd as
 * always. */
#define STOCK_PROGRAM "/usr/libexec/kiln/glusterfsd"

static bool
is_called_glusterfsd(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strncmp(slash ? slash + 1 : path, "glusterfsd", 10) == 0;
}

static bool
is_brick(char *const *argv)
{
    for (; *argv; argv++) {
        if (strcmp(*argv, "--process-name=brick") == 0)
            return true;
        if (strcmp(*argv, "--process-name") == 0 && argv[1] && strcmp(argv[1], "brick") == 0)
            return true;
    }
    return false;
}

void
hand_over_to_stock(char **argv)
{
    if (!argv[0] || !is_called_glusterfsd(argv[0]) || is_brick(argv))
        return;
    execv(STOCK_PROGRAM, argv);
    fprintf(stderr, "%s: not a brick, and the stock program cannot be run: %s: %s\n", argv[0], STOCK_PROGRAM,
            strerror(errno));
    exit(127);
}
