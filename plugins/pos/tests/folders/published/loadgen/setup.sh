#!/bin/bash
set -e
REPO=$(pos_get_variable moongen_repo --from-global)
COMMIT=$(pos_get_variable moongen_repo_commit --from-global)
FOLDER=$(pos_get_variable moongen_dir --from-global)

git clone "$REPO" "$FOLDER"
cd "$FOLDER"
git checkout "$COMMIT"
git submodule update --init --recursive
"$FOLDER"/build.sh
"$FOLDER"/bind-interfaces.sh
"$FOLDER"/setup-hugetlbfs.sh
