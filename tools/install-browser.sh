#!/usr/bin/env bash
# The browser that the report's tests need: Debian's chromium, if no Chromium or Chrome is there yet.
# Elsewhere than on Debian and Ubuntu, install one by hand, or name it in $NEWKIND_BROWSER.
set -euo pipefail

for candidate in "${NEWKIND_BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1; then
        exit 0
    fi
done
if [ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "No Chromium was found, and there is no apt-get: the tests in tests/report/test_browser.py will fail." >&2
    echo "Install Chromium or Chrome, or set NEWKIND_BROWSER to its path." >&2
    exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
fi
echo "Installing chromium for the report's browser tests ..."
export DEBIAN_FRONTEND=noninteractive
for attempt in 1 2 3; do
    if "${as_root[@]}" apt-get update -qq >/dev/null 2>&1 &&
        "${as_root[@]}" apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; then
        exit 0
    fi
    sleep $((5 * attempt))
done
echo "chromium could not be installed: the tests in tests/report/test_browser.py will fail." >&2
