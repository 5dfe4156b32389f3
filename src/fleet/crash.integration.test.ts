import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { atCleanup, bundleProgram, processesMarked, THREADS, tempDir, waitFor } from '../../test/support/index.js'
import { clientOf, localEngine, specOf, startFleet } from './testing/test-fleet.js'

let hostProgram: string
beforeAll(async () => {
  const { launcher } = THREADS
  const folder = await bundleProgram({ host: ['src/fleet/testing/host.ts'], launcher })
  hostProgram = join(folder, 'host.js')
})

function endAtCleanup(child: ChildProcess): void {
  atCleanup(() => {
    child.kill('SIGCONT')
    child.kill('SIGKILL')
  })
}

/** Starts a process with a fleet and the database `db_host`; resolves when that is running. */
async function startHost(dataDir: string): Promise<{ host: ChildProcess; engines: readonly number[] }> {
  const host = spawn(process.execPath, [hostProgram, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] })
  endAtCleanup(host)
  const ended = once(host, 'exit').then(([code]) => Promise.reject(new Error(`the host ended with code ${code}`)))
  const [line] = await Promise.race([once(host.stdout ?? host, 'data'), ended])
  return { host, engines: JSON.parse(String(line)) }
}

async function kill(host: ChildProcess): Promise<void> {
  host.kill('SIGKILL')
  if (host.exitCode === null && host.signalCode === null) await once(host, 'exit')
}

function parentOf(pid: number | undefined): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

function nothingRuns(dataDir: string): Promise<unknown> {
  const leftovers = () => processesMarked(dataDir).filter(({ command }) => !command.includes(hostProgram))
  return waitFor(() => leftovers().length === 0, { what: 'the engines to end' })
}

describe('when Homeport is killed', () => {
  test('its engines end, and the next start has the data', async () => {
    const dataDir = tempDir()
    const { host } = await startHost(dataDir)
    await kill(host)
    await nothingRuns(dataDir)
    const { fleet } = await startFleet({ dataDir })
    await fleet.ensure(specOf('db_host', ['eu-west-1']))
    expect(await clientOf((await fleet.endpoints('db_host'))[0]).get('key')).toBe('value')
  })

  test('together with its launcher, its engines end too', async () => {
    const dataDir = tempDir()
    const { host, engines } = await startHost(dataDir)
    host.kill('SIGSTOP')
    process.kill(parentOf(engines[0]), 'SIGKILL')
    await nothingRuns(dataDir)
    await kill(host)
  })

  test('and engines keep running, the next start ends them first', async () => {
    const dataDir = tempDir()
    const { host, engines } = await startHost(dataDir)
    const launcher = parentOf(engines[0])
    process.kill(launcher, 'SIGSTOP')
    await kill(host)
    expect(processesMarked(join(dataDir, 'databases'))).toHaveLength(2)
    const { fleet, lines } = await startFleet({ dataDir })
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', fields: { ended: 2 } }))
    await fleet.ensure(specOf('db_host'))
    expect(await clientOf((await fleet.endpoints('db_host'))[0]).get('key')).toBe('value')
    expect(processesMarked(join(dataDir, 'databases'))).toHaveLength(1)
    process.kill(launcher, 'SIGKILL')
  })

  test('and an engine hangs, the next start kills it', async () => {
    const dataDir = tempDir()
    const dir = join(dataDir, 'databases', 'db_hang', 'us-east-1')
    mkdirSync(dir, { recursive: true })
    const { binary } = await localEngine()
    const { fleet: first } = await startFleet({ dataDir })
    await first.ensure(specOf('db_hang'))
    await first.stop()
    mkdirSync(join(dataDir, 'run'), { mode: 0o700 })
    const orphan = spawn(binary, [join(dir, 'engine.conf')], { stdio: 'ignore' })
    endAtCleanup(orphan)
    await waitFor(() => readdirSync(join(dataDir, 'run')).length === 1, { what: 'the orphan to listen' })
    orphan.kill('SIGSTOP')
    const { fleet } = await startFleet({ dataDir, stopGraceMs: 50 })
    await fleet.ensure(specOf('db_hang'))
    expect(processesMarked(dir)).toHaveLength(1)
  })
})

describe('when the launcher is killed', async () => {
  const { fleet, dataDir, lines } = await startFleet()

  test('every engine is restarted by a new one, with its data', async () => {
    await Promise.all([fleet.ensure(specOf('db_one')), fleet.ensure(specOf('db_two', ['eu-west-1']))])
    await clientOf((await fleet.endpoints('db_two'))[0]).set('key', 'value')
    const pids = [...fleet.observe('db_one'), ...fleet.observe('db_two')].map((member) => member.pid)
    process.kill(parentOf(pids[0]), 'SIGKILL')
    await waitFor(() => lines.some((line) => line.text.includes('the launcher ended')), {
      what: 'the exit to be noticed',
    })
    await waitFor(() => fleet.observe('db_two')[0]?.pid !== pids[1], { what: 'the engines to restart' })
    await Promise.all([fleet.ensure(specOf('db_one')), fleet.ensure(specOf('db_two', ['eu-west-1']))])
    expect(await clientOf((await fleet.endpoints('db_two'))[0]).get('key')).toBe('value')
    expect(processesMarked(join(dataDir, 'databases'))).toHaveLength(3)
  })
})

describe('orphans', async () => {
  test('are directories of unknown databases: reported and kept, except those of throwaway engines', async () => {
    const dataDir = tempDir()
    const { fleet: earlier } = await startFleet({ dataDir })
    await Promise.all([earlier.ensure(specOf('db_known')), earlier.ensure(specOf('db_orphan', ['eu-west-1']))])
    await clientOf((await earlier.endpoints('db_known'))[0]).set('key', 'value')
    await earlier.stop()
    const { fleet } = await startFleet({ dataDir })
    mkdirSync(join(dataDir, 'databases', 'check-abc', 'check'), { recursive: true })
    expect(await fleet.collectOrphans(new Set(['db_known']))).toEqual(['db_orphan'])
    expect(readdirSync(join(dataDir, 'databases')).sort()).toEqual(['db_known', 'db_orphan'])
    expect(processesMarked(join(dataDir, 'databases'))).toEqual([])
    await fleet.ensure(specOf('db_known'))
    expect(await clientOf((await fleet.endpoints('db_known'))[0]).get('key')).toBe('value')
  })
})

describe('a fleet that stops', () => {
  test('leaves no process, socket or launcher, and refuses later calls', async () => {
    const { fleet, dataDir } = await startFleet()
    await Promise.all([fleet.ensure(specOf('db_a', ['eu-west-1'])), fleet.ensure(specOf('db_b'))])
    const launcher = parentOf(fleet.observe('db_b')[0]?.pid)
    const waiting = fleet.ensure(specOf('db_late'))
    waiting.catch(() => {})
    await fleet.stop()
    await fleet.stop()
    expect(processesMarked(dataDir)).toEqual([])
    expect(readdirSync(dataDir).filter((name) => name !== 'reserve')).toEqual(['databases'])
    expect(() => process.kill(launcher, 0)).toThrow(/ESRCH/)
    await expect(waiting).rejects.toMatchObject({ code: 'starting' })
    await expect(fleet.ensure(specOf('db_a'))).rejects.toMatchObject({ code: 'starting' })
    await expect(fleet.endpoints('db_a')).rejects.toMatchObject({ code: 'starting' })
    await expect(fleet.remove('db_a')).rejects.toMatchObject({ code: 'starting' })
  })

  test('kills an engine that hangs after the grace', async () => {
    const { fleet, dataDir, lines } = await startFleet({ stopGraceMs: 50 })
    await fleet.ensure(specOf('db_hung'))
    process.kill(fleet.observe('db_hung')[0]?.pid ?? 0, 'SIGSTOP')
    await fleet.stop()
    expect(processesMarked(dataDir)).toEqual([])
    expect(lines.map(({ event }) => event)).toContain('engine_killed')
  })
})
