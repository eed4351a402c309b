#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# pools-table.sh DUMP: the memory pools of a kilnd statedump as a table, one line a pool.
#
# In the dump each pool is a section [mempool.N] of key=value lines. A pool that was never used is left out.

exec awk -F= '
    function print_pool() {
        if (name != "" && (v["hits-hot"] + v["hits-cold"] + v["misses"] + v["active-count"] > 0 || !counted))
            printf "  %-22s %8s %9s %9s %12s %10s %9s\n", name, v["sizeof-type"], v["active-count"],
                   ("cached-count" in v) ? v["cached-count"] : v["hot-count"] + v["cold-count"],
                   v["hits-hot"], v["hits-cold"], v["misses"]
        shown += name != ""
        name = ""
        counted = 0
        delete v
    }
    BEGIN {
        printf "  %-22s %8s %9s %9s %12s %10s %9s\n", "pool", "bytes", "active", "cached", "hits-hot", "hits-cold",
               "misses"
    }
    /^\[/ { print_pool(); in_pool = /^\[mempool/ ; next }
    in_pool && $1 == "pool-name" { if (name != "") print_pool(); name = $2; next }
    in_pool && NF >= 2 { v[$1] = $2; counted += $1 ~ /^hits-/ }
    END {
        print_pool()
        if (!shown) { print "  (no pools in this dump)"; exit 1 }
    }' "$1"
