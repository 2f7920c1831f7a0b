#!/bin/sh
# Puts the programs that cargo compiled into a virtual environment, together with the package of this checkout.
#
#   environment.sh VENV PRODUCTS PACKAGES    PRODUCTS: where cargo left native module and agent;
#                                            PACKAGES: the folder from which the environment imports `tailtrim`: python
#                                            itself, or another one, which gets links to it
set -eu
cd "$(dirname "$0")/.."

venv=$1 products=$2 packages=$PWD/$3
if [ "$3" != python ]; then
    rm -rf "$packages"
    mkdir -p "$(dirname "$packages")"
    cp -rs "$PWD/python" "$packages"
    rm -f "$packages"/tailtrim/*.so
fi
# A running program keeps the old file.
install -m 644 "$products/lib_native.so" "$packages/tailtrim/_native.part"
mv "$packages/tailtrim/_native.part" "$packages/tailtrim/_native.abi3.so"
# Debug information is most of it, and stays with cargo.
strip --strip-debug -o "$venv/bin/tailtrim-agent.part" "$products/tailtrim-agent"
mv "$venv/bin/tailtrim-agent.part" "$venv/bin/tailtrim-agent"
echo "$packages" >"$(echo "$venv"/lib/python3.*/site-packages)/tailtrim.pth"
# Their entry points: again where one changed.
if [ -n "$(find plugins/*/pyproject.toml -newer "$venv/plugins.stamp" 2>&1)" ]; then
    for plugin in plugins/*/; do
        "$venv/bin/pip" install --quiet --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --editable "$plugin"
    done
    touch "$venv/plugins.stamp"
fi
cat >"$venv/bin/tailtrim" <<END
#!$PWD/$venv/bin/python
from tailtrim.cli import main

main()
END
chmod +x "$venv/bin/tailtrim"
