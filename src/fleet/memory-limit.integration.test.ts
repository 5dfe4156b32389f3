import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { processLimit } from './memory-limit.js'
import { clientOf, specOf, startFleet } from './testing/test-fleet.js'

const MIB = 2 ** 20
const GIB = 2 ** 30

it('the memory bound is twice the data plus unread replies, within the machine, and at least what an engine uses', () => {
  const facts = { maxMemoryBytes: 64 * MIB, presentBytes: 50 * MIB, machineBytes: 64 * GIB }
  expect(processLimit(facts)).toBe(128 * MIB + GIB)
  expect(processLimit({ ...facts, maxMemoryBytes: 3 * GIB })).toBe(9 * GIB)
  expect(processLimit({ ...facts, maxMemoryBytes: 3 * GIB, machineBytes: 4 * GIB })).toBe(3 * GIB)
  expect(processLimit({ ...facts, presentBytes: 2 * GIB })).toBe(2 * GIB + 256 * MIB)
})

const limitOf = async (pid: number): Promise<number> =>
  Number(/^Max data size +(\d+)/m.exec(await readFile(`/proc/${pid}/limits`, 'utf8'))?.[1] ?? Number.POSITIVE_INFINITY)

const outOfMemoryScoreOf = async (pid: number): Promise<number> =>
  Number(await readFile(`/proc/${pid}/oom_score_adj`, 'utf8'))

it.runIf(process.platform === 'linux')(
  'the memory bound ends a script that takes all memory, nothing else, and follows a change of the plan',
  async () => {
    const { fleet } = await startFleet()
    const spec = specOf('db_memory', ['eu-west-1'])
    await fleet.ensure({ ...spec, maxMemoryBytes: 128 * MIB })
    const pids = fleet.observe('db_memory').map(({ pid = 0 }) => pid)
    // When the memory of the machine or container runs out, the kernel ends an engine and not the server.
    for (const pid of pids) expect(await outOfMemoryScoreOf(pid)).toBeGreaterThan(await outOfMemoryScoreOf(process.pid))
    const areLimited = async (bytes: number): Promise<boolean> =>
      (await Promise.all(pids.map(limitOf))).every((limit) => limit === bytes)
    await waitFor(() => areLimited(256 * MIB + GIB), { what: 'the primary and the replica to be limited' })
    await fleet.ensure(spec)
    await waitFor(() => areLimited(128 * MIB + GIB), { what: 'both to be limited again' })
    const client = clientOf((await fleet.endpoints('db_memory'))[0])
    const growing = client.eval("local s = 'x' while true do s = s .. s end", 0)
    await expect(growing).rejects.toThrow('not enough memory')
    expect(await client.ping()).toBe('PONG')
    expect(fleet.observe('db_memory').map(({ pid }) => pid)).toEqual(pids)
  },
)

it.runIf(process.platform === 'linux')('an engine keeps the memory bound that it was started with', async () => {
  const { fleet, lines } = await startFleet()
  const spec = specOf('db_bounded', [], { processMemoryBytes: 300 * MIB })
  await fleet.ensure(spec)
  await fleet.ensure({ ...spec, maxMemoryBytes: 32 * MIB })
  await fleet.ensure(specOf('db_other'))
  const pidOf = (databaseId: string): number => fleet.observe(databaseId)[0]?.pid ?? 0
  await waitFor(async () => (await limitOf(pidOf('db_other'))) === 128 * MIB + GIB, { what: 'the other to be limited' })
  expect(await limitOf(pidOf('db_bounded'))).toBe(300 * MIB)
  expect(lines.filter(({ level }) => level !== 'info')).toEqual([])
})
