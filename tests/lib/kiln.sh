# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Everything that a test script needs: `. "$(dirname "$0")/../lib/kiln.sh"` is the first line of each script.

# --help: the comment at the head of the calling script
[[ ${1:-} != --help ]] || { sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }

export PYTHONDONTWRITEBYTECODE=1 # the scripts of a folder run beside others, and leave the tree as it is
kiln_lib=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
at_end=()
. "$kiln_lib/tap.sh"
. "$kiln_lib/wait.sh"
. "$kiln_lib/sandbox.sh"
. "$kiln_lib/place.sh"
. "$source_dir/extras/volfile.sh"
. "$source_dir/extras/client-state.sh"
. "$kiln_lib/volume.sh"
. "$kiln_lib/brick.sh"
. "$kiln_lib/dump.sh"
. "$kiln_lib/proc.sh"
. "$kiln_lib/glusterd.sh"
. "$kiln_lib/twins.sh"
. "$kiln_lib/front.sh"
