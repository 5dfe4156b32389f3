import { ensureBuilt } from './compile.mjs'
import { ensureEngine } from './engine.mjs'
import { ensurePackages } from './packages.mjs'
import { together } from './processes.mjs'
import { SetupError } from './say.mjs'

const OLDEST_NODE = [20, 19]

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const [needMajor, needMinor] = OLDEST_NODE
  if (major > needMajor || (major === needMajor && minor >= needMinor)) return
  const needed = OLDEST_NODE.join('.')
  throw new SetupError(`Homeport needs Node ${needed} or later, this is ${process.versions.node}. Install a newer one.`)
}

/**
 * Installs and builds what is missing; fast if nothing is. `packages` is `run` for the packages of the server, or `all`.
 * `meanwhile` needs the packages, but neither the SQLite driver nor the engine.
 */
export async function setUp({ packages = 'all', build = true, meanwhile = async () => {} } = {}) {
  checkNode()
  const afterPackages = () => together(meanwhile, build ? ensureBuilt : async () => {})
  await together(ensureEngine, () => ensurePackages(packages, afterPackages))
}
