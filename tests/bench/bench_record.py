# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The folder for the figures of --record, which git ignores. Figures to claim are copied from there into
RESULTS.md by hand."""
import os

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "bench-results")


def path_of(name):
    os.makedirs(FOLDER, exist_ok=True)
    return os.path.join(FOLDER, name)
