import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import {
  atCleanup,
  childEnv,
  MAIN_JS,
  newPlace,
  placeFlags,
  processesMarked,
  run,
  runHomeport,
  startHomeport,
  waitFor,
} from '../support/index.js'

const PROJECT = fileURLToPath(new URL('../..', import.meta.url))

const isUp = async (url: string): Promise<boolean> => (await fetch(`${url}/health`)).ok

/** Listens on a port as another program does, until the returned function is called. */
async function occupy(port: number): Promise<() => Promise<unknown>> {
  const stranger = createServer()
  await new Promise<void>((resolve) => stranger.listen(port, '127.0.0.1', resolve))
  const leave = () => new Promise((resolve) => stranger.close(resolve))
  atCleanup(() => void leave())
  return leave
}

/** Where the first two tests start servers. */
const place = await newPlace()

it('`homeport start` ends with one sentence when a port is in use, and leaves nothing behind', async () => {
  const leave = await occupy(place.queuePort)
  const { code, stdout, stderr } = await runHomeport(['start', ...placeFlags(place)])
  await leave()
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toContain(`error: Port ${place.queuePort} is in use by another program.`)
  expect(stderr).toContain('or choose another port with --queue-port.')
  expect(processesMarked(place.dataDir)).toEqual([])
})

it('names the address that it should listen on when the machine does not have it', async () => {
  const { code, stderr } = await runHomeport([
    'start',
    ...placeFlags(place),
    ...['--host', '192.0.2.1', '--proxy-terminates-tls', 'true'],
  ])
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^error: This machine does not have the address 192\.0\.2\.1\./m),
  ])
  expect(processesMarked(place.dataDir)).toEqual([])
})

it('`homeport start` prints the credentials once, at the first start that serves, and shares its data with no other', async () => {
  const first = await startHomeport(place)
  // The listeners respond shortly before the whole server is healthy.
  const printed = await waitFor(() => exportsIn(first.logs()) || undefined, { what: 'the credentials to be printed' })
  const { stdout } = await run('sh', ['-c', `${printed}\necho "$HOMEPORT_EMAIL $QSTASH_TOKEN"`])
  expect(stdout).toBe(`${first.credentials.email} ${first.credentials.queueToken}\n`)

  const env = await runHomeport(['env', '--json', ...placeFlags(first.place)])
  expect(JSON.parse(env.stdout)).toEqual({
    ...first.credentials,
    apiUrl: first.apiUrl,
    restUrl: first.restUrl,
    queueUrl: first.queueUrl,
  })

  const refused = await runHomeport(['start', ...placeFlags(await newPlace({ dataDir: first.place.dataDir }))])
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain(`Another Homeport (process ${first.pid}) already uses the data directory`)
  expect(await isUp(first.apiUrl)).toBe(true)

  expect(await first.kill('SIGTERM')).toEqual({ code: 0, signal: null })
  const second = await startHomeport(first.place)
  expect(second.credentials).toEqual(first.credentials)
  expect(exportsIn(second.logs())).toBe('')
})

const exportsIn = (logs: string): string => (logs.match(/^export .*$/gm) ?? []).join('\n')

it('`homeport start` says what to do when the engine is missing, and leaves nothing behind', async () => {
  const place = await newPlace()
  const { code, stderr } = await runHomeport([
    'start',
    ...placeFlags(place),
    '--engine-binary',
    '/nowhere/redis-server',
  ])
  expect(code).toBe(1)
  expect(stderr).toMatch(/^error: .*--engine-binary/m)
  expect(processesMarked(place.dataDir)).toEqual([])
})

it.skipIf(process.platform !== 'linux')(
  '`homeport start` says what to do when its address space is limited',
  async () => {
    const place = await newPlace()
    const start = [process.execPath, MAIN_JS, 'start', ...placeFlags(place)]
    expect(await run('prlimit', ['--as=4000000000', ...start])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('`ulimit -v unlimited`'),
    })
  },
)

it('`homeport start` exits with 2 and lists all problems of an invalid configuration', async () => {
  const { code, stderr } = await runHomeport(['start', '--api-port', 'x', '--host', 'example.com'])
  expect(code).toBe(2)
  expect(stderr).toContain('--host is "example.com", expected an IP address or localhost; --api-port is "x"')
})

/** Starts `npm start` in its own process group, as a terminal does, and waits until it serves. */
async function npmStart() {
  const place = await newPlace()
  const options = { cwd: PROJECT, env: childEnv(), detached: true } as const
  const npm = spawn('npm', ['start', '--', ...placeFlags(place)], options)
  let output = ''
  npm.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  npm.stderr.resume()
  atCleanup(() => {
    npm.kill('SIGKILL')
    // Processes that npm started do not end with it.
    for (const { pid } of processesMarked(place.dataDir)) process.kill(pid, 'SIGKILL')
  })
  await waitFor(() => output.includes('Homeport serves.'), { what: 'npm start', deadlineMs: 60_000 })
  return { npm, leftBehind: () => processesMarked(place.dataDir) }
}

it('`npm start` passes flags, stops on SIGTERM, and leaves no process behind', async () => {
  const { npm, leftBehind } = await npmStart()
  npm.kill('SIGTERM')
  expect(await once(npm, 'exit')).toEqual([0, null])
  expect(leftBehind()).toEqual([])
})

it('`npm start` stops cleanly on Ctrl-C, which the terminal also sends to the server', async () => {
  const { npm, leftBehind } = await npmStart()
  process.kill(-(npm.pid ?? 0), 'SIGINT')
  expect(await once(npm, 'exit')).toEqual([0, null])
  expect(leftBehind()).toEqual([])
})

it('`npx homeport` runs the built command', async () => {
  const { stdout } = await run('npx', ['homeport', '--version'], { cwd: PROJECT })
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
})
