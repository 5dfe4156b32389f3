import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { pathOfProcess } from '../config/index.js'

/** Starts small programs of the operating system; `fleet/` starts all other processes. */

/** The program that opens a URL in the browser of the user. */
const OPENER = process.platform === 'darwin' ? 'open' : 'xdg-open'

/**
 * Opens a page in the browser of the user.
 * @returns whether the program for it was found.
 */
export function openInBrowser(url: URL): Promise<boolean> {
  const child = spawn(OPENER, [url.href], { stdio: 'ignore', detached: true })
  return new Promise((resolve) => {
    child.once('error', () => resolve(false))
    child.once('spawn', () => {
      // The browser keeps running after this command.
      child.unref()
      resolve(true)
    })
  })
}

/**
 * Runs a program without output and waits for its end. It is found by the `PATH` of this process.
 * @returns why it failed, as the end of a sentence; undefined after success.
 */
export async function runToEnd(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  try {
    const child = spawn(program, args, { stdio: 'ignore', env: { ...env, ...pathOfProcess() } })
    const [code, signal] = await once(child, 'exit')
    if (signal) return `was ended by ${signal}`
    return code === 0 ? undefined : `has failed with code ${code}`
  } catch (error) {
    // Node throws some system errors, such as ENOMEM, and emits others as events.
    return `cannot be run (${error instanceof Error ? error.message : String(error)})`
  }
}
