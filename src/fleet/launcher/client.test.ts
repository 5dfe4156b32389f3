import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir, waitFor } from '../../../test/support/index.js'
import { type Clock, systemClock } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { silentLogger } from '../../telemetry/index.js'
import { createLauncher } from './client.js'

const logger = silentLogger
const create = (clock: Clock = systemClock) =>
  createLauncher({ dataDir: '/', clock, logger, endLeftovers: async () => undefined })

/** Runs the work without a usable Node, as after an upgrade has replaced it. */
async function withoutNode(work: () => Promise<void>, path = '/nowhere/node'): Promise<void> {
  const node = process.execPath
  process.execPath = path
  try {
    await work()
  } finally {
    process.execPath = node
  }
}

it('the launcher starts with the first process, and one launcher serves all', async () => {
  const launcher = create()
  expect(launcher.pid).toBeUndefined()
  const all = await Promise.all([launcher.spawn('true', []), launcher.spawn('false', [])])
  const { pid } = launcher
  expect(pid).toBeGreaterThan(0)
  expect(await Promise.all(all.map(({ exited }) => exited))).toMatchObject([{ code: 0 }, { code: 1 }])
  await (await launcher.spawn('true', [])).exited
  expect(launcher.pid).toBe(pid)
  await launcher.stop()
})

it('the launcher is started again after its process failed to start', async () => {
  const launcher = create()
  await withoutNode(() => expect(launcher.spawn('true', [])).rejects.toThrow('ENOENT'))
  expect(await (await launcher.spawn('true', [])).exited).toMatchObject({ code: 0 })
  await launcher.stop()
})

it('the launcher can be stopped after a failed start or before its first use, and starts nothing afterwards', async () => {
  const [failed, unused] = [create(), create()]
  await withoutNode(() => expect(failed.start()).rejects.toThrow('ENOENT'))
  for (const launcher of [failed, unused]) {
    await launcher.stop()
    await expect(launcher.spawn('true', [])).rejects.toThrow('stopped')
    expect(launcher.pid).toBeUndefined()
  }
})

it('the launcher survives a refused process, and is started again when the system refused the launcher itself', async () => {
  // Node throws this error, as it throws ENOMEM; it reports ENOENT later.
  const notAFolder = '/dev/null/program'
  const launcher = create()
  const lasting = await launcher.spawn('sleep', ['60'])
  const { pid = 0 } = launcher
  await expect(launcher.spawn(notAFolder, [])).rejects.toThrow('ENOTDIR')
  expect(launcher.pid).toBe(pid)
  await withoutNode(async () => {
    process.kill(pid, 'SIGKILL')
    expect(await lasting.exited).toMatchObject({ output: 'its launcher ended' })
    await expect(launcher.start()).rejects.toThrow('ENOTDIR')
  }, notAFolder)
  expect(await (await launcher.spawn('true', [])).exited).toMatchObject({ code: 0 })
  await launcher.stop()
  process.kill(lasting.pid, 'SIGKILL')
})

/** A program that does nothing, like a Node that the system refuses its threads. */
function hangingNode(): string {
  const path = join(tempDir(), 'node')
  writeFileSync(path, '#!/bin/sh\nexec sleep 600\n')
  chmodSync(path, 0o755)
  return path
}

it('callers do not wait for a launcher that hangs before it is ready', async () => {
  const clock = new ManualClock()
  const launcher = create(clock)
  let failure = ''
  await withoutNode(async () => {
    const started = launcher.start().catch(({ message }: Error) => {
      failure = message
    })
    const { pid } = launcher
    await clock.advance(60_000)
    await started
    expect(failure).toBe('the launcher ended before it was ready')
    await waitFor(() => launcher.pid !== pid, { what: 'its end to be noticed' })
  }, hangingNode())
  await launcher.stop()
})

it('a stop ends a launcher that is not ready yet at once', async () => {
  const launcher = create(new ManualClock())
  await withoutNode(async () => {
    const started = launcher.start().catch(({ message }: Error) => message)
    await launcher.stop()
    expect(await started).toBe('the launcher ended before it was ready')
  }, hangingNode())
})
