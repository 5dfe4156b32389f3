const startedAt = performance.now()

/** One line of progress on stderr, so that stdout stays the command's own. */
export function say(text) {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0).padStart(3)
  process.stderr.write(`setup ${seconds}s  ${text}\n`)
}

/** A failure that the person at the terminal can act on: printed as it stands, without a stack. */
export class SetupError extends Error {}
