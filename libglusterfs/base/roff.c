/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/roff.h"

static void
put_escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, *text == '-' ? "\\-" : "%c", *text);
}

void
roff_text(FILE *out, const char *text)
{
    put_escaped(out, text);
    putc('\n', out);
}

/* The names of an option in bold, and its value in italics, as `--name=VALUE`. */
static void
put_heading(FILE *out, const char *name, const char *alias, int letter, const char *arg, bool arg_may_lack)
{
    char dashed[128];

    if (letter) {
        fprintf(out, "\\fB\\-%c\\fR", letter);
        if (arg)
            fprintf(out, " \\fI%s\\fR", arg);
        fprintf(out, ", ");
    }
    for (int i = 0; i < (alias ? 2 : 1); i++) {
        snprintf(dashed, sizeof dashed, "--%s", i ? alias : name);
        fprintf(out, "%s\\fB", i ? ", " : "");
        put_escaped(out, dashed);
        if (!arg)
            fprintf(out, "\\fR");
        else
            fprintf(out, arg_may_lack ? "\\fR[\\fB=\\fI%s\\fR]" : "=\\fI%s\\fR", arg);
    }
    putc('\n', out);
}

void
roff_option(FILE *out, const char *name, const char *alias, int letter, const char *arg, bool arg_may_lack,
            const char *text)
{
    fprintf(out, ".TP\n");
    put_heading(out, name, alias, letter, arg, arg_may_lack);
    roff_text(out, text);
}

void
roff_help_option(FILE *out)
{
    roff_text(out, ".TP\n.BR -? \", \" --help \", \" --usage \", \" -V \", \" --version\n"
                   "Print the options, or the version.");
}

void
roff_begin(FILE *out, const char *part)
{
    fprintf(out, ".\\\" begin: %s, by tests/check/manuals --write\n", part);
}

void
roff_end(FILE *out, const char *part)
{
    fprintf(out, ".\\\" end: %s\n", part);
}
