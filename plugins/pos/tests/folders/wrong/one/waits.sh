#!/bin/bash
set -e
pos_sync -t together
