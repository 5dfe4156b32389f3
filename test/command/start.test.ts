import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import {
  atCleanup,
  childEnv,
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

it('prints the credentials once, ready to paste; `env` prints them again while the server runs', async () => {
  const first = await startHomeport()
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

  expect(await first.kill('SIGTERM')).toEqual({ code: 0, signal: null })
  const second = await startHomeport(first.place)
  expect(second.credentials).toEqual(first.credentials)
  expect(exportsIn(second.logs())).toBe('')
})

const exportsIn = (logs: string): string => (logs.match(/^export .*$/gm) ?? []).join('\n')

it('refuses a data directory that another server uses, and names that server', async () => {
  const server = await startHomeport()
  const other = await newPlace({ dataDir: server.place.dataDir })
  const { code, stderr } = await runHomeport(['start', ...placeFlags(other)])
  expect(code).toBe(1)
  expect(stderr).toContain(`Another Homeport (process ${server.pid}) already uses the data directory`)
  expect(await isUp(server.apiUrl)).toBe(true)
})

it.each(['apiPort', 'restPort', 'queuePort'] as const)('ends with one sentence when %s is in use', async (option) => {
  const place = await newPlace()
  const stranger = createServer()
  await new Promise<void>((resolve) => stranger.listen(place[option], '127.0.0.1', resolve))
  atCleanup(() => void stranger.close())
  const { code, stderr } = await runHomeport(['start', ...placeFlags(place)])
  expect(code).toBe(1)
  const flag = `--${option.replace('Port', '-port')}`
  expect(stderr).toContain(`error: Port ${place[option]} is in use by another program.`)
  expect(stderr).toContain(`or choose another port with ${flag}.`)
  expect(processesMarked(place.dataDir)).toEqual([])
})

it('shows the credentials at the first start that serves, also after one that failed', async () => {
  const place = await newPlace()
  const stranger = createServer()
  await new Promise<void>((resolve) => stranger.listen(place.queuePort, '127.0.0.1', resolve))
  const { code, stdout } = await runHomeport(['start', ...placeFlags(place)])
  await new Promise((resolve) => stranger.close(resolve))
  expect([code, stdout]).toEqual([1, ''])
  const server = await startHomeport(place)
  await waitFor(() => exportsIn(server.logs()).includes(server.credentials.apiKey), { what: 'the credentials' })
})

it('says what to do when the engine is missing, and leaves nothing behind', async () => {
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

it('exits with 2 and lists all problems of an invalid configuration', async () => {
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
