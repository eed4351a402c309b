/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Scripts for shells, from the table of verbs. Names of volumes are asked for when they are completed. */
#include <stdio.h>
#include <string.h>

#include "cli/kiln.h"

static void
put_words(void)
{
    for (const struct verb *v = verbs; v->name; v++)
        printf("%s ", v->name);
    printf("help");
}

/* Verbs whose first argument is a volume, as alternatives of a case. */
static void
put_volume_verbs(void)
{
    bool is_first = true;

    for (const struct verb *v = verbs; v->name; v++) {
        if (strncmp(v->args, "NAME", 4) != 0 && strncmp(v->args, "[NAME]", 6) != 0)
            continue;
        if (strcmp(v->name, "create") == 0)
            continue;
        printf("%s%s", is_first ? "" : "|", v->name);
        is_first = false;
    }
}

static void
put_bash(void)
{
    printf("_kiln() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} i=1\n"
           "    local -a words=()\n"
           "    while [[ ${COMP_WORDS[i]} == -* && $i -lt $COMP_CWORD ]]; do i=$((i + 1)); done\n"
           "    [[ ${COMP_WORDS[i]} != volume || $i -ge $COMP_CWORD ]] || i=$((i + 1))\n"
           "    if [[ $i -ge $COMP_CWORD ]]; then\n"
           "        words=(volume ");
    put_words();
    printf(")\n"
           "    elif [[ $((i + 1)) -eq $COMP_CWORD ]]; then\n"
           "        case ${COMP_WORDS[i]} in\n"
           "        ");
    put_volume_verbs();
    printf(") mapfile -t words < <(kiln list 2>/dev/null) ;;\n"
           "        completion) words=(bash zsh) ;;\n"
           "        esac\n"
           "    fi\n"
           "    mapfile -t COMPREPLY < <(compgen -W \"${words[*]}\" -- \"$word\")\n"
           "}\n"
           "complete -o default -F _kiln kiln\n");
}

/* Works as a file of zsh's $fpath, which is run as the function at its first use, and when it is sourced. */
static void
put_zsh(void)
{
    printf("#compdef kiln\n"
           "_kiln() {\n"
           "    local i=2\n"
           "    while (( i < CURRENT )) && [[ $words[i] == -* ]]; do (( i++ )); done\n"
           "    (( i < CURRENT )) && [[ $words[i] == volume ]] && (( i++ ))\n"
           "    if (( i == CURRENT )); then\n"
           "        compadd -- volume ");
    put_words();
    printf("\n"
           "    elif (( i + 1 == CURRENT )); then\n"
           "        case $words[i] in\n"
           "        (");
    put_volume_verbs();
    printf(") compadd -- ${(f)\"$(kiln list 2>/dev/null)\"} ;;\n"
           "        (completion) compadd bash zsh ;;\n"
           "        (*) _files ;;\n"
           "        esac\n"
           "    else\n"
           "        _files\n"
           "    fi\n"
           "}\n"
           "if [[ $funcstack[1] == _kiln ]]; then _kiln \"$@\"; else compdef _kiln kiln; fi\n");
}

int
completion(const struct verb *v, int argc, char **argv)
{
    (void)argc;
    if (strcmp(argv[0], "bash") == 0)
        put_bash();
    else if (strcmp(argv[0], "zsh") == 0)
        put_zsh();
    else
        return usage(v, "'%s': expected bash or zsh", argv[0]);
    return KILN_DONE;
}
