/** Installs Debian packages without letting them start their services. */
import { existsSync } from 'node:fs'
import { findProgram, inTurn, run } from './processes.mjs'
import { SetupError, say } from './say.mjs'

/**
 * Debian runs this script before a package may start its service. The guard forbids it while this process runs and
 * allows it afterwards, so a guard left behind by a power failure does no harm.
 */
const GUARD = '/usr/sbin/policy-rc.d'
const guardScript = () => `#!/bin/sh
# Homeport's set-up: packages do not start their services while process ${process.pid} installs them.
kill -0 ${process.pid} 2>/dev/null && exit 101
exit 0
`

const isRoot = () => process.getuid?.() === 0

/** Whether packages can be installed with apt here, by this user or through sudo. */
export function canUseApt() {
  return findProgram('apt-get') !== undefined && (isRoot() || findProgram('sudo') !== undefined)
}

/** Runs a command as root. */
function asRoot(command, args, options) {
  return isRoot() ? run(command, args, options) : run('sudo', [command, ...args], options)
}

/** Whether apt can install the package. Packages from backports do not count, because they get security fixes late. */
export async function aptKnows(name) {
  const { code, output } = await run('apt-cache', ['policy', name], { quiet: true, env: { LC_ALL: 'C' } })
  return code === 0 && /Candidate: (?!\(none\)|\S*~bpo)/.test(output)
}

let updated

/** Fetches the package lists, once. */
export function aptUpdate() {
  updated ??= fetchLists()
  return updated
}

async function fetchLists() {
  say('fetching the package lists')
  const { code, output } = await asRoot('apt-get', ['update'], { quiet: true })
  if (code !== 0) process.stderr.write(output)
}

/** Installs packages; their services are neither started now nor at the next boot. */
export function aptInstall(names, services = []) {
  return inTurn(() => install(names, services))
}

async function install(names, services) {
  await aptUpdate()
  const removeGuard = await putGuard()
  try {
    const env = ['DEBIAN_FRONTEND=noninteractive']
    const args = [...env, 'apt-get', 'install', '-y', '--no-install-recommends', ...names]
    const { code, output } = await asRoot('env', args, { quiet: true })
    if (code === 0) return await disable(services)
    process.stderr.write(output)
    throw new SetupError(`apt-get could not install ${names.join(', ')}; its output above says why.`)
  } finally {
    await removeGuard()
  }
}

async function putGuard() {
  // An administrator's own rule stays in force.
  if ((await run('test', ['-e', GUARD])).code === 0) return async () => {}
  const written = await asRoot('tee', [GUARD], { quiet: true, input: guardScript() })
  if (written.code !== 0) throw new SetupError(`${GUARD} cannot be written: ${written.output}`)
  await asRoot('chmod', ['755', GUARD], { quiet: true })
  return async () => void (await asRoot('rm', ['-f', GUARD], { quiet: true, isCleanup: true }))
}

async function disable(services) {
  if (!existsSync('/run/systemd/system')) return
  for (const service of services) await asRoot('systemctl', ['disable', '--now', service], { quiet: true })
}
