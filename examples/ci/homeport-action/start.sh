#!/usr/bin/env bash
# Starts `homeport` for the rest of a job, and writes the variables of `homeport env` to $GITHUB_ENV.
set -euo pipefail

export HOMEPORT_DATA_DIR="${HOMEPORT_DATA_DIR:-${RUNNER_TEMP:?}/homeport}"
log="$RUNNER_TEMP/homeport.log"
health="http://127.0.0.1:${HOMEPORT_API_PORT:-8700}/health"

nohup homeport start > "$log" 2>&1 &
server=$!
until curl --fail --silent --output /dev/null "$health"; do
  if ! kill -0 "$server" 2> /dev/null; then
    echo "Homeport has ended:" >&2
    cat "$log" >&2
    exit 1
  fi
  sleep 0.2
done

eval "$(homeport env)"
printenv | grep -E '^(HOMEPORT|QSTASH)_' >> "$GITHUB_ENV"
echo "Homeport serves at $HOMEPORT_API_URL; its log is in $log."
