# Hashes of lists, strings that are joined and split, sorting.
use strict;
use warnings;

srand(5);
my %lists;
for my $i (1 .. 100_000) {
    push @{ $lists{ "key" . int(rand(25_000)) } }, "value $i " x (1 + $i % 4);
    delete $lists{ "key" . int(rand(25_000)) } if $i % 3 == 0;
}
my $text = join(",", map { join("|", @{ $lists{$_} }) } sort keys %lists);
my %count;
$count{$_}++ for split /[,| ]/, $text;
my @turned = sort map { reverse $_ } keys %count;
print scalar(@turned), " ", length($text), "\n";
