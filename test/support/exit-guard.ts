/**
 * Actions that must run even if the process ends without `cleanup()`: a crash of the runner or Ctrl-C in a benchmark.
 * The actions have to be synchronous, because an 'exit' handler cannot wait.
 */
export const onFailedExit = new Set<() => void>()

process.once('exit', () => {
  for (const action of onFailedExit) action()
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
