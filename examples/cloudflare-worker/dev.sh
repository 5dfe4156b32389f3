# Runs the worker on this machine with the variables of `homeport env`, which it gets as bindings.
# `.dev.vars` is not for git: it holds credentials.
printenv | grep -E '^(QSTASH|UPSTASH)_|^APP_URL=' > .dev.vars
exec npx wrangler dev --local --ip 127.0.0.1 --port "${PORT:-3000}"
