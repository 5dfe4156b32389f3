/** Installs Chromium for the tests of the console, if no Chromium or Chrome is installed. */
import { existsSync } from 'node:fs'
import { aptInstall, canUseApt } from './apt.mjs'
import { findProgram, inTurn, run } from './processes.mjs'
import { SetupError, say } from './say.mjs'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']
/** Where macOS installs browsers, which are not on the PATH. */
const MAC_PLACES = [
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

const INSTRUCTION =
  'No Chromium or Chrome was found, which the tests of the console need, and it cannot be installed from here. Install ' +
  'one (Debian and Ubuntu: "apt-get install chromium" as root; macOS: "brew install --cask chromium"), or name its ' +
  'program in CHROMIUM_BINARY. Then run the command again.'

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
  say('no Chromium found: installing it with apt, for the tests of the console (about 100 MB)')
  await aptInstall(['chromium'])
}
