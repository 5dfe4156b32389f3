import { spawn } from 'node:child_process'

/** Small programs of the operating system. They are the only processes that are not started by `fleet/`. */

/** The program that opens a URL in the browser of the user. */
const OPENER = process.platform === 'darwin' ? 'open' : 'xdg-open'

/**
 * Opens a page in the browser of the user.
 * @returns whether the program for it was found.
 */
export function showPage(url: URL): Promise<boolean> {
  const child = spawn(OPENER, [url.href], { stdio: 'ignore', detached: true })
  return new Promise((resolve) => {
    child.once('error', () => resolve(false))
    child.once('spawn', () => {
      // The browser goes on after this command.
      child.unref()
      resolve(true)
    })
  })
}
