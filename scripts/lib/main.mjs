import { catchSignals, interruptedCode } from './processes.mjs'
import { SetupError } from './say.mjs'

/**
 * Runs the body of a script. A `SetupError` is printed as one sentence and ends with code 1; a signal lets the body
 * undo what it has under way and ends with 128 and the signal's number.
 */
export async function script(body) {
  const giveSignalsBack = catchSignals()
  try {
    await body()
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    if (interruptedCode() === undefined) process.stderr.write(`error: ${error.message}\n`)
    process.exit(interruptedCode() ?? 1)
  } finally {
    giveSignalsBack()
  }
  if (interruptedCode() !== undefined) process.exit(interruptedCode())
}
