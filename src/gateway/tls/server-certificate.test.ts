import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { atCleanup, tempDir, waitFor } from '../../../test/support/index.js'
import { systemClock } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { isGoodFor, type KeyPair, makeAuthority, makeServerCertificate } from '../../certificates/index.js'
import type { LogEvent } from '../../contract/logs/events.js'
import { openServerCertificate, type ServerCertificate } from './server-certificate.js'

const DAY_MS = 86_400_000

let directory: string
let files: { certificate: string; key: string }
let complaints: string[]

beforeEach(() => {
  directory = tempDir()
  files = { certificate: join(directory, 'own.crt'), key: join(directory, 'own.key') }
  complaints = []
})

async function newPair(): Promise<KeyPair> {
  return makeServerCertificate(await makeAuthority(Date.now()), ['own.test'], Date.now())
}

/** Replaces a file atomically. */
function replace(path: string, text: string): void {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

async function open(): Promise<ServerCertificate> {
  const silent = (): void => {}
  const logger = {
    debug: silent,
    info: silent,
    warn: silent,
    error: (_event: LogEvent, fields: object) => void complaints.push(textOf(fields)),
  }
  const source = await openServerCertificate({ dataDir: directory, hostNames: [], files, clock: systemClock, logger })
  await source.start()
  atCleanup(() => source.stop())
  return source
}

const textOf = (fields: object): string => ('error' in fields ? String(fields.error) : '')

describe('a certificate of the operator', () => {
  it('is read again when its files are replaced', async () => {
    const [first, second] = [await newPair(), await newPair()]
    replace(files.certificate, first.certificate)
    replace(files.key, first.key)
    const source = await open()
    expect(source.current).toEqual(first)
    let changes = 0
    source.onChange(() => changes++)
    replace(files.certificate, second.certificate)
    replace(files.key, second.key)
    await waitFor(() => changes === 1, { what: 'the new certificate to be noticed' })
    expect(source.current).toEqual(second)
  })

  it('is read again also while other files of its folder change all the time', async () => {
    const [first, second] = [await newPair(), await newPair()]
    replace(files.certificate, first.certificate)
    replace(files.key, first.key)
    const source = await open()
    const others = setInterval(() => writeFileSync(join(directory, 'other.log'), 'busy'), 10)
    onTestFinished(() => clearInterval(others))
    replace(files.certificate, second.certificate)
    replace(files.key, second.key)
    const isNoticed = () => source.current.key === second.key
    await waitFor(isNoticed, { what: 'the new certificate to be noticed', deadlineMs: 20_000 })
  })

  it('is kept, with one logged error, until certificate and key belong together again', async () => {
    const [first, second] = [await newPair(), await newPair()]
    replace(files.certificate, first.certificate)
    replace(files.key, first.key)
    const source = await open()
    replace(files.certificate, second.certificate)
    await waitFor(() => complaints.length > 0, { what: 'the pair that does not fit to be noticed' })
    expect(complaints.join()).toContain('they do not belong together')
    expect(source.current).toEqual(first)
    replace(files.key, second.key)
    await waitFor(() => source.current.key === second.key, { what: 'the pair that fits to be noticed' })
    expect(complaints).toHaveLength(1)
  })

  it('lets the server start where its folder cannot be watched', async () => {
    const pair = await newPair()
    replace(files.certificate, pair.certificate)
    replace(files.key, pair.key)
    const silent = (): void => {}
    const warned: LogEvent[] = []
    const warn = (event: LogEvent): void => void warned.push(event)
    const logger = { debug: silent, info: silent, warn, error: silent }
    const source = await openServerCertificate({ dataDir: directory, hostNames: [], files, clock: systemClock, logger })
    rmSync(directory, { recursive: true })
    await source.start()
    await source.stop()
    expect([warned, source.current]).toEqual([['certificate_not_watched'], pair])
  })

  it.each([
    ['cannot be read', () => {}, /own\.(crt|key)\): it cannot be read \(ENOENT\)/],
    ['is no certificate', () => replace(files.certificate, 'nothing'), /not a certificate and private key in PEM/],
  ])('that %s is refused at the start, in an error without path or content', async (_what, spoil, problem) => {
    if (_what !== 'cannot be read') replace(files.key, (await newPair()).key)
    spoil()
    const opened = open()
    await expect(opened).rejects.toMatchObject({ code: 'tls_files_unusable' })
    await expect(opened).rejects.toThrow(problem)
    await expect(opened).rejects.not.toThrow(directory)
  })
})

it('the certificate of the local authority is renewed while the server runs', async () => {
  const clock = new ManualClock(Date.now())
  const silent = (): void => {}
  const logger = { debug: silent, info: silent, warn: silent, error: silent }
  const source = await openServerCertificate({ dataDir: directory, hostNames: ['a.test'], clock, logger })
  await source.start()
  const before = source.current.certificate
  clock.advance(390 * DAY_MS)
  const isRenewed = (): boolean => {
    clock.advance(DAY_MS / 2)
    return source.current.certificate !== before
  }
  await waitFor(isRenewed, { what: 'the certificate to be renewed' })
  expect(
    isGoodFor(source.current.certificate, ['a.test', 'localhost', '127.0.0.1', '::1'], clock.now(), 300 * DAY_MS),
  ).toBe(true)
  await source.stop()
})

it('the certificate of the local authority is renewed within a minute after the clock was set', async () => {
  const clock = new ManualClock(10_000)
  const silent = (): void => {}
  const logger = { debug: silent, info: silent, warn: silent, error: silent }
  const source = await openServerCertificate({ dataDir: directory, hostNames: [], clock, logger })
  await source.start()
  atCleanup(() => source.stop())
  const before = source.current
  clock.advance(Date.now())
  let minutes = 0
  const isRenewed = (): boolean => {
    clock.advance(60_000)
    minutes++
    return source.current !== before
  }
  await waitFor(isRenewed, { what: 'the renewal' })
  expect(minutes).toBeLessThan(12 * 60)
})
