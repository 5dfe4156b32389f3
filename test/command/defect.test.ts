import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { call, newPlace, type RunningHomeport, startHomeport, tempDir, waitFor } from '../support/index.js'

/** Makes a server throw an uncaught exception on a signal. */
function preload(): Record<string, string> {
  const file = join(tempDir(), 'defect.mjs')
  writeFileSync(
    file,
    `process.on('SIGUSR2', () => setImmediate(() => { throw new TypeError('the password is hunter2') }))
process.on('SIGPIPE', () => void Promise.reject(new RangeError('the password is hunter2')))`,
  )
  return { NODE_OPTIONS: `--import=${pathToFileURL(file)}` }
}

async function endBy(signal: NodeJS.Signals, homeport: RunningHomeport): Promise<void> {
  process.kill(homeport.pid, signal)
  await waitFor(() => homeport.processes().length === 0, { what: 'the end of the server' })
  expect(await homeport.kill('SIGTERM')).toEqual({ code: 1, signal: null })
  expect(homeport.logs()).toMatch(/a defect in \w+ ends the server/)
}

it('the server ends with a report on an uncaught error, and mentions it at the next start', async () => {
  const place = await newPlace()
  const env = preload()
  const first = await startHomeport({ ...place, env })
  await endBy('SIGUSR2', first)
  const second = await startHomeport({ ...place, env })
  expect(second.logs()).toContain('The server crashed at')
  expect((await call(`${second.apiUrl}/health`)).body).toMatchObject({ problems: 1 })
  await endBy('SIGPIPE', second)

  const directory = join(place.dataDir, 'crashes')
  const names = readdirSync(directory).sort()
  const reports = names.map((name) => readFileSync(join(directory, name), 'utf8'))
  expect(names.map((name) => statSync(join(directory, name)).mode & 0o777)).toEqual([0o600, 0o600])
  expect(reports.join()).not.toContain('hunter2')
  expect(reports.map((report) => JSON.parse(report))).toMatchObject([
    { kind: 'uncaughtException', version: expect.any(String), error: { type: 'TypeError' } },
    { kind: 'unhandledRejection', error: { type: 'RangeError' } },
  ])
})
