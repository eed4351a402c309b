#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# harness.pl COUNTS JOBS SECONDS SCRIPT...: what prove(1) does, with a time limit for each script and with the counts
# written to the file COUNTS as `passed failed`. A script that broke its plan, ended badly or was cut short counts as
# one failure more.
use strict;
use warnings;
use TAP::Harness;

my ($counts, $jobs, $seconds, @scripts) = @ARGV;
my $harness = TAP::Harness->new({
    jobs   => $jobs,
    timer  => 1,
    color  => -t STDOUT ? 1 : 0,
    failures => 1,
    comments => 1,
    exec   => ['timeout', '--kill-after=10', $seconds],
    verbosity => 0,
});
my $all = $harness->runtests(@scripts);
my ($passed, $failed) = (scalar $all->passed, scalar $all->failed);
for my $parser ($all->parsers) {
    my $broken = $parser->exit != 0 && !$parser->failed;
    $failed++ if $parser->parse_errors || $broken;
}
open(my $file, '>', $counts) or die "$counts: $!\n";
print $file "$passed $failed\n";
close($file) or die "$counts: $!\n";
exit($failed ? 1 : 0);
