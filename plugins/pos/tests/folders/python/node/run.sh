#!/bin/sh
set -e
echo "$(pos_get_variable greeting) $(pos_get_variable -l cores)" | tee result.txt
pos_upload -l result.txt
pos_download "result_run$(pos_get_run_number).txt" -o again.txt
cmp result.txt again.txt
