/**
 * `npm run test:systemd`: installs the package and the systemd unit on a new Debian as docs/install.md says, boots it with
 * `systemd-nspawn`, and checks the service: it serves when `systemctl` says so, writes no secrets to the journal, restarts
 * after its process was killed, and stops. Needs root on Debian, and takes two minutes.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ensureBuilt } from './lib/compile.mjs'
import { script } from './lib/main.mjs'
import { inProject } from './lib/paths.mjs'
import { run } from './lib/processes.mjs'
import { check, lendNetwork, makeRoot, must, needRoot, runInRoot, visit } from './lib/root-folder.mjs'
import { SetupError, say } from './lib/say.mjs'

const READY_MS = 120_000
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const DATA = 'HOMEPORT_DATA_DIR=/var/lib/homeport'

async function install(root) {
  const packages = ['systemd', 'systemd-sysv', 'dbus', 'ca-certificates', 'valkey-server', 'util-linux']
  await makeRoot(root, { debian: 'trixie', major: 22, packages })
  lendNetwork(root)
  await ensureBuilt()
  await must('npm', ['pack', '--ignore-scripts', '--pack-destination', join(root, 'opt')], { cwd: inProject('.') })
  const flags = '--global --prefix /usr/local --omit=optional'
  await runInRoot(root, `npm install ${flags} /opt/homeport-*.tgz`, { env: { PATH } })
  cpSync(inProject('deploy/systemd/homeport.service'), join(root, 'etc/systemd/system/homeport.service'))
  await runInRoot(root, 'systemctl disable valkey-server && systemctl enable homeport', { env: { PATH } })
}

/** A booted machine. */
class Machine {
  constructor(root) {
    const args = ['--quiet', '--boot', '--register=no', '--keep-unit', '--private-network', '--directory', root]
    this.child = spawn('systemd-nspawn', args, { stdio: 'ignore' })
    this.ended = once(this.child, 'exit')
  }

  /** The id of the machine's first process, outside of the machine. */
  get first() {
    return readFileSync(`/proc/${this.child.pid}/task/${this.child.pid}/children`, 'utf8').trim().split(' ').at(-1)
  }

  /** Runs a command in the machine as root. */
  exec(command) {
    const env = ['env', '-i', `PATH=${PATH}`, 'HOME=/root', DATA]
    return run('nsenter', ['-t', this.first, '-a', ...env, ...command], { quiet: true })
  }

  async property(name) {
    const { output } = await this.exec(['systemctl', 'show', 'homeport', '--property', name, '--value'])
    return output.trim()
  }

  async until(what, test) {
    const end = Date.now() + READY_MS
    while (Date.now() < end && this.child.exitCode === null) {
      if (await test().catch(() => false)) return say(`ok: ${what}`)
      await pause(300)
    }
    const { output } = await this.exec(['journalctl', '--unit', 'homeport', '--no-pager'])
    throw new SetupError(`expected: ${what}; the journal says:\n${output.slice(-4000)}`)
  }

  async end() {
    if (this.child.exitCode !== null) return
    await this.exec(['systemctl', 'poweroff'])
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 20_000)
    await this.ended
    clearTimeout(timer)
  }
}

async function tryUnit(machine) {
  const isActive = async () => (await machine.property('ActiveState')) === 'active'
  await machine.until('systemctl says that the service is active', isActive)
  await visit((command) => machine.exec(command), 1)
  const { output: journal } = await machine.exec(['journalctl', '--unit', 'homeport', '--no-pager'])
  check(journal.includes('homeport env') && !journal.includes('API_KEY='), 'the journal has no credentials', journal)
  const killed = await machine.property('MainPID')
  await machine.exec(['sh', '-c', `kill -KILL ${killed}`])
  const isBack = async () => (await machine.property('NRestarts')) === '1' && (await isActive())
  await machine.until('systemd starts a killed server again', isBack)
  await visit((command) => machine.exec(command), 2)
  await machine.exec(['systemctl', 'stop', 'homeport'])
  const ended = [await machine.property('ActiveState'), await machine.property('Result')]
  check(ended.join() === 'inactive,success', 'systemctl stop ends it in order', ended)
}

await script(async () => {
  await needRoot('systemd-container')
  const work = mkdtempSync(join(tmpdir(), 'homeport-systemd-'))
  const root = join(work, 'root')
  try {
    await install(root)
    const machine = new Machine(root)
    try {
      await tryUnit(machine)
    } finally {
      await machine.end()
    }
    process.stdout.write('the systemd unit starts, serves, restarts and stops\n')
  } finally {
    rmSync(work, { recursive: true, force: true, maxRetries: 5 })
  }
})
