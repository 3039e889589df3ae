#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From clone to report: installs what is missing, builds release, tunes the suite `quick` on this
# machine and writes the report. Ends with the summary table and the paths of what it wrote.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source tools/build.sh

tools/dependencies.sh
echo "Building"
configure build-release
ninja -C build-release --quiet product
rnntune=build-release/tuner/rnntune
$rnntune tune suites/quick.json --budget 45
$rnntune report
echo "$PWD/rnntune.db.json"
echo "$PWD/rnntune.journal.jsonl"
