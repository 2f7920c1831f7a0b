#!/bin/sh
# Makes the compressed files of this folder from plain.pcap with zstd, pzstd and gzip, and checks that zstd or gzip reads
# each of them. Run it here; the files are kept, so that tests need none of these programs.
set -eu
export LC_ALL=C
head -c 1000 plain.pcap > first
tail -c +1001 plain.pcap > second
skipped() { printf '\120\052\115\030\004\000\000\000skip'; }
seek_table() { printf '\136\052\115\030\011\000\000\000\000\000\000\000\000\261\352\222\217'; }

zstd -q -c plain.pcap > zstd.zst
zstd -q -c --no-check -1 < plain.pcap > no-check-no-size.zst
zstd -q -c --ultra -22 --long=27 plain.pcap > long.zst
zstd -q -c -T2 -B512KB --rsyncable plain.pcap > threads.zst
pzstd -q -p 2 -c plain.pcap > pzstd.zst
{ pzstd -q -p 2 -c first; pzstd -q -p 2 -c second; } > pzstd-concatenated.zst
{ zstd -q -c first; zstd -q -c second; } > concatenated.zst
{ zstd -q -c < /dev/null; zstd -q -c first; zstd -q -c < /dev/null; zstd -q -c second; } > empty-frames.zst
{ skipped; zstd -q -c first; skipped; skipped; zstd -q -c second; skipped; } > skippable-everywhere.zst
{ zstd -q -c first; zstd -q -c second; seek_table; } > seekable.zst
gzip -n -c plain.pcap > gzip.gz
gzip -9 -N -c plain.pcap > named.gz
{ gzip -n -c first; gzip -n -c second; } > concatenated.gz
{ gzip -n -c < /dev/null; gzip -n -c first; gzip -n -c < /dev/null; gzip -n -c second; } > empty-members.gz
gzip -n -c plain.pcap | dd bs=8192 conv=sync status=none > padded-with-zeros.gz
{ zstd -q -c first; gzip -n -c second; } > zstd-then-gzip.zst
{ gzip -n -c first; zstd -q -c second; } > gzip-then-zstd.zst
{ skipped; gzip -n -c first; skipped; zstd -q -c second; } > skippable-gzip-zstd.zst
rm first second

for file in *.zst; do zstd -q -d -c "$file" | cmp - plain.pcap; done
for file in *.gz; do gzip -d -c "$file" | cmp - plain.pcap; done
