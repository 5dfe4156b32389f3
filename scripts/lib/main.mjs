import { catchSignals, interruptedCode } from './processes.mjs'
import { SetupError } from './say.mjs'

/**
 * Runs the body of a script. A `SetupError` is printed as one sentence and ends the script with code 1. After a signal
 * the body can clean up, and the script ends with code 128 plus the signal's number.
 */
export async function script(body) {
  const releaseSignals = catchSignals()
  try {
    await body()
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    if (interruptedCode() === undefined) process.stderr.write(`error: ${error.message}\n`)
    process.exit(interruptedCode() ?? 1)
  } finally {
    releaseSignals()
  }
  if (interruptedCode() !== undefined) process.exit(interruptedCode())
}
