#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# pools-table.sh DUMP: the memory pools of a kilnd statedump as a table, one line a pool.
#
# In the dump each pool is a section [mempool.N] of key=value lines. Pools without any use are left out. "cached" counts
# the free objects on hot and cold lists; "system" counts the objects that the pool got from its backend.

exec awk -F= '
    function print_pool() {
        if (name != "") {
            shown++
            if (v["gets"] + v["active-count"] > 0)
                printf "  %-22s %7s %8s %8d %10s %10s %9s %8s %7s\n", name, v["sizeof-type"], v["active-count"],
                       v["cached-hot"] + v["cached-cold"], v["gets"], v["hits-hot"], v["hits-cold"], v["hits-depot"],
                       v["system-allocs"]
        }
        name = ""
        delete v
    }
    BEGIN {
        printf "  %-22s %7s %8s %8s %10s %10s %9s %8s %7s\n", "pool", "bytes", "active", "cached", "gets", "hits-hot",
               "hits-cold", "depot", "system"
    }
    /^\[/ { print_pool(); in_pool = /^\[mempool/; next }
    in_pool && $1 == "mode" { mode = $2 }
    in_pool && $1 == "pool-name" { name = $2; next }
    in_pool && NF >= 2 { v[$1] = $2 }
    END {
        print_pool()
        # A sanitizer build, or --pools off: every object is one of malloc, and there is nothing to count.
        if (!shown && mode != "" && mode != "on") { print "  (pools are switched off: mode " mode ")"; exit 0 }
        if (!shown) { print "  (no pools in this dump)"; exit 1 }
    }' "$1"
