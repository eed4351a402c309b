#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# harness.pl COUNTS JOBS SECONDS AGAIN SCRIPT...: works like prove(1), with a time limit for each script and with the
# counts written to the file COUNTS as `passed failed`. A script that broke its plan, ended badly or was cut short counts
# as one more failure. At most AGAIN scripts that failed beside other scripts run once more, each alone. A script that
# passes then is named as unsteady; its first output is printed before. After more than AGAIN failures no script is
# repeated.
use strict;
use warnings;
use TAP::Harness;

my ($counts, $jobs, $seconds, $again, @scripts) = @ARGV;

sub run {
    my ($at_once, @which) = @_;
    my $harness = TAP::Harness->new({
        jobs   => $at_once,
        timer  => 1,
        color  => -t STDOUT ? 1 : 0,
        failures => 1,
        comments => 1,
        exec   => ['timeout', '--kill-after=10', $seconds],
        verbosity => 0,
    });
    return $harness->runtests(@which);
}

sub failures {
    my ($parser) = @_;
    my $broken = $parser->exit != 0 && !$parser->failed;
    return scalar($parser->failed) + ($parser->parse_errors || $broken ? 1 : 0);
}

my $all = run($jobs, @scripts);
my %of = map { $_ => ($all->parsers($_))[0] } @scripts;
my @bad = grep { failures($of{$_}) } @scripts;
my @unsteady;
if (@bad && @bad <= $again) {
    print "once more, alone: @bad\n";
    for my $script (@bad) {
        my $parser = (run(1, $script)->parsers($script))[0];
        next if failures($parser);
        push @unsteady, $script;
        $of{$script} = $parser;
    }
}
my ($passed, $failed) = (0, 0);
for my $parser (values %of) {
    $passed += scalar $parser->passed;
    $failed += failures($parser);
}
print "unsteady: $_ failed beside others and passed alone; see its first output above\n" for @unsteady;
open(my $file, '>', $counts) or die "$counts: $!\n";
print $file "$passed $failed\n";
close($file) or die "$counts: $!\n";
exit($failed ? 1 : 0);
