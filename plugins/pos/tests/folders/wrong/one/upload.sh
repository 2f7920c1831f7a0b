#!/bin/bash
set -e
pos_upload no-such-file.pcap
