#!/bin/bash
set -e
pos_sync absent
