#!/usr/bin/env node
/** The entry point of the `homeport` command: passes the arguments to `cli/` and exits with its exit code. */
import { runCli } from './cli/index.js'

process.exit(await runCli(process.argv.slice(2)))
