#!/bin/bash
pos_sync
pos_sync
