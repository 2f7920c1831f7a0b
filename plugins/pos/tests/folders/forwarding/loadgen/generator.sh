#!/bin/sh
# PORT RATE BYTES MAC: the load generator of this folder.
exec tailtrim-agent generate --interface "$1" --rate "$2" --frame-bytes "$3" --dst-mac "$4" --flows 4 --duration 1s
