/**
 * `npm run test:examples [-- <name> ...]`: starts each application of `examples/` with packages from the npm registry, signs
 * somebody up, turns the clock by three days, and looks for the mail. `jest` runs a test with `homeport/testing`.
 *
 * `--installed` uses the packages of the checkout, for examples that need no others.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureBuilt } from './lib/compile.mjs'
import { script } from './lib/main.mjs'
import { inProject } from './lib/paths.mjs'
import { run } from './lib/processes.mjs'
import { SetupError, say } from './lib/say.mjs'

/** How each example is started, in its folder. */
const EXAMPLES = {
  hono: { command: ['node', 'hono.mjs'] },
  express: { command: ['node', 'express.mjs'] },
  fastify: { command: ['node', 'fastify.mjs'] },
  python: { folder: 'python', command: ['python3', 'app.py'] },
  nextjs: { folder: 'nextjs', prepare: ['npm', 'run', 'build'], command: ['npm', 'start'] },
  'cloudflare-worker': { folder: 'cloudflare-worker', command: ['npm', 'run', 'dev'] },
}
const DAYS_MS = 3 * 86_400_000
const START_MS = 60_000

const given = process.argv.slice(2)
const isInstalled = given.includes('--installed')
const chosen = given.filter((name) => name !== '--installed')

async function tryAll() {
  const all = [...Object.keys(EXAMPLES), 'jest']
  const unknown = chosen.filter((name) => !all.includes(name))
  if (unknown.length > 0) throw new SetupError(`no example is named ${unknown}; there are ${all.join(', ')}.`)
  await ensureBuilt()
  const { startHomeport } = await import(pathToFileURL(inProject('dist/testing.cjs')))
  const work = mkdtempSync(join(tmpdir(), 'homeport-examples-'))
  const homeport = await startHomeport()
  try {
    const examples = isInstalled ? inProject('examples') : copyOf(work)
    const names = chosen.length > 0 ? chosen : all
    for (const [index, name] of names.entries()) {
      if (index > 0) await homeport.reset()
      if (name === 'jest') await tryJest(work)
      else await tryOne(homeport, examples, name)
    }
  } finally {
    await homeport.stop()
    rmSync(work, { recursive: true, force: true, maxRetries: 5 })
  }
}

function copyOf(work) {
  const to = join(work, 'examples')
  cpSync(inProject('examples'), to, { recursive: true, filter: (path) => !path.includes('node_modules') })
  return to
}

async function command([program, ...args], cwd, env) {
  const { code, output } = await run(program, args, { cwd, env, quiet: true })
  if (code !== 0) throw new SetupError(`${program} ${args.join(' ')} in ${cwd} failed:\n${output}`)
}

async function tryOne(homeport, examples, name) {
  const { folder = '', prepare, command: start } = EXAMPLES[name]
  const cwd = join(examples, folder)
  const port = await freePort()
  const { env: database } = await homeport.createDatabase()
  const APP_URL = `http://127.0.0.1:${port}`
  const env = { ...homeport.env, ...database, PORT: String(port), APP_URL, NEXT_TELEMETRY_DISABLED: '1' }
  if (existsSync(join(cwd, 'package.json')) && !isInstalled && !existsSync(join(cwd, 'node_modules'))) {
    say(`${name}: installing packages`)
    await command(['npm', 'install', '--no-audit', '--no-fund'], cwd)
  }
  if (prepare) await command(prepare, cwd, env)
  const app = spawnApp(start, cwd, env)
  try {
    await signUp(homeport, APP_URL, app)
    say(`${name}: the mail came`)
  } catch (error) {
    throw new SetupError(`${name}: ${error.message}; its output:\n${app.output()}`)
  } finally {
    await app.end()
  }
}

/** `homeport/testing` under Jest, which is no package of the checkout. */
async function tryJest(work) {
  const folder = join(work, 'jest')
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  say('jest: installing packages')
  await command(['npm', 'install', '--no-audit', '--no-fund', 'jest@30.5.2'], folder)
  symlinkSync(inProject('.'), join(folder, 'node_modules/homeport'))
  symlinkSync(inProject('node_modules/@upstash'), join(folder, 'node_modules/@upstash'))
  cpSync(inProject('test/testkit/runners/jest-test.cjs'), join(folder, 'mail.test.cjs'))
  await command(['npx', 'jest', '--testMatch', '**/*.test.cjs'], folder)
  say('jest: the test passed')
}

function spawnApp([program, ...args], cwd, env) {
  const stdio = ['ignore', 'pipe', 'pipe']
  // The process group is signalled as a whole, because npm does not pass signals on to its child processes.
  const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio, detached: true })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  let failure
  child.once('error', (error) => (failure = error))
  const hasEnded = () => failure !== undefined || child.exitCode !== null || child.signalCode !== null
  const end = async () => {
    if (hasEnded()) return
    const exit = once(child, 'exit')
    process.kill(-child.pid, 'SIGKILL')
    await exit
  }
  return { output: () => output, hasEnded, end }
}

async function signUp(homeport, url, app) {
  const deadline = Date.now() + START_MS
  while (
    !(await fetch(`${url}/sent`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (app.hasEnded() || Date.now() > deadline) throw new Error('it does not serve')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const headers = { 'Content-Type': 'application/json' }
  const forged = await fetch(`${url}/mail`, { method: 'POST', headers, body: '{"to":"nobody@example.com"}' })
  if (forged.status !== 401) throw new Error(`a message without a signature was answered ${forged.status}`)
  const body = JSON.stringify({ email: 'ada@example.com' })
  const response = await fetch(`${url}/signup`, { method: 'POST', headers, body })
  if (!response.ok) throw new Error(`signing up was answered ${response.status}: ${await response.text()}`)
  await homeport.advanceTime(DAYS_MS)
  await homeport.deliveries({ url: `${url}/mail`, count: 1 })
  const sent = await (await fetch(`${url}/sent`)).text()
  if (sent !== '["ada@example.com"]' && sent !== '["ada@example.com"]\n') throw new Error(`the mails sent are ${sent}`)
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}

await script(tryAll)
