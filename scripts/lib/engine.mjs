/** Installs the engine, a Valkey or Redis server, if none is installed. */
import { aptInstall, aptKnows, aptUpdate, canUseApt } from './apt.mjs'
import { findProgram, inTurn, run } from './processes.mjs'
import { SetupError, say } from './say.mjs'

const INSTRUCTION =
  'No Valkey or Redis server was found, and it cannot be installed from here. Install one (Debian and Ubuntu: ' +
  '"apt-get install redis-server" as root; macOS: "brew install valkey"; else see the documentation of your system), ' +
  'or name its program in HOMEPORT_ENGINE_BINARY. Then run the command again.'

/** The engine that the server would use, or `undefined`. */
export function findEngine() {
  return process.env.HOMEPORT_ENGINE_BINARY || findProgram('valkey-server', 'redis-server')
}

/** Installs an engine when none is found. Does nothing when one is. */
export async function ensureEngine() {
  if (findEngine()) return
  if (canUseApt()) await installWithApt()
  else if (findProgram('brew')) await installWithBrew()
  if (!findEngine()) throw new SetupError(INSTRUCTION)
  say(`the engine is ${findEngine()}`)
}

async function installWithApt() {
  say('no Valkey or Redis server found: installing one with apt')
  await aptUpdate()
  const name = (await aptKnows('valkey-server')) ? 'valkey-server' : 'redis-server'
  say(`installing ${name} (a few MB); its own service is not started`)
  await aptInstall([name], [name])
}

async function installWithBrew() {
  say('no Valkey or Redis server found: installing valkey with brew')
  const { code } = await inTurn(() => run('brew', ['install', 'valkey']))
  if (code !== 0) throw new SetupError('brew could not install valkey; its output above says why.')
}
