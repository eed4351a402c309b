#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Makes the manual page kiln-metrics(7) of doc/metrics.md:  extras/metrics-page.sh doc/metrics.md >kiln-metrics.7
#
# It knows what that file uses: headings, paragraphs, lists of "- ", blocks of four blanks, tables of three columns, `code` and links.
set -euo pipefail
perl -ne '
    sub text {
        my ($s) = @_;
        $s =~ s/\\/\\e/g;
        $s =~ s/\[([^]]*)\]\([^)]*\)/$1/g;
        $s =~ s/-/\\-/g;
        $s =~ s/`([^`]*)`/\\fB$1\\fR/g;
        $s =~ s/^([.\x27])/\\&$1/;
        return $s;
    }
    sub code_ends { print ".fi\n.in\n.PP\n" if $is_code; $is_code = 0 }
    BEGIN {
        print ".\\\" SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later\n";
        print ".TH KILN\\-METRICS 7 \"2026-11-22\" \"Kiln 0.1.0\" \"System administration\"\n";
        print ".SH NAME\nkiln\\-metrics \\- what kilnd measures\n.SH DESCRIPTION\n";
    }
    chomp;
    if (/^# / || /^\| family / || /^\|-/) {
    } elsif (/^## (.*)/) {
        code_ends();
        print ".SH ", uc text($1), "\n";
        $is_fresh = 1;
    } elsif (/^    (.*)/) {
        print ".PP\n.in +4n\n.nf\n" unless $is_code;
        $is_code = 1;
        print text($1), "\n";
    } elsif (/^\| (.*?) \| (.*?) \| (.*?) \|$/) {
        print ".TP\n", text($1), " (", text($2), ")\n", text($3), "\n";
    } elsif (/^$/) {
        $is_break = 1;
        next;
    } else {
        code_ends();
        if (/^- (.*)/) {
            print ".IP \\(bu 2\n", text($1), "\n";
        } else {
            print ".PP\n" if $is_break && !$is_fresh;
            print text(s/^  //r), "\n";
        }
        $is_fresh = 0;
    }
    $is_break = 0;
    END { code_ends(); print ".SH SEE ALSO\n.BR kilnd (8),\n.BR kiln (8)\n" }
' "$1"
