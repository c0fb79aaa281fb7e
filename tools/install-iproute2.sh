#!/usr/bin/env bash
# The command `ip`, with which tests/cli/test_two_machines.py makes two machines: Debian's iproute2, if it is not there yet.
# Without it, or without the rights of root, that test is skipped.
set -euo pipefail

if [ "$(uname)" != Linux ] || [ "$(id -u)" -ne 0 ] || command -v ip >/dev/null 2>&1; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "There is no command ip, and no apt-get: tests/cli/test_two_machines.py will be skipped." >&2
    exit 0
fi
echo "Installing iproute2 for the test of two machines ..."
export DEBIAN_FRONTEND=noninteractive
for attempt in 1 2 3; do
    if apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq --no-install-recommends iproute2 >/dev/null; then
        exit 0
    fi
    sleep $((5 * attempt))
done
echo "iproute2 could not be installed: tests/cli/test_two_machines.py will be skipped." >&2
