/**
 * `npm run test:image`: builds and runs the image of the Dockerfile without a container engine. It carries out the same
 * steps in folders made by `debootstrap`, then starts the entry point in namespaces of its own: read-only root file system,
 * one volume, no capabilities, the image's user, a network with nothing but loopback. Needs root on Debian, and takes two to
 * five minutes.
 *
 * What it does not show: that Docker's own parser accepts the file, and that the base image of the registry is like ours.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { readDockerfile } from './lib/dockerfile.mjs'
import { script } from './lib/main.mjs'
import { inProject } from './lib/paths.mjs'
import { run } from './lib/processes.mjs'
import { assignments, check, lendNetwork, makeRoot, must, needRoot, runInRoot, visit } from './lib/root-folder.mjs'
import { SetupError, say } from './lib/say.mjs'

const READY_MS = 120_000
const STOP_MS = 60_000

/** Copies the build context: the files that git tracks or would add, except those that `.dockerignore` names. */
async function copyContext(target) {
  const ignored = readFileSync(inProject('.dockerignore'), 'utf8').split('\n').filter(Boolean)
  const isIgnored = (file) => ignored.some((name) => file === name || file.startsWith(`${name}/`))
  const files = await must('git', ['ls-files', '-co', '--exclude-standard'], { cwd: inProject('.') })
  for (const file of files.split('\n').filter((name) => name && !isIgnored(name))) {
    mkdirSync(dirname(join(target, file)), { recursive: true })
    cpSync(inProject(file), join(target, file))
  }
}

const withPath = (value, env) => value.replaceAll(/\$(\w+)/g, (_, name) => env[name] ?? '')

async function buildStage(stage, stages, root) {
  lendNetwork(root)
  const state = { env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }, workdir: '/' }
  for (const step of stage.steps) {
    mkdirSync(join(root, state.workdir), { recursive: true })
    if (step.kind === 'env') for (const [name, value] of step.pairs) state.env[name] = withPath(value, state.env)
    else if (step.kind === 'run') await runInRoot(root, step.command, state)
    else if (step.kind === 'workdir') state.workdir = step.path
    else if (step.from) await must('cp', ['-a', join(stages.get(step.from), step.source), join(root, step.target)])
    else await copyContext(join(root, state.workdir, step.target))
  }
  mkdirSync(join(root, state.workdir), { recursive: true })
  return state
}

/** The Node and Debian versions of the base image. */
function baseOf(image) {
  const [, major, debian] = /^node:(\d+)-(\w+)-slim$/.exec(image) ?? []
  if (!major)
    throw new SetupError(`Dockerfile: the base image is ${image}; this program can make node:<major>-<debian>-slim.`)
  return { major, debian }
}

/** Builds all stages; resolves with the last one, its root folder and its environment. */
async function buildImage(work) {
  const stages = readDockerfile(readFileSync(inProject('Dockerfile'), 'utf8'))
  const roots = new Map()
  const bases = new Map()
  let built
  for (const [index, stage] of stages.entries()) {
    if (!bases.has(stage.image)) {
      bases.set(stage.image, join(work, `base-${bases.size}`))
      await makeRoot(bases.get(stage.image), baseOf(stage.image))
    }
    const root = join(work, `stage-${index}`)
    await must('cp', ['-a', bases.get(stage.image), root])
    roots.set(stage.name ?? String(index), root)
    built = { ...stage, ...(await buildStage(stage, roots, root)), root }
  }
  return built
}

/** Makes the sandbox of `deploy/compose.yaml`, then runs the entry point in it as its first process. */
const SANDBOX = `
ip link set lo up
mount --bind "$ROOT" "$ROOT"
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount -t tmpfs tmpfs "$ROOT/tmp"
mount --bind "$DATA" "$ROOT$VOLUME"
mount -o remount,bind,ro "$ROOT"
ulimit -n 65536 2>/dev/null || true
exec setpriv --bounding-set=-all,+sys_chroot,+setuid,+setgid --no-new-privs \\
  chroot --userspec="$IDS" "$ROOT" env -i "$@"
`

/** A running container. */
class Container {
  constructor(image, ids, child) {
    this.image = image
    this.ids = ids
    this.child = child
    this.ended = once(child, 'exit')
    this.output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk) => (this.output += chunk))
  }

  static start(image, data, ids) {
    const env = { ...image.env, HOME: image.volume }
    const first = [...assignments(env), 'sh', '-c', `cd ${image.workdir} && exec "$@"`, 'sh']
    const args = ['--mount', '--pid', '--net', '--ipc', '--fork', '--kill-child', 'sh', '-ec', SANDBOX, 'sh']
    const child = spawn('unshare', [...args, ...first, ...image.entrypoint, ...image.command], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH, ROOT: image.root, DATA: data, VOLUME: image.volume, IDS: ids.join(':') },
    })
    return new Container(image, ids, child)
  }

  /** The id of the container's first process, outside of the container. */
  get first() {
    return Number(readFileSync(`/proc/${this.child.pid}/task/${this.child.pid}/children`, 'utf8').trim())
  }

  /** Runs a command in the container, as `docker exec` does. */
  exec(command) {
    const [uid, gid] = this.ids
    const into = ['-t', String(this.first), '-m', '-p', '-n', '-i', '-r', '-w', '-S', String(uid), '-G', String(gid)]
    const env = assignments({ ...this.image.env, HOME: this.image.volume })
    return run('nsenter', [...into, 'env', '-i', ...env, ...command], { quiet: true })
  }

  async untilHealthy() {
    const end = Date.now() + READY_MS
    while (Date.now() < end && this.child.exitCode === null) {
      if ((await this.exec(this.image.healthCheck)).code === 0) return
      await pause(500)
    }
    throw new SetupError(`the health check did not succeed; the container said:\n${this.output.slice(-4000)}`)
  }

  /** Sends the stop signal to the first process; resolves with the exit code. */
  async stop() {
    process.kill(this.first, this.image.stopSignal)
    const timer = setTimeout(() => this.child.kill('SIGKILL'), STOP_MS)
    const [code] = await this.ended
    clearTimeout(timer)
    return code
  }
}

async function tryImage(image, work) {
  const ids = ['-u', '-g'].map((flag) => run('chroot', [image.root, 'id', flag, image.user], { quiet: true }))
  const [uid, gid] = (await Promise.all(ids)).map(({ output }) => Number(output))
  const data = join(work, 'volume')
  await must('install', ['-d', '-o', String(uid), '-g', String(gid), '-m', '0700', data])
  for (const number of [1, 2]) {
    const container = Container.start(image, data, [uid, gid])
    try {
      await container.untilHealthy()
      say('the health check succeeds')
      await visit((command) => container.exec(command), number)
      const write = await container.exec(['sh', '-c', 'touch /opt/homeport/written'])
      check(write.code !== 0, 'the root file system cannot be written', write.output)
    } finally {
      const code = container.child.exitCode ?? (await container.stop())
      say(`the container ended with code ${code} after ${image.stopSignal}`)
      if (code !== 0) process.stderr.write(container.output.slice(-4000))
    }
    check(container.child.exitCode === 0, 'a stop ends with code 0', container.child.exitCode)
  }
}

await script(async () => {
  await needRoot()
  const work = mkdtempSync(join(tmpdir(), 'homeport-image-'))
  try {
    const image = await buildImage(work)
    const size = await must('du', ['-sm', '--exclude=proc', '--exclude=dev', image.root])
    say(`the image takes ${size.split('\t')[0]} MB`)
    await tryImage(image, work)
    process.stdout.write('the image builds, serves, stops and starts again\n')
  } finally {
    rmSync(work, { recursive: true, force: true, maxRetries: 5 })
  }
})
