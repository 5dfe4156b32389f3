import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import type { DatabaseStandby } from '../../src/contract/server/standbys.js'
import { commandHost, waitFor } from '../support/index.js'
import { makeNodeStore, nodePlace, startNode, type TestNode } from './test-node.js'

/** A copy of a database on a second node, or two. */

let a: TestNode
let b: TestNode
let c: TestNode
let guarded: Made
let placed: Made

beforeAll(async () => {
  await makeNodeStore()
  a = await start('a')
  // `a` is still alone, so it becomes the home.
  guarded = await create('guarded')
  placed = await create('placed')
  b = await start('b')
  c = await start('c')
})

const start = async (name: string, place = nodePlace()) => startNode(name, await place)

type Made = DatabaseRecord & Record<'rest_token', string>

async function create(name: string): Promise<Made> {
  const asked = { database_name: name, platform: 'aws', primary_region: 'us-east-1', plan: 'payg' }
  return (await a.api('POST', '/v2/redis/database', asked)).body as Made
}

const host = commandHost()
const cli = (node: TestNode, ...args: readonly string[]) => host(args, { env: node.env })

const standbysOf = async (node: TestNode, databaseId: string) =>
  ((await node.api('GET', '/v2/node-standbys')).body as DatabaseStandby[]).filter(
    (one) => one.database_id === databaseId,
  )

const standbyOf = async (node: TestNode, databaseId: string) => (await standbysOf(node, databaseId))[0]

/** Resolves when the copy has everything that was answered before this call. */
async function untilComplete(node: TestNode, databaseId: string): Promise<void> {
  const now = Date.now()
  const isComplete = async () => {
    const standby = await standbyOf(node, databaseId)
    return standby?.state === 'following' && standby.complete_until > now
  }
  await waitFor(isComplete, { what: 'the standby to be complete' })
}

/** Whether the files of the copy have a value. */
async function hasCopy({ place }: TestNode, databaseId: string, value: string): Promise<boolean> {
  const dir = join(place.dataDir, 'databases', databaseId)
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return (await Promise.all(files.map((file) => readFile(file)))).some((bytes) => bytes.includes(value))
}

it('a standby follows its home, also after a restart of its node, until it is removed', async () => {
  const made = guarded
  const id = made.database_id
  const files = async () => (await readdir(join(b.place.dataDir, 'databases'))).includes(id)
  const knows = async () => (await a.api('PUT', `/v2/nodes/b/standbys/${id}`)).status === 200
  await a.rest(made.rest_token, ['SET', 'k', 'before'])
  await waitFor(knows, { what: 'the nodes to know each other' })
  await untilComplete(a, id)
  expect(await b.api('PUT', `/v2/nodes/a/standbys/${id}`)).toMatchObject({ status: 409 })
  // The move is refused, because it would delete the copy first.
  expect(await a.api('POST', '/v2/nodes/b/databases', { database_id: id })).toMatchObject({
    status: 409,
    body: { error: expect.stringContaining('keeps a standby') },
  })

  // Every write moves the offsets on, and the copy follows.
  const before = await standbyOf(b, id)
  await a.rest(made.rest_token, ['SET', 'large', 'x'.repeat(100_000)])
  await untilComplete(b, id)
  expect((await standbyOf(b, id))?.standby_offset).toBeGreaterThan((before?.standby_offset ?? 0) + 100_000)

  await a.rest(made.rest_token, ['SET', 'mark', 'followed'])
  await waitFor(() => hasCopy(b, id, 'followed'), { what: 'the write to be in the files of the copy' })

  // While the node of the copy is away, the reported `complete_until` stays true.
  await b.stop()
  await waitFor(async () => (await standbyOf(a, id))?.state === 'behind', { what: 'the home to notice' })
  const shown = (await standbyOf(a, id))?.complete_until ?? 0
  const cutAt = Date.now()
  await a.rest(made.rest_token, ['SET', 'k', 'meanwhile'])
  expect(shown).toBeLessThan(cutAt)
  b = await start('b', Promise.resolve(b.place))
  await untilComplete(b, id)
  await waitFor(() => hasCopy(b, id, 'meanwhile'), { what: 'the files of the new copy' })

  expect(await b.api('DELETE', `/v2/nodes/b/standbys/${id}`)).toMatchObject({ status: 200, body: 'OK' })
  await waitFor(async () => !(await files()), { what: 'the copy to be deleted' })
  expect(await standbyOf(a, id)).toBeUndefined()

  // A move to the node right after the removal of another standby there keeps its files.
  expect((await a.api('PUT', `/v2/nodes/b/standbys/${id}`)).status).toBe(200)
  await untilComplete(a, id)
  await a.api('DELETE', `/v2/nodes/b/standbys/${id}`)
  expect((await a.api('POST', '/v2/nodes/b/databases', { database_id: id })).status).toBe(200)
  await waitFor(
    async () =>
      ((await a.api('GET', '/v2/node-moves')).body as { state: string }[]).every((one) => one.state === 'done'),
    { what: 'the move to end' },
  )
  expect(await files()).toBe(true)
  expect((await a.rest(made.rest_token, ['GET', 'k'])).body).toEqual({ result: 'meanwhile' })
  expect((await a.api('DELETE', `/v2/redis/database/${id}`)).body).toBe('OK')
})

it('a standby is placed by the home, which chooses another node when that one is drained or removed', async () => {
  const made = placed
  const id = made.database_id
  await a.rest(made.rest_token, ['SET', 'k', 'v'])
  // All other nodes are drained, so the request waits for one.
  for (const name of ['b', 'c']) expect(await a.api('POST', `/v2/nodes/${name}/drain`)).toMatchObject({ status: 200 })
  expect(await cli(a, 'nodes', 'standby', 'placed', '--on', 'auto')).toMatchObject({ code: 0 })
  expect(await standbyOf(a, id)).toMatchObject({
    standby: '',
    placement: 'auto',
    problem: expect.stringContaining('no'),
  })
  expect(await a.api('POST', '/v2/nodes/b/resume')).toMatchObject({ status: 200 })
  await untilComplete(a, id)
  expect(await standbyOf(a, id)).toMatchObject({ home: 'a', standby: 'b' })

  // A drained node gives its standbys to others, a removed one leaves the request behind.
  expect(await a.api('POST', '/v2/nodes/c/resume')).toMatchObject({ status: 200 })
  expect(await a.api('POST', '/v2/nodes/b/drain')).toMatchObject({ status: 200 })
  await waitFor(async () => (await standbyOf(a, id))?.standby === 'c', { what: 'another node to be chosen' })
  await untilComplete(a, id)
  await waitFor(() => hasCopy(c, id, 'v'), { what: 'the files of the new copy' })
  await waitFor(async () => !(await readdir(join(b.place.dataDir, 'databases'))).includes(id), {
    what: 'the old copy to go',
  })

  // A move to the node of the standby swaps the roles.
  expect((await a.api('POST', '/v2/nodes/c/databases', { database_id: id })).status).toBe(200)
  await waitFor(async () => (await standbyOf(a, id))?.home === 'c', { what: 'the move' })
  await untilComplete(a, id)
  expect(await standbyOf(a, id)).toMatchObject({ home: 'c', standby: 'a' })
  expect((await a.rest(made.rest_token, ['GET', 'k'])).body).toEqual({ result: 'v' })

  // Answers wait for the copy from then on.
  expect(await cli(a, 'nodes', 'standby', id, '--on', 'auto', '--mode', 'replicated')).toMatchObject({ code: 0 })
  expect(await standbyOf(a, id)).toMatchObject({ mode: 'replicated' })
  await untilComplete(a, id)
  const isShown = async () => ((await a.api('GET', `/v2/redis/database/${id}`)).body as DatabaseRecord).consistent
  await waitFor(isShown, { what: 'the record to tell' })
  const writes = Array.from({ length: 200 }, (_, number) => a.rest(made.rest_token, ['SET', `k${number}`, 'v']))
  expect(new Set((await Promise.all(writes)).map(({ status }) => status))).toEqual(new Set([200]))

  // A second copy waits until a node is no longer drained.
  expect(await cli(a, 'nodes', 'standby', id, '--on', 'auto', '--copies', '2')).toMatchObject({ code: 0 })
  expect((await standbysOf(a, id)).map(({ standby }) => standby)).toEqual(['a', ''])
  expect(await a.api('POST', '/v2/nodes/b/resume')).toMatchObject({ status: 200 })
  const areTwo = async () => (await standbysOf(a, id)).every(({ standby, state }) => standby && state === 'following')
  await waitFor(areTwo, { what: 'both standbys to follow' })
  await a.rest(made.rest_token, ['SET', 'mark', 'in both'])
  for (const node of [a, b])
    await waitFor(() => hasCopy(node, id, 'in both'), { what: 'the write in the files of both' })
  expect(await cli(a, 'nodes', 'standby', id, '--off', 'a')).toMatchObject({ code: 0 })
  expect(await standbysOf(a, id)).toMatchObject([{ home: 'c', standby: 'b', slot: 2, mode: 'replicated' }])

  expect(await cli(a, 'nodes', 'standby', '--off', 'unknown')).toMatchObject({
    stderr: expect.stringContaining('unknown'),
  })
  expect(await cli(a, 'nodes', 'standby', '--off', 'placed')).toMatchObject({ code: 0 })
  expect(await standbyOf(a, id)).toBeUndefined()
  const everyOne = await cli(a, 'nodes', 'standby', '--all', '--on', 'auto')
  expect(everyOne).toMatchObject({ stderr: expect.stringContaining('1 more database will have a standby') })
  expect((await a.api('PUT', '/v2/node-standbys')).body).toEqual({ added: 0 })
})
