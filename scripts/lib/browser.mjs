/** Installs Chromium for the tests of the console, if no Chromium or Chrome is installed. */
import { existsSync } from 'node:fs'
import { aptInstall, aptKnows, aptUpdate, canUseApt } from './apt.mjs'
import { findProgram, inTurn, run } from './processes.mjs'
import { SetupError, say } from './say.mjs'

/**
 * Browsers in the order of preference. A headless shell renders the same and starts with less around it: the tests of
 * the console take a seventh less processor time.
 */
const NAMES = [
  'chromium-headless-shell',
  'chrome-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chrome',
]
/** Where macOS installs browsers, which are not on the PATH. */
const MAC_PLACES = [
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]
/** Debian's packages in the order of preference; Ubuntu has only the second. */
const PACKAGES = ['chromium-headless-shell', 'chromium']

const INSTRUCTION =
  'No Chromium or Chrome was found, which the tests of the console need, and it cannot be installed from here. Install ' +
  'one (Debian: "apt-get install chromium-headless-shell" as root; Ubuntu: "apt-get install chromium"; macOS: "brew ' +
  'install --cask chromium"), or name its program in CHROMIUM_BINARY. Then run the command again.'

/** The browser that the tests of the console would use, or `undefined`. */
export function findBrowser() {
  return process.env.CHROMIUM_BINARY || findProgram(...NAMES) || MAC_PLACES.find((path) => existsSync(path))
}

/** Installs a browser when none is found. Does nothing when one is. */
export async function ensureBrowser() {
  if (findBrowser()) return
  if (canUseApt()) await installWithApt()
  else if (findProgram('brew')) await inTurn(() => run('brew', ['install', '--cask', 'chromium']))
  if (!findBrowser()) throw new SetupError(INSTRUCTION)
}

async function installWithApt() {
  await aptUpdate()
  for (const name of PACKAGES) {
    if (!(await aptKnows(name))) continue
    say(`no Chromium found: installing ${name} with apt, for the tests of the console (about 100 MB)`)
    return await aptInstall([name])
  }
}
