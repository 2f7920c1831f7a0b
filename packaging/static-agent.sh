#!/usr/bin/env bash
# Calls rustc, and links the agent statically: it is copied to hosts and guests with other libraries. Cargo has no flags for one
# program alone, and flags for all would compile every dependency twice, for the agent and for the native module.
# By bash: dash drops variables such as CARGO_BIN_EXE_tailtrim-agent.
case " $* " in
*" --crate-name tailtrim_agent "*" --crate-type bin "*) set -- "$@" -C target-feature=+crt-static ;;
esac
exec "$@"
