const startedAt = performance.now()

/** Prints one line of progress on stderr, so that stdout has only the output of the command. */
export function say(text) {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0).padStart(3)
  process.stderr.write(`setup ${seconds}s  ${text}\n`)
}

/** A failure that the person at the terminal can fix. Only its message is printed, without a stack. */
export class SetupError extends Error {}
