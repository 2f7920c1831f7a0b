#!/bin/bash
# The node dies: process 1 ends all others.
sleep 1
kill -KILL -1
sleep 0.1
exit 3
