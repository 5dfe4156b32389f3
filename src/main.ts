#!/usr/bin/env node
/** The entry of the `homeport` command: hands the arguments to `cli/` and ends with its exit code. */
import { runCli } from './cli/index.js'

process.exit(await runCli(process.argv.slice(2)))
