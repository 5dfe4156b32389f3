import { chmodSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { atCleanup, freePort, newPlace, placeFlags, tempDir } from '../../../test/support/index.js'
import { lockDataDir } from '../../config/index.js'
import { runCli } from '../index.js'
import type { Finding } from './finding.js'
import { checkEnvironment, checkNode } from './machine.js'

async function doctor(args: readonly string[]) {
  const out: string[] = []
  const code = await runCli(['doctor', ...args], { out: (text) => void out.push(text), err: () => undefined })
  return { code, out: out.join('') }
}

async function diagnose(args: readonly string[]) {
  const { code, out } = await doctor([...args, '--json'])
  const { ok, checks } = JSON.parse(out) as { ok: boolean; checks: Finding[] }
  return { code, ok, of: (name: string) => checks.find((check) => check.name === name), checks }
}

it('the doctor passes all checks on a fresh data directory, and changes nothing', async () => {
  const place = await newPlace()
  const { code, ok, checks, of } = await diagnose(placeFlags(place))
  expect(checks.filter(({ status }) => status === 'fail')).toEqual([])
  expect({ code, ok }).toEqual({ code: 0, ok: true })
  expect(of('engine')?.found).toMatch(/^(redis|valkey) \d+\.\d+/)
  expect(of('data directory')?.found).toBe(`${place.dataDir} is created at the first start`)
  expect(of('store')?.found).toContain('synchronous FULL')
  expect((await diagnose(placeFlags(place))).of('data directory')?.found).toContain('is created at the first start')
})

it('names the process on a port that is in use, and the flag to change', async () => {
  const place = await newPlace()
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(place.restPort, '127.0.0.1', resolve))
  atCleanup(() => void server.close())
  const { code, of } = await diagnose(placeFlags(place))
  expect(code).toBe(1)
  expect(of('restPort')).toMatchObject({
    status: 'fail',
    found: expect.stringMatching(new RegExp(`^${place.restPort} is used by .* \\(process ${process.pid}\\)$`)),
    todo: 'Stop that program, or choose another port with --rest-port.',
  })
})

it('the doctor tells a port of the running server from one of another process', async () => {
  const place = await newPlace({ dataDir: tempDir() })
  const lock = lockDataDir(place.dataDir)
  atCleanup(() => lock.release())
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(place.apiPort, '127.0.0.1', resolve))
  atCleanup(() => void server.close())
  const { of } = await diagnose(placeFlags(place))
  expect(of('data directory')?.found).toContain(`is in use by process ${process.pid}`)
  expect(of('apiPort')).toMatchObject({ status: 'ok', found: `${place.apiPort} is served by process ${process.pid}` })
})

it('the doctor warns of a data directory that is open to other users', async () => {
  const dataDir = join(tempDir(), 'data')
  mkdirSync(dataDir)
  chmodSync(dataDir, 0o755)
  const { of } = await diagnose(placeFlags(await newPlace({ dataDir })))
  expect(of('data directory')).toMatchObject({ status: 'warn', todo: 'Restrict it: chmod 700.' })
})

it('the doctor fails when the engine is missing or the store does not respond', async () => {
  const flags = placeFlags(await newPlace())
  const store = `postgres://u:hunter2@127.0.0.1:${await freePort()}/homeport`
  for (const name of ['PGOPTIONS', 'PGHOST']) vi.stubEnv(name, 'hunter2')
  onTestFinished(() => void vi.unstubAllEnvs())
  const { code, out } = await doctor([...flags, '--engine-binary', '/nowhere/redis-server', '--store', store])
  expect(code).toBe(1)
  expect(out).toMatch(/^fail {2}engine +no working engine\n +.*--engine-binary/m)
  expect(out).toMatch(/^fail {2}store +postgres:\/\/127\.0\.0\.1:\d+\/homeport cannot be used: .*\n/m)
  expect(out).toMatch(/^warn {2}postgres +the environment changes the connection: PGOPTIONS$/m)
  expect(out).toMatch(/^warn {2}postgres +without effect in the environment: PGHOST$/m)
  expect(out).not.toContain('hunter2')
})

it('the doctor reports an invalid configuration', async () => {
  const { code, of } = await diagnose(['--api-port', 'x'])
  expect(code).toBe(1)
  expect(of('configuration')).toMatchObject({ status: 'fail', found: expect.stringContaining('--api-port is "x"') })
})

it('the doctor checks the version of Node and misspelt variables', () => {
  expect(checkNode('20.18.9').status).toBe('fail')
  expect(checkNode('20.19.0').status).toBe('ok')
  expect(checkNode('24.1.0').status).toBe('ok')
  expect(checkNode('20.19.0', 'no driver')).toMatchObject({ status: 'fail', found: '20.19.0: no driver' })
  expect(checkEnvironment(['HOMEPORT_X'])).toMatchObject({ status: 'warn', found: 'unknown: HOMEPORT_X' })
})
